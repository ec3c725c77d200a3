"""What questions and those made from them tell together: the gap between choosing and saying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee import stats
from mustsee.evaluate.answers import grades_of, mean_of
from mustsee.records import OPEN, Question
from mustsee.stats import Difference, Estimate


@dataclass(frozen=True, kw_only=True)
class Twins:
    """Questions answered both ways: by `choice`, and in words by their open-ended twins (`written`,
    as the judge says). `gap`: the first less the second, pair by pair.
    """

    choice: Estimate
    written: Estimate
    gap: Difference


def twins(
    model: str,
    right: Mapping[str, float],
    questions: Sequence[Question],
    cluster: Mapping[str, str],
) -> Twins | None:
    """The pairs of which both were answered and the twin was graded. `right`: by question id, of
    those answered by choice; `cluster`: by video.
    """
    pairs: list[tuple[float, float, str]] = []
    for question in questions:
        if question.relation != OPEN or question.sibling_of not in right:
            continue
        told = [float(c) for g in grades_of(question, model) if (c := g["correct"]) is not None]
        if told:
            where = cluster.get(question.video_id, question.video_id)
            pairs.append((right[question.sibling_of], mean_of(told), where))
    if not pairs:
        return None
    choice, written, where = (list(column) for column in zip(*pairs, strict=True))
    return Twins(
        choice=stats.mean(choice, where),
        written=stats.mean(written, where),
        gap=stats.paired(choice, written, where),
    )
