"""A question's options as they are shown: turned from run to run, so that no place is favoured."""

from __future__ import annotations

from mustsee.records import Question


def order(count: int, rotation: int) -> tuple[int, ...]:
    """The options as shown: turned by `rotation` places, so that over `count` rotations each option
    stands once in each place (CinePile 2.0).
    """
    turn = rotation % count if count else 0
    return tuple((i - turn) % count for i in range(count))


def rotated_options(question: Question, rotation: int) -> tuple[str, ...]:
    """The texts of the options in that order."""
    return tuple(question.options[i] for i in order(len(question.options), rotation))
