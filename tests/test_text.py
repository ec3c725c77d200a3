"""Words, stems and likeness of texts, in scripts with and without spaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.recipes.neptune.script import shorten_text
from mustsee.text import TermVectors, first_words, length, name_some, overlap, stem, terms, words

ENGLISH = "The boat turns. Then it comes into the harbour."
CHINESE = "船转过来了。然后它慢慢驶进了港口。"
ARABIC = "يستدير القارب. ثم يدخل الميناء ببطء."


@pytest.mark.parametrize(("text", "count"), [(ENGLISH, 9), (CHINESE, 10), (ARABIC, 6), ("", 0)])
def test_lengths_are_counted_in_words(text: str, count: int) -> None:
    assert length(text) == count


def test_words_of_a_script_without_spaces_are_its_characters() -> None:
    assert words("他跑步 fast") == ["他", "跑", "步", "fast"]
    assert overlap("一只黑色的猫", "黑色的猫") == 1
    assert overlap("一只黑色的猫", "白马") == 0


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        (ENGLISH, 5, "The boat turns."),
        (ENGLISH, 2, "The boat ..."),
        (CHINESE, 7, "船转过来了。"),
        (CHINESE, 2, "船转过来 ..."),
        (ARABIC, 4, "يستدير القارب."),
        (ARABIC, 9, ARABIC),
    ],
)
def test_a_text_is_shortened_to_whole_sentences(text: str, most: int, kept: str) -> None:
    assert shorten_text(text, most) == kept


@given(st.text(), st.integers(0, 20))
def test_a_shortened_text_is_a_prefix_that_fits(text: str, most: int) -> None:
    kept = first_words(text, most)
    assert text.startswith(kept)
    assert length(kept) <= most
    if kept.strip() != text.strip():
        assert length(text) > most or not kept.strip()


word = st.text(alphabet="abcdefghij", min_size=3, max_size=8)


@given(st.lists(st.lists(word, min_size=1, max_size=8).map(" ".join), min_size=1, max_size=8))
def test_likeness_is_a_cosine(texts: list[str]) -> None:
    vectors = TermVectors(texts)
    for i, text in enumerate(texts):
        likeness = vectors.likeness(text)
        assert likeness.min() >= 0
        assert likeness.max() <= 1 + 1e-9
        assert not terms(text) or likeness[i] == pytest.approx(1)


def test_stems_and_terms() -> None:
    assert stem("boards") == stem("board")
    assert stem("berries") == stem("berry")
    assert terms("The three eggs are in the bowl") == ["3", "egg", "bowl"]
    assert overlap("three eggs", "break the eggs") == 0.5


def test_names_are_cut() -> None:
    assert name_some(["a", "b", "c"]) == "a, b, c"
    assert name_some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
