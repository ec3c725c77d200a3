"""What a run will take, from what a few of its rows took: calls, tokens, money, seconds.

A figure grows with a row's size (the video's length, or the questions asked of it): the rows that
were tried give its rate, the sizes of all others are known, and the spread of the tried rows about
the rate gives an interval (the ratio estimator; Cochran, Sampling Techniques, chapter 6). What is
in the store already costs nothing, and is neither tried nor counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from mustsee.calls.usage import CallCounts, UsageTotals

INTERVAL_LEVEL = 0.9  # of the intervals
FIGURES = ("calls", "tokens_in", "tokens_out", "usd")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of one prompt, or of a sum of them. `cached`: calls that the store answered."""

    calls: float = 0.0
    cached: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    usd: float = 0.0

    def plus(self, other: Cost, times: float = 1.0) -> Cost:
        return Cost(**{n: v + times * getattr(other, n) for n, v in vars(self).items()})


def costs(usage: UsageTotals, before: UsageTotals) -> dict[str, Cost]:
    """By prompt, what has come to a usage totals since it was as `before`."""
    old = {name: _cost(tally) for name, tally in before.by_prompt.items()}
    found = {
        name: _cost(tally).plus(old.get(name, Cost()), -1)
        for name, tally in usage.by_prompt.items()
    }
    return {name: cost for name, cost in found.items() if cost.calls or cost.cached}


def _cost(tally: CallCounts) -> Cost:
    return Cost(**{f.name: getattr(tally, f.name) for f in fields(Cost)})


def total(some: Mapping[str, Cost]) -> Cost:
    found = Cost()
    for cost in some.values():
        found = found.plus(cost)
    return found


@dataclass(frozen=True, kw_only=True)
class TriedRow:
    """What a stage did with one row: `work`, seconds of this machine; `waited`, seconds that its
    calls, some at once and some after each other, take at the endpoint; `took`: seconds that it
    really took; `prompts`: its calls.
    """

    work: float = 0.0
    waited: float = 0.0
    took: float = 0.0
    prompts: Mapping[str, Cost] = field(default_factory=dict[str, Cost])

    @property
    def cost(self) -> Cost:
        return total(self.prompts)


@dataclass(frozen=True, kw_only=True)
class ExpectedRange:
    """An expectation, and the interval around it."""

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
    """The sum of a figure over the rows that a run will still work on: `values` and `sizes` of the
    rows tried, sizes of the `rest`, above 0. `kept`: what was tried is in the store, and is not
    paid again. The spread is taken to grow with the size.
    """
    again = 0.0 if kept else math.fsum(values)
    if not rest or not values:
        return ExpectedRange(expected=again, low=again, high=again)
    size = math.fsum(sizes)
    rate = math.fsum(values) / size
    others = math.fsum(rest)
    expected = rate * others
    if len(values) == 1:
        return ExpectedRange(expected=again + expected, low=again, high=again + 2 * expected)
    pairs = zip(values, sizes, strict=True)
    spread = math.fsum((y / x - rate) ** 2 for y, x in pairs) / (len(values) - 1)
    of_rate = math.fsum(x * x for x in sizes) * (others / size) ** 2
    from scipy.stats import t

    half = float(t.ppf(0.5 + INTERVAL_LEVEL / 2, len(values) - 1)) * math.sqrt(
        spread * (of_rate + math.fsum(x * x for x in rest))
    )
    return ExpectedRange(
        expected=again + expected,
        low=again + max(0.0, expected - half),
        high=again + expected + half,
    )


def choose_rows(sizes: Mapping[str, float], most: int) -> list[str]:
    """At most `most` rows: one from the middle of each of as many parts of the rows, by size."""
    order = sorted(sizes, key=lambda name: (sizes[name], name))
    if len(order) <= most:
        return order
    return [order[int((i + 0.5) * len(order) / most)] for i in range(most)]


@dataclass(frozen=True, kw_only=True)
class StageCapacity:
    """What bounds the pace of a stage: its `workers`, `rows` at once in each, and the calls of each
    that are `in_flight` at once.
    """

    workers: int = 1
    rows: int = 1
    in_flight: int = 256


def pace(
    rows: float, work: float, waited: float, cost: Cost, lanes: StageCapacity, call_seconds: float
) -> float:
    """Seconds that a stage takes for all its rows, limits of endpoints apart: what is slowest of
    its processes, its places for rows, its calls in flight. `work`, `waited`: sums over the rows.
    """
    if rows <= 0:
        return 0.0
    places = max(1.0, min(rows, lanes.workers * lanes.rows))
    return max(
        work / max(1.0, min(rows, lanes.workers)),
        (work + waited) / places,
        cost.calls * call_seconds / (lanes.in_flight * lanes.workers),
    )


@dataclass(frozen=True, kw_only=True)
class StageEstimate:
    """Of one stage: rows that it will still compute, the calls by prompt, the `seconds` that it
    takes for them, other stages apart, and those of `work` over all its processes.
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
    """What the run will take. `totals`: by figure, `seconds` among them. `rows`: of the input,
    `stored`: those of them that are done, `tried`: those that this is told from. `asked`: whether
    the models themselves were asked, and for how much (`spent`). `unknown`: what it cannot know, in
    sentences.
    """

    stages: Sequence[StageEstimate]
    totals: Mapping[str, ExpectedRange]
    rows: int
    stored: int
    tried: int
    asked: bool = False
    spent: float = 0.0
    unknown: Sequence[str] = ()

    def plain(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The content of `estimate.json`. `config`: of the run that it is of."""
        return {
            "rows": self.rows,
            "stored": self.stored,
            "tried": self.tried,
            "asked": self.asked,
            "spent": round(self.spent, 6),
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


def against(
    told: Mapping[str, Any], config: Mapping[str, Any], usage: UsageTotals, seconds: float
) -> dict[str, Any] | None:
    """`estimate` of run.json: each figure of an `estimate.json` beside what it came to. None where
    it was told of another configuration.
    """
    if _same(told.get("config", {})) != _same(config):
        return None
    came = {name: getattr(usage.total, name) for name in FIGURES} | {"seconds": round(seconds, 3)}
    compared: dict[str, Any] = {}
    for name, span in told["totals"].items():
        actual = came[name]
        off = round(span["expected"] / actual - 1, 4) if actual else None
        compared[name] = {**span, "actual": actual, "off": off}
    return {"tried": told["tried"], "asked": told["asked"], **compared}


OTHERWISE = (
    "dry_run",
    "budget_usd",
    "try_endpoints",
    "max_problem_share",
    "retry_problems",
    "join",
)


def _same(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without what changes no figure."""
    return {k: v for k, v in config.items() if not k.startswith(OTHERWISE)}


def estimate_line(told: Mapping[str, Any]) -> str:
    """`estimate` of run.json in a line."""
    forms = {
        "calls": "{:,.0f} calls".format,
        "usd": lambda v: f"{money(v)} USD",
        "seconds": duration,
    }

    def format_figure(name: str, form: Callable[[float], str]) -> str:
        span = told[name]
        low, high = form(span["low"]).split()[0], form(span["high"])
        expected = form(span["expected"]).split()[0]
        return f"{form(span['actual'])} (estimated {expected}, {low} to {high})"

    return ", ".join(format_figure(name, form) for name, form in forms.items())


def money(usd: float) -> str:
    return f"{usd:.2f}" if usd >= 1 or not usd else f"{usd:.4f}"


def duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 6000 else f"{whole / 3600:.1f} h"
