"""Measure the share of right questions in a dataset from a checked sample.

The sample is systematic over questions ordered by type and video: each type and video has its share
to within one question, and every question has the same chance. Checks by people and by a vision
model are separate figures.
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
SUFFICIENT = math.log(20)  # `evidence` that refutes a share at a level of 95 %


def sample(questions: Sequence[Question], size: int | None, seed: int = 0) -> list[Question]:
    """Return `size` questions (None: all) in random order, so that any first few are a sample."""
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
    """The result of checking `n` of `asked` questions, of which `right` are right.

    `low` and `high` are the 95 % interval with videos as clusters, valid once the whole sample is
    checked, `se` its standard error (null for a single video). `low_whenever` is a lower bound that
    is valid at any stop, with questions taken as independent (`bound`). `decided` is "above" or
    "below" the share `wanted` (`decide_bound`).
    """

    by: str
    n: int
    asked: int
    right: int
    low: float | None
    high: float | None
    se: float | None
    low_whenever: float
    wanted: float
    decided: str | None

    @property
    def lower(self) -> float:
        """The lower bound to report: the lesser of both if the check stopped early."""
        if self.low is None:
            return self.low_whenever
        return self.low if self.n >= self.asked else min(self.low, self.low_whenever)

    def card_sentence(self) -> str:
        """Return the sentence for the dataset card."""
        return (
            f"{self.n} checked by {self.by}, {self.right} right "
            f"({self.right / self.n:.1%}; lower bound of the 95 % interval {self.lower:.1%})"
        )

    def plain(self) -> dict[str, Any]:
        """Return an entry of `checked` in `run.json`."""
        return {**vars(self), "lower": self.lower, "said": self.card_sentence()}


def measure_correctness(
    right: Mapping[str, bool], videos: Mapping[str, str], *, asked: int, by: str, wanted: float
) -> MeasuredCorrectness | None:
    """Return the result from question id -> verdict and question id -> video; None without any."""
    if not right:
        return None
    names = sorted(right)
    interval = mean([float(right[n]) for n in names], [videos[n] for n in names])
    count = sum(right.values())
    return MeasuredCorrectness(
        by=by, n=len(names), asked=asked, right=count, low=interval.low, high=interval.high,
        se=interval.se, low_whenever=bound(count, len(names)), wanted=wanted,
        decided=decide_bound(count, len(names), wanted),
    )  # fmt: skip


def evidence(right: int, n: int, share: float) -> float:
    """Return the log likelihood ratio of `right` of `n`: a uniform prior over shares to `share`.

    Under `share` itself the ratio is a martingale of mean 1, so it ever exceeds 1/0.05 with a
    chance of at most 0.05 (Ville; Robbins 1970). It may therefore be tested after every question.
    """
    uniform = math.lgamma(right + 1) + math.lgamma(n - right + 1) - math.lgamma(n + 2)
    if (share <= 0 and right) or (share >= 1 and right < n):
        return math.inf
    hits = right * math.log(share) if right else 0.0
    misses = (n - right) * math.log1p(-share) if right < n else 0.0
    return uniform - hits - misses


def decide_bound(right: int, n: int, wanted: float) -> str | None:
    """Return "above" or "below" the wanted share once the evidence suffices, else None."""
    if not n or evidence(right, n, wanted) < SUFFICIENT:
        return None
    return "above" if right / n > wanted else "below"


def bound(right: int, n: int) -> float:
    """Return the lowest share that `evidence` does not refute; 0 if it refutes none."""
    low, high = 0.0, right / n if n else 0.0
    for _ in range(60):
        middle = (low + high) / 2
        refuted = evidence(right, n, middle) >= SUFFICIENT
        low, high = (middle, high) if refuted else (low, middle)
    return low
