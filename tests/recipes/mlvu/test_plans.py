"""MLVU's plans have their answers, and report missing material."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.media.shots import shots_of
from mustsee.questions import balance
from mustsee.recipes.mlvu import ask as mlvu
from mustsee.recipes.mlvu import tasks
from mustsee.recipes.mlvu.tasks import Synthetic
from mustsee.records import Span
from mustsee.synth.insertions import InsertedClip, cycle_choices, plan_of, with_placement
from mustsee.synth.plan import PositionRule
from tests.support.material import material
from tests.support.mlvu import ACTIONS, BACKGROUNDS, CLIPS, making
from tests.support.sample_videos import cuts, write

EVENTS = [
    InsertedClip(
        uri=f"s{s}.mp4",
        start=10.0 * n,
        end=10.0 * n + 8,
        source=f"s{s}",
        event=n,
        caption=f"event {s} {n}",
    )
    for s in range(3)
    for n in range(6)
]


@given(st.integers(0, 80), st.lists(st.integers(), min_size=1, max_size=24, unique=True))
def test_cycled_draws_are_even(count, choices) -> None:
    drawn = cycle_choices(count, choices, "s")
    counts = [drawn.count(c) for c in choices]
    assert len(drawn) == count
    assert max(counts) - min(counts) <= 1


def check_rows(rows) -> None:
    assert len({row.video_id for row in rows}) == len(rows)
    for row in rows:
        plan = plan_of(row)
        times = [i.at for i in plan.insertions]
        assert all(b - a >= 20 - 1e-6 for a, b in pairwise(times))
        assert plan.end - plan.start == pytest.approx(450)
        assert row.duration == pytest.approx(450 + sum(s.end - s.start for s in row.segments))
        assert [Span(s.start, s.end) for s in row.segments] == plan.placements()
        for question in row.questions or ():
            assert question.options[question.answer_index] == question.answer
            assert len(set(question.options)) == len(question.options)
            assert all(0 <= e.start < e.end <= row.duration + 1e-6 for e in question.evidence)


@pytest.mark.parametrize("options", [4, 6])
def test_answers_of_orders_follow_the_plan(options) -> None:
    rows = mlvu.Order(making=making(options=options)).rows(BACKGROUNDS, CLIPS)
    assert rows == mlvu.Order(making=making(options=options)).rows(BACKGROUNDS, CLIPS)
    check_rows(rows)
    for row in rows:
        (question,) = row.questions
        labels = [i.probe.label for i in plan_of(row).insertions]
        assert question.answer == " --> ".join(labels)
        assert all(sorted(o.split(" --> ")) == sorted(labels) for o in question.options)
    slots = Counter(row.questions[0].answer_index for row in rows)
    assert set(slots.values()) == {48 // options}


def test_events_use_every_permutation_equally() -> None:
    rows = mlvu.Events(making=making(items=72)).rows(BACKGROUNDS, EVENTS)
    check_rows(rows)
    answers = Counter(row.questions[0].answer for row in rows)
    assert len(answers) == 24
    assert set(answers.values()) == {3}
    for row in rows:
        (question,) = row.questions
        numbers = [int(k) for k in question.answer.split("->")]
        captions = [s.dense_caption for s in row.segments]
        for place, number in enumerate(numbers):
            assert f"({number}) {captions[place]}" in question.question
    with pytest.raises(UserError, match="captioned clips"):
        mlvu.Events(making=making()).rows(BACKGROUNDS, EVENTS[:3])


@pytest.mark.parametrize("options", [4, 6])
def test_answers_of_counts_follow_the_plan(options) -> None:
    task = mlvu.Count(making=making(items=60, options=options))
    rows = task.rows(BACKGROUNDS, CLIPS)
    check_rows(rows)
    for row in rows:
        (question,) = row.questions
        action = next(a for a in ACTIONS if f"'{a}'" in question.question)
        probes = [i.probe for i in plan_of(row).insertions]
        mine = [p for p in probes if p.label == action]
        assert question.answer == str(len(mine))
        assert len({p.uri for p in mine}) == len(mine) == len(question.evidence)
        assert len(probes) == len(mine)
        assert all(option.isdigit() for option in question.options)
    assert set(Counter(row.questions[0].answer for row in rows).values()) == {12}
    questions = [row.questions[0] for row in rows]
    fair = {f.name: f.fair for f in balance.report(questions) if f.kind != "answer"}
    assert fair["longest"]
    assert all(fair[letter] for letter in "ABCD")
    if options == 4:  # every number is right equally often among those that are offered
        assert all(f.fair for f in balance.report(questions))


def test_too_little_material_is_a_user_error() -> None:
    for task, clips, message in (
        (mlvu.Order(making=making()), CLIPS[:6], "as many actions"),
        (mlvu.Count(making=making()), CLIPS[:3], "different clips"),
        (mlvu.Needle(making=making()), [replace(CLIPS[0], caption="")], "with a caption"),
        (mlvu.Needle(making=making(background_seconds=9000.0)), CLIPS, "no background"),
        (mlvu.Needle(making=making(total_seconds=8.0)), CLIPS, "no background"),
        (mlvu.Order(making=making(), actions=2), CLIPS, "2 orders, fewer than options=4"),
        (mlvu.Events(making=making(options=6), events=2), EVENTS, "2 orders, fewer than options=6"),
        (mlvu.Events(making=making()), [replace(c, caption="He walks") for c in EVENTS], "alike"),
    ):
        with pytest.raises(UserError, match=message):
            task.rows(BACKGROUNDS, clips)


def test_events_with_equal_captions_are_not_ordered() -> None:
    """Of two equal captions either order would be right."""
    clips = [replace(c, caption="He walks") if c.event in (0, 1) else c for c in EVENTS]
    rows = mlvu.Events(making=making(items=12)).rows(BACKGROUNDS, clips)
    for row in rows:
        captions = [segment.dense_caption for segment in row.segments]
        assert len(set(captions)) == 4


def test_clips_are_read_or_refused_with_the_reason(tmp_path) -> None:
    video = write(tmp_path / "video.mp4", cuts([200]))
    table = tmp_path / "clips.csv"
    plan = mlvu.Needle(
        making=making(items=1, background_seconds=None, spread=PositionRule(margin=0.5))
    )
    task = Synthetic(plan=plan, backgrounds=str(video), clips=str(table))
    table.write_text("uri,start,end,caption,event\nc.mp4,0,4,A woman paints a door,1.0\n")
    (row,) = task.rows()
    assert f'"{tmp_path}/c.mp4"' in (row.plan or "")
    table.write_text("uri,start,end,caption\nc.mp4,0:10,4,A woman paints a door\n")
    with pytest.raises(UserError, match=r"clips, row 1: .*'0:10'"):
        task.rows()


def test_a_total_length_is_kept() -> None:
    for length in tasks.LENGTHS:
        rows = mlvu.Count(making=making(total_seconds=length)).rows(BACKGROUNDS, CLIPS)
        assert all(row.duration == pytest.approx(length) for row in rows)


def test_segments_and_evidence_follow_the_inserted_clips() -> None:
    row = mlvu.Count(making=making(items=1)).rows(BACKGROUNDS, CLIPS)[0]
    spans = [Span(s.start + 0.01, s.end + 0.02) for s in row.segments]
    moved = with_placement(row, plan_of(row), spans)
    assert [Span(s.start, s.end) for s in moved.segments] == spans
    assert set(moved.questions[0].evidence) == set(spans)


def test_insertions_near_cuts_take_the_shots_of_the_file(tmp_path: Path) -> None:
    video = material("video/Zulko+moviepy/media/big_buck_bunny_0_30.webm")
    cuts = [shot.start for shot in shots_of(str(video))][1:]
    assert len(cuts) >= 3
    (tmp_path / "clips.csv").write_text("uri,start,end,caption\nc.mp4,0,4,A woman paints a door\n")
    spread = PositionRule(margin=1, gap=2, near_cut=0.5)
    plan = mlvu.Needle(making=making(items=20, background_seconds=None, spread=spread))
    task = Synthetic(plan=plan, backgrounds=str(video), clips=str(tmp_path / "clips.csv"))
    moments = [plan_of(row).insertions[0].at for row in task.rows()]
    assert all(min(abs(at - cut) for cut in cuts) <= 0.5 for at in moments)
    assert len({min(cuts, key=lambda c: abs(c - at)) for at in moments}) >= 3
