"""Token buckets admit at most the allowed units in any span of time, and every wait ends."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.limits import Admission, Bucket, Limits, Rates
from mustsee.errors import UserError

STEPS = st.lists(
    st.tuples(st.floats(0, 30), st.floats(0.1, 50)), min_size=1, max_size=60
)  # (seconds since the previous one, units)


@given(per_minute=st.floats(1, 6000), steps=STEPS)
def test_no_span_of_time_gets_more_than_its_share(per_minute, steps):
    bucket, now, starts = Bucket(per_minute, 0.0), 0.0, []
    for gap, units in steps:
        now += gap
        starts.append((now + bucket.reserve(units, now), units))
    starts.sort()
    for i, (first, _) in enumerate(starts):
        total = 0.0
        for when, units in starts[i:]:
            total += units
            # The first units of a span may settle a debt that flowed in before it.
            allowed = bucket.room + (when - first) * per_minute / 60 + starts[i][1]
            assert total <= allowed + 1e-6 * total


@given(per_minute=st.floats(1, 6000), units=st.floats(0, 1e6))
def test_a_wait_ends_when_the_units_have_flowed_in(per_minute, units):
    bucket = Bucket(per_minute, 0.0)
    assert bucket.reserve(units, 0.0) == pytest.approx(
        max(0.0, units - bucket.room) / (per_minute / 60)
    )


@given(steps=STEPS)
def test_refunded_units_do_not_delay_later_calls(steps):
    plain, refunded, now = Bucket(60, 0.0), Bucket(60, 0.0), 0.0
    for gap, units in steps:
        now += gap
        wait = plain.reserve(units, now)
        refunded.reserve(units + 100, now)
        refunded.refund(100, now)
        assert refunded.reserve(0, now) == pytest.approx(wait, abs=1e-6)


def test_saved_units_are_bounded():
    bucket = Bucket(600, 0.0)
    assert bucket.reserve(10, 3600.0) == 0.0
    assert bucket.reserve(10, 3600.0) == pytest.approx(1.0)


def test_requests_and_tokens_both_count():
    rates = Rates(Limits(requests_per_minute=60, tokens_per_minute=6000), 0.0)
    assert rates.admit(100, 0.0) == Admission(True, 0.0, 1)
    assert rates.admit(0, 0.0) == Admission(
        True, pytest.approx(1.0), 2
    )  # the second one of this second
    assert not rates.admit(1000, 0.0).go  # an earlier call is still waiting
    assert rates.admit(1000, 1.0) == Admission(True, pytest.approx(9.0), 3)  # 100 tokens per second


def test_overlapping_waits_for_a_limit_count_once():
    rates = Rates(Limits(requests_per_minute=60, tokens_per_minute=1_500_000), 0.0)
    rates.admit(10, 0.0)
    assert rates.held_seconds == {}
    for now in (0.0, 0.0, 0.5):  # one starts a second later, two must ask again
        rates.admit(10, now)
    assert rates.held_seconds == {"requests_per_minute=60": pytest.approx(1.0)}
    rates.admit(10, 10.0)
    rates.admit(10, 10.5)
    assert rates.held_seconds == {"requests_per_minute=60": pytest.approx(1.5)}


def test_a_wait_for_a_debt_counts_for_its_limit():
    """Each call uses far more than it reserved and leaves a debt of some 20 seconds."""
    rates, now, waited = Rates(Limits(tokens_per_minute=200_000, search=False), 0.0), 0.0, 0.0
    for _ in range(10):
        while not (admitted := rates.admit(1500, now)).go:
            waited, now = waited + admitted.wait, now + admitted.wait
        waited, now = waited + admitted.wait, now + admitted.wait
        rates.release(1500 - 68_000, now)
    (seconds,) = rates.held_seconds.values()
    assert waited > 150
    assert seconds == pytest.approx(waited, rel=0.05)


def test_an_endpoint_with_retry_after_is_asked_when_it_ends():
    """Two of three calls are refused; without Retry-After: 2, one would start each five seconds."""
    rates, now, starts = Rates(Limits(), 0.0), 0.0, list[float]()
    while now < 120:
        admitted = rates.admit(0, now)
        now += admitted.wait
        if not admitted.go:
            continue
        starts.append(now)
        rates.release(0, now)
        if len(starts) % 3:
            rates.pause(2.0, now)
            rates.record_refusal(admitted.call, now, has_retry_after=True)
        else:
            rates.record_answer(admitted.call, "prompt", 0.1)
    late = [b - a for a, b in itertools.pairwise(starts) if a > 30]
    assert max(late) < 3.0
    assert min(late) > 1.0


def test_an_endpoints_message_shows_while_it_is_silent_or_refuses_most_calls():
    rates = Rates(Limits(), 0.0)
    rates.last_message = "HTTP 429: slow down"
    rates.record_refusal(1, 0.0)
    assert rates.trouble_message(1.0) == ""
    assert rates.trouble_message(6.0) == "HTTP 429: slow down"
    rates.record_answer(2, "prompt", 1.0)
    assert rates.trouble_message(60.0) == ""
    for call in range(30):
        (rates.record_refusal if call % 3 else rates.record_failure)(
            *((call, 7.0) if call % 3 else (7.0,))
        )
        if call % 5 == 0:
            rates.record_answer(call, "prompt", 1.0)
    assert rates.trouble_message(8.0) == "HTTP 429: slow down"


def test_nothing_starts_before_retry_after_is_over():
    rates = Rates(Limits(), 0.0)
    rates.pause(7.0, 1.0)
    rates.pause(2.0, 1.0)
    refused = rates.admit(1, 3.0)
    assert (refused.go, refused.wait) == (False, pytest.approx(5.0, abs=0.1))
    assert rates.admit(1, 8.0).go


def test_a_silent_account_is_tried_from_time_to_time():
    rates = Rates(Limits(), 0.0)
    rates.record_failure(10.0)
    rates.record_failure(60.0)
    assert not rates.is_silent(100.0, 110.0)
    assert [rates.is_silent(100.0, now) for now in (111.0, 112.0, 115.0, 117.0)] == [
        False, True, True, False,
    ]  # fmt: skip
    rates.record_answer(1, "prompt", 1.0)
    assert not rates.is_silent(100.0, 500.0)


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_limit_of_zero_or_less_is_refused(wrong):
    with pytest.raises(UserError, match="requests_per_minute"):
        Limits(requests_per_minute=wrong)
