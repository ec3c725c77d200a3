"""How many questions of a dataset are right, by a sample that somebody has checked.

The sample is systematic over questions in the order of type and video: each type and each video has
its share of it to within one question, and every question the same chance. Who checked is part of
the figure: people and a model that looks are never counted together.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.records import Question
from mustsee.stats import mean

PEOPLE = "people"


def sample(questions: Sequence[Question], size: int | None, seed: int = 0) -> list[Question]:
    """`size` questions (all, where null) in a random order, so that those checked first are a
    sample as well.
    """
    order = random.Random(f"{seed}/rate/sample")
    ranked = sorted(questions, key=lambda q: q.question_id)
    order.shuffle(ranked)
    ranked.sort(key=lambda q: (q.question_type, q.video_id))
    if size is not None and size < len(ranked):
        step, start = len(ranked) / size, order.random()
        ranked = [ranked[min(len(ranked) - 1, int((k + start) * step))] for k in range(size)]
    order.shuffle(ranked)
    return ranked


@dataclass(frozen=True, kw_only=True)
class MeasuredCorrectness:
    """`n` of `asked` questions checked, so many of them right. `low`, `high`: the 95 % interval
    with videos as clusters, for a sample that was checked to its end. `low_whenever`: a lower bound
    that holds whenever one stops, questions taken as independent (`bound`). `decided`: "above" or
    "below" the share `wanted`, see `decide_bound`.
    """

    by: str
    n: int
    asked: int
    right: int
    low: float | None
    high: float | None
    low_whenever: float
    wanted: float
    decided: str | None

    @property
    def lower(self) -> float:
        """The lower bound to quote: the lesser one where checking stopped early."""
        if self.low is None:
            return self.low_whenever
        return self.low if self.n >= self.asked else min(self.low, self.low_whenever)

    def card_sentence(self) -> str:
        """The sentence of a dataset's card."""
        return (
            f"{self.n} checked by {self.by}, {self.right} right "
            f"({self.right / self.n:.1%}; lower bound of the 95 % interval {self.lower:.1%})"
        )

    def plain(self) -> dict[str, Any]:
        """An entry of `checked` in `run.json`."""
        return {**vars(self), "lower": self.lower, "said": self.card_sentence()}


def measure_correctness(
    right: Mapping[str, bool], videos: Mapping[str, str], *, asked: int, by: str, wanted: float
) -> MeasuredCorrectness | None:
    """From the verdict on each checked question and its video. Null where none was checked."""
    if not right:
        return None
    names = sorted(right)
    found = mean([float(right[n]) for n in names], [videos[n] for n in names])
    count = sum(right.values())
    return MeasuredCorrectness(
        by=by, n=len(names), asked=asked, right=count, low=found.low, high=found.high,
        low_whenever=bound(count, len(names)), wanted=wanted,
        decided=decide_bound(count, len(names), wanted),
    )  # fmt: skip


def evidence(right: int, n: int, share: float) -> float:
    """The log of how much likelier `right` of `n` is under all shares alike than under this one.

    Under the share itself the ratio is a martingale of mean 1, so it passes 1/0.05 at any time with
    a chance of at most 0.05 (Ville; Robbins 1970): one may look after every question.
    """
    mixed = math.lgamma(right + 1) + math.lgamma(n - right + 1) - math.lgamma(n + 2)
    if (share <= 0 and right) or (share >= 1 and right < n):
        return math.inf
    one = right * math.log(share) if right else 0.0
    other = (n - right) * math.log1p(-share) if right < n else 0.0
    return mixed - one - other


def decide_bound(right: int, n: int, wanted: float, level: float = 0.95) -> str | None:
    """ "above" or "below" the wanted share once enough were seen to say so; else null."""
    if not n or evidence(right, n, wanted) < -math.log(1 - level):
        return None
    return "above" if right / n > wanted else "below"


def bound(right: int, n: int, level: float = 0.95) -> float:
    """The least share that is not yet refuted by `evidence`; 0 where nothing is."""
    low, high = 0.0, right / n if n else 0.0
    for _ in range(60):
        middle = (low + high) / 2
        refuted = evidence(right, n, middle) >= -math.log(1 - level)
        low, high = (middle, high) if refuted else (low, middle)
    return low
