"""Accuracy by the released scorers of CinePile and MLVU, shown beside ours.

Their parsers reject replies that name the right option in other words ("The answer is B"). The gap
to our accuracy is what such a parser costs a model; the value itself compares with published ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from mustsee.evaluate.answers import Answer, order
from mustsee.evaluate.scorers.official import RULES

NAMES = {"cinepile": "CinePile", "mlvu": "MLVU"}  # names of papers by recipe


def released_scores(replies: Iterable[Answer]) -> dict[str, float]:
    """Return scorer -> the share of the replies to its recipe's questions that it counts as right.

    `replies`: to multiple-choice questions; questions without a public answer are left out.
    """
    points: dict[str, list[float]] = {}
    for answer in replies:
        question = answer.question
        if question.answer_index is None or question.recipe not in NAMES:
            continue
        place = order(len(question.options), answer.rotation).index(question.answer_index)
        reading = RULES[question.recipe].read(answer.reply, answer.options, place)
        points.setdefault(NAMES[question.recipe], []).append(reading.points or 0.0)
    return {name: sum(values) / len(values) for name, values in points.items()}
