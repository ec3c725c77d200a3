"""What guessing gets: the chance level of multiple-choice questions."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from mustsee.records import Question


def chance_of(question: Question) -> float:
    """The probability that a guess among the options is right. The question has options."""
    return 1 / len(question.options)


def chance_level(questions: Iterable[Question]) -> float | None:
    """The share of the questions that guessing gets right; None where none of them has options."""
    chances = [chance_of(q) for q in questions if q.options]
    return fmean(chances) if chances else None
