"""What work costs a worker: its time by the clock and its CPU time, each second counted once.

Rows that are in one process together share its seconds, as flows share a link in processor sharing:
while there are n of them, each is charged an nth. So the sums of all rows are what the process did.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mustsee.run.record import WorkTimes


class Meter:
    """Of one process. `clock`, `cpu`: seconds by the clock, and of CPU in all threads."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.clock, self._cpu = clock, cpu
        self._lock = threading.Lock()
        self._rows = 0
        self._seen = (clock(), cpu())
        self._each = (0.0, 0.0)  # what a row is charged that was there from the beginning

    def row_work(self) -> RowWork:
        """Of a row that has come, and may have to wait for its turn."""
        return RowWork(self)

    def charge_rows(self, more: int) -> tuple[float, float]:
        """Count so many rows more from now on. Returns what one would have been charged so far."""
        with self._lock:
            now = self.clock(), self._cpu()
            if self._rows:
                gone = (b - a for a, b in zip(self._seen, now, strict=True))
                busy, cpu = (e + g / self._rows for e, g in zip(self._each, gone, strict=True))
                self._each = busy, cpu
            self._seen = now
            self._rows += more
            return self._each


class RowWork:
    """The work on one row."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._came = meter, meter.clock()
        self._before: tuple[float, float] | None = None

    def begin(self) -> None:
        """It has its turn."""
        self._before = self._meter.charge_rows(1)

    def end(self) -> WorkTimes:
        """It is done."""
        residence = self._meter.clock() - self._came
        if self._before is None:
            return WorkTimes(residence=residence)
        after = self._meter.charge_rows(-1)
        busy, cpu = (b - a for a, b in zip(self._before, after, strict=True))
        return WorkTimes(busy=busy, cpu=cpu, residence=residence)
