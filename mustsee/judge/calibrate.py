"""Choose and check a judge's threshold on human labels: arrays in, figures out.

The threshold maximises F1 (Neptune, D.3). F1 on the few hundred pairs that chose the threshold is
two to three points too high, so a nested estimate is reported beside it. Intervals resample whole
questions, because the answers to one question are not independent.

`labels` are bools, `scores` p(TRUE), `groups` the names of the questions; all have length n.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mustsee import stats
from mustsee.errors import UserError
from mustsee.judge.judge import Identity, Record

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Metric = Callable[[Bools, Floats], float]


@dataclass(frozen=True, kw_only=True)
class ReliabilityBin:
    """One bar of a reliability diagram: pairs with `low <= score < high`.

    `score` is their mean score, `share` the share of TRUE among them.
    """

    low: float
    high: float
    n: int
    score: float
    share: float


@dataclass(frozen=True, kw_only=True)
class ThresholdChoice:
    """A threshold, its F1, and the range `low` to `high` of thresholds with the same F1."""

    threshold: float
    f1: float
    low: float
    high: float


def _arrays(labels: ArrayLike, scores: ArrayLike) -> tuple[Bools, Floats]:
    y, s = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != s.shape or not len(y):
        raise UserError(
            f"{y.shape} labels and {s.shape} scores: pass two lists of the same length, not empty"
        )
    if not np.isfinite(s).all():
        raise UserError(f"{int((~np.isfinite(s)).sum())} of {len(s)} scores are not finite numbers")
    return y, s


def f1(labels: ArrayLike, verdicts: ArrayLike) -> float:
    """Return the F1 of the verdicts; 0 where there are no positives at all."""
    y, p = np.asarray(labels, dtype=bool), np.asarray(verdicts, dtype=bool)
    total = int(y.sum() + p.sum())
    return 2 * int((y & p).sum()) / total if total else 0.0


def choose(labels: ArrayLike, scores: ArrayLike) -> ThresholdChoice:
    """Return the threshold that maximises F1: the middle of the widest range of best thresholds.

    A pair is TRUE above the threshold. The ranges end at scores; the outermost at 0 and 1.
    """
    y, s = _arrays(labels, scores)
    values = np.unique(s)
    edges = np.concatenate([[min(0.0, values[0])], values, [max(1.0, values[-1])]])
    # Threshold k predicts TRUE for the scores from values[k] on.
    true_at = np.bincount(np.searchsorted(values, s), weights=y, minlength=len(values))
    all_at = np.bincount(np.searchsorted(values, s), minlength=len(values))
    hits = np.append(np.cumsum(true_at[::-1])[::-1], 0.0)
    predicted = np.append(np.cumsum(all_at[::-1])[::-1], 0)
    quality = 2 * hits / np.maximum(predicted + y.sum(), 1)
    best = np.flatnonzero(np.isclose(quality, quality.max(), rtol=0, atol=1e-12))
    runs = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    run = max(runs, key=lambda r: edges[r[-1] + 1] - edges[r[0]])
    low, high = float(edges[run[0]]), float(edges[run[-1] + 1])
    return ThresholdChoice(threshold=(low + high) / 2, f1=float(quality.max()), low=low, high=high)


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Return the area under the ROC curve (ties count half); nan where a class is missing."""
    y, s = _arrays(labels, scores)
    values, where = np.unique(s, return_inverse=True)
    pos = np.bincount(where, weights=y, minlength=len(values))
    neg = np.bincount(where, weights=~y, minlength=len(values))
    pairs = pos.sum() * neg.sum()
    below = np.cumsum(neg) - neg
    return float((pos * (below + neg / 2)).sum() / pairs) if pairs else math.nan


def brier(labels: ArrayLike, scores: ArrayLike) -> float:
    """Return the mean squared distance of score and label; a constant 0.5 scores 0.25."""
    y, s = _arrays(labels, scores)
    return float(((s - y) ** 2).mean())


def rates(labels: ArrayLike, scores: ArrayLike, threshold: float) -> tuple[float, float]:
    """Return (sensitivity, specificity); nan where there is no pair of the class."""
    y, s = _arrays(labels, scores)
    verdicts = s > threshold
    sensitivity = float(verdicts[y].mean()) if y.any() else math.nan
    specificity = float((~verdicts[~y]).mean()) if (~y).any() else math.nan
    return sensitivity, specificity


def temperature(labels: ArrayLike, logits: ArrayLike) -> float:
    """Return the divisor of the logits, 0.05 to 20, with the least negative log-likelihood."""
    from scipy.optimize import minimize_scalar

    y, z = _arrays(labels, logits)
    sign = np.where(y, 1.0, -1.0)

    def loss(log_t: float) -> float:
        return float(np.logaddexp(0, -sign * z / math.exp(log_t)).mean())

    bounds = (math.log(0.05), math.log(20))
    optimum: Any = minimize_scalar(loss, bounds=bounds, method="bounded")
    return math.exp(float(optimum.x))


def reliability(labels: ArrayLike, scores: ArrayLike, bins: int = 10) -> list[ReliabilityBin]:
    """Return mean score and share of TRUE in bins of equal width; empty bins are left out."""
    y, s = _arrays(labels, scores)
    edges = np.linspace(0, 1, bins + 1)
    where = np.clip(np.searchsorted(edges, s, side="right") - 1, 0, bins - 1)
    reliability_bins: list[ReliabilityBin] = []
    for k in range(bins):
        in_bin = where == k
        if in_bin.any():
            low, high = float(edges[k]), float(edges[k + 1])
            mean, share = float(s[in_bin].mean()), float(y[in_bin].mean())
            reliability_bins.append(
                ReliabilityBin(low=low, high=high, n=int(in_bin.sum()), score=mean, share=share)
            )
    return reliability_bins


