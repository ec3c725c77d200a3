"""The bills exceed the budget by at most one call of each model, however an endpoint bills."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mustsee.calls.budget import BillingHistory, Budget, CallCost, HeldAmount

# The number of a call -> the ratio of its bill to its estimate.
Meter = Callable[[int, random.Random], float]


def constant(times: float) -> Meter:
    return lambda call, rng: times * rng.uniform(0.9, 1.0)


def growing(start: float, each: float) -> Meter:
    return lambda call, rng: start * (1 + each) ** call


def rising(start: float, each: float) -> Meter:
    return lambda call, rng: start + each * call


def drawn(low: float, high: float) -> Meter:
    return lambda call, rng: rng.uniform(low, high)


METERS = st.one_of(
    st.builds(constant, st.sampled_from([0.1, 1.0, 8.0, 33.0, 200.0])),
    st.builds(growing, st.floats(0.2, 8), st.floats(0, 0.01)),
    st.builds(rising, st.floats(0.2, 8), st.floats(0, 0.3)),
    st.builds(drawn, st.floats(0.1, 8), st.floats(8, 33)),
)


@dataclass
class Run:
    """Calls of `models` with two prompts each, at most `at_once` in flight, under a budget."""

    meter: Meter
    limit: float | None
    at_once: int = 64
    calls: int = 400
    models: int = 1
    seed: int = 0
    history: BillingHistory = field(default_factory=BillingHistory)
    billed: float = 0.0
    largest: dict[str, float] = field(default_factory=dict)
    made: int = 0
    seconds: float = 0.0

    def cost(self, number: int) -> CallCost:
        rng = random.Random(f"{self.seed}/{number}")
        usd_in = rng.uniform(0.001, 0.004)
        return CallCost(
            model=f"m{number % self.models}",
            prompt=f"p{number // (self.calls // 2)}",
            usd=usd_in + 0.002,
            usd_in=usd_in,
            tokens_in=usd_in * 1e6,
        )

    def play(self) -> Run:
        budget, rng, count = Budget(self.limit, self.history), random.Random(self.seed), 0
        costs = [self.cost(number) for number in range(self.calls)]
        order = itertools.count()
        todo = list(range(self.calls))[::-1]
        flights: list[tuple[float, int, str, CallCost, float]] = []
        now, settled = 0.0, 0.0
        ask = list[int]()
        while todo or ask or flights:
            while todo and len(ask) + len(flights) < self.at_once:
                ask.append(todo.pop())
            waiting: list[int] = []
            for number in ask:
                cost = costs[number]
                reserve = budget.consider(cost, settled)
                if isinstance(reserve, HeldAmount):
                    budget.start(str(number), reserve)
                    bill = cost.usd * self.meter(count, rng)
                    count += 1
                    self.billed += bill
                    self.largest[cost.model] = max(self.largest.get(cost.model, 0.0), bill)
                    ends = now + rng.uniform(0.5, 2.5)
                    heapq.heappush(flights, (ends, next(order), str(number), cost, bill))
                elif reserve == "hold":
                    assert flights, "a call waits, but none is in flight"
                    waiting.append(number)
            ask = waiting
            if not flights:
                continue
            now, _, key, cost, bill = heapq.heappop(flights)
            settled += bill
            expected = budget.release(key)
            self.history.billing_of(cost.pair).add(
                cost, bill, bill / cost.usd * cost.tokens_in, expected
            )
        self.made, self.seconds = count, now
        return self


@settings(max_examples=40, deadline=None)
@given(meter=METERS, limit=st.floats(0.05, 20), seed=st.integers(0, 99), models=st.integers(1, 3))
@example(meter=constant(8.0), limit=0.6, seed=0, models=1)
@example(meter=constant(33.0), limit=0.6, seed=0, models=2)
def test_the_bills_exceed_the_budget_by_at_most_one_call_of_each_model(meter, limit, seed, models):
    run = Run(meter, limit, seed=seed, models=models).play()
    assert run.billed <= limit + sum(run.largest.values()) + 1e-9


@pytest.mark.parametrize("times", [0.2, 1.0, 8.0, 33.0])
def test_the_budget_is_used_up(times):
    run = Run(constant(times), 1.0, calls=4000).play()
    assert run.made < 4000
    dearest = sum(run.largest.values())
    # The estimate of the last call, with the longest reply, must still fit.
    assert run.billed >= 1.0 - max(dearest, 0.006)


@pytest.mark.parametrize("times", [0.2, 1.0, 8.0])
def test_a_sufficient_budget_hardly_slows_a_run(times):
    free = Run(constant(times), None, calls=2000).play()
    limited = Run(constant(times), 20 * free.billed, calls=2000).play()
    assert limited.made == free.made == 2000
    # Two prompts take some rounds of calls each until their bills are known.
    assert limited.seconds <= free.seconds + 2 * 5 * 2.5


def jumping(after: int, times: float, before: float = 0.5) -> Meter:
    return lambda call, rng: times if call >= after else before


def spiking(share: float, times: float) -> Meter:
    return lambda call, rng: times if rng.random() < share else 0.5


@pytest.mark.parametrize("at_once", [16, 256])
@pytest.mark.parametrize("times", [3, 10, 100])
@pytest.mark.parametrize("after", [100, 190])
def test_when_bills_jump_they_exceed_the_budget_by_at_most_one_call(after, times, at_once):
    for limit in (1.0, 3.0):
        run = Run(jumping(after, times), limit, at_once=at_once, models=2).play()
        assert run.billed <= limit + max(run.largest.values()) + 1e-9


@pytest.mark.parametrize("before", [0.01, 0.2, 1.0])
@pytest.mark.parametrize("rise", [5, 50, 200])
def test_bills_far_below_their_estimates_may_jump_two_hundred_times(before, rise):
    times = min(100.0, rise * before)
    whole = 0.0045 * (150 * before + 450 * times)  # what 600 calls are billed
    for limit in (0.3 * whole, 0.7 * whole):
        run = Run(jumping(150, times, before), limit, at_once=256, calls=600).play()
        assert 150 < run.made < 600
        assert run.billed <= limit + max(run.largest.values()) + 1e-9


@pytest.mark.parametrize(("share", "times"), [(0.01, 50), (0.02, 20), (0.05, 20)])
def test_rare_dear_calls_exceed_the_budget_by_at_most_two(share, times):
    for seed in range(5):
        run = Run(spiking(share, times), 1.0, seed=seed, calls=2000).play()
        assert run.billed <= 1.0 + 2 * max(run.largest.values())


def most_in_flight(limit: float, billed: float, **tokens: float) -> int:
    """Calls of 0.004 USD by their estimate that start at once, after 500 that were billed so."""
    history = BillingHistory()
    budget, cost = Budget(limit, history), CallCost(model="m", prompt="p", usd=0.004, **tokens)
    for _ in range(500):
        history.billing_of(cost.pair).add(cost, billed, 0.0, None)
    for n in range(500):
        reserve = budget.consider(cost, 0.0)
        if not isinstance(reserve, HeldAmount):
            return n
        budget.start(str(n), reserve)
    return 500


def test_fewer_calls_are_in_flight_as_the_end_nears():
    in_flight = [most_in_flight(usd, billed=0.004) for usd in (0.1, 1.0, 4.0, 40.0, 400.0)]
    assert in_flight == [1, 3, 11, 101, 500]


def test_more_calls_are_in_flight_where_bills_are_far_below_their_estimates():
    """An estimate of 12,288 tokens out that is billed a fortieth: as calls of models that think."""
    tokens = {"usd_in": 0.0004, "tokens_in": 1000.0, "tokens_out": 12_288.0}
    in_flight = [most_in_flight(usd, 0.0001, **tokens) for usd in (0.03, 0.05, 0.11, 0.51)]
    assert in_flight == [2, 3, 6, 26]
    # What was billed nothing may cost anything: the longest call at list price.
    assert [most_in_flight(usd, 0.0, **tokens) for usd in (0.05, 0.11, 0.51)] == [1, 1, 5]


def test_a_budget_of_some_times_the_bill_keeps_several_calls_in_flight():
    """300 calls whose bill is a thirtieth of their estimate."""
    in_flight = dict[float, float]()
    for times in (1.2, 2.0, 5.0, 20.0):
        limit = times * 300 * 0.03 * 0.0045
        run = Run(constant(1 / 30), limit, calls=300, at_once=32).play()
        assert run.made == 300
        in_flight[times] = 300 * 1.5 / run.seconds  # calls last 1.5 s
    assert in_flight[1.2] > 1.3
    assert in_flight[2.0] > 2.2
    assert in_flight[5.0] > 5
    assert in_flight[20.0] > 12


def test_no_call_is_dearer_than_the_longest_one_at_list_price():
    dearest = BillingHistory().dearest_bill
    short = CallCost(usd=0.001, usd_in=0.0008, tokens_in=2000, tokens_out=125)
    assert dearest(short) == pytest.approx(0.1)  # a hundred times
    long = CallCost(usd=0.05, usd_in=0.04, tokens_in=100_000, tokens_out=6250)
    assert dearest(long) == pytest.approx(0.4e-6 * 200_000 + 1.6e-6 * 131_072)
    longer = CallCost(usd=0.41, usd_in=0.4, tokens_in=1_000_000, tokens_out=6250)
    assert dearest(longer) == 0.41


def test_calls_by_batch_keep_no_other_call_waiting():
    history = BillingHistory()
    budget, cost = Budget(1.0, history), CallCost(model="m", prompt="p", usd=0.02)
    history.billing_of(cost.pair).add(cost, 0.02, 0.0, None)
    for n in range(4):
        reserve = budget.consider(cost, 0.0, batched=True)
        assert isinstance(reserve, HeldAmount)
        budget.start(str(n), reserve)
    assert isinstance(budget.consider(cost, 0.0), HeldAmount)


def test_the_first_call_of_a_model_is_sent_alone():
    history = BillingHistory()
    budget = Budget(100.0, history)
    first, other, second = (CallCost(model=m, prompt=p, usd=0.01) for m, p in ("ap", "aq", "bp"))
    for key, cost in (("1", first), ("2", second)):
        reserve = budget.consider(cost, 0.0)
        assert isinstance(reserve, HeldAmount)
        budget.start(key, reserve)
    assert [budget.consider(c, 0.0) for c in (first, other, second)] == ["hold"] * 3
    history.billing_of(first.pair).add(first, 0.08, 0.0, budget.release("1"))
    reserve = budget.consider(first, 0.08)
    assert isinstance(reserve, HeldAmount)
    assert reserve.usd >= 0.08


def test_the_ratio_of_tokens_counts_where_the_reply_is_most_of_the_estimate():
    """A first call with little input and room for a long reply hides the price of images."""
    history = BillingHistory()
    small = CallCost(model="m", prompt="p", usd=0.0067, usd_in=0.0001, tokens_in=255)
    history.billing_of(small.pair).add(small, 0.0034, 255 * 33, None)
    large = CallCost(model="m", prompt="p", usd=0.0117, usd_in=0.0051, tokens_in=12750)
    assert history.likely_cost(large) == pytest.approx(0.0051 * 33 + 0.0066)
