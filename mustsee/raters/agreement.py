"""How far raters agree on a field: Krippendorff's alpha of nominal answers, and the share of pairs
of raters who say the same; of marked spans, what pairs share of what either marked.
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
    """Of `units` items with at least two answers each: the share of pairs that agree, an item as
    much as another. `alpha` is null of spans, and where all answers are the same one: there is
    nothing to tell agreement from chance by.
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
    """`answers`: of each item, what its raters said, in any number. Items with one answer tell
    nothing and are left out. Whole `clusters` (videos) are what the intervals vary.
    """
    names = list(clusters) if clusters is not None else list(range(len(answers)))
    paired = [(said, name) for said, name in zip(answers, names, strict=True) if len(said) > 1]
    if not paired:
        return Agreement(units=0, same=None, alpha=None)
    values = sorted({value for said, _ in paired for value in said})
    counts = np.array([[Counter(said)[v] for v in values] for said, _ in paired], dtype=np.float64)
    raters = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (raters - 1)
    videos = [name for _, name in paired]
    same = mean(agreeing / raters, videos)
    if len(values) < 2:
        return Agreement(units=len(paired), same=same, alpha=None)

    def alpha(weights: Floats) -> float:
        """1 - observed over expected disagreement (Krippendorff 2011, of nominal data)."""
        totals = (weights[:, None] * counts).sum(axis=0)
        every = totals.sum()
        expected = every**2 - (totals**2).sum()
        if expected <= 0:
            return float("nan")
        return float(1 - (every - 1) * (every - (weights * agreeing).sum()) / expected)

    found = bootstrap(alpha, len(paired), videos, draws=draws, seed=seed, within=(-1.0, 1.0))
    return Agreement(units=len(paired), same=same, alpha=found)


def overlap(marked: Sequence[Sequence[Sequence[Span]]], clusters: Sequence[Hashable]) -> Agreement:
    """`marked`: of each item, the spans of each rater."""
    paired = [(spans, name) for spans, name in zip(marked, clusters, strict=True) if len(spans) > 1]
    if not paired:
        return Agreement(units=0, same=None, alpha=None)
    shares = [
        float(np.mean([_shared(a, b) for a, b in combinations(spans, 2)])) for spans, _ in paired
    ]
    same = mean(shares, [name for _, name in paired])
    return Agreement(units=len(paired), same=same, alpha=None)


def _shared(one: Sequence[Span], other: Sequence[Span]) -> float:
    """Seconds in both over seconds in either, of merged parts; 1 where neither marked anything."""
    ones, others = merge(one), merge(other)
    both = sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in ones for b in others)
    either = sum(p.seconds for p in (*ones, *others)) - both
    return both / either if either else 1.0
