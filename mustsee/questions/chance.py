"""The chance level of multiple-choice questions: the expected accuracy of guessing."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from mustsee.records import Question


def chance_of(question: Question) -> float:
    """Return the probability that a guess among the options is right. The question must have
    options.
    """
    return 1 / len(question.options)


def chance_level(questions: Iterable[Question]) -> float | None:
    """Return the mean of `chance_of` over the questions with options; None if none has any."""
    chances = [chance_of(q) for q in questions if q.options]
    return fmean(chances) if chances else None
