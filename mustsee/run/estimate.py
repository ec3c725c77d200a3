"""Estimates the calls, tokens, money and seconds of a run from a sample of its rows.

A figure is taken to be proportional to a row's size (the video's length, or the number of its
questions). The sampled rows give the rate, the sizes of all rows are known, and the spread of the
sampled rows about the rate gives an interval (the ratio estimator; Cochran, Sampling Techniques,
chapter 6). Rows that are in the store cost nothing, and are neither sampled nor counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from mustsee.calls.usage import CallCounts, UsageTotals
from mustsee.stats import t_quantile
from mustsee.text import money

INTERVAL_LEVEL = 0.9  # level of the intervals
FIGURES = ("calls", "tokens_in", "tokens_out", "usd")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of one prompt or of several. `cached`: calls that the store answered."""

    calls: float = 0.0
    cached: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    usd: float = 0.0

    def plus(self, other: Cost, times: float = 1.0) -> Cost:
        return Cost(**{n: v + times * getattr(other, n) for n, v in vars(self).items()})


def costs(usage: UsageTotals, before: UsageTotals) -> dict[str, Cost]:
    """Return the difference of two usage totals, by prompt."""
    old = {name: _cost(counts) for name, counts in before.by_prompt.items()}
    difference = {
        name: _cost(counts).plus(old.get(name, Cost()), -1)
        for name, counts in usage.by_prompt.items()
    }
    return {name: cost for name, cost in difference.items() if cost.calls or cost.cached}


def _cost(counts: CallCounts) -> Cost:
    return Cost(**{f.name: getattr(counts, f.name) for f in fields(Cost)})


def total(costs_by_prompt: Mapping[str, Cost]) -> Cost:
    """Return the sum of the costs."""
    cost_sum = Cost()
    for cost in costs_by_prompt.values():
        cost_sum = cost_sum.plus(cost)
    return cost_sum


@dataclass(frozen=True, kw_only=True)
class TriedRow:
    """The work of a stage on one sampled row.

    `work`: seconds of this machine.
    `waited`: seconds that its calls, some parallel and some sequential, take at the endpoint.
    `took`: seconds of the whole row.
    `prompts`: its calls.
    `usd_images`, `usd_clips`: USD of the frames that models which take video are shown, as images
    and as clips of a frame a second.
    """

    work: float = 0.0
    waited: float = 0.0
    took: float = 0.0
    prompts: Mapping[str, Cost] = field(default_factory=dict[str, Cost])
    usd_images: float = 0.0
    usd_clips: float = 0.0

    @property
    def cost(self) -> Cost:
        return total(self.prompts)


@dataclass(frozen=True, kw_only=True)
class ExpectedRange:
    """An expected value and its interval."""

    expected: float
    low: float
    high: float

    def times(self, factor: float) -> ExpectedRange:
        return ExpectedRange(**{name: factor * value for name, value in vars(self).items()})

    def plain(self, digits: int) -> dict[str, float]:
        return {name: round(value, digits) for name, value in vars(self).items()}


def extrapolate(
    values: Sequence[float], sizes: Sequence[float], rest: Sequence[float], *, kept: bool
) -> ExpectedRange:
    """Estimate the sum of a figure over the rows that a run will still compute.

    `values`, `sizes`: of the sampled rows. `rest`: sizes of the other rows, above 0. `kept`: the
    sampled rows are in the store and will not be computed. The variance is taken to grow with the
    square of the size.
    """
    of_sample = 0.0 if kept else math.fsum(values)
    if not rest or not values:
        return ExpectedRange(expected=of_sample, low=of_sample, high=of_sample)
    size = math.fsum(sizes)
    rate = math.fsum(values) / size
    rest_size = math.fsum(rest)
    expected = rate * rest_size
    if len(values) == 1:
        return ExpectedRange(
            expected=of_sample + expected, low=of_sample, high=of_sample + 2 * expected
        )
    pairs = zip(values, sizes, strict=True)
    spread = math.fsum((y / x - rate) ** 2 for y, x in pairs) / (len(values) - 1)
    of_rate = math.fsum(x * x for x in sizes) * (rest_size / size) ** 2
    quantile = t_quantile(INTERVAL_LEVEL, len(values) - 1)
    half = quantile * math.sqrt(spread * (of_rate + math.fsum(x * x for x in rest)))
    return ExpectedRange(
        expected=of_sample + expected,
        low=of_sample + max(0.0, expected - half),
        high=of_sample + expected + half,
    )


def choose_rows(sizes: Mapping[str, float], most: int) -> list[str]:
    """Return at most `most` rows, spread evenly over the rows sorted by size."""
    order = sorted(sizes, key=lambda name: (sizes[name], name))
    if len(order) <= most:
        return order
    return [order[int((i + 0.5) * len(order) / most)] for i in range(most)]


