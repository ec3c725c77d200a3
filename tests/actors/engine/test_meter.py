"""Every second of a worker is counted once, however many rows share it."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from actors.calls.coordinator import Coordinator
from actors.engine.local import LocalSession
from actors.engine.meter import Meter
from actors.engine.stage import Stage, StageWorker
from actors.part import Opened, RunContext
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Video
from mustsee.run.record import StageCounts, WorkTimes


class Clocks:
    """Two clocks that a test sets."""

    now = cpu = 0.0

    def meter(self) -> Meter:
        return Meter(lambda: self.now, lambda: self.cpu)

    def turn(self, seconds: float, cpu: float) -> None:
        self.now += seconds
        self.cpu += cpu


def test_a_single_row_is_charged_all_but_its_wait() -> None:
    clocks = Clocks()
    row_work = clocks.meter().row_work()
    clocks.turn(5.0, 4.0)
    row_work.begin()
    clocks.turn(2.0, 1.5)
    assert row_work.end() == WorkTimes(busy=2.0, cpu=1.5, residence=7.0)


def test_rows_at_the_same_time_share_a_second() -> None:
    clocks = Clocks()
    meter = clocks.meter()
    first, second = meter.row_work(), meter.row_work()
    first.begin()
    clocks.turn(4.0, 2.0)
    second.begin()
    clocks.turn(6.0, 6.0)
    times = first.end()
    clocks.turn(1.0, 0.5)
    last = second.end()
    assert (times.busy, times.cpu, times.residence) == (7.0, 5.0, 10.0)
    assert (last.busy, last.cpu, last.residence) == (4.0, 3.5, 11.0)
    assert times.busy + last.busy == clocks.now


def test_a_row_that_never_began_is_charged_nothing() -> None:
    clocks = Clocks()
    row_work = clocks.meter().row_work()
    clocks.turn(3.0, 3.0)
    assert row_work.end() == WorkTimes(residence=3.0)


@dataclass(frozen=True, kw_only=True)
class SleepingPart:
    """A part that takes `seconds` for a row, as a plain function or as a coroutine."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("title",)
    seconds: float
    waits: bool

    def open(self, run: RunContext) -> Opened:
        def plain(row: Video) -> Video:
            time.sleep(self.seconds)
            return replace(row, title="slept")

        async def waiting(row: Video) -> Video:
            await asyncio.sleep(self.seconds)
            return replace(row, title="slept")

        return waiting if self.waits else plain


@pytest.mark.parametrize("waits", [False, True])
def test_four_rows_at_once_are_not_counted_four_times(waits: bool, tmp_path: Path) -> None:
    """One by one under a worker's lock, or at the same time on its event loop."""
    coordinator = Coordinator()
    session = LocalSession(store=Store(str(tmp_path)), coordinator=coordinator)
    worker = StageWorker(Stage(name="s", part=SleepingPart(seconds=0.2, waits=waits)), session)
    rows = schemas.table([Video(video_id=str(n), uri="x") for n in range(4)], Video)
    blocks: list[pa.Table] = [rows.slice(n, 1) for n in range(4)]
    together = threading.Barrier(4)

    def work(block: pa.Table) -> None:
        together.wait(30)
        worker(block)

    began = time.monotonic()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, blocks))
    seconds = time.monotonic() - began
    counts: StageCounts = coordinator.snapshot().stage("s")
    least = 0.2 if waits else 0.8
    assert least <= counts.seconds <= seconds
    # Under the lock a row is there while others sleep; threads start within a sleep of each other.
    assert counts.residence >= (0.8 if waits else 0.8 + 0.2)
    assert counts.cpu_seconds < counts.seconds
