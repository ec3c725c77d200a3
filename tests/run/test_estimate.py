"""Estimates from a few rows: where they must be exact, and how often their intervals hold."""

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
    against,
    choose_rows,
    costs,
    extrapolate,
    pace,
)


def usage(**calls: int) -> UsageTotals:
    found = UsageTotals()
    for prompt, n in calls.items():
        for _ in range(n):
            found.add(CallOutcome(outcome="done", model="m", prompt=prompt, tokens_in=100, usd=0.5))
    return found


def test_costs_are_what_has_come_since() -> None:
    before, after = usage(a=2), usage(a=5, b=1)
    after.add(CallOutcome(outcome="cached", model="m", prompt="b"))
    found = costs(after, before)
    assert (found["a"].calls, found["a"].tokens_in, found["a"].usd) == (3, 300, 1.5)
    assert (found["b"].calls, found["b"].cached) == (1, 1)
    assert costs(after, after) == {}


def test_what_was_tried_is_exact_and_counts_once() -> None:
    values, sizes = [3.0, 5.0], [10.0, 20.0]
    assert extrapolate(values, sizes, [], kept=False) == ExpectedRange(expected=8, low=8, high=8)
    assert extrapolate(values, sizes, [], kept=True) == ExpectedRange(expected=0, low=0, high=0)


@given(
    rate=st.floats(0.01, 100),
    sizes=st.lists(st.floats(1, 1e4), min_size=2, max_size=6),
    rest=st.lists(st.floats(1, 1e4), min_size=1, max_size=6),
)
def test_where_cost_is_as_size_the_estimate_is_exact(
    rate: float, sizes: list[float], rest: list[float]
) -> None:
    found = extrapolate([rate * s for s in sizes], sizes, rest, kept=True)
    assert found.expected == pytest.approx(rate * sum(rest))
    assert found.high - found.low <= 1e-4 * found.expected


def test_nine_of_ten_intervals_hold_the_truth() -> None:
    """200 runs of 60 videos each: costs about as long as they are, give or take a third."""
    rng, held = random.Random(0), 0
    for _ in range(200):
        sizes = {f"v{i}": rng.uniform(300, 7200) for i in range(60)}
        truth = {n: s * rng.lognormvariate(0, 0.33) for n, s in sizes.items()}
        tried = choose_rows(sizes, 5)
        rest = [n for n in sizes if n not in tried]
        found = extrapolate([truth[n] for n in tried], [sizes[n] for n in tried],
                             [sizes[n] for n in rest], kept=True)  # fmt: skip
        held += found.low <= sum(truth[n] for n in rest) <= found.high
    assert 170 <= held <= 198


def test_rows_of_all_lengths_are_tried() -> None:
    sizes = {f"v{i:02d}": float(i) for i in range(100)}
    assert [sizes[n] for n in choose_rows(sizes, 5)] == [10, 30, 50, 70, 90]
    assert choose_rows(dict(list(sizes.items())[:3]), 5) == ["v00", "v01", "v02"]


@pytest.mark.parametrize(
    ("lanes", "expected"),
    [
        (StageCapacity(workers=1, rows=1), 110.0),  # one row after the other, calls and all
        (StageCapacity(workers=1, rows=10), 11.0),
        (StageCapacity(workers=2, rows=10), 5.5),
        (
            StageCapacity(workers=1, rows=100, in_flight=2),
            50.0,
        ),  # 100 calls of a second, two at once
    ],
)
def test_a_stage_is_as_fast_as_what_is_slowest_in_it(lanes: StageCapacity, expected: float) -> None:
    assert pace(100, 10.0, 100.0, Cost(calls=100), lanes, 1.0) == pytest.approx(expected)
    assert pace(100, 90.0, 100.0, Cost(), StageCapacity(rows=100), 1.0) == 90.0  # its one process


def told(**config: object) -> dict[str, object]:
    span = ExpectedRange(expected=9, low=8, high=11)
    names = ("calls", "tokens_in", "tokens_out", "usd", "seconds")
    forecast = Forecast(stages=[], totals=dict.fromkeys(names, span), rows=3, stored=0, tried=2)
    return forecast.plain(config)


def test_an_estimate_is_held_against_the_run_that_it_is_of() -> None:
    made = told(out="o", seed=1, dry_run=True, dry_run_rows=2)
    found = against(made, {"out": "o", "seed": 1, "dry_run": False}, usage(a=10), 18.0)
    assert found
    assert found["calls"] == {
        "expected": 9, "low": 8, "high": 11, "actual": 10, "off": -0.1,
    }  # fmt: skip
    assert found["seconds"]["off"] == -0.5
    assert found["tokens_out"]["off"] is None
    assert against(made, {"out": "o", "seed": 2}, usage(a=10), 18.0) is None
