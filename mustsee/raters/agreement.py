"""How far raters agree on a field: Krippendorff's alpha of nominal answers, and the share of pairs
of raters who say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from mustsee.stats import Estimate, Floats, bootstrap


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Of `units` items with at least two answers each. `alpha` is null where all answers are the
    same one: there is nothing to tell agreement from chance by.
    """

    units: int
    same: float | None
    alpha: Estimate | None


def agreement(
    answers: Sequence[Sequence[str]],
    clusters: Sequence[Hashable] | None = None,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Agreement:
    """`answers`: of each item, what its raters said, in any number. Items with one answer tell
    nothing and are left out. Whole `clusters` (films) are resampled for alpha's interval.
    """
    names = list(clusters) if clusters is not None else list(range(len(answers)))
    paired = [(said, name) for said, name in zip(answers, names, strict=True) if len(said) > 1]
    if not paired:
        return Agreement(units=0, same=None, alpha=None)
    values = sorted({value for said, _ in paired for value in said})
    counts = np.array([[Counter(said)[v] for v in values] for said, _ in paired], dtype=np.float64)
    raters = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (raters - 1)
    same = float((agreeing / raters).mean())
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

    found = bootstrap(
        alpha, len(paired), [name for _, name in paired], draws=draws, seed=seed, within=(-1.0, 1.0)
    )
    return Agreement(units=len(paired), same=same, alpha=found)
