"""Estimates from a few rows are exact where they can be, and nine of ten intervals hold."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.usage import CallOutcome, UsageTotals
from mustsee.run.estimate import (
    Cost,
    ExpectedRange,
    Forecast,
    StageCapacity,
    choose_rows,
    compare_with_actual,
    costs,
    extrapolate,
    pace,
)


def usage(**calls: int) -> UsageTotals:
    result = UsageTotals()
    for prompt, n in calls.items():
        for _ in range(n):
            result.add(
                CallOutcome(outcome="done", model="m", prompt=prompt, tokens_in=100, usd=0.5)
            )
    return result


def test_costs_are_the_difference_of_two_totals() -> None:
    before, after = usage(a=2), usage(a=5, b=1)
    after.add(CallOutcome(outcome="cached", model="m", prompt="b"))
    result = costs(after, before)
    assert (result["a"].calls, result["a"].tokens_in, result["a"].usd) == (3, 300, 1.5)
    assert (result["b"].calls, result["b"].cached) == (1, 1)
    assert costs(after, after) == {}


def test_without_other_rows_the_estimate_is_the_sampled_cost() -> None:
    values, sizes = [3.0, 5.0], [10.0, 20.0]
    assert extrapolate(values, sizes, [], kept=False) == ExpectedRange(expected=8, low=8, high=8)
    assert extrapolate(values, sizes, [], kept=True) == ExpectedRange(expected=0, low=0, high=0)


@given(
    rate=st.floats(0.01, 100),
    sizes=st.lists(st.floats(1, 1e4), min_size=2, max_size=6),
    rest=st.lists(st.floats(1, 1e4), min_size=1, max_size=6),
)
def test_the_estimate_is_exact_for_costs_proportional_to_size(
    rate: float, sizes: list[float], rest: list[float]
) -> None:
    result = extrapolate([rate * s for s in sizes], sizes, rest, kept=True)
    assert result.expected == pytest.approx(rate * sum(rest))
    assert result.high - result.low <= 1e-4 * result.expected


def test_nine_of_ten_intervals_contain_the_true_cost() -> None:
    """200 runs of 60 videos each, with costs proportional to their length within a third."""
    rng, hits = random.Random(0), 0
    for _ in range(200):
        sizes = {f"v{i}": rng.uniform(300, 7200) for i in range(60)}
        truth = {n: s * rng.lognormvariate(0, 0.33) for n, s in sizes.items()}
        sample = choose_rows(sizes, 5)
        rest = [n for n in sizes if n not in sample]
        result = extrapolate([truth[n] for n in sample], [sizes[n] for n in sample],
                             [sizes[n] for n in rest], kept=True)  # fmt: skip
        hits += result.low <= sum(truth[n] for n in rest) <= result.high
    assert 170 <= hits <= 198


def test_the_sample_has_rows_of_all_lengths() -> None:
    sizes = {f"v{i:02d}": float(i) for i in range(100)}
    assert [sizes[n] for n in choose_rows(sizes, 5)] == [10, 30, 50, 70, 90]
    assert choose_rows(dict(list(sizes.items())[:3]), 5) == ["v00", "v01", "v02"]


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        (StageCapacity(workers=1, rows=1), 110.0),  # one row after another, with its calls
        (StageCapacity(workers=1, rows=10), 11.0),
        (StageCapacity(workers=2, rows=10), 5.5),
        (StageCapacity(workers=1, rows=100, in_flight=2), 50.0),  # 100 calls of 1 s, two at once
    ],
)
def test_the_slowest_resource_of_a_stage_decides_its_time(
    capacity: StageCapacity, expected: float
) -> None:
    assert pace(100, 10.0, 100.0, Cost(calls=100), capacity, 1.0) == pytest.approx(expected)
    assert pace(100, 90.0, 100.0, Cost(), StageCapacity(rows=100), 1.0) == 90.0  # one process


def estimate(**config: object) -> dict[str, object]:
    span = ExpectedRange(expected=9, low=8, high=11)
    names = ("calls", "tokens_in", "tokens_out", "usd", "seconds")
    forecast = Forecast(stages=[], totals=dict.fromkeys(names, span), rows=3, stored=0, tried=2)
    return forecast.plain(config)


def test_an_estimate_is_compared_with_its_run_only() -> None:
    forecast = estimate(out="o", seed=1, dry_run=True, dry_run_rows=2)
    result = compare_with_actual(
        forecast, {"out": "o", "seed": 1, "dry_run": False}, usage(a=10), 18.0
    )
    assert result
    assert result["calls"] == {
        "expected": 9, "low": 8, "high": 11, "actual": 10, "off": -0.1,
    }  # fmt: skip
    assert result["seconds"]["off"] == -0.5
    assert result["tokens_out"]["off"] is None
    assert compare_with_actual(forecast, {"out": "o", "seed": 2}, usage(a=10), 18.0) is None