@dataclass(frozen=True, kw_only=True)
class StageCapacity:
    """The workers of a stage; `rows` and calls `in_flight` are the most at once in each worker."""

    workers: int = 1
    rows: int = 1
    in_flight: int = 256


def pace(
    rows: float,
    work: float,
    waited: float,
    cost: Cost,
    capacity: StageCapacity,
    call_seconds: float,
) -> float:
    """Return the seconds that a stage takes for all its rows, without limits of endpoints.

    The slowest of its processes, its places for rows, and its calls in flight decides. `work`,
    `waited`: sums over the rows.
    """
    if rows <= 0:
        return 0.0
    places = max(1.0, min(rows, capacity.workers * capacity.rows))
    return max(
        work / max(1.0, min(rows, capacity.workers)),
        (work + waited) / places,
        cost.calls * call_seconds / (capacity.in_flight * capacity.workers),
    )


@dataclass(frozen=True, kw_only=True)
class StageEstimate:
    """The estimate of one stage.

    `rows`: rows that it will still compute. `prompts`: their calls by prompt. `seconds`: time if it
    were the only stage. `work`: seconds summed over its processes.
    """

    stage: str
    rows: float
    prompts: Mapping[str, Cost]
    seconds: float
    work: float

    @property
    def cost(self) -> Cost:
        return total(self.prompts)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The estimate of a run.

    `totals`: by figure, including `seconds`.
    `rows`: rows of the input; of these, `stored` are already done and `tried` were sampled.
    `asked`: whether the real models were asked, for `spent` dollars.
    `usd_images`, `usd_clips`: USD of the frames that models which take video are shown, in both
    forms.
    `unknown`: sentences on what the estimate cannot know.
    """

    stages: Sequence[StageEstimate]
    totals: Mapping[str, ExpectedRange]
    rows: int
    stored: int
    tried: int
    asked: bool = False
    spent: float = 0.0
    usd_images: float = 0.0
    usd_clips: float = 0.0
    unknown: Sequence[str] = ()

    def plain(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of `estimate.json`; `config`: that of the estimated run."""
        return {
            "rows": self.rows,
            "stored": self.stored,
            "tried": self.tried,
            "asked": self.asked,
            "spent": round(self.spent, 6),
            "usd_images": round(self.usd_images, 6),
            "usd_clips": round(self.usd_clips, 6),
            "totals": {name: span.plain(6) for name, span in self.totals.items()},
            "stages": {
                each.stage: {
                    "rows": round(each.rows, 1),
                    "seconds": round(each.seconds, 1),
                    "prompts": {
                        name: {k: round(v, 6) for k, v in vars(cost).items()}
                        for name, cost in each.prompts.items()
                    },
                }
                for each in self.stages
            },
            "unknown": list(self.unknown),
            "config": dict(config),
        }


def compare_with_actual(
    estimate: Mapping[str, Any], config: Mapping[str, Any], usage: UsageTotals, seconds: float
) -> dict[str, Any] | None:
    """Return `estimate` of run.json: each figure of an `estimate.json` with its actual value.

    None if the estimate is of another configuration.
    """
    if _relevant(estimate.get("config", {})) != _relevant(config):
        return None
    actuals = {name: getattr(usage.total, name) for name in FIGURES}
    actuals["seconds"] = round(seconds, 3)
    compared: dict[str, Any] = {}
    for name, span in estimate["totals"].items():
        actual = actuals[name]
        off = round(span["expected"] / actual - 1, 4) if actual else None
        compared[name] = {**span, "actual": actual, "off": off}
    return {"tried": estimate["tried"], "asked": estimate["asked"], **compared}


# Beginnings of configuration keys that do not change any figure.
IRRELEVANT_KEYS = (
    "dry_run",
    "budget_usd",
    "try_endpoints",
    "max_problem_share",
    "retry_problems",
    "join",
    "overwrite",
)


def _relevant(config: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in config.items() if not k.startswith(IRRELEVANT_KEYS)}


def estimate_line(estimate: Mapping[str, Any]) -> str:
    """Format `estimate` of run.json as a line."""
    forms = {
        "calls": "{:,.0f} calls".format,
        "usd": lambda v: f"{money(v)} USD",
        "seconds": duration,
    }

    def format_figure(name: str, form: Callable[[float], str]) -> str:
        span = estimate[name]
        low, high = form(span["low"]).split()[0], form(span["high"])
        expected = form(span["expected"]).split()[0]
        return f"{form(span['actual'])} (estimated {expected}, {low} to {high})"

    return ", ".join(format_figure(name, form) for name, form in forms.items())


def duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 6000 else f"{whole / 3600:.1f} h"
