"""Choosing and checking a judge's threshold on human labels. Pure: arrays in, figures out.

The threshold maximises F1 (Neptune, D.3). Chosen on a few hundred pairs and reported on the same
ones, F1 flatters itself by two to three points, so the nested estimate stands beside it, and every
interval resamples whole questions: the answers to one question are not independent.

`labels` are bools, `scores` p(TRUE), `groups` the questions' names; all of one length [n].
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
    """One bar of a reliability diagram: pairs with `low <= score < high`."""

    low: float
    high: float
    n: int
    score: float
    share: float


@dataclass(frozen=True, kw_only=True)
class ThresholdChoice:
    """A threshold with the F1 that it reaches, and the stretch of scores over which F1 stays so."""

    threshold: float
    f1: float
    low: float
    high: float


def _arrays(labels: ArrayLike, scores: ArrayLike) -> tuple[Bools, Floats]:
    y, s = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != s.shape or not len(y):
        raise UserError(
            f"{y.shape} labels and {s.shape} scores: give as many of both, at least one"
        )
    if not np.isfinite(s).all():
        raise UserError(f"{int((~np.isfinite(s)).sum())} of {len(s)} scores are not finite numbers")
    return y, s


def f1(labels: ArrayLike, said: ArrayLike) -> float:
    """F1 of the verdicts `said`; 0 where there are no positives at all."""
    y, p = np.asarray(labels, dtype=bool), np.asarray(said, dtype=bool)
    total = int(y.sum() + p.sum())
    return 2 * int((y & p).sum()) / total if total else 0.0


def choose(labels: ArrayLike, scores: ArrayLike) -> ThresholdChoice:
    """The threshold that maximises F1: the midpoint of two neighbouring distinct scores; of several
    that are equally good, the middle of the widest run of them.

    A pair is TRUE above the threshold. Below the lowest score stands 0, above the highest 1.
    """
    y, s = _arrays(labels, scores)
    values = np.unique(s)
    edges = np.concatenate([[min(0.0, values[0])], values, [max(1.0, values[-1])]])
    # cut k says TRUE to the scores from values[k] on
    true_at = np.bincount(np.searchsorted(values, s), weights=y, minlength=len(values))
    all_at = np.bincount(np.searchsorted(values, s), minlength=len(values))
    hits = np.append(np.cumsum(true_at[::-1])[::-1], 0.0)
    said = np.append(np.cumsum(all_at[::-1])[::-1], 0)
    quality = 2 * hits / np.maximum(said + y.sum(), 1)
    best = np.flatnonzero(np.isclose(quality, quality.max(), rtol=0, atol=1e-12))
    runs = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    run = max(runs, key=lambda r: edges[r[-1] + 1] - edges[r[0]])
    low, high = float(edges[run[0]]), float(edges[run[-1] + 1])
    return ThresholdChoice(threshold=(low + high) / 2, f1=float(quality.max()), low=low, high=high)


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve (ties count half); nan where a class is missing."""
    y, s = _arrays(labels, scores)
    values, where = np.unique(s, return_inverse=True)
    pos = np.bincount(where, weights=y, minlength=len(values))
    neg = np.bincount(where, weights=~y, minlength=len(values))
    pairs = pos.sum() * neg.sum()
    below = np.cumsum(neg) - neg
    return float((pos * (below + neg / 2)).sum() / pairs) if pairs else math.nan


def brier(labels: ArrayLike, scores: ArrayLike) -> float:
    """Mean squared distance between score and label (0 is best, 0.25 is "always one half")."""
    y, s = _arrays(labels, scores)
    return float(((s - y) ** 2).mean())


def rates(labels: ArrayLike, scores: ArrayLike, threshold: float) -> tuple[float, float]:
    """(sensitivity, specificity): the shares of TRUE and of FALSE pairs that are seen as such."""
    y, s = _arrays(labels, scores)
    said = s > threshold
    sensitivity = float(said[y].mean()) if y.any() else math.nan
    specificity = float((~said[~y]).mean()) if (~y).any() else math.nan
    return sensitivity, specificity


