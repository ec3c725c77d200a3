"""Candidate moments: what names them, for which questions, and how many."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.records import Caption, Frame, Line, ScreenText, Span
from mustsee.verify.candidates import candidate_moments, is_wide
from tests.support.verifier import SCENE, question, row

TWICE = "How many times does a red kite rise?"
RED = "A red kite rises."


@pytest.mark.parametrize(
    ("asked", "kind", "wide"),
    [
        ("Which colour is the kite?", "Other", False),
        ("What does the man in the lastingly green coat hold?", "Other", False),
        ("Which colour is the kite?", "Counting", True),
        ("What happens here?", "Temporal Ordering", True),
        (TWICE, "Other", True),
        ("In which order are these seen?", "Other", True),
        ("Which kite rises first?", "Other", True),
        ("What is seen after the kite falls?", "Other", True),
        ("What is the only thing that never moves?", "Other", True),
    ],
)
def test_questions_of_order_number_or_the_whole_video_are_wide(
    asked: str, kind: str, wide: bool
) -> None:
    assert is_wide(question(question=asked, question_type=kind)) == wide
    video = replace(row(), captions=(Caption(time=150.0, text=f"{asked} {RED}"),))
    found = candidate_moments(question(question=asked, question_type=kind), video, 4)
    assert found == ((Span(148.5, 151.5),) if wide else ())


def frames(*alike: float) -> tuple[Frame, ...]:
    """Return a frame a second that look like the evidence at some times, and there."""
    near = {*alike, *range(40, 51)}
    return tuple(
        Frame(time=float(t), brightness=0.5, motion=0.0,
              descriptor=(0.8, 0.2) if t in near else (0.1, 0.9))
        for t in range(300)
    )  # fmt: skip


@pytest.mark.parametrize(
    "columns",
    [
        {"captions": (Caption(time=150.0, text=RED), Caption(time=90.0, text="A grey street."))},
        {"texts": (ScreenText(time=150.0, text="RED KITE RISES", score=0.9),
                   ScreenText(time=90.0, text="THE END", score=0.9))},
        {"lines": (Line(start=149.0, end=151.0, text="There the red kite rises."),
                   Line(start=89.0, end=91.0, text="Good morning."))},
        {"frames": frames(150.0)},
    ],
    ids=["captions", "texts", "lines", "frames"],
)  # fmt: skip
def test_each_column_names_moments(columns: dict[str, Any]) -> None:
    video = replace(row(), **{"lines": (), **columns})
    assert candidate_moments(question(question=TWICE), video, 4) == (Span(148.5, 151.5),)
    assert candidate_moments(question(question=TWICE), video, 0) == ()
    there = replace(question(question=TWICE), evidence=(SCENE, Span(148.0, 150.0)))
    shown = candidate_moments(there, video, 4)
    assert not [s for s in shown if s.start < 150 < s.end]  # the evidence is shown in any case


def test_each_thing_of_an_order_gets_its_moment() -> None:
    """Of two candidates, one is for each thing, and not both for the likest."""
    video = replace(
        row(),
        captions=(
            Caption(time=100.0, text="A lid."),
            Caption(time=120.0, text="A lid."),
            Caption(time=200.0, text="On a table stands an old bowl."),
            Caption(time=250.0, text="A grey street."),
        ),
        lines=(),
    )
    asked = question(
        question="In which order?", options=("lid; bowl", "bowl; lid"), answer="lid; bowl"
    )
    assert candidate_moments(asked, video, 2) == (Span(98.5, 101.5), Span(198.5, 201.5))


@given(st.lists(st.floats(0, 300), max_size=12), st.integers(0, 6))
def test_candidates_are_few_in_order_and_outside_of_the_evidence(
    times: list[float], most: int
) -> None:
    captions = tuple(Caption(time=t, text=RED) for t in times)
    found = candidate_moments(question(question=TWICE), replace(row(), captions=captions), most)
    assert len(found) <= most
    assert list(found) == sorted(found, key=lambda s: s.start)
    assert not [s for s in found if s.start < SCENE.end and SCENE.start < s.end]
    assert all(any(s.start <= t <= s.end for t in times) for s in found)
