"""Several runs as one: a video is there once, a question keeps its id, what clashes is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mustsee.errors import UserError
from mustsee.layouts.merged import RunTables, merge_runs
from mustsee.records import Fact, Line, Problem, Question, RequestCount, Span, Video

PAN = Video(video_id="pan", uri="/a/pan.mp4", digest="p", duration=60.0)
TEA = Video(video_id="tea", uri="/a/tea.mp4", digest="t", duration=30.0)
WHO = Question(
    question_id="q1", video_id="pan", recipe="facts", question="Who?", question_type="k",
    options=("a", "b"), answer_index=1, answer="b",
)  # fmt: skip


def run(name: str, *videos: Video, questions: tuple[Question, ...] = (), **more: Any) -> RunTables:
    return RunTables(
        name=name, recipe="facts", videos=videos, questions=questions,
        stored=more.get("stored", questions),
    )  # fmt: skip


def test_a_video_of_two_runs_is_there_once_with_what_both_know() -> None:
    fact = Fact(fact_id="f", kind="event", phrase="p", spans=(Span(0, 1),), source="m")
    sent = RequestCount(what="looks", sent=3, unread=1, stage="ask")
    first = replace(PAN, title="Pancakes", facts=(fact,), requests=(sent,), lineage={"look": "k1"})
    lines = (Line(start=0, end=1, text="Hello."),)
    second = replace(
        PAN, uri="/b/pan.mp4", title="other", lines=lines, requests=(sent,),
        facts=(fact, replace(fact, fact_id="g")), lineage={"look": "k2", "hear": "k3"},
    )  # fmt: skip
    two = replace(WHO, question_id="q2", recipe="neptune")
    merged = merge_runs(
        [run("A", first, questions=(WHO,)), run("B", second, TEA, questions=(two,))]
    )
    assert [v.video_id for v in merged.videos] == ["pan", "tea"]
    joined = merged.videos[0]
    assert (joined.uri, joined.title, joined.lines) == ("/a/pan.mp4", "Pancakes", lines)
    assert [f.fact_id for f in joined.facts or ()] == ["f", "g"]
    assert (joined.requests, joined.lineage) == ((sent,), {"look": "k1", "hear": "k3"})
    assert merged.questions == (WHO, two)
    assert merged.shared == ("pan",)
    assert merged.lines() == [
        "2 runs merged: 2 videos, 1 of several runs; 2 questions of facts (1), neptune (1)"
    ]


def test_a_row_that_one_run_has_dropped_comes_from_the_other() -> None:
    failed = replace(PAN, problem=Problem(stage="ask", error="BadRow", message="m"), title="first")
    (row,) = merge_runs([run("A", failed), run("B", replace(PAN, uri="/b/pan.mp4"))]).videos
    assert (row.uri, row.problem, row.title) == ("/b/pan.mp4", None, "first")
    (row,) = merge_runs([run("A", PAN), run("B", failed)]).videos
    assert (row.problem, row.title) == (None, "first")
    (row,) = merge_runs([run("A", failed), run("B", replace(PAN, drop="probe: short"))]).videos
    assert row.problem == failed.problem


def test_a_file_has_the_id_of_the_first_run() -> None:
    renamed = replace(PAN, video_id="cake")
    clip = replace(TEA, source="cake", start=0.0, end=5.0)
    asked = replace(WHO, question_id="q2", video_id="cake")
    merged = merge_runs([run("A", PAN, questions=(WHO,)),
                         run("B", renamed, clip, questions=(asked,))])  # fmt: skip
    assert [(v.video_id, v.source) for v in merged.videos] == [("pan", None), ("tea", "pan")]
    assert [(q.question_id, q.video_id) for q in merged.questions] == [("q1", "pan"), ("q2", "pan")]
    assert merged.renamed == {"cake": "pan"}
    assert "1 videos have other ids in other runs: cake is pan" in merged.lines()
    parts = [replace(PAN, video_id=n, start=s, end=s + 5) for n, s in (("c1", 0.0), ("c2", 5.0))]
    assert len(merge_runs([run("A", PAN), run("B", *parts)]).videos) == 3
    twice = [PAN, replace(PAN, video_id="copy")]
    assert [v.video_id for v in merge_runs([run("A", *twice), run("B", *twice)]).videos] == [
        "pan", "copy",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        replace(PAN, digest="x"),
        replace(PAN, start=5.0, end=9.0),
        replace(PAN, digest=None, duration=61.0),
        replace(PAN, digest=None, start=5.0, end=9.0),
    ],
)
def test_one_id_of_two_files_is_refused(other: Video) -> None:
    with pytest.raises(UserError, match=r"1 videos of 'B' have the ids of other files.*pan"):
        merge_runs([run("A", PAN), run("B", TEA, other)])


@pytest.mark.parametrize("other", [PAN, replace(PAN, digest=None), replace(PAN, duration=60.05)])
def test_a_file_without_a_digest_is_the_same_by_its_id_and_length(other: Video) -> None:
    assert len(merge_runs([run("A", PAN), run("B", other)]).videos) == 1


def test_questions_with_one_id_are_the_same_or_refused() -> None:
    again = replace(WHO, recipe="other", drop="by hand: dull", metrics={"rank": 1.0})
    merged = merge_runs([run("A", PAN, questions=(WHO,)), run("B", PAN, questions=(again,))])
    assert merged.questions == (WHO,)
    assert (merged.same, merged.differing) == (("q1",), ("q1",))
    assert any("kept in one run and dropped in another: q1" in line for line in merged.lines())
    for other in (
        replace(WHO, question="Who then?"),
        replace(WHO, answer_index=0, answer="a"),
        replace(WHO, options=("a", "c"), answer="c"),
        replace(WHO, video_id="tea"),
    ):
        with pytest.raises(UserError, match=r"same id and other words: q1 \(A, C\); if they were"):
            merge_runs([run("A", PAN, questions=(WHO,)), run("B", PAN),
                        run("C", PAN, TEA, questions=(other,))])  # fmt: skip


def test_what_the_runs_stored_comes_beside_what_people_ticked() -> None:
    edited = replace(WHO, question="Who then?")
    merged = merge_runs([run("A", PAN, questions=(edited,), stored=(WHO,)), run("B", TEA)])
    assert (merged.questions, merged.stored) == ((edited,), (WHO,))
    assert merged.plain() == {
        "recipes": {"A": "facts", "B": "facts"}, "shared": (), "renamed": {}, "same": (),
        "differing": (),
    }  # fmt: skip