def calibration_error(labels: ArrayLike, scores: ArrayLike, bins: int = 10) -> float:
    """Return the expected calibration error: |score - share| of the bins, weighted by size."""
    reliability_bins = reliability(labels, scores, bins)
    return sum(b.n * abs(b.score - b.share) for b in reliability_bins) / sum(
        b.n for b in reliability_bins
    )


def precision_recall(labels: ArrayLike, scores: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return (threshold, precision, recall) for each distinct score: TRUE at or above it."""
    y, s = _arrays(labels, scores)
    values = np.unique(s)
    hits = np.array([y[s >= v].sum() for v in values], dtype=np.float64)
    predicted = np.array([(s >= v).sum() for v in values], dtype=np.float64)
    return values, hits / predicted, hits / max(int(y.sum()), 1)


def _by_group(groups: Sequence[str]) -> list[NDArray[np.intp]]:
    _, where = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    order = np.argsort(where, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(where[order])) + 1)


def interval(
    metric: Metric,
    labels: ArrayLike,
    scores: ArrayLike,
    groups: Sequence[str],
    *,
    seed: int = 0,
    draws: int = 2000,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return the bootstrap interval of a metric between 0 and 1, drawing whole questions.

    Its ends are nan where the data allow no interval.
    """
    y, s = _arrays(labels, scores)

    def resampled_metric(times: Floats) -> float:
        rows = np.repeat(np.arange(len(y)), times.astype(np.int64))
        return metric(y[rows], s[rows])

    bounds = stats.bootstrap(
        resampled_metric, len(y), groups, draws=draws, seed=seed, level=level, within=(0.0, 1.0)
    )
    return (
        math.nan if bounds.low is None else bounds.low,
        math.nan if bounds.high is None else bounds.high,
    )


def nested_f1(
    labels: ArrayLike, scores: ArrayLike, groups: Sequence[str], *, folds: int = 5, seed: int = 0
) -> float:
    """Return the F1 expected on new data: each threshold is chosen without the pair's question.

    `folds` is at most the number of questions. Returns nan with fewer than two questions.
    """
    y, s = _arrays(labels, scores)
    members = _by_group(groups)
    if len(members) < 2:
        return math.nan
    order = np.random.default_rng(seed).permutation(len(members))
    verdicts = np.zeros(len(y), dtype=bool)
    for fold in np.array_split(order, min(folds, len(members))):
        rows = np.concatenate([members[i] for i in fold])
        others = np.setdiff1d(np.arange(len(y)), rows)
        verdicts[rows] = s[rows] > choose(y[others], s[others]).threshold
    return f1(y, verdicts)


def best_f1(labels: Bools, scores: Floats) -> float:
    """Return the F1 at the best threshold of the same pairs, as the paper reports it."""
    return choose(labels, scores).f1


def record(
    identity: Identity,
    labels: ArrayLike,
    logits: ArrayLike,
    groups: Sequence[str],
    *,
    dev: str,
    seed: int = 0,
    notes: str = "",
) -> Record:
    """Return a judge's threshold record from its logit differences on a dev set with hash `dev`.

    The interval is that of F1 at the chosen threshold. Raises UserError if a label is missing.
    """
    y, z = _arrays(labels, logits)
    if y.all() or not y.any():
        raise UserError(f"all {len(y)} dev pairs have the same label: a threshold needs both")
    divisor = temperature(y, z)
    s = 1 / (1 + np.exp(-np.clip(z / divisor, -700, 700)))
    # 0 and 1 have no finite logit, so the threshold stays between them.
    threshold = min(max(choose(y, s).threshold, 1e-6), 1 - 1e-6)

    def scores_at_threshold(labels: Bools, scores: Floats) -> float:
        return f1(labels, scores > threshold)

    sensitivity, specificity = rates(y, s, threshold)
    return Record(
        threshold=threshold,
        temperature=divisor,
        identity=identity,
        dev=dev,
        f1=scores_at_threshold(y, s),
        f1_nested=nested_f1(y, s, groups, seed=seed),
        f1_interval=interval(scores_at_threshold, y, s, groups, seed=seed),
        auc=auc(y, s),
        brier=brier(y, s),
        sensitivity=sensitivity,
        specificity=specificity,
        positive=int(y.sum()),
        negative=int((~y).sum()),
        notes=notes,
    )


def figures(
    labels: ArrayLike, scores: ArrayLike, groups: Sequence[str], *, seed: int = 0
) -> dict[str, Any]:
    """Return one judge's row of the table of judges: value and 95 % interval of each metric."""
    metrics: dict[str, Metric] = {"f1": best_f1, "auc": auc, "brier": brier}
    y, s = _arrays(labels, scores)
    table: dict[str, Any] = {
        name: (metric(y, s), *interval(metric, y, s, groups, seed=seed))
        for name, metric in metrics.items()
    }
    return {
        **table,
        "f1_nested": nested_f1(y, s, groups, seed=seed),
        "calibration_error": calibration_error(y, s),
        "reliability": [dataclasses.asdict(b) for b in reliability(y, s)],
        "n": len(y),
    }
