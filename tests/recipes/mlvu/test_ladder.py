"""The ladder of lengths: every rung contains the evidence of its question."""

from dataclasses import replace
from itertools import pairwise

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.stages.synthesise import Synthesise
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.recipes.mlvu import ask as mlvu
from mustsee.recipes.mlvu import tasks
from mustsee.recipes.mlvu.tasks import AnnotatedForms, Ladder, Synthetic
from mustsee.records import Question, Span, Video
from mustsee.synth import absence
from mustsee.synth.insertions import plan_of
from mustsee.synth.make import CodingSettings
from mustsee.synth.plan import PositionRule
from tests.support.material import material
from tests.support.mlvu import VIDEO, Counted, ask, making
from tests.support.sample_videos import cuts, write


def test_questions_on_needles_name_their_ladder(tmp_path) -> None:
    video = write(tmp_path / "video.mp4", cuts([200]))
    table = tmp_path / "clips.csv"
    table.write_text("uri,start,end,caption\nc.mp4,0,1,A woman paints a door\n")
    plan = mlvu.Needle(making=making(items=1, spread=PositionRule(margin=0.1)))
    task = Synthetic(plan=plan, backgrounds=str(video), clips=str(table), lengths=[2.0, 3.0])
    questions = [question for row in task.rows() for question in ask(row).questions]
    assert {q.subsets for q in questions} == {("ladder_2",), ("ladder_3",)}


@given(
    st.floats(60, 4000),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 90)), min_size=1, max_size=3),
    st.integers(0, 50),
)
def test_ladder_windows_contain_the_evidence(duration, parts, seed) -> None:
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
    rows, left = tasks.rungs(row, seed=seed)
    assert (rows, left) == tasks.rungs(row, seed=seed)
    assert len(rows) + left.total() == len(tasks.LENGTHS)
    wide = max((s.end for s in spans), default=0) - min((s.start for s in spans), default=0)
    assert len(rows) == sum(duration >= n >= wide for n in tasks.LENGTHS)
    for rung in rows:
        assert rung.duration == pytest.approx(plan_of(rung).seconds)
        assert 0 <= rung.start <= rung.end <= duration + 1e-6
        (question,) = rung.questions
        assert question.video_id == rung.video_id
        for span, before in zip(question.evidence, spans, strict=True):
            assert -1e-6 <= span.start <= span.end <= rung.duration + 1e-6
            assert span.start + rung.start == pytest.approx(before.start)
    for shorter, longer in pairwise(rows):
        assert longer.start <= shorter.start + 1e-6
        assert shorter.end <= longer.end + 1e-6


def test_a_question_without_evidence_is_not_cut() -> None:
    question = Question(
        question_id="q", video_id="v", recipe="mlvu", question="What falls?",
        question_type="plotQA", options=("a lamp", "a cup"), answer_index=0,
    )  # fmt: skip
    row = Video(video_id="v", uri="v.mp4", duration=900.0, questions=(question,))
    assert tasks.rungs(row) == ([], {tasks.UNKNOWN_PLACE: 3})
    scene = replace(question, question_type="subPlot", options=(), answer="A lamp falls.")
    assert tasks.rungs(replace(row, questions=(scene,))) == ([], {tasks.OTHER_LENGTH: 3})
    marked = replace(scene, evidence=(Span(200, 230),))
    rows, left = tasks.rungs(replace(row, questions=(marked,)))
    assert (len(rows), left) == (3, {})


@pytest.mark.parametrize(("marked", "rung"), [(180, 180), (360.5, 360), (None, 600), (400, None)])
def test_a_summary_is_used_at_its_own_length_only(marked, rung) -> None:
    question = Question(
        question_id="q", video_id="v", recipe="mlvu", question="Summarise it.",
        question_type="summary", answer="A boat is built.",
        evidence=() if marked is None else (Span(0, marked),),
    )  # fmt: skip
    row = Video(video_id="v", uri="v.mp4", duration=600.0, questions=(question,))
    rows, left = tasks.rungs(row)
    assert [m.questions[0].subsets for m in rows] == ([(f"ladder_{rung}",)] if rung else [])
    assert left == {tasks.OTHER_LENGTH: 2 if rung else 3}
    for one in rows:
        assert (one.start, one.end, one.questions[0].evidence) == (0, marked or 600, ())


def test_forms_give_a_ladder_its_summaries(tmp_path, capsys) -> None:
    video = write(tmp_path / "v.mp4", cuts([400]))
    table = tmp_path / "forms.csv"
    table.write_text(
        "video_id,kind,answer,start,end\nv,summary,A door opens.,0,4\nv,summary,It all ends.,,\n"
    )
    task = Ladder(questions=None, annotations=str(table), videos=str(video), lengths=[4.0, 8.0])
    assert [(r.duration, r.questions[0].answer) for r in task.rows()] == [(4.0, "A door opens.")]
    assert "3 rungs of the ladder: their reference was written" in capsys.readouterr().out
    rows = AnnotatedForms(annotations=str(table), videos=str(video)).rows()
    assert [q.answer for r in rows for q in r.questions] == ["It all ends."]


def test_a_ladder_uses_kept_questions_and_fails_without_any(tmp_path) -> None:
    video = write(tmp_path / "v.mp4", cuts([200]))
    question = Question(
        question_id="q", video_id="v", recipe="mlvu", question="What falls?",
        question_type="plotQA", options=("a lamp", "a cup"), answer_index=0,
        evidence=(Span(0.5, 1.0),),
    )  # fmt: skip
    folder = tmp_path / "made"
    folder.mkdir()
    dropped = replace(question, question_id="gone", drop="blind: right in 3 of 3 runs")
    pq.write_table(schemas.questions_table([question, dropped]), folder / "questions.parquet")
    task = Ladder(questions=str(folder), videos=str(video), lengths=[1.0, 2.0])
    assert [q.question_id for row in task.rows() for q in row.questions] == ["q_1", "q_2"]
    with pytest.raises(UserError, match="fits into 900 s"):
        replace(task, lengths=[900.0]).rows()


def test_a_rung_is_cut_from_a_real_video(tmp_path) -> None:
    question = Question(
        question_id="q",
        video_id="v",
        recipe="mlvu",
        question="?",
        question_type="plotQA",
        evidence=(Span(100, 104),),
    )
    video = Video(video_id="v", uri=str(material(VIDEO)), duration=231.4, questions=(question,))
    ((rung,), _) = tasks.rungs(video, lengths=(20.0,))
    part = Synthesise(folder=str(tmp_path), settings=CodingSettings(preset="ultrafast"))
    cut = part.open(Counted().context(tmp_path / "store"))(rung)
    assert cut.uri == f"{tmp_path}/{rung.video_id}.mp4"
    assert cut.duration == pytest.approx(20, abs=0.05)
    inside = cut.questions[0].evidence[0]
    ours = absence.frame_descriptors(cut.uri, 1.0, inside.start, inside.end)
    theirs = absence.frame_descriptors(video.uri, 0.25, 98.0, 106.0)
    assert absence.nearest(ours, theirs)[1] < 0.02
