"""Grades an answer by its points without a model: by the words and the vectors of its clauses.

    grade = grade_by_likeness(question, answer, points, wrong, encode)

A weak stand-in for `mustsee.judge.points`: an answer states a point if one of its clauses is like
it. It cannot tell a statement from its opposite, so that nothing is ever contradicted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mustsee.judge.points import PointsGrade
from mustsee.questions.checks import normal
from mustsee.records import Point

LIKE = 0.85  # likeness from which a clause states a point; fitted on half of 12 questions
MIN_CLAUSE_WORDS = 3
_CLAUSE = re.compile(r"(?<=[.!?;:])\s+|, (?=(?:and|but|then|so|because|while|who|which)\b)")
_ENDING = re.compile(r"(?:ing|ed|es|s)$")
_PLAIN = frozenset((
    "the", "a", "an", "of", "to", "in", "on", "at", "is", "are", "was", "he", "she", "it", "his",
    "her", "him", "they", "them", "and", "or", "that", "which", "who", "as", "by", "for", "with",
    "from", "into", "up", "down", "out", "not", "no", "be", "been", "has", "have", "had", "its",
    "this", "these", "those", "while", "when", "after", "before", "only", "then", "so", "what",
    "how",
))  # fmt: skip

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def grade_by_likeness(
    question: str, answer: str, points: Sequence[Point], wrong: Sequence[str], encode: Encode
) -> PointsGrade:
    """Return the grade of an answer. `encode`: texts to unit vectors, (n, d).

    A clause is like a point by the cosine of their vectors (-1 to 1), plus the share of the point's
    words, those of the question aside, that it has (0 to 1).
    """
    weights = tuple(point.weight for point in points)
    clauses = [c for c in _CLAUSE.split(answer) if len(c.split()) >= MIN_CLAUSE_WORDS]
    verdicts = (0,) * len(points)
    if clauses and points:
        vectors = encode([*clauses, *(point.text for point in points)])
        cosines = vectors[len(clauses) :] @ vectors[: len(clauses)].T  # (points, clauses)
        known = _words(question)
        found = [_words(clause) for clause in clauses]
        verdicts = tuple(
            int(_likeness(row, _words(point.text) - known, found) >= LIKE)
            for point, row in zip(points, cosines, strict=True)
        )
    return PointsGrade(weights=weights, verdicts=verdicts, asserted=(False,) * len(wrong))


def _likeness(
    cosines: NDArray[np.float32], words: frozenset[str], clauses: Sequence[frozenset[str]]
) -> float:
    best = int(np.argmax(cosines))
    shared = len(words & clauses[best]) / len(words) if words else 0.0
    return float(cosines[best]) + shared


def _words(text: str) -> frozenset[str]:
    return frozenset(_ENDING.sub("", w) for w in normal(text).split() if w not in _PLAIN)
