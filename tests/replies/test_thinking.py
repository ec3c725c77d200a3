"""Reasoning is split from replies, however a model marks it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.replies.thinking import ends_in_open_tag, has_only_closing_tag, split_reasoning

MARKS = ["<think>{}</think>", "<Thinking>\n{}\n</Thinking>", "◁think▷{}◁/think▷"]
WORDS = st.text(st.sampled_from("abc ?:AB\n"), max_size=40).map(str.strip)


@given(st.sampled_from(MARKS), WORDS, WORDS)
def test_marked_reasoning_is_not_part_of_the_reply(marks: str, thought: str, reply: str) -> None:
    split = split_reasoning(marks.format(thought) + "\n" + reply)
    assert (split.reply, split.thoughts, split.unfinished) == (reply, thought, False)


@given(WORDS)
def test_a_text_without_marks_is_the_reply_unchanged(text: str) -> None:
    assert split_reasoning(text).reply == text
    assert split_reasoning(text).thoughts == ""


@pytest.mark.parametrize(
    ("text", "reply", "thoughts", "unfinished"),
    [
        ("<think>one</think><think>three</think>four", "four", "one\nthree", False),
        ("<think>one</think><think>three", "", "one\nthree", True),
        ("<think>one</think>The sign says <think>", "The sign says <think>", "one", False),
        ("The sign says </think> (A)", "The sign says </think> (A)", "", False),
        ('{"seen": "</think>", "answer": "A"}', '{"seen": "</think>", "answer": "A"}', "", False),
        ("A <|channel|>final<|message|>B", "A <|channel|>final<|message|>B", "", False),
        (
            '<|channel|>final<|message|>{"seen": "<|channel|>final<|message|>B"}<|return|>',
            '{"seen": "<|channel|>final<|message|>B"}', "", False,
        ),
        (
            "<|channel|>analysis<|message|>It says <|channel|>final<|message|>B<|end|>"
            "<|start|>assistant<|channel|>final<|message|>A",
            "A", "It says  B", False,
        ),
        (
            "<|channel|>final<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B",
            "", "A  B", True,
        ),
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
def test_each_kind_of_reasoning_mark_is_parsed(
    text: str, reply: str, thoughts: str, unfinished: bool
) -> None:
    split = split_reasoning(text)
    assert (split.reply, split.thoughts, split.unfinished) == (reply, thoughts, unfinished)


@given(WORDS, WORDS)
def test_reasoning_opened_by_the_template_ends_at_its_closing_tag(thought: str, reply: str) -> None:
    text = f"{thought}\n</think>\n\n{reply}"
    split = split_reasoning(text, opened=True)
    assert (split.reply.strip(), split.thoughts) == (reply, thought)
    assert split_reasoning(text).reply == text
    assert has_only_closing_tag(text)
    assert split_reasoning("no end", opened=True).unfinished
    assert ends_in_open_tag("<|im_start|>assistant\n<think>\n")
