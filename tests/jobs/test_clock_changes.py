"""The clock of the day is set during a run: nothing that waits or expires asks it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from actors.calls.admission import AdmissionRequest
from actors.calls.connection import retry_after_s
from actors.calls.coordinator import Coordinator
from loopback.endpoint import Faults, Loopback
from mustsee.calls.limits import Limits
from mustsee.calls.usage import CallOutcome
from tests.jobs.test_killed import ALL, Job, Whole, whole
from tests.support.jumping_clock import DAY_S, jumping_clock
from tests.support.killing import kill, mark, processes, until

__all__ = ["whole"]
JUMPS = (DAY_S, -DAY_S, 400 * DAY_S, 0)


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


@pytest.mark.slow
@pytest.mark.long
def test_the_library_moves_only_the_clock_of_the_day(tmp_path: Path) -> None:
    clock = jumping_clock(tmp_path)
    clock.jump(DAY_S)
    code = "import time; print(time.time(), time.monotonic())"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=clock.variables,
        capture_output=True,
        text=True,
        check=True,
    )
    day, steady = map(float, said.stdout.split())
    assert day == pytest.approx(time.time() + DAY_S, abs=30)
    assert steady == pytest.approx(time.monotonic(), abs=30)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_run_does_not_notice_that_the_clock_is_set(tmp_path: Path, whole: Whole) -> None:
    """Calls are refused with a Retry-After, retried and answered while the clock jumps."""
    clock, gate = jumping_clock(tmp_path), threading.Event()
    faults = Faults(share=0.3, kinds=("429", "503", "500"), most=2, retry_after=0.5)
    with Loopback(payloads=[], gate=gate, faults=faults, port=whole.port) as server:
        job = Job(tmp_path / "job", server.url, mark())
        job.folder.mkdir()
        job.start(**clock.variables)
        try:
            until(lambda: server.counts["chat"] == ALL or job.process.poll() is not None)
            gate.set()
            jump = iter(JUMPS * 1000)
            while job.process.poll() is None:
                clock.jump(next(jump))
                time.sleep(0.2)
            output = job.end()
        finally:
            kill(*processes(job.mark))
    assert job.process.returncode == 0, output
    assert job.tables == whole.tables
    assert (job.usage["calls"], job.usage["failed"]) == (ALL, 0)
    assert "lease" not in output
