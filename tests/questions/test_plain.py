"""Markdown is removed from replies; stars of the text stay where they can be told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.questions.drafts import fields, plain


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("**Eggs**", "Eggs"),
        ("*eggs* and _flour_", "eggs and flour"),
        ("**Eggs", "Eggs"),
        ('**"Eggs"**', "Eggs"),
        ('"**Eggs**"', "Eggs"),
        ("***Eggs***", "Eggs"),
        ("**** off", "**** off"),
        ("f**k it", "f**k it"),
        ('The card reads "*gasp*" twice', 'The card reads "*gasp*" twice'),
        ("“*gasp*”", "*gasp*"),
        ('**The card** reads "*** NEW ***"', 'The card reads "*** NEW ***"'),
        ("“s**t and f**k”", "s**t and f**k"),
    ],
)
def test_emphasis_goes_and_stars_of_the_text_stay(text: str, bare: str) -> None:
    assert plain(text) == bare


def test_answers_keep_the_stars_of_what_is_read_on_the_screen() -> None:
    reply = 'CORRECT ANSWER: "*gasp*"\nWRONG ANSWER 1: **"*sigh*"**\nWRONG ANSWER 2: A) **** off'
    assert [field.text for field in fields(reply)] == ["*gasp*", "*sigh*", "**** off"]


@given(st.text("ab *_", max_size=12))
def test_stars_within_quotation_marks_stay(text: str) -> None:
    """Only a pair of two around words is emphasis there."""
    quoted = " ".join(f"Read: “{text}” x".split())
    done = plain(quoted)
    assert "a" not in text or "a" in done
    if "**" not in text:
        assert done.count("*") == text.count("*")
