"""Scores of answers to open questions with points, from the grades of `mustsee.judge.points`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee import stats
from mustsee.evaluate.answers import Answer, grades_of, mean_of
from mustsee.judge.points import PointsGrade, counted_points
from mustsee.records import COUNTED, Point, Question
from mustsee.stats import Estimate

BLIND, SEEN = "points_blind", "points_seen"  # metrics of a question: shares of all of its points


@dataclass(frozen=True, kw_only=True)
class PointScores:
    """The scores of one model's answers, 0 to 1.

    `score`: the mean of the questions. `skills`: by skill. `all_points`: the share of the weight of
    all points, those that do not count among them, that it states; `blind`, `seen`: the same of the
    reader without the video and of the viewer who examined the questions, on the same questions.
    `of_range`: (model - blind) / (seen - blind); null where these are not known or alike. `missed`,
    `contradicted`: numbers of points, of `points` that count. `failed`: answers without a grade.
    """

    score: Estimate | None
    skills: Mapping[str, Estimate]
    all_points: float | None
    blind: float | None
    seen: float | None
    of_range: float | None
    points: int
    missed: int
    contradicted: int
    failed: int
    grader: str


def describe_grade(question: Question, grade: PointsGrade) -> dict[str, Any]:
    """Return what a verdict keeps of the grade of all points of a question.

    `score` is that of the points that count. `missed`, `contradicted`: their texts, each with its
    weight; `made`: the wrong statements that the answer makes.
    """
    counted = count_only(question.points, grade)
    pairs = list(zip(counted_points(question), counted.verdicts, strict=True))
    made = zip(question.contradictions, grade.asserted, strict=True)
    return {
        "score": round(counted.score, 4),
        "share": round(grade.reached_weight / (grade.total_weight or 1), 4),
        "points": len(pairs),
        "missed": [_weighed(point) for point, verdict in pairs if verdict == 0],
        "contradicted": [_weighed(point) for point, verdict in pairs if verdict < 0],
        "made": [text for text, is_made in made if is_made],
        "words": [words for words in grade.words if words],
    }


def _weighed(point: Point) -> str:
    return f"{point.text} ({point.weight})"


def count_only(points: Sequence[Point], grade: PointsGrade) -> PointsGrade:
    """Return a grade of all points as one of those that count."""
    kept = [n for n, point in enumerate(points) if point.state == COUNTED]
    return PointsGrade(
        weights=tuple(grade.weights[n] for n in kept),
        verdicts=tuple(grade.verdicts[n] for n in kept),
        asserted=grade.asserted,
    )


def score_points(
    model: str,
    questions: Sequence[Question],
    mine: Mapping[str, Sequence[Answer]],
    cluster: Mapping[str, str],
) -> PointScores | None:
    """Return the scores of a model's answers to questions with points; None if none was graded or
    tried. `mine`: question id -> the model's answers. `cluster`: by video id.
    """
    asked = [q for q in questions if counted_points(q) and not q.options and mine[q.question_id]]
    grades = {q.question_id: [g for g in grades_of(q, model) if "missed" in g] for q in asked}
    tried = [q for q in asked if grades[q.question_id] or _was_tried(q, model)]
    if not tried:
        return None
    good = [q for q in tried if grades[q.question_id]]

    def mean(of: Sequence[Question]) -> Estimate:
        scores = [mean_of([g["score"] for g in grades[q.question_id]]) for q in of]
        return stats.mean(scores, [cluster.get(q.video_id, q.video_id) for q in of])

    skills = dict.fromkeys(q.skill for q in good if q.skill)
    both = [q for q in good if BLIND in q.metrics and SEEN in q.metrics]
    share, blind, seen = (
        _mean_share(both, of)
        for of in (
            lambda q: mean_of([g["share"] for g in grades[q.question_id]]),
            lambda q: q.metrics[BLIND],
            lambda q: q.metrics[SEEN],
        )
    )
    of_range = None
    if share is not None and blind is not None and seen is not None and seen > blind:
        of_range = (share - blind) / (seen - blind)
    every = [g for q in good for g in grades[q.question_id]]
    return PointScores(
        score=mean(good) if good else None,
        skills={skill: mean([q for q in good if q.skill == skill]) for skill in skills},
        all_points=share,
        blind=blind,
        seen=seen,
        of_range=of_range,
        points=sum(g["points"] for g in every),
        missed=sum(len(g["missed"]) for g in every),
        contradicted=sum(len(g["contradicted"]) for g in every),
        failed=len(tried) - len(good),
        grader=", ".join(dict.fromkeys(g["by"] for g in every)),
    )


def _was_tried(question: Question, model: str) -> bool:
    return any(g.get("by_points") for g in grades_of(question, model))


def _mean_share(questions: Sequence[Question], share: Any) -> float | None:
    """Return the mean of a share, each question by the weight of its points."""
    weights = [sum(point.weight for point in q.points) for q in questions]
    total = sum(weights)
    if not total:
        return None
    return sum(w * share(q) for w, q in zip(weights, questions, strict=True)) / total
