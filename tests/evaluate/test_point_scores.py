"""Scores by points: what counts, how the range of the exam's readers is used, and the rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.llm.offline import Offline
from actors.stages.grade import BY_LIKENESS, GradeReplies
from mustsee.errors import UserError
from mustsee.evaluate import score, score_show
from mustsee.evaluate.answers import GRADE, verdict_on_reply
from mustsee.judge.points import PointsGrade, describe_grade, grade_by_likeness
from mustsee.records import COUNTED, GIVEN, UNREACHED, Point, Question, Verdict, Video
from ray_jobs.cli.launch import build, compose
from tests.actors.answer.test_answer import work

POINTS = (
    Point(text="The cook hides the spoon in a boot", weight=3, facts=("c1",), state=COUNTED),
    Point(text="A goat eats the letter", weight=2, facts=("c2",), state=COUNTED),
    Point(text="There is a kitchen", weight=1, facts=("f1",), state=GIVEN),
    Point(text="The clock has stopped", weight=2, facts=("f2",), state=UNREACHED),
)


def ask(name: str = "q", **fields: object) -> Question:
    base = Question(
        question_id=name, video_id="v", recipe="facts", question="What becomes of the spoon?",
        question_type="Other", answer="It lies in a boot.", points=POINTS, skill="entity",
        contradictions=("The goat eats the spoon",),
        metrics={"points_blind": 1 / 8, "points_seen": 6 / 8},
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def graded(question: Question, *verdicts: int, made: bool = False) -> Question:
    grade = PointsGrade(weights=(3, 2, 1, 2), verdicts=verdicts, asserted=(made,))
    detail = {"of": "m", "rotation": 0, "by_points": True, **describe_grade(question, grade)}
    given = verdict_on_reply(question, "It is in a boot.", model="m")
    verdict = Verdict(filter=GRADE, model="grader", detail=json.dumps(detail))
    return replace(question, verdicts=(given, verdict))


def test_the_place_between_blind_reader_and_viewer_has_an_interval_over_videos() -> None:
    """Of twelve videos half are answered as by the viewer, half as by the blind reader."""
    verdicts = ((1, 1, 0, 1), (0, 0, 1, 0))
    asked = [graded(ask(f"q{n}", video_id=f"v{n}"), *verdicts[n % 2]) for n in range(12)]
    (found,) = score.score(asked)
    by = found.by_points
    assert by is not None
    assert by.of_range is not None
    place = by.of_range
    assert place.low is not None
    assert place.high is not None
    shares = [7 / 8, 1 / 8]
    assert place.value == pytest.approx((sum(shares) / 2 - 1 / 8) / (6 / 8 - 1 / 8))
    assert place.low < place.value < place.high
    assert place.clusters == 12


def test_only_points_that_count_are_in_the_score_and_all_are_in_the_range() -> None:
    (found,) = score.score([graded(ask(), 1, 0, 1, 1)])
    by = found.by_points
    assert by is not None
    assert by.score is not None
    assert by.score.value == pytest.approx(3 / 5)
    assert by.all_points == pytest.approx(6 / 8)
    assert by.of_range is not None
    assert (by.of_range.value, by.of_range.low) == (pytest.approx(1.0), None)  # of one video
    assert (by.points, by.missed, by.contradicted, by.failed) == (2, 1, 0, 0)
    assert by.skills["entity"].value == pytest.approx(3 / 5)


def test_contradictions_and_wrong_statements_cost_and_are_named() -> None:
    question = graded(ask(), 1, -1, 0, 0, made=True)
    (found,) = score.score([question])
    assert found.by_points is not None
    assert found.by_points.score is not None
    assert found.by_points.score.value == 0
    detail = json.loads(question.verdicts[-1].detail)
    assert detail["contradicted"] == ["A goat eats the letter (2)"]
    assert detail["made"] == ["The goat eats the spoon"]


def test_an_answer_graded_by_points_counts_in_no_other_number() -> None:
    (found,) = score.score([graded(ask(), 1, 1, 0, 0)])
    assert found.written is None


def test_the_words_that_decided_stand_beside_a_point() -> None:
    words = ("boot", "no letter", "", "")
    grade = PointsGrade(
        weights=(3, 2, 1, 2), verdicts=(1, -1, 0, 0), asserted=(False,), words=words
    )
    assert describe_grade(ask(), grade)["contradicted"] == [
        "A goat eats the letter (2): “no letter”"
    ]


def test_without_the_exam_s_readers_there_is_no_range() -> None:
    (found,) = score.score([graded(ask(metrics={}), 1, 1, 1, 1)])
    assert found.by_points is not None
    assert found.by_points.of_range is None


def test_a_grade_that_could_not_be_read_is_counted_and_is_no_zero() -> None:
    given = verdict_on_reply(ask(), "It is in a boot.", model="m")
    lost = json.dumps({"of": "m", "rotation": 0, "by_points": True, "error": "no line"})
    unread = replace(
        ask("q2"), verdicts=(given, Verdict(filter=GRADE, model="grader", detail=lost))
    )
    (found,) = score.score([graded(ask(), 1, 1, 0, 0), unread])
    assert found.by_points is not None
    assert found.by_points.score is not None
    assert (found.by_points.score.n, found.by_points.score.value) == (1, 1)
    assert found.by_points.failed == 1
    assert "1 not graded" in score_show.headline([found])[0]


def letters(texts: Sequence[str]) -> NDArray[np.float32]:
    """Vectors of texts by their words: alike where these are."""
    rows = np.zeros((len(texts), 64), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.casefold().split():
            row[sum(map(ord, word)) % 64] += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def test_rules_find_a_point_in_a_clause_that_says_it() -> None:
    answer = "First nothing happens. The cook hides the spoon in a boot, and then she sings loudly."
    grade = grade_by_likeness("What?", answer, POINTS, ("no",), letters)
    assert grade.verdicts[:2] == (1, 0)
    assert grade.asserted == (False,)
    assert grade_by_likeness("What?", "", POINTS, (), letters).verdicts == (0, 0, 0, 0)


def test_the_stage_grades_by_points_where_the_judge_says_so(tmp_path: Path) -> None:
    given = verdict_on_reply(ask(), "The cook hides the spoon in a boot.", model="m")
    question = replace(ask(), verdicts=(given,))
    judge = build(compose("evaluate", ["questions=q", "out=o", "judge=points"])).grade.judge
    row = Video(video_id="v", uri="v.mp4", questions=(question,))
    done = work(GradeReplies(judge=judge, llm=Offline()), row, tmp_path).questions
    assert done is not None
    (verdict,) = [v for v in done[0].verdicts if v.filter == GRADE]
    detail = json.loads(verdict.detail)
    assert verdict.model == BY_LIKENESS
    assert detail["missed"] == ["A goat eats the letter (2)"]
    assert detail["score"] == pytest.approx(3 / 5)


def test_a_model_may_not_grade_its_own_answers_by_points() -> None:
    asked = ["questions=q", "out=o", "judge=points", "answer=blind", "llm=openai", "llm.model=x"]
    job = build(compose("evaluate", asked))
    with pytest.raises(UserError, match="would grade its own answers"):
        job.grade.check_grader_differs(job.answer.llm, rubrics=True, judged=False)
