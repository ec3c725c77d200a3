"""Grades answers to open questions point by point.

    grade = await grade_statements(question, answer, points, contradictions, asker)
    grade.score, grade.reached_weight, grade.total_weight

A question with points is graded by them, and by nothing else: of each point the grader says whether
the answer states it, contradicts it, or leaves it out, and of each known wrong statement whether
the answer makes it. All points of one answer are graded in one call.

Without a model, `grade_by_likeness(question, answer, points, wrong, encode)` goes by the words and
the vectors of the answer's clauses. A weak stand-in: an answer states a point if one of its clauses
is like it. It cannot tell a statement from its opposite, so that nothing is ever contradicted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.calls.llm import Asker
from mustsee.questions.checks import normal
from mustsee.questions.rows import Rows, numbered_rows, parse_choice, rows_form
from mustsee.records import COUNTED, Point, Question
from mustsee.replies.forms import Form

PROMPT = "facts/grade"
ENTAILED, ABSENT, CONTRADICTED = "ENTAILED", "ABSENT", "CONTRADICTED"
VALUES = {ENTAILED: 1, ABSENT: 0, CONTRADICTED: -1}
ASSERTED = {"YES": True, "NO": False}
CONTRADICTION_WEIGHT = 1  # weight of a wrong statement that an answer makes; points have 1 to 3


@dataclass(frozen=True, kw_only=True)
class PointsGrade:
    """The grade of one answer.

    `weights`: of the points. `verdicts`: of each point, 1 if the answer states it, -1 if it
    contradicts it, else 0. `asserted`: of each known wrong statement, whether the answer makes it.
    `words`: for each point the words of the answer that decide it; empty where there are none.
    """

    weights: tuple[int, ...]
    verdicts: tuple[int, ...]
    asserted: tuple[bool, ...] = ()
    words: tuple[str, ...] = field(default=(), compare=False)

    @property
    def total_weight(self) -> int:
        """The weight of all points."""
        return sum(self.weights)

    @property
    def reached_weight(self) -> int:
        """The weight of the points that the answer states."""
        return self._weigh(1)

    @property
    def lost_weight(self) -> int:
        """The weight of the points that it contradicts, and of the wrong statements that it
        makes.
        """
        return self._weigh(-1) + CONTRADICTION_WEIGHT * sum(self.asserted)

    @property
    def score(self) -> float:
        """The share of the weight that the answer reaches, less what it loses; 0 to 1."""
        kept = max(0, self.reached_weight - self.lost_weight)
        return kept / self.total_weight if self.total_weight else 0.0

    def _weigh(self, verdict: int) -> int:
        pairs = zip(self.weights, self.verdicts, strict=True)
        return sum(weight for weight, given in pairs if given == verdict)


def counted_points(question: Question) -> tuple[Point, ...]:
    """Return the points of a question that count in a score."""
    return tuple(point for point in question.points if point.state == COUNTED)


async def grade_statements(
    question: str,
    answer: str,
    points: Sequence[Point],
    contradictions: Sequence[str],
    asker: Asker,
    *,
    seed: int = 0,
) -> PointsGrade:
    """Return the grade of an answer by points and known wrong statements. An empty answer states
    nothing, and no model is asked. Raises BadRow if no reply can be parsed.
    """
    weights = tuple(point.weight for point in points)
    if not points or not any(c.isalnum() for c in answer):
        nothing = (False,) * len(contradictions)
        return PointsGrade(weights=weights, verdicts=(0,) * len(points), asserted=nothing)
    verdicts, asserted, words = await asker.ask(
        PROMPT,
        grade_form(len(points), len(contradictions)),
        seed=seed,
        question=question,
        answer=answer,
        points=tuple(point.text for point in points),
        statements=tuple(contradictions),
    )
    return PointsGrade(weights=weights, verdicts=verdicts, asserted=asserted, words=words)


def grade_form(
    points: int, statements: int
) -> Form[tuple[tuple[int, ...], tuple[bool, ...], tuple[str, ...]]]:
    """Return the form of a reply with a verdict on each of `points` points, on each of `statements`
    wrong statements whether it is made, and the words that decide each point. Its `read` raises
    Unparsed unless each number has exactly one.
    """
    words = (
        "the words of the answer that decide it, as a sentence that can be read alone; empty if "
        "there are none"
    )
    kinds = {"point": {"verdict": f"one of {', '.join(VALUES)}", "words": words}}
    if statements:
        kinds["statement"] = {"made": f"one of {', '.join(ASSERTED)}", "words": words}

    def read_verdicts(rows: Rows) -> tuple[tuple[int, ...], tuple[bool, ...], tuple[str, ...]]:
        given = numbered_rows(rows["point"], points, "point")
        verdicts = tuple(
            VALUES[parse_choice(row["verdict"], VALUES, f"point {row.number}")] for row in given
        )
        asserted = tuple(
            ASSERTED[parse_choice(row["made"], ASSERTED, f"statement {row.number}")]
            for row in numbered_rows(rows.get("statement", ()), statements, "statement")
        )
        return verdicts, asserted, tuple(row["words"] for row in given)

    return rows_form(kinds, brief=kinds).map(read_verdicts)


def describe_grade(question: Question, grade: PointsGrade) -> dict[str, Any]:
    """Return what a verdict keeps of the grade of all points of a question.

    `score` is that of the points that count, `verdicts` theirs. `missed`, `contradicted`: their
    texts, each with its weight and the words of the answer that decided, if there are any; `made`:
    the wrong statements that the answer makes.
    """
    counted = count_only(question.points, grade)
    words = grade.words or ("",) * len(question.points)
    found = [
        (_describe(point, said), verdict)
        for point, verdict, said in zip(question.points, grade.verdicts, words, strict=True)
        if point.state == COUNTED
    ]
    made = zip(question.contradictions, grade.asserted, strict=True)
    return {
        "score": round(counted.score, 4),
        "share": round(grade.reached_weight / (grade.total_weight or 1), 4),
        "points": len(found),
        "verdicts": [verdict for _, verdict in found],
        "missed": [text for text, verdict in found if verdict == 0],
        "contradicted": [text for text, verdict in found if verdict < 0],
        "made": [text for text, is_made in made if is_made],
    }


def _describe(point: Point, words: str) -> str:
    said = f": “{words}”" if words else ""
    return f"{point.text} ({point.weight}){said}"


def count_only(points: Sequence[Point], grade: PointsGrade) -> PointsGrade:
    """Return a grade of all points as one of those that count."""
    kept = [n for n, point in enumerate(points) if point.state == COUNTED]
    return PointsGrade(
        weights=tuple(grade.weights[n] for n in kept),
        verdicts=tuple(grade.verdicts[n] for n in kept),
        asserted=grade.asserted,
    )


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
