"""Scores of answers to open questions with points, from the grades of `mustsee.judge.points`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mustsee import stats
from mustsee.evaluate.answers import Answer, grades_of, mean_of
from mustsee.records import COUNTED, Question
from mustsee.stats import Estimate, Floats

BLIND, SEEN = "points_blind", "points_seen"  # metrics of a question: shares of all of its points


@dataclass(frozen=True, kw_only=True)
class PointScores:
    """The scores of one model's answers, 0 to 1.

    `score`: the mean of the questions. `skills`: by skill. `all_points`: the share of the weight of
    all points, those that do not count among them, that it states; `blind`, `seen`: the same of the
    reader without the video and of the viewer who examined the questions, on the same questions.
    `of_range`: (model - blind) / (seen - blind), with its interval over resampled videos; null
    where these are not known or alike. `missed`, `contradicted`: numbers of points, of `points`
    that count. `failed`: answers without a grade.
    """

    score: Estimate | None
    skills: Mapping[str, Estimate]
    all_points: float | None
    blind: float | None
    seen: float | None
    of_range: Estimate | None
    points: int
    missed: int
    contradicted: int
    failed: int
    grader: str


def score_points(
    model: str,
    questions: Sequence[Question],
    mine: Mapping[str, Sequence[Answer]],
    cluster: Mapping[str, str],
) -> PointScores | None:
    """Return the scores of a model's answers to questions with points; None if none was graded or
    tried. `mine`: question id -> the model's answers. `cluster`: by video id.
    """
    asked = [q for q in questions if _has_points(q) and mine[q.question_id]]
    grades = {q.question_id: [g for g in grades_of(q, model) if "missed" in g] for q in asked}
    tried = [q for q in asked if grades[q.question_id] or is_by_points(q, model)]
    if not tried:
        return None
    good = [q for q in tried if grades[q.question_id]]

    def mean(of: Sequence[Question]) -> Estimate:
        scores = [mean_of([g["score"] for g in grades[q.question_id]]) for q in of]
        return stats.mean(scores, [cluster.get(q.video_id, q.video_id) for q in of])

    skills = dict.fromkeys(q.skill for q in good if q.skill)
    both = [q for q in good if BLIND in q.metrics and SEEN in q.metrics]
    weights = np.array([sum(point.weight for point in q.points) for q in both], np.float64)
    shares = {
        "model": [mean_of([g["share"] for g in grades[q.question_id]]) for q in both],
        BLIND: [q.metrics[BLIND] for q in both],
        SEEN: [q.metrics[SEEN] for q in both],
    }
    share, blind, seen = (_mean(values, weights) for values in shares.values())

    def place(times: Floats) -> float:
        model, low, high = (_mean(values, weights * times) for values in shares.values())
        if model is None or low is None or high is None or high <= low:
            return math.nan
        return (model - low) / (high - low)

    of_range = None
    if blind is not None and seen is not None and seen > blind:
        videos = [cluster.get(q.video_id, q.video_id) for q in both]
        of_range = stats.bootstrap(place, len(both), videos)
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


def _has_points(question: Question) -> bool:
    return not question.options and any(p.state == COUNTED for p in question.points)


def is_by_points(question: Question, model: str) -> bool:
    """Whether a model's answer to a question was graded by its points, or was to be."""
    return any(g.get("by_points") for g in grades_of(question, model))


def _mean(shares: Sequence[float], weights: Floats) -> float | None:
    """Return the mean of shares, each by its weight; null without any."""
    total = float(weights.sum())
    return float(np.asarray(shares) @ weights) / total if total else None
