"""The phrase of a question that asks when is found in its words again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.questions.when_wording import stated_phrase, word_question, word_spans
from mustsee.records import Span


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
