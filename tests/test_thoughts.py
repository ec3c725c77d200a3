"""Thoughts and replies, however a model marks them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.thoughts import apart

MARKS = ["<think>{}</think>", "{}</think>", "<Thinking>\n{}\n</Thinking>", "◁think▷{}◁/think▷"]
WORDS = st.text(st.sampled_from("abc ?:AB\n"), max_size=40).map(str.strip)


@given(st.sampled_from(MARKS), WORDS, WORDS)
def test_what_is_thought_is_not_said(marks: str, thought: str, said: str) -> None:
    found = apart(marks.format(thought) + "\n" + said)
    assert (found.said, found.thoughts, found.unfinished) == (said, thought, False)


@given(WORDS)
def test_a_text_without_marks_is_said_as_it_stands(text: str) -> None:
    assert apart(text).said == text
    assert apart(text).thoughts == ""


@pytest.mark.parametrize(
    ("text", "said", "thoughts", "unfinished"),
    [
        ("<think>one</think>two<think>three</think>four", "two four", "one\nthree", False),
        ("<think>one</think>two<think>three", "", "one\nthree", True),
        ("<think>The answer is B", "", "The answer is B", True),
        (
            "<|channel|>analysis<|message|>Is it B?<|end|><|start|>assistant<|channel|>final"
            "<|message|>It is A.<|return|>",
            "It is A.", "Is it B?", False,
        ),
        ("<|channel|>analysis<|message|>Is it B?", "", "Is it B?", True),
        ("a < b, think> c", "a < b, think> c", "", False),
    ],
)  # fmt: skip
def test_marks(text: str, said: str, thoughts: str, unfinished: bool) -> None:
    found = apart(text)
    assert (found.said, found.thoughts, found.unfinished) == (said, thoughts, unfinished)