def temperature(labels: ArrayLike, logits: ArrayLike) -> float:
    """The divisor of the logits that minimises the negative log-likelihood, 0.05 to 20."""
    from scipy.optimize import minimize_scalar

    y, z = _arrays(labels, logits)
    sign = np.where(y, 1.0, -1.0)

    def loss(log_t: float) -> float:
        return float(np.logaddexp(0, -sign * z / math.exp(log_t)).mean())

    bounds = (math.log(0.05), math.log(20))
    found: Any = minimize_scalar(loss, bounds=bounds, method="bounded")
    return math.exp(float(found.x))


def reliability(labels: ArrayLike, scores: ArrayLike, bins: int = 10) -> list[ReliabilityBin]:
    """Mean score and share of TRUE in bins of equal width; empty bins are left out."""
    y, s = _arrays(labels, scores)
    edges = np.linspace(0, 1, bins + 1)
    where = np.clip(np.searchsorted(edges, s, side="right") - 1, 0, bins - 1)
    found: list[ReliabilityBin] = []
    for k in range(bins):
        here = where == k
        if here.any():
            low, high = float(edges[k]), float(edges[k + 1])
            mean, share = float(s[here].mean()), float(y[here].mean())
            found.append(
                ReliabilityBin(low=low, high=high, n=int(here.sum()), score=mean, share=share)
            )
    return found


def calibration_error(labels: ArrayLike, scores: ArrayLike, bins: int = 10) -> float:
    """Expected calibration error: mean distance between score and share, weighted by bin size."""
    found = reliability(labels, scores, bins)
    return sum(b.n * abs(b.score - b.share) for b in found) / sum(b.n for b in found)


def precision_recall(labels: ArrayLike, scores: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """(threshold, precision, recall), one point for each distinct score, "at or above it"."""
    y, s = _arrays(labels, scores)
    values = np.unique(s)
    hits = np.array([y[s >= v].sum() for v in values], dtype=np.float64)
    said = np.array([(s >= v).sum() for v in values], dtype=np.float64)
    return values, hits / said, hits / max(int(y.sum()), 1)


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
    """Bootstrap interval of `metric(labels, scores)`, 0 to 1, drawing whole questions; nan where
    nothing can be said.
    """
    y, s = _arrays(labels, scores)

    def resampled_metric(times: Floats) -> float:
        rows = np.repeat(np.arange(len(y)), times.astype(np.int64))
        return metric(y[rows], s[rows])

    found = stats.bootstrap(
        resampled_metric, len(y), groups, draws=draws, seed=seed, level=level, within=(0.0, 1.0)
    )
    return (
        math.nan if found.low is None else found.low,
        math.nan if found.high is None else found.high,
    )


def nested_f1(
    labels: ArrayLike, scores: ArrayLike, groups: Sequence[str], *, folds: int = 5, seed: int = 0
) -> float:
    """F1 of verdicts each made with a threshold chosen without that pair's question: what a fresh
    set of the same kind would show. `folds` is cut to the number of questions.
    """
    y, s = _arrays(labels, scores)
    members = _by_group(groups)
    if len(members) < 2:
        return math.nan
    order = np.random.default_rng(seed).permutation(len(members))
    said = np.zeros(len(y), dtype=bool)
    for part in np.array_split(order, min(folds, len(members))):
        rows = np.concatenate([members[i] for i in part])
        rest = np.setdiff1d(np.arange(len(y)), rows)
        said[rows] = s[rows] > choose(y[rest], s[rest]).threshold
    return f1(y, said)


def best_f1(labels: Bools, scores: Floats) -> float:
    """F1 at the best threshold of the same pairs (the paper's way of reporting)."""
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
    """The threshold record of a judge from its logit differences on a dev set, `dev` its hash.

    The interval is of F1 at the chosen threshold. Raises UserError without both labels.
    """
    y, z = _arrays(labels, logits)
    if y.all() or not y.any():
        raise UserError(f"all {len(y)} dev pairs have the same label: a threshold needs both")
    divisor = temperature(y, z)
    s = 1 / (1 + np.exp(-np.clip(z / divisor, -700, 700)))
    # a threshold of 0 or 1 ("always") would not be a number that a logit exists for
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
    """What the table of judges shows of one judge: value and 95 % interval of each metric."""
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
