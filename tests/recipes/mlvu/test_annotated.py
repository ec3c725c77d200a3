"""Filled-in forms and released annotations become questions, or are refused."""

from collections import Counter
from dataclasses import replace

import pytest

from mustsee.errors import UserError
from mustsee.recipes.mlvu import annotated, ask, layout
from mustsee.recipes.mlvu.annotated import FORMS, FilledForm
from mustsee.recipes.mlvu.tasks import EgoQueries
from mustsee.records import Span, Video


def filled(kind="plotQA", **more) -> FilledForm:
    base = {
        "video_id": "v",
        "kind": kind,
        "question": "What does the man in the red hat carry out of the barn?",
        "answer": "a lamp",
        "wrong": ("a rope", "some apples", "two chairs") if FORMS[kind].wrong else (),
        "points": ("a lamp is carried", "it is lit") if FORMS[kind].points else (),
        "evidence": (Span(3, 20),),
    }
    return FilledForm(**{**base, **more})


def test_forms_are_checked() -> None:
    for kind in FORMS:
        assert annotated.faults(filled(kind)) == [], kind
    assert "name" in annotated.faults(filled(question="Why does Harry leave the barn at night?"))[0]
    assert "name" in annotated.faults(filled(answer="with Bob"))[0]
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
    [reason] = annotated.faults(filled(evidence=(Span(8, 5),)))
    assert "is not in the video" in reason
    assert "no form" in annotated.faults(replace(filled(), kind="x"))[0]


def test_tables_become_questions(tmp_path) -> None:
    rows = [
        {"video_id": "v", "kind": "plotQA", "question": "What is carried?", "answer": "a lamp",
         "wrong_1": "a rope", "wrong_2": "apples", "wrong_3": "chairs", "start": "3", "end": "9"},
        {"video_id": "v", "kind": "summary", "question": None, "answer": "A man carries things."},
        {"video_id": "w", "question_type": "subPlot", "question": "What follows the fall?",
         "answer": "He gets up.", "points": "gets up|looks round", "start": 1, "end": 2},
    ]  # fmt: skip
    questions = annotated.questions_of(annotated.from_table(rows))
    assert [q.drop for qs in questions.values() for q in qs] == [None] * 3
    assert questions["w"][0].scoring_points == ("gets up", "looks round")
    assert questions["v"][1].question in FORMS["summary"].fixed_question
    six = annotated.questions_of(annotated.from_table(rows), options=6)
    assert [q.drop for qs in six.values() for q in qs] == [
        "form: 3 wrong answers, not 5", None, None,
    ]  # fmt: skip
    videos = [Video(video_id=v, uri=f"{v}.mp4", duration=200.0) for v in "vw"]
    layout.write([q for qs in questions.values() for q in qs], tmp_path, videos)
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
    ego_queries = annotated.queries(nlq())
    assert len(ego_queries) == 6
    places = ("bed", "coordinator", "wall", "sink", "mat")
    answers = {q.query_id: f"on the {w}" for q, w in zip(ego_queries, places, strict=False)}
    forms = annotated.ego_forms(ego_queries, answers)
    assert len(forms) == 5
    for form in forms:
        assert annotated.faults(form) == []
        assert form.question.endswith("?")
        assert form.answer not in form.wrong
        assert len(set(form.wrong)) == 3
    questions = annotated.questions_of(forms)["v"]
    assert questions[2].evidence == (Span(20.0, 24.0),)
    with pytest.raises(UserError, match="natural-language"):
        annotated.queries({"videos": [{}]})


def test_queries_of_another_form_are_refused(tmp_path) -> None:
    (tmp_path / "nlq.json").write_text("query_id,answer")
    for name in ("nlq.json", "none.json"):
        with pytest.raises(UserError, match=f"cannot read queries=.*{name}"):
            EgoQueries(queries=str(tmp_path / name), annotations=None, videos=None).rows()


def test_anomalies_from_labels() -> None:
    rows = [
        (Video(video_id=f"v{n:03}", uri=f"v{n}.mp4", duration=100.0 + n), label)
        for n, label in enumerate(ask.ANOMALIES * 12)
    ]
    questioned = ask.Anomaly().rows(rows)
    assert len(questioned) == sum(video.duration >= 180 for video, _ in rows)
    truth = {video.video_id: label for video, label in rows}
    for row in questioned:
        (question,) = row.questions
        assert question.answer == truth[row.video_id]
        assert len(set(question.options)) == 4
    slots = Counter(row.questions[0].answer_index for row in questioned)
    assert max(slots.values()) - min(slots.values()) <= 1
    with pytest.raises(UserError, match="Sleeping"):
        ask.Anomaly().rows([(rows[0][0], "Sleeping")])
