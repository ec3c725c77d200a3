"""The clock of the day is set during a run: nothing that waits or expires asks it."""

from __future__ import annotations

import time

import pytest

from actors.calls.connection import retry_after_s
from actors.calls.coordinator import Coordinator
from mustsee.calls.budget import AdmissionRequest
from mustsee.calls.limits import Limits
from mustsee.calls.usage import CallOutcome

DAY_S = 86_400


@pytest.mark.parametrize("days", [-400, -1, 1, 400])
def test_limits_and_pauses_do_not_ask_the_clock_of_the_day(days, monkeypatch):
    steady, true = [100.0], time.time
    coordinator = Coordinator(clock=lambda: steady[0])
    coordinator.register_account("a", Limits(requests_per_minute=60, search=False))

    def answers(*keys: str) -> list[str]:
        asks = [AdmissionRequest(key=key, account="a", prompt="p") for key in keys]
        return [grant.answer for grant in coordinator.exchange("o", [], asks)]

    assert answers("1", "2", "3", "4") == ["go", "go", "hold", "hold"]
    busy = CallOutcome(
        outcome="refused", model="m", prompt="p", key="1", account="a", retry_after=30.0
    )
    coordinator.exchange("o", [busy], [])
    monkeypatch.setattr(time, "time", lambda: true() + days * DAY_S)
    steady[0] += 29.0
    assert answers("3") == ["hold"]
    steady[0] += 2.0
    assert answers("3") == ["go"]


def test_a_retry_after_is_a_span_of_the_endpoints_own_clock(monkeypatch):
    headers = {
        "date": "Mon, 01 Jan 2024 00:00:00 GMT", "retry-after": "Mon, 01 Jan 2024 00:00:07 GMT"
    }  # fmt: skip
    for days in (-400, 0, 400):
        monkeypatch.setattr(time, "time", lambda ahead=days: ahead * DAY_S)
        assert retry_after_s(headers) == 7.0
        assert retry_after_s({"retry-after": "7"}) == 7.0
