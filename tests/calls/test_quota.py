"""Quotas are read from rate-limit headers, and pace calls before anything is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.limits import Limits, Quota, Rates, duration, quotas_in


def headers(name: str, limit: object, remaining: object, reset: str) -> dict[str, str]:
    values = {"limit": limit, "remaining": remaining, "reset": reset}
    return {f"x-ratelimit-{key}-{name}": str(value) for key, value in values.items()}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("6m0s", 360.0), ("2m59.56s", 179.56), ("12ms", 0.012), ("1h2m", 3720.0), ("59", 59.0),
     ("0s", 0.0), ("1d", 86400.0), ("", None), ("soon", None), ("-1", None), ("1s!", None)],
)  # fmt: skip
def test_durations(value: str, seconds: float | None) -> None:
    assert duration(value) == (None if seconds is None else pytest.approx(seconds))


@given(st.text())
def test_any_header_is_read_or_ignored(text: str) -> None:
    quotas = quotas_in({**headers("tokens", text, text, text), **headers("requests", 9, 1, text)})
    assert all(0 <= quota.remaining < quota.limit for quota in quotas.values())


def test_the_period_of_a_limit_follows_from_the_used_units_and_the_reset() -> None:
    openai = {**headers("requests", 5000, 4999, "12ms"), **headers("tokens", 160000, 159976, "9ms")}
    assert quotas_in(openai) == {
        "requests": Quota(5000, 4999, 60.0),
        "tokens": Quota(160000, 159976, 60.0),
    }
    groq = headers("requests", 14400, 14370, "2m59.56s")
    assert quotas_in(groq) == {"requests": Quota(14400, 14370, 86400.0)}
    assert quotas_in(groq)["requests"].per_minute == pytest.approx(10.0)


@pytest.mark.parametrize(
    "wrong", [("-1", "-1", "0"), ("0", "0", "1s"), ("60", "60", "0s"), ("60", "", "1s"),
              ("nan", "1", "1s"), ("inf", "1", "1s"), ("60", "90", "1s")],
)  # fmt: skip
def test_invalid_headers_give_no_quota(wrong: tuple[str, str, str]) -> None:
    assert quotas_in(headers("requests", *wrong)) == {}


def test_remaining_units_start_at_once_and_others_as_they_flow_in() -> None:
    rates = Rates(Limits(search=False), 0.0)
    rates.record_quotas({"requests": Quota(60, 3, 60.0)}, 0.0)
    assert [rates.admit(0, 0.0).wait for _ in range(4)] == [0.0, 0.0, 0.0, pytest.approx(1.0)]
    assert not rates.admit(0, 0.0).go
    assert rates.held_seconds == {"x-ratelimit-limit-requests=60": pytest.approx(1.0)}
    assert rates.admit(0, 3.0).wait == 0.0


def test_a_configured_limit_below_the_reported_quota_holds() -> None:
    rates = Rates(Limits(requests_per_minute=60, search=False), 0.0)
    rates.record_quotas({"requests": Quota(6000, 5999, 60.0)}, 0.0)
    assert rates.admit(0, 0.0).wait == 0.0
    assert rates.admit(0, 0.0).wait == pytest.approx(1.0)


def test_a_quota_that_other_clients_use_up_is_followed() -> None:
    rates = Rates(Limits(search=False), 0.0)
    rates.record_quotas({"tokens": Quota(6000, 5000, 60.0)}, 0.0)
    assert rates.admit(4000, 0.0).wait == 0.0
    rates.record_quotas({"tokens": Quota(6000, 0, 60.0)}, 1.0)
    assert not rates.admit(10, 1.0).go or rates.admit(10, 1.0).wait > 0
