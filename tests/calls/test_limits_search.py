"""The search finds an endpoint's hidden limit; callers and endpoint run on a simulated clock."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.calls.limits import Limits, Rates

Limit = Callable[[float], float]
REFUSAL_S = 0.01  # seconds until a refusal arrives


@dataclass
class LimitedEndpoint:
    """An endpoint that refuses calls above `limit`.

    `kind`: calls per second ("rate", from a bucket of one second) or calls in flight ("window").
    `has_retry_after`: refusals say when to call again. `noise`: share of calls that is refused at
    random.
    """

    kind: str
    limit: Limit
    latency: float = 2.0
    has_retry_after: bool = False
    noise: float = 0.0
    at_work: int = 0
    random: random.Random = field(default_factory=lambda: random.Random(0))
    _level: float = 1.0
    _at: float = 0.0

    def takes(self, now: float) -> bool:
        if self.random.random() < self.noise:
            return False
        if self.kind == "window":
            return self.at_work < self.limit(now)
        limit = self.limit(now)
        self._level = min(max(1.0, limit), self._level + (now - self._at) * limit)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True


@dataclass
class Outcomes:
    """Times of answered and refused calls."""

    done: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    @property
    def wasted(self) -> float:
        return len(self.refused) / max(1, len(self.done) + len(self.refused))

    def per_second(self, start: float, end: float) -> float:
        return sum(start <= t < end for t in self.done) / (end - start)

    def longest_gap(self, end: float) -> float:
        times = [0.0, *self.done, end]
        return max(b - a for a, b in itertools.pairwise(times))


def run(
    endpoint: LimitedEndpoint,
    seconds: float,
    callers: int = 256,
    late: float = 0.0,
    backoff: tuple[float, float] = (0.25, 0.5),
) -> Outcomes:
    """Run `callers` that call again after each answer, refusal or hold.

    `late`: most seconds of a message. `backoff`: seconds of waiting after a refusal.
    """
    rates, seen, count = Rates(Limits(), 0.0), Outcomes(), itertools.count()

    def message_time() -> float:
        return endpoint.random.uniform(late / 5, late)

    events = [(0.0, next(count), "ask", 0) for _ in range(callers)]
    while events[0][0] < seconds:
        now, _, what, call = heapq.heappop(events)
        after = 0.0, "ask"
        if what == "ask":
            admitted = rates.admit(0, now)
            call = admitted.call
            after = admitted.wait + message_time(), "send" if admitted.go else "ask"
        elif what == "send":
            taken = endpoint.takes(now)
            endpoint.at_work += taken
            slower = endpoint.random.uniform(0, 5 * late)
            after = (endpoint.latency + slower, "done") if taken else (REFUSAL_S, "refused")
        elif what == "done":
            endpoint.at_work -= 1
            after = message_time(), "answered"
        elif what == "answered":
            rates.release(0, now)
            rates.record_answer(call, "prompt", endpoint.latency)
            seen.done.append(now)
        else:
            rates.release(0, now)
            rates.record_refusal(call, now, has_retry_after=endpoint.has_retry_after)
            if endpoint.has_retry_after:
                rates.pause(1 / endpoint.limit(now), now)
            seen.refused.append(now)
            after = endpoint.random.uniform(*backoff), "ask"
        heapq.heappush(events, (now + after[0], next(count), after[1], call))
    return seen


def moving(limit: float) -> Limit:
    return lambda now: limit / 2 if 20 <= now < 40 else limit


@settings(max_examples=12)
@given(
    kind=st.sampled_from(["rate", "window"]),
    limit=st.integers(8, 80),
    latency=st.floats(0.3, 4.0),
    has_retry_after=st.booleans(),
)
def test_a_hidden_limit_is_found_within_a_minute(kind, limit, latency, has_retry_after):
    limit *= 1 if kind == "rate" else 2
    endpoint = LimitedEndpoint(
        kind, lambda now: limit, latency=latency, has_retry_after=has_retry_after and kind == "rate"
    )
    seen = run(endpoint, 120)
    most = limit if kind == "rate" else min(limit, 256) / latency
    share = seen.per_second(60, 120) / min(most, 256 / latency)
    assert share >= (0.75 if kind == "window" and most < 20 else 0.85)  # few and slow: few trials
    assert seen.wasted < 0.08


@pytest.mark.parametrize(("kind", "limit"), [("rate", 20.0), ("rate", 60.0), ("window", 64.0)])
@pytest.mark.parametrize("has_retry_after", [False, True])
def test_a_limit_that_halves_and_doubles_is_followed(kind, limit, has_retry_after):
    seen = run(
        LimitedEndpoint(kind, moving(limit), has_retry_after=has_retry_after and kind == "rate"),
        100,
    )
    most = limit if kind == "rate" else limit / 2
    assert seen.per_second(30, 40) >= 0.9 * most / 2
    assert seen.per_second(60, 100) >= 0.95 * most
    assert seen.wasted < 0.03


@pytest.mark.parametrize(("kind", "limit"), [("rate", 20.0), ("window", 48.0)])
@pytest.mark.parametrize("moves", [False, True])
def test_the_benchmark_of_limits_holds_on_a_simulated_clock(kind, limit, moves):
    """`bench what=limits`, six times, with messages and answers that are delayed a little."""
    law = moving(limit) if moves else lambda now: limit
    most = limit if kind == "rate" else limit / (2.0 + 0.05)
    shares, wasted = [], []
    for seed in range(6):
        endpoint = LimitedEndpoint(
            kind, law, has_retry_after=kind == "rate", random=random.Random(seed)
        )
        seen = run(endpoint, 90, callers=160, late=0.02, backoff=(0.5, 1.0))
        shares.append(seen.per_second(60, 90) / most)
        wasted.append(seen.wasted)
    assert sum(shares) / 6 >= 0.95
    assert min(shares) >= 0.9
    assert sum(wasted) / 6 < 0.03


def test_a_long_outage_is_probed_and_its_end_noticed_at_once():
    seen = run(LimitedEndpoint("rate", lambda now: 20 if not 30 < now < 300 else 1e-9), 360)
    assert 3 <= len([t for t in seen.refused if 100 < t < 160]) <= 20
    assert seen.per_second(330, 360) >= 0.9 * 20


def test_an_endpoint_that_accepts_a_call_every_five_seconds_gets_one_each_minute():
    seen = run(LimitedEndpoint("rate", lambda now: 0.2), 600, callers=50)
    assert seen.longest_gap(600) < 60


@pytest.mark.parametrize(("noise", "least"), [(0.01, 0.9), (0.04, 0.5), (0.08, 0.3), (0.12, 0.15)])
@pytest.mark.parametrize("seed", range(2))
def test_random_refusals_do_not_stop_a_run(noise, least, seed):
    endpoint = LimitedEndpoint("window", lambda now: 256, noise=noise, random=random.Random(seed))
    assert run(endpoint, 600).per_second(60, 600) >= least * 128


def test_without_a_search_only_configured_limits_hold():
    rates = Rates(Limits(requests_per_minute=6000, search=False), 0.0)
    waits = []
    for n in range(200):
        admitted = rates.admit(0, 0.001 * n)
        if admitted.go:
            waits.append(admitted.wait)
            rates.release(0, 0.001 * n)
            rates.record_refusal(admitted.call, 0.001 * n)
    assert 100 <= len(waits) <= 140  # one second of calls at once, then the inflow


def test_an_endpoint_that_queues_is_not_flooded():
    """Twenty calls are served at once and others wait, so more in flight only makes each slower."""
    rates, at_once, now = Rates(Limits(), 0.0), 20, 0.0
    peak = 0
    for step in range(4000):
        now = step * 0.05
        while (admitted := rates.admit(0, now)).go and rates.in_flight < 256:
            last = admitted.call
        waiting = rates.in_flight
        peak = waiting if now > 100 else 0
        if waiting:
            rates.release(0, now)
            rates.record_answer(last, "prompt", max(1.0, waiting / at_once))
    assert 15 <= peak <= 80
