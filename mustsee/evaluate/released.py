"""Accuracy by the released scorers of CinePile and MLVU, shown beside ours.

Their parsers reject replies that name the right option in other words ("The answer is B"). The gap
to our accuracy is what such a parser costs a model; the value itself compares with published ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from mustsee.evaluate.answers import Answer, order, rotated_options
from mustsee.replies.extract import official


def released_scores(replies: Iterable[Answer]) -> dict[str, float]:
    """Return scorer -> the share of the replies to its recipe's questions that it counts as right.

    `replies`: to multiple-choice questions; questions without a public answer are left out.
    """
    right: dict[str, list[bool]] = {}
    for answer in replies:
        question = answer.question
        if question.answer_index is None:
            continue
        place = order(len(question.options), answer.rotation).index(question.answer_index)
        if question.recipe == "cinepile" and len(question.options) <= 5:
            options = rotated_options(question, answer.rotation)
            right.setdefault("CinePile", []).append(official.cinepile(answer.reply, options, place))
        elif question.recipe == "mlvu":
            right.setdefault("MLVU", []).append(official.mlvu(answer.reply, place))
    return {name: sum(hits) / len(hits) for name, hits in right.items()}
