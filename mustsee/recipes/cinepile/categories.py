"""Vision reliance and hardness of the questions of each category (CinePile, Fig. 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mustsee import stats
from mustsee.evaluate.drawing import new_axes
from mustsee.records import Question
from mustsee.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = ("vision_reliance", "hardness")


@dataclass(frozen=True, kw_only=True)
class CategoryRates:
    """The share of a category's questions that are vision-reliant, and that are hard, with 95 %
    intervals by clip; null where none was measured.
    """

    category: str
    questions: int
    vision_reliance: Estimate | None
    hardness: Estimate | None


def rates_by_category(questions: Iterable[Question]) -> list[CategoryRates]:
    """Return the rates of all categories among the kept questions, in alphabetical order."""
    by_category: dict[str, list[Question]] = {}
    for question in questions:
        if question.drop is None:
            by_category.setdefault(question.question_type or "", []).append(question)
    return [
        CategoryRates(
            category=category,
            questions=len(group),
            vision_reliance=_share(group, "vision_reliance"),
            hardness=_share(group, "hardness"),
        )
        for category, group in sorted(by_category.items())
    ]


def _share(questions: Sequence[Question], measure: str) -> Estimate | None:
    measured = [q for q in questions if measure in q.metrics]
    if not measured:
        return None
    return stats.mean([q.metrics[measure] for q in measured], [q.video_id for q in measured])


def draw_rates(rates: Sequence[CategoryRates]) -> Figure:
    """Draw two bars for each category, with their intervals."""
    figure, axes = new_axes(7.0, 1.2 + 0.6 * len(rates))
    for offset, measure in zip((-0.18, 0.18), MEASURES, strict=True):
        found = [(n, e) for n, r in enumerate(rates) if (e := getattr(r, measure)) is not None]
        values = [100 * e.value for _, e in found]
        below = [100 * (e.value - (e.value if e.low is None else e.low)) for _, e in found]
        above = [100 * ((e.value if e.high is None else e.high) - e.value) for _, e in found]
        axes.barh(
            [n + offset for n, _ in found],
            values,
            height=0.34,
            xerr=[below, above],
            label=measure.replace("_", " "),
        )
    axes.set_yticks(range(len(rates)), [f"{r.category} ({r.questions})" for r in rates])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the category's questions")
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure
