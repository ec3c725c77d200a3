"""A template reads what it wrote, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.questions.templates import QuestionTemplate, stated_phrase, word_question, word_spans
from mustsee.records import Span

SIDES = QuestionTemplate(
    "What {verb} {side} {clause}?", {"verb": ("is", "are"), "side": ("after", "before")}
)


@pytest.mark.parametrize("clause", ["a dog barks", "“Is it after 3?” is said", "a (red) hat. One"])
def test_the_parts_of_a_question_are_read_back(clause: str) -> None:
    parts = {"verb": "is", "side": "before", "clause": clause}
    assert SIDES.read(SIDES.fill(**parts)) == parts


@pytest.mark.parametrize(
    "question",
    ["What is while a dog barks?", "What is after ?", "What is after a dog", "Oh? What is"],
)
def test_another_question_is_not_read(question: str) -> None:
    assert SIDES.read(question) is None


def test_a_template_without_parts_reads_its_own_words_only() -> None:
    whole = QuestionTemplate("Which is longest (in all)?")
    assert whole.read("Which is longest (in all)?") == {}
    assert whole.read("Which is longest?") is None


@given(
    st.text(min_size=1), st.sampled_from(["event", "state", "text", "view"]), st.integers(1, 3),
    st.booleans(),
)  # fmt: skip
def test_the_phrase_is_found_again(phrase: str, kind: str, times: int, is_written: bool) -> None:
    assert stated_phrase(word_question(phrase, kind, times, is_written=is_written)) == phrase


@pytest.mark.parametrize("question", ["When does the boy ring?", ""])
def test_other_words_are_returned_whole(question: str) -> None:
    assert stated_phrase(question) == question


def test_spans_in_words() -> None:
    assert word_spans([Span(12.46, 18.0), Span(40.0, 44.5)]) == "12.5 to 18.0 s; 40.0 to 44.5 s"
