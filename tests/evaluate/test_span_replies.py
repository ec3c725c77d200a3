"""Spans are read from replies strictly: what could mean another time is unreadable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.evaluate.span_replies import parse_spans, split_evidence
from mustsee.records import Span

ONE = (Span(12.3, 15.0),)
TWO = (Span(12.0, 18.0), Span(64.0, 70.5))


@pytest.mark.parametrize(
    "reply",
    [
        "12.3-15",
        "12.3 to 15 s",
        "from 12.3 to 15 s",
        "It happens from 12.3 s to 15.0 seconds.",
        "**12.3 – 15.0 s**",
        "between 12.3 and 15 seconds",
        "Start: 12.3 s, end: 15 s",
        "It starts at 12.3 s and ends at 15 s.",
        "0:12.3-0:15",
        "00:00:12.3 - 00:00:15",
        "<think>Perhaps 3 to 4 s.</think>12.3 to 15 s",
        "12.3 to 15 s (0:12.3 to 0:15)",
        "[12.3, 15]",
        "[[12.3, 15.0]]",
        '{"start": 12.3, "end": 15}',
        '```json\n{"spans": [{"start_time": "12.3 s", "end_time": "0:15"}]}\n```',
        '{"answer": "12.3 to 15 s"}',
    ],
)
def test_a_stretch_is_read_in_each_form(reply: str) -> None:
    assert parse_spans(reply) == ONE


@pytest.mark.parametrize(
    "reply",
    [
        "0:12-0:18; 1:04 to 1:10.5",
        "First from 12 to 18 s, then from 64 to 70.5 s.",
        "64-70.5, 12-18",
        "[[12, 18], [64, 70.5]]",
        '{"spans": [{"start": 64, "end": 70.5}, [12, 18]]}',
    ],
)
def test_several_stretches_are_read_in_order(reply: str) -> None:
    assert parse_spans(reply) == TWO


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot tell.",
        "At 12.3 s.",  # no stretch
        "15 to 12.3 s",  # ends before it begins
        "From 12.3 to 15 s, or at 40 s.",  # another time
        "In picture 4, from 12.3 to 15 s",
        "[12.3]",
        "[12.3, 15, 40]",
        "[15, 12.3]",
        "[[12.3, 15], [40, null]]",
        '{"start": 12.3}',
        '{"start": 12.3, "begin": 13, "end": 15}',
        '{"start": true, "end": 15}',
        '{"start": -3, "end": 15}',
        '{"start": 1, "end": Infinity}',
        '{"spans": []}',
        '{"spans": [[1, 2]], "answer": [[3, 4]]}',
        '{"start": 12.3, "end": 15',
    ],
)
def test_what_is_not_surely_a_stretch_is_unreadable(reply: str) -> None:
    assert parse_spans(reply) is None


@given(st.text(alphabet='0123456789:.-to s[]{},"startend', max_size=60))
def test_no_text_raises_or_gives_a_backward_span(text: str) -> None:
    for span in parse_spans(text) or ():
        assert 0 <= span.start <= span.end


@given(st.floats(0, 9000), st.floats(0, 500))
def test_words_and_json_say_the_same(start: float, seconds: float) -> None:
    start, end = round(start, 1), round(start, 1) + round(seconds, 1)
    said = parse_spans(f"from {start:.1f} to {end:.1f} s")
    assert said == parse_spans(json.dumps({"start": round(start, 1), "end": round(end, 1)}))


def test_the_line_of_evidence_is_split_from_the_answer() -> None:
    assert split_evidence("The answer is B.") is None
    assert split_evidence("B\nEVIDENCE: 12.3 to 15 s") == ("B", ONE)
    assert split_evidence("**Evidence:** somewhere\nAnswer: B") == ("Answer: B", None)
    assert split_evidence("B\nEVIDENCE: 1-2 s\nEVIDENCE: 12.3-15 s") == ("B", ONE)
