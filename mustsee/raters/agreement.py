"""Inter-rater agreement on a field.

Nominal answers: the share of pairs of raters that agree, and Krippendorff's alpha. Marked spans:
the intersection over union of pairs of raters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mustsee.raters.marks import merge
from mustsee.records import Span
from mustsee.stats import Estimate, Floats, bootstrap, mean


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement on `units` items with at least two answers each.

    `same` is the mean over items of the share of pairs that agree. `alpha` is null for spans, and
    where all answers are equal, because chance agreement is then undefined.
    """

    units: int
    same: Estimate | None
    alpha: Estimate | None


def agreement(
    answers: Sequence[Sequence[str]],
    clusters: Sequence[Hashable] | None = None,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Return the agreement on nominal `answers` [item][rater].

    Items with fewer than two answers are left out. Intervals resample whole `clusters` (videos).
    """
    names = list(clusters) if clusters is not None else list(range(len(answers)))
    paired = [
        (values_given, name)
        for values_given, name in zip(answers, names, strict=True)
        if len(values_given) > 1
    ]
    if not paired:
        return Agreement(units=0, same=None, alpha=None)
    values = sorted({value for values_given, _ in paired for value in values_given})
    counts = np.array(
        [[Counter(values_given)[v] for v in values] for values_given, _ in paired], dtype=np.float64
    )
    raters = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (raters - 1)
    videos = [name for _, name in paired]
    same = mean(agreeing / raters, videos)
    if len(values) < 2:
        return Agreement(units=len(paired), same=same, alpha=None)

    def alpha(weights: Floats) -> float:
        """Return 1 - observed / expected disagreement (Krippendorff 2011, nominal data)."""
        totals = (weights[:, None] * counts).sum(axis=0)
        every = totals.sum()
        expected = every**2 - (totals**2).sum()
        if expected <= 0:
            return float("nan")
        return float(1 - (every - 1) * (every - (weights * agreeing).sum()) / expected)

    interval = bootstrap(alpha, len(paired), videos, draws=draws, seed=seed, within=(-1.0, 1.0))
    return Agreement(units=len(paired), same=same, alpha=interval)


def overlap(
    spans_by_item: Sequence[Sequence[Sequence[Span]]], clusters: Sequence[Hashable]
) -> Agreement:
    """Return the agreement on marked spans [item][rater][span]."""
    paired = [
        (spans, name) for spans, name in zip(spans_by_item, clusters, strict=True) if len(spans) > 1
    ]
    if not paired:
        return Agreement(units=0, same=None, alpha=None)
    shares = [
        float(np.mean([_shared(a, b) for a, b in combinations(spans, 2)])) for spans, _ in paired
    ]
    same = mean(shares, [name for _, name in paired])
    return Agreement(units=len(paired), same=same, alpha=None)


def _shared(one: Sequence[Span], other: Sequence[Span]) -> float:
    """Return seconds in both over seconds in either, after merging; 1 if neither marked any."""
    ones, others = merge(one), merge(other)
    both = sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in ones for b in others)
    either = sum(p.seconds for p in (*ones, *others)) - both
    return both / either if either else 1.0
