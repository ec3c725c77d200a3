"""The order of a question's options, rotated from run to run so that no position is favoured."""

from __future__ import annotations

from mustsee.records import Question


def order(count: int, rotation: int) -> tuple[int, ...]:
    """Return the indices of the options as shown: rotated by `rotation` positions, so that over
    `count` rotations each option is once in each position (CinePile 2.0).
    """
    turn = rotation % count if count else 0
    return tuple((i - turn) % count for i in range(count))


def rotated_options(question: Question, rotation: int) -> tuple[str, ...]:
    """Return the texts of the options in that order."""
    return tuple(question.options[i] for i in order(len(question.options), rotation))
