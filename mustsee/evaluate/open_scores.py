"""Scores of graded answers to open questions: by MLVU's rubrics, and by points.

MLVU's two open-ended tasks are sub-scene captions (SSC) and video summaries (VS), Fig. 8.

A caption gets a level of 5, 3 or 1 for each scoring point, whose mean is its accuracy, and a
relevance from 1 to 5. A summary gets a completeness and a reliability from 1 to 5. Levels are whole
numbers, described in the prompt; the model gives the reason before the level. The task score is the
sum of both scales, 2 to 10; G-Avg is the mean of the two tasks. Grades by points
are made by `mustsee.judge.points`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from mustsee import stats
from mustsee.calls.llm import Asker
from mustsee.evaluate.answers import ModelAnswers, grades_of, mean_of
from mustsee.questions.rows import levels_form
from mustsee.records import COUNTED, Question
from mustsee.replies.forms import Form
from mustsee.stats import Estimate, Floats

SCALES = {"subPlot": ("accuracy", "relevance"), "summary": ("completeness", "reliability")}
PROMPTS = {"subPlot": "evaluate/scene", "summary": "evaluate/summary"}
LEVELS = (1, 2, 3, 4, 5)
POINT_LEVELS = (1, 3, 5)  # scores of one scoring point


@dataclass(frozen=True, kw_only=True)
class RubricGrade:
    """The grade of one answer.

    `first`: accuracy (SSC) or completeness (VS). `second`: relevance (SSC) or reliability (VS).
    `points`: the level of each scoring point (SSC); `first` is their mean. `reply`: the grader's
    reply, with its reasons.
    """

    first: float
    second: float
    points: tuple[int, ...] = ()
    reply: str = ""

    @property
    def total(self) -> float:
        return self.first + self.second


def scene_grade(points: int) -> Form[RubricGrade]:
    """Return the form of a caption's grade: a level for each of `points` scoring points, and the
    relevance.
    """
    names = [f"point_{n}" for n in range(1, points + 1)]

    def make_grade(levels: Mapping[str, int], reply: str) -> RubricGrade:
        each = tuple(levels[name] for name in names)
        mean = sum(each) / len(each)
        return RubricGrade(first=mean, second=levels["relevance"], points=each, reply=reply)

    scales = {**dict.fromkeys(names, POINT_LEVELS), "relevance": LEVELS}
    return levels_form(scales).map(lambda parsed: make_grade(*parsed))


def summary_grade() -> Form[RubricGrade]:
    """Return the form of a summary's grade: the completeness and the reliability."""

    def make_grade(levels: Mapping[str, int], reply: str) -> RubricGrade:
        return RubricGrade(first=levels["completeness"], second=levels["reliability"], reply=reply)

    scales = dict.fromkeys(SCALES["summary"], LEVELS)
    return levels_form(scales).map(lambda parsed: make_grade(*parsed))


async def grade(question: Question, candidate: str, asker: Asker, seed: int = 0) -> RubricGrade:
    """Ask the model for the grade of one answer.

    The reference is the one scoring point of a caption without any. Raises BadRow after replies of
    a wrong form.
    """
    prompt = PROMPTS[question.question_type]
    if question.question_type == "summary":
        return await asker.ask(
            prompt, summary_grade(), seed=seed, reference=question.answer, candidate=candidate
        )
    points = list(question.scoring_points) or [question.answer]
    return await asker.ask(
        prompt,
        scene_grade(len(points)),
        seed=seed,
        question=question.question,
        points=points,
        candidate=candidate,
    )


@dataclass(frozen=True, kw_only=True)
class Rubric:
    """Scores of MLVU's graded tasks, 2 to 10 each.

    `scales`: the mean of each scale, 1 to 5. `g_avg`: the mean of the tasks (G-Avg). `failed`: by
    task, the number of answers without a grade. `grader`: the model that graded.
    """

    tasks: Mapping[str, Estimate]
    scales: Mapping[str, float]
    g_avg: float | None
    failed: Mapping[str, int]
    grader: str


def rubric(questions: Sequence[Question], mine: ModelAnswers) -> Rubric | None:
    """Return the scores of a model's graded answers; None if it answered no such question."""
    tasks, scales, failures = dict[str, Estimate](), dict[str, float](), dict[str, int]()
    graders: dict[str, None] = {}
    for kind in SCALES:
        answered = [q for q in questions if q.question_type == kind and not q.options]
        answered = [q for q in answered if mine.answers_to(q)]
        good = [q for q in answered if mine.grades(q, "first")]
        if answered:
            failures[kind] = len(answered) - len(good)
        if good:
            firsts, seconds = (mine.mean_grades(good, key) for key in ("first", "second"))
            tasks[kind] = mine.mean([a + b for a, b in zip(firsts, seconds, strict=True)], good)
            scales |= zip(SCALES[kind], (mean_of(firsts), mean_of(seconds)), strict=True)
            graders |= dict.fromkeys(g["by"] for q in good for g in mine.grades(q, "first"))
    if not failures:
        return None
    g_avg = fmean(task.value for task in tasks.values()) if tasks.keys() == SCALES.keys() else None
    return Rubric(
        tasks=tasks, scales=scales, g_avg=g_avg, failed=failures, grader=", ".join(graders)
    )


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


def score_points(questions: Sequence[Question], mine: ModelAnswers) -> PointScores | None:
    """Return the scores of a model's answers to questions with points; None if none was graded or
    tried.
    """
    asked = [q for q in questions if _has_points(q) and mine.answers_to(q)]
    tried = [q for q in asked if mine.grades(q, "missed") or is_by_points(q, mine.model)]
    if not tried:
        return None
    good = [q for q in tried if mine.grades(q, "missed")]

    def mean(of: Sequence[Question]) -> Estimate:
        return mine.mean(mine.mean_grades(of, "score"), of)

    skills = dict.fromkeys(q.skill for q in good if q.skill)
    both = [q for q in good if BLIND in q.metrics and SEEN in q.metrics]
    weights = np.array([sum(point.weight for point in q.points) for q in both], np.float64)
    shares = {
        "model": mine.mean_grades(both, "share"),
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
        of_range = stats.bootstrap(place, len(both), mine.places(both))
    every = [g for q in good for g in mine.grades(q, "missed")]
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
