"""Usage totals by prompt, model and stage; prices; budgets without a price."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.usage import CallOutcome, Price, UsageTotals, price, require_price
from mustsee.errors import UserError

ENTRIES = st.lists(
    st.builds(
        CallOutcome,
        outcome=st.sampled_from(["done", "cached", "retry", "failed"]),
        model=st.sampled_from(["small", "large"]),
        prompt=st.sampled_from(["neptune/questions", "filters/blind"]),
        stage=st.sampled_from(["ask", "vet", ""]),
        seconds=st.floats(0, 60),
        held=st.floats(0, 60),
        tokens_in=st.integers(0, 10_000),
        tokens_out=st.integers(0, 1000),
        usd=st.floats(0, 1),
        again=st.sampled_from(["", "it names no letter", "it is empty"]),
        retry_after=st.none() | st.floats(0, 60),
    )
)


@given(ENTRIES)
def test_groups_add_up_to_the_total(entries):
    usage = UsageTotals()
    for entry in entries:
        usage.add(entry)
    summary = usage.summary()
    for group in ("by_prompt", "by_model", "by_stage"):
        for name in usage.total.plain().keys() - {"asked_again_for"}:
            total = sum(counts[name] for counts in summary[group].values())
            assert total == pytest.approx(summary[name], abs=1e-6)
    assert json.loads(json.dumps(summary)) == summary


@given(ENTRIES, st.randoms(use_true_random=False))
def test_the_order_of_entries_does_not_matter(entries, random):
    both = UsageTotals(), UsageTotals()
    shuffled = list(entries)
    random.shuffle(shuffled)
    for usage, order in zip(both, (entries, shuffled), strict=True):
        for entry in order:
            usage.add(entry)
    first, second = (json.loads(json.dumps(usage.total.plain())) for usage in both)
    assert first.pop("asked_again_for") == second.pop("asked_again_for")
    assert first == pytest.approx(second, abs=2e-8)


def test_whatever_was_billed_is_counted_and_a_stored_reply_is_not():
    usage = UsageTotals()
    for outcome in ("done", "cached", "retry", "failed"):
        usage.add(
            CallOutcome(
                outcome=outcome,
                model="m",
                prompt="p",
                tokens_in=10,
                tokens_out=5,
                usd=0.5,
                again="it is empty",
                retry_after=2.5,
            )
        )
    total = usage.summary()
    assert (total["calls"], total["cached"], total["retries"], total["failed"]) == (1, 1, 1, 1)
    assert (total["tokens_in"], total["tokens_out"], total["usd"]) == (30, 15, 1.5)
    assert (total["retry_after_waits"], total["retry_after_seconds"]) == (1, 2.5)
    assert total["asked_again"] == 2
    assert total["asked_again_for"] == {"it is empty": 2}


def test_the_expected_length_of_replies_is_the_mean_of_their_prompt():
    usage = UsageTotals()
    assert usage.expected_out("p", 100) == 100
    for tokens in (10, 30):
        usage.add(CallOutcome(outcome="done", model="m", prompt="p", tokens_out=tokens))
    assert usage.expected_out("p", 100) == 20
    assert usage.expected_out("other", 4096) == 512


def test_price_is_per_million_tokens():
    of_model = price({"m": [2.0, 8.0]}, "m")
    assert of_model == Price(2.0, 8.0)
    assert of_model.usd(1_000_000, 500_000) == pytest.approx(6.0)
    assert of_model.usd(1_000_000, 500_000, 400_000) == pytest.approx(6.0)
    cheaper = price({"m": [2.0, 8.0, 0.5]}, "m")
    assert cheaper is not None
    assert cheaper.usd(1_000_000, 500_000, 400_000) == pytest.approx(5.4)
    assert price({}, "m") is None


@pytest.mark.parametrize("entry", [[1.0], [1.0, -2.0], [1.0, 2.0, 3.0, 4.0]])
def test_a_wrong_price_names_the_model(entry):
    with pytest.raises(UserError, match="'m'"):
        price({"m": entry}, "m")


def test_a_budget_needs_a_price():
    require_price(None, "m", None)
    require_price(Price(1, 1), "m", 5.0)
    with pytest.raises(UserError, match="budget_usd=5"):
        require_price(None, "m", 5.0)
