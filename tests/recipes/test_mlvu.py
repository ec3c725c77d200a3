"""MLVU's tasks: plans that know their answers, forms that are checked, layouts that read back."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.llm.offline import Offline
from actors.part import RunContext
from actors.synthesise import Synthesise, checked
from mustsee import schemas
from mustsee.decision import Decision
from mustsee.errors import BadRow, UserError
from mustsee.layouts import mlvu as layout
from mustsee.llm import Asker
from mustsee.media.shots import shots_of
from mustsee.media.video import facts
from mustsee.prompts import Prompts
from mustsee.questions import balance
from mustsee.recipes.mlvu import annotated, ladder, tables
from mustsee.recipes.mlvu import ask as mlvu
from mustsee.recipes.mlvu.annotated import FORMS, Filled
from mustsee.records import Caption, Question, Span, Video
from mustsee.store import Store
from mustsee.synth import absence
from mustsee.synth.absence import Absence
from mustsee.synth.insertions import Background, Clip, Making, captioned, cycled, placed, plan_of
from mustsee.synth.make import Settings
from mustsee.synth.plan import Spread
from ray_jobs.mlvu import Ego, Fair, Ladder, Synthetic, measured
from tests.support.films import FPS, cuts, scene, write
from tests.support.material import material

ACTIONS = ("baking cookies", "playing harp", "pole vault", "milking cow", "tossing coin", "zumba")
CLIPS = [
    Clip(uri=f"{a}{n}.mp4", end=12.0 + n, label=a, caption=f"Someone is {a} number {n}")
    for a in ACTIONS
    for n in range(6)
]
EVENTS = [
    Clip(
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
BACKGROUNDS = [Background(uri=f"film{n}.mp4", duration=600.0 + 900 * n) for n in range(3)]
FILM = "video/vidstack+files/agent327_hls360p_remux.mp4"
YOGA = "video/OpenGVLab+Ask-Anything/example/yoga.mp4"


def making(**options) -> Making:
    return Making(**{"items": 48, "seed": 7, **options})


@given(st.integers(0, 80), st.lists(st.integers(), min_size=1, max_size=24, unique=True))
def test_cycled_draws_are_even(count, choices) -> None:
    drawn = cycled(count, choices, "s")
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
        assert [Span(s.start, s.end) for s in row.segments] == plan.placed()
        for question in row.questions or ():
            assert question.options[question.answer_index] == question.answer
            assert len(set(question.options)) == len(question.options)
            assert all(0 <= e.start < e.end <= row.duration + 1e-6 for e in question.evidence)


@pytest.mark.parametrize("options", [4, 6])
def test_orders_are_the_plans(options) -> None:
    rows = mlvu.Order(making=making(options=options)).rows(BACKGROUNDS, CLIPS)
    assert rows == mlvu.Order(making=making(options=options)).rows(BACKGROUNDS, CLIPS)
    check_rows(rows)
    for row in rows:
        (question,) = row.questions
        shown = [i.probe.label for i in plan_of(row).insertions]
        assert question.answer == " --> ".join(shown)
        assert all(sorted(o.split(" --> ")) == sorted(shown) for o in question.options)
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
        seen = [s.dense_caption for s in row.segments]
        for place, number in enumerate(numbers):
            assert f"({number}) {seen[place]}" in question.question
    with pytest.raises(UserError, match="captioned clips"):
        mlvu.Events(making=making()).rows(BACKGROUNDS, EVENTS[:3])


@pytest.mark.parametrize(("options", "distractors"), [(4, 0), (6, 2)])
def test_counts_are_the_plans(options, distractors) -> None:
    task = mlvu.Count(making=making(items=60, options=options), distractors=distractors)
    rows = task.rows(BACKGROUNDS, CLIPS)
    check_rows(rows)
    for row in rows:
        (question,) = row.questions
        asked = next(a for a in ACTIONS if f"'{a}'" in question.question)
        probes = [i.probe for i in plan_of(row).insertions]
        mine = [p for p in probes if p.label == asked]
        assert question.answer == str(len(mine))
        assert len({p.uri for p in mine}) == len(mine) == len(question.evidence)
        assert len(probes) == len(mine) + distractors
        assert all(option.isdigit() for option in question.options)
    assert set(Counter(row.questions[0].answer for row in rows).values()) == {12}
    questions = [row.questions[0] for row in rows]
    fair = {f.name: f.fair for f in balance.report(questions) if f.kind != "answer"}
    assert fair["longest"]
    assert all(fair[letter] for letter in "ABCD")
    if options == 4:  # every number is right equally often among those that are offered
        assert all(f.fair for f in balance.report(questions))


def test_too_little_material_is_said() -> None:
    for task, clips, message in (
        (mlvu.Order(making=making()), CLIPS[:6], "as many actions"),
        (mlvu.Count(making=making()), CLIPS[:3], "different clips"),
        (mlvu.Needle(making=making()), [replace(CLIPS[0], caption="")], "with a caption"),
        (mlvu.Needle(making=making(background_seconds=9000.0)), CLIPS, "no background"),
        (mlvu.Needle(making=making(total_seconds=8.0)), CLIPS, "no background"),
        (mlvu.Order(making=making(), actions=2), CLIPS, "2 orders, and 4 options"),
        (mlvu.Events(making=making(options=6), events=2), EVENTS, "2 orders, and 6 options"),
        (mlvu.Events(making=making()), [replace(c, caption="He walks") for c in EVENTS], "alike"),
    ):
        with pytest.raises(UserError, match=message):
            task.rows(BACKGROUNDS, clips)


def test_events_that_are_told_alike_are_not_ordered() -> None:
    """Of two equal captions either order would be right."""
    clips = [replace(c, caption="He walks") if c.event in (0, 1) else c for c in EVENTS]
    rows = mlvu.Events(making=making(items=12)).rows(BACKGROUNDS, clips)
    for row in rows:
        said = [segment.dense_caption for segment in row.segments]
        assert len(set(said)) == 4


def test_clips_are_read_or_said_to_be_wrong(tmp_path) -> None:
    film = write(tmp_path / "film.mp4", cuts([200]))
    table = tmp_path / "clips.csv"
    plan = mlvu.Needle(making=making(items=1, background_seconds=None, spread=Spread(margin=0.5)))
    task = Synthetic(plan=plan, backgrounds=str(film), clips=str(table))
    table.write_text("uri,start,end,caption,event\nc.mp4,0,4,A woman paints a door,1.0\n")
    (row,) = task.rows()
    assert f'"{tmp_path}/c.mp4"' in (row.plan or "")
    table.write_text("uri,start,end,caption\nc.mp4,0:10,4,A woman paints a door\n")
    with pytest.raises(UserError, match=r"clips, row 1: .*'0:10'"):
        task.rows()


def test_a_ladder_of_needles_is_named_in_their_questions(tmp_path) -> None:
    film = write(tmp_path / "film.mp4", cuts([200]))
    table = tmp_path / "clips.csv"
    table.write_text("uri,start,end,caption\nc.mp4,0,1,A woman paints a door\n")
    plan = mlvu.Needle(making=making(items=1, spread=Spread(margin=0.1)))
    task = Synthetic(plan=plan, backgrounds=str(film), clips=str(table), lengths=[2.0, 3.0])
    asked = [question for row in task.rows() for question in ask(row).questions]
    assert {q.subsets for q in asked} == {("ladder_2",), ("ladder_3",)}


def test_a_total_length_is_kept() -> None:
    for length in ladder.LENGTHS:
        rows = mlvu.Count(making=making(total_seconds=length)).rows(BACKGROUNDS, CLIPS)
        assert all(row.duration == pytest.approx(length) for row in rows)


def ask(video, **options) -> Video:
    asker = Asker(llm=Offline().open(), prompts=Prompts())
    return asyncio.run(mlvu.ask_needle(video, asker, mlvu.NeedleSettings(**options)))


@pytest.mark.parametrize("options", [4, 6])
def test_needles_are_asked_about(options) -> None:
    rows = mlvu.Needle(making=making(items=10)).rows(BACKGROUNDS, CLIPS)
    for row in rows:
        (segment,) = row.segments
        asked = ask(row, options=options).questions
        assert 1 <= len(asked) <= 3
        for question in asked:
            assert question.question_type == "findNeedle"
            assert question.evidence == (Span(segment.start, segment.end),)
            assert len(question.options) == options
            assert question.drop is None
            assert question.answer in segment.dense_caption.lower()
    done = ask(rows[0])
    assert ask(done) is done
    with pytest.raises(BadRow, match="no captioned needle"):
        ask(replace(rows[0], segments=()))


def test_segments_and_evidence_move_to_where_probes_are() -> None:
    row = mlvu.Count(making=making(items=1), distractors=1).rows(BACKGROUNDS, CLIPS)[0]
    spans = [Span(s.start + 0.01, s.end + 0.02) for s in row.segments]
    moved = placed(row, plan_of(row), spans)
    assert [Span(s.start, s.end) for s in moved.segments] == spans
    assert set(moved.questions[0].evidence) < set(spans)


def test_backgrounds_of_an_earlier_run_keep_what_was_seen_in_them(tmp_path) -> None:
    film = write(tmp_path / "film.mp4", cuts([100, 100]))
    row = Video(video_id="a", uri=str(film), duration=1.0, shots=(Span(0, 4), Span(4, 8)),
                captions=(Caption(2.0, "a man rows a boat"),))  # fmt: skip
    pq.write_table(schemas.table([row], Video), tmp_path / "videos.parquet")
    (read,) = measured(str(tmp_path / "videos.parquet"))
    assert (read.shots, read.captions) == (row.shots, row.captions)
    assert read.duration == pytest.approx(200 / FPS)


def test_captions_move_along_and_tell_what_is_there() -> None:
    """A needle whose caption says what is said of its background falls; the captions of both end up
    on the clock of the whole.
    """
    said = ("a man rows a boat", "snow falls on a street", "two dogs run in a park")
    captions = tuple(Caption(200.0 * i + 50, text) for i, text in enumerate(said))
    place = Background(uri="film.mp4", duration=600.0, captions=captions)
    task = mlvu.Needle(making=making(items=1, background_seconds=None))
    (row,) = task.rows([place], [Clip(uri="c.mp4", end=8, caption="Snow falls on a street.")])
    row = captioned(row, [place])
    assert row.captions == captions
    plan = plan_of(row)
    at = plan.insertions[0].at
    moved = placed(row, plan, plan.placed())
    assert [c.time for c in moved.captions] == sorted(
        [at, *(c.time + (8 if c.time >= at else 0) for c in captions)]
    )
    rule = Absence(apart=None)

    def embed(texts):
        told = [t.lower().strip(".").split() for t in texts]
        words = sorted({w for t in told for w in t})
        return np.array([[t.count(w) for w in words] for t in told], np.float32)

    fallen = checked(row, plan, rule, embed)
    assert "nearest caption at 250.0 s, 1.00 alike: snow falls" in fallen.segments[0].visual_support
    assert fallen.drop.startswith("needle: ")
    (other,) = task.rows([place], [Clip(uri="c.mp4", end=8, caption="A woman paints a door.")])
    other = captioned(other, [place])
    assert checked(other, plan_of(other), rule, embed).drop is None
    assert checked(row, plan, replace(rule, alike=None), embed).drop is None


def test_insertions_near_cuts_take_the_shots_of_the_file(tmp_path: Path) -> None:
    film = material("video/Zulko+moviepy/media/big_buck_bunny_0_30.webm")
    cuts = [shot.start for shot in shots_of(str(film))][1:]
    assert len(cuts) >= 3
    (tmp_path / "clips.csv").write_text("uri,start,end,caption\nc.mp4,0,4,A woman paints a door\n")
    spread = Spread(margin=1, gap=2, near_cut=0.5)
    plan = mlvu.Needle(making=making(items=20, background_seconds=None, spread=spread))
    task = Synthetic(plan=plan, backgrounds=str(film), clips=str(tmp_path / "clips.csv"))
    moments = [plan_of(row).insertions[0].at for row in task.rows()]
    assert all(min(abs(at - cut) for cut in cuts) <= 0.5 for at in moments)
    assert len({min(cuts, key=lambda c: abs(c - at)) for at in moments}) >= 3


class Counted:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def context(self, root) -> RunContext:
        return RunContext(store=Store(str(root)), llm=lambda _: None, count=self._count)  # type: ignore[arg-type]

    def _count(self, name, n) -> None:
        self.counts[name] += n


def test_a_real_needle_from_plan_to_export(tmp_path) -> None:
    clips = [
        Clip(uri=str(material(YOGA)), end=6, label="yoga", caption="A woman does yoga outdoors")
    ]
    places = [Background(uri=str(material(FILM)), duration=231.4)]
    task = mlvu.Needle(making=making(items=1, background_seconds=60.0))
    (row,) = task.rows(places, clips)
    part = Synthesise(
        folder=str(tmp_path / "videos"),
        settings=Settings(preset="ultrafast"),
        absence=Absence(every=4.0),
    )
    counted = Counted()
    make = part.open(counted.context(tmp_path / "store"))
    made = ask(make(row))
    assert made.drop is None
    assert "nearest picture at" in made.segments[0].visual_support
    assert made.duration == pytest.approx(66, abs=0.05)
    assert counted.counts == {"synth.copy": 1}
    assert json.loads((tmp_path / "videos" / f"{row.video_id}.mp4.json").read_text())["made"][
        "placed"
    ]

    probe = absence.looks(clips[0].uri, 1.0, 0, 6)
    around = made.segments[0].start - 8, made.segments[0].end + 8
    time, distance = absence.nearest(probe, absence.looks(made.uri, 0.5, *around))
    assert distance < 0.06
    assert made.segments[0].start <= time <= made.segments[0].end

    itself = with_itself(row, places[0])
    dropped = make(itself)
    assert dropped.drop.startswith("needle: ")
    assert dropped.uri == itself.uri

    layout.write(made.questions, tmp_path / "export", [made])
    read = layout.read(tmp_path / "export")
    assert not read.findings
    assert [(q.question, q.options, q.answer_index) for q in read] == [
        (q.question, q.options, q.answer_index) for q in made.questions
    ]


def with_itself(row, place):
    """The same row, its needle a stretch of the background itself."""
    plan = plan_of(row)
    probe = replace(
        plan.insertions[0].probe, uri=place.uri, start=plan.start + 20, end=plan.start + 26
    )
    plan = replace(plan, insertions=(replace(plan.insertions[0], probe=probe),))
    from mustsee import schemas

    return replace(row, plan=json.dumps(schemas.dump(plan)))


def told(q: Question):
    return q.video_id, q.question, q.options, q.answer_index, q.question_type


def test_both_layouts_read_back(tmp_path) -> None:
    rows = [
        *mlvu.Order(making=making(items=6, options=6)).rows(BACKGROUNDS, CLIPS),
        *mlvu.Count(making=making(items=6, options=6)).rows(BACKGROUNDS, CLIPS),
    ]
    rows = [replace(row, uri=f"videos/{row.video_id}.mp4") for row in rows]
    questions = [q for row in rows for q in row.questions]
    layout.write(questions, tmp_path / "dev", rows)
    layout.write_test(questions, tmp_path / "test", rows)
    assert sorted(p.name for p in (tmp_path / "dev").iterdir()) == ["4_count.json", "5_order.json"]
    first = json.loads((tmp_path / "dev" / "4_count.json").read_text())[0]
    assert set(first) == {"video", "duration", "question", "candidates", "answer", "question_type"}
    for folder in ("dev", "test"):
        read = layout.read(tmp_path / folder)
        assert not read.findings
        assert set(map(told, read)) == set(map(told, questions))
    tested = {q.question_id for q in layout.read(tmp_path / "test")}
    assert tested == {q.question_id for q in questions}


def filled(kind="plotQA", **more) -> Filled:
    base = {
        "video_id": "v",
        "kind": kind,
        "question": "What does the man in the red hat carry out of the barn?",
        "answer": "a lamp",
        "wrong": ("a rope", "some apples", "two chairs") if FORMS[kind].wrong else (),
        "points": ("a lamp is carried", "it is lit") if FORMS[kind].points else (),
        "evidence": (Span(3, 20),),
    }
    return Filled(**{**base, **more})


def test_forms_are_checked() -> None:
    for kind in FORMS:
        assert annotated.faults(filled(kind), duration=100) == [], kind
    assert "name" in annotated.faults(filled(question="Why does Harry leave the barn at night?"))[0]
    assert "name" in annotated.faults(filled(answer="with bob"), names=["Bob"])[0]
    assert annotated.faults(filled(question="On which Monday does he leave?")) == []
    assert (
        annotated.faults(filled("topic_reasoning", question="Is it set in old Rome or now?")) == []
    )
    assert "mark where" in annotated.faults(filled(evidence=()))[0]
    assert "wrong answers" in annotated.faults(filled(wrong=("a rope",)))[0]
    assert "same clue" in annotated.faults(filled(), [filled(answer="a hat")])[0]
    assert annotated.faults(filled(), [filled()]) == []
    assert "13" in annotated.faults(filled("subPlot", points=tuple(f"p {n}" for n in range(14))))[0]
    assert "13" in annotated.faults(filled("subPlot", points=()))[0]
    assert "gives the point" in annotated.faults(filled("subPlot", points=("the red hat",)))[0]
    assert "at most 60" in annotated.faults(filled("subPlot", evidence=(Span(0, 80),)))[0]
    assert "the video has" in annotated.faults(filled(evidence=(Span(0, 80),)), duration=50)[0]
    assert "no form" in annotated.faults(replace(filled(), kind="x"))[0]


def test_tables_become_questions(tmp_path) -> None:
    rows = [
        {"video_id": "v", "kind": "plotQA", "question": "What is carried?", "answer": "a lamp",
         "wrong_1": "a rope", "wrong_2": "apples", "wrong_3": "chairs", "start": "3", "end": "9"},
        {"video_id": "v", "kind": "summary", "question": None, "answer": "A man carries things."},
        {"video_id": "w", "question_type": "subPlot", "question": "What follows the fall?",
         "answer": "He gets up.", "points": "gets up|looks round", "start": 1, "end": 2},
    ]  # fmt: skip
    made = annotated.questions_of(annotated.from_table(rows))
    assert [q.drop for qs in made.values() for q in qs] == [None] * 3
    assert made["w"][0].scoring_points == ("gets up", "looks round")
    assert made["v"][1].question in FORMS["summary"].fixed_question
    six = annotated.questions_of(annotated.from_table(rows), options=6)
    assert [q.drop for qs in six.values() for q in qs] == [
        "form: 3 wrong answers, not 5", None, None,
    ]  # fmt: skip
    videos = [Video(video_id=v, uri=f"{v}.mp4", duration=200.0) for v in "vw"]
    layout.write([q for qs in made.values() for q in qs], tmp_path, videos)
    read = layout.read(tmp_path)
    assert {q.question_type for q in read} == {"plotQA", "summary", "subPlot"}
    assert {q.scoring_points for q in read} == {(), ("gets up", "looks round")}
    for wrong, message in (
        ({"kind": "x"}, "row 1: kind='x'"),
        ({"kind": "plotQA", "video_id": "v"}, "no 'answer'"),
        ({"kind": "ego", "video_id": "v", "answer": "a", "start": "x", "end": 1}, "start and end"),
    ):
        with pytest.raises(UserError, match=message):
            annotated.from_table([wrong])


def nlq() -> dict:
    def query(n, template="Objects: Where is object X?"):
        return {
            "query": f"where is thing {n}", "template": template,
            "video_start_sec": 10.0 * n, "video_end_sec": 10.0 * n + 4,
        }  # fmt: skip

    notes = [{"annotation_uid": "a", "language_queries": [query(n) for n in range(6)]}]
    notes[0]["language_queries"].append({"query": None})
    return {"videos": [{"video_uid": "v", "clips": [{"clip_uid": "c", "annotations": notes}]}]}


def test_ego4d_queries_become_questions() -> None:
    asked = tables.queries(nlq())
    assert len(asked) == 6
    places = ("bed", "desk", "wall", "sink", "mat")
    answers = {q.query_id: f"on the {w}" for q, w in zip(asked, places, strict=False)}
    forms = tables.ego_forms(asked, answers)
    assert len(forms) == 5
    for form in forms:
        assert annotated.faults(form, duration=100) == []
        assert form.question.endswith("?")
        assert form.answer not in form.wrong
        assert len(set(form.wrong)) == 3
    made = annotated.questions_of(forms)["v"]
    assert made[2].evidence == (Span(20.0, 24.0),)
    with pytest.raises(UserError, match="natural-language"):
        tables.queries({"videos": [{}]})


def test_queries_that_are_no_json_are_said(tmp_path) -> None:
    (tmp_path / "nlq.json").write_text("query_id,answer")
    for name in ("nlq.json", "none.json"):
        with pytest.raises(UserError, match=f"cannot read queries=.*{name}"):
            Ego(queries=str(tmp_path / name), annotations=None, videos=None).rows()


def test_anomalies_from_labels() -> None:
    rows = [
        (Video(video_id=f"v{n:03}", uri=f"v{n}.mp4", duration=100.0 + n), label)
        for n, label in enumerate(tables.ANOMALIES * 12)
    ]
    done = tables.Anomaly().rows(rows)
    assert len(done) == sum(video.duration >= 180 for video, _ in rows)
    truth = {video.video_id: label for video, label in rows}
    for row in done:
        (question,) = row.questions
        assert question.answer == truth[row.video_id]
        assert len(set(question.options)) == 4
    slots = Counter(row.questions[0].answer_index for row in done)
    assert max(slots.values()) - min(slots.values()) <= 1
    with pytest.raises(UserError, match="Sleeping"):
        tables.Anomaly().rows([(rows[0][0], "Sleeping")])


@settings(max_examples=60)
@given(
    st.floats(60, 4000),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 90)), max_size=3),
    st.integers(0, 50),
)
def test_ladder_windows_hold_the_evidence(duration, parts, seed) -> None:
    spans = tuple(
        Span(share * duration, min(duration, share * duration + length)) for share, length in parts
    )
    asked = Question(
        question_id="q",
        video_id="v",
        recipe="mlvu",
        question="?",
        question_type="plotQA",
        evidence=spans,
    )
    row = Video(video_id="v", uri="v.mp4", duration=duration, questions=(asked,))
    made = ladder.rungs(row, seed=seed)
    assert made == ladder.rungs(row, seed=seed)
    wide = max((s.end for s in spans), default=0) - min((s.start for s in spans), default=0)
    assert len(made) == sum(duration >= n >= wide for n in ladder.LENGTHS)
    for rung in made:
        assert rung.duration == pytest.approx(plan_of(rung).seconds)
        assert 0 <= rung.start <= rung.end <= duration + 1e-6
        (question,) = rung.questions
        assert question.video_id == rung.video_id
        for span, before in zip(question.evidence, spans, strict=True):
            assert -1e-6 <= span.start <= span.end <= rung.duration + 1e-6
            assert span.start + rung.start == pytest.approx(before.start)
    for shorter, longer in pairwise(made):
        assert longer.start <= shorter.start + 1e-6
        assert shorter.end <= longer.end + 1e-6


def test_options_without_evidence_are_not_cut() -> None:
    asked = Question(
        question_id="q", video_id="v", recipe="mlvu", question="What falls?",
        question_type="plotQA", options=("a lamp", "a cup"), answer_index=0,
    )  # fmt: skip
    row = Video(video_id="v", uri="v.mp4", duration=900.0, questions=(asked,))
    assert ladder.rungs(row) == []
    assert len(ladder.rungs(replace(row, questions=(replace(asked, options=()),)))) == 3


def test_a_ladder_takes_what_stands_and_says_when_nothing_does(tmp_path) -> None:
    film = write(tmp_path / "v.mp4", cuts([200]))
    asked = Question(
        question_id="q", video_id="v", recipe="mlvu", question="What falls?",
        question_type="plotQA", options=("a lamp", "a cup"), answer_index=0,
        evidence=(Span(0.5, 1.0),),
    )  # fmt: skip
    folder = tmp_path / "made"
    folder.mkdir()
    gone = replace(asked, question_id="gone", drop="blind: right in 3 of 3 runs")
    pq.write_table(schemas.questions_table([asked, gone]), folder / "questions.parquet")
    task = Ladder(questions=str(folder), videos=str(film), lengths=[1.0, 2.0])
    assert [q.question_id for row in task.rows() for q in row.questions] == ["q_1", "q_2"]
    with pytest.raises(UserError, match="fits into 900 s"):
        replace(task, lengths=[900.0]).rows()


def test_a_rung_is_cut_from_a_real_video(tmp_path) -> None:
    asked = Question(
        question_id="q",
        video_id="v",
        recipe="mlvu",
        question="?",
        question_type="plotQA",
        evidence=(Span(100, 104),),
    )
    whole = Video(video_id="v", uri=str(material(FILM)), duration=231.4, questions=(asked,))
    (rung,) = ladder.rungs(whole, lengths=(20.0,))
    part = Synthesise(folder=str(tmp_path), settings=Settings(preset="ultrafast"))
    made = part.open(Counted().context(tmp_path / "store"))(rung)
    assert made.uri == f"{tmp_path}/{rung.video_id}.mp4"
    assert made.duration == pytest.approx(20, abs=0.05)
    inside = made.questions[0].evidence[0]
    ours = absence.looks(made.uri, 1.0, inside.start, inside.end)
    theirs = absence.looks(whole.uri, 0.25, 98.0, 106.0)
    assert absence.nearest(ours, theirs)[1] < 0.02


@pytest.mark.slow
def test_the_job_counts_what_it_inserted(tmp_path: Path) -> None:
    """Drawn films: two backgrounds, clips of two actions; the lists of the release, the files, and
    what balancing did.
    """
    films = tmp_path / "films"
    films.mkdir()
    for n in range(2):
        write(films / f"{n}.mp4", cuts([200 + n] * 3))
    rows = ["uri,label"]
    for n in range(4):
        path = write(tmp_path / f"clip{n}.mp4", [scene(90 + n, i) for i in range(40)])
        rows.append(f"{path},{ACTIONS[n % 2]}")
    (tmp_path / "clips.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "out"
    given = [f"backgrounds={films}", f"clips={tmp_path / 'clips.csv'}", f"out={out}", "items=4",
             f"store={tmp_path / 'store'}", "task=count", "task.plan.most=2", "gap=2",
             "margin=1", "background_seconds=20", "probe_seconds=1.5", "apart=null"]  # fmt: skip
    command = [sys.executable, "-m", "ray_jobs.mlvu", *given]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    asked = json.loads((out / "export/mlvu/4_count.json").read_text())
    assert sorted(a["answer"] for a in asked) == ["1", "1", "2", "2"]
    for item in asked:
        made = facts(str(next(out.glob(f"videos/{Path(item['video']).stem}.mp4"))))
        assert made.duration == pytest.approx(20 + 1.5 * int(item["answer"]), abs=1 / FPS + 0.01)
    assert "balance: 0 of" in done.stdout


def test_balance_is_of_the_videos_that_stand() -> None:
    """Videos that were dropped for their needle must not decide which questions of others fall."""

    def rows(name: str, slot: int, drop: str | None) -> Video:
        asked = Question(
            question_id=name, video_id=name, recipe="mlvu", question="How often?",
            question_type="count", options=("1", "2", "3", "4"), answer_index=slot,
        )  # fmt: skip
        return Video(video_id=name, uri="f.mp4", questions=(asked,), drop=drop)

    even = [rows(f"a{n}", n % 4, None) for n in range(24)]
    skewed = [rows(f"b{n}", 0, "needle: seen") for n in range(24)]
    assert Fair()(schemas.table([*even, *skewed], Video)) == Decision()
