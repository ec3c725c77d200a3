"""Helpers of the rules: likeness, summaries, decoys, nouns."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.recipes.neptune.offline.quotable import pick
from mustsee.text import TermVectors, nouns, overlap, stem, summary, terms

word = st.text(alphabet="abcdefghij", min_size=3, max_size=8)


@given(st.lists(st.lists(word, min_size=1, max_size=8).map(" ".join), min_size=1, max_size=8))
def test_likeness_is_a_cosine(texts: list[str]) -> None:
    vectors = TermVectors(texts)
    for i, text in enumerate(texts):
        likeness = vectors.likeness(text)
        assert likeness.min() >= 0
        assert likeness.max() <= 1 + 1e-9
        assert not terms(text) or likeness[i] == pytest.approx(1)


@given(
    st.lists(st.lists(word, min_size=1, max_size=8).map(" ".join), max_size=8), st.integers(1, 30)
)
def test_a_summary_is_bounded_and_in_order(texts: list[str], most: int) -> None:
    chosen = summary(texts, most)
    assert chosen == sorted(chosen)
    assert sum(len(texts[i].split()) for i in chosen) <= most


@given(word, st.lists(word, max_size=12), st.randoms(use_true_random=False))
def test_picked_decoys_are_neither_the_answer_nor_each_other(
    answer: str, others: list[str], rng: Random
) -> None:
    decoys = pick(answer, others, rng)
    assert len(decoys) <= 4
    assert len({*decoys, answer}) == len(decoys) + 1


def test_nouns_of_a_text() -> None:
    text = "My mother gave me this recipe twenty years ago. We put them on a large green plate"
    assert nouns(text) == ["mother", "recipe", "green plate"]


def test_stems_and_terms() -> None:
    assert stem("boards") == stem("board")
    assert stem("berries") == stem("berry")
    assert terms("The three eggs are in the bowl") == ["3", "egg", "bowl"]
    assert overlap("three eggs", "break the eggs") == 0.5
