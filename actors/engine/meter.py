"""The time that rows take of a worker, by the clock and of its CPU, each second counted once.

Rows that are in one process at the same time share its seconds, as in processor sharing: each of n
rows is charged an nth. The sum over all rows is the time that the process worked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mustsee.run.record import WorkTimes


class Meter:
    """The meter of one process. `clock`, `cpu`: seconds by the clock, and of CPU in all threads."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.clock, self._cpu = clock, cpu
        self._lock = threading.Lock()
        self._rows = 0
        self._seen = (clock(), cpu())
        self._each = (0.0, 0.0)  # seconds charged to a row that has been here from the beginning

    def row_work(self) -> RowWork:
        """Return the timer of a row that has arrived and may have to wait."""
        return RowWork(self)

    def charge_rows(self, more: int) -> tuple[float, float]:
        """Change the number of rows by `more` and return the seconds charged to each row so far."""
        with self._lock:
            now = self.clock(), self._cpu()
            if self._rows:
                passed = (b - a for a, b in zip(self._seen, now, strict=True))
                busy, cpu = (e + p / self._rows for e, p in zip(self._each, passed, strict=True))
                self._each = busy, cpu
            self._seen = now
            self._rows += more
            return self._each


class RowWork:
    """The timer of one row."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._arrived = meter, meter.clock()
        self._before: tuple[float, float] | None = None

    def begin(self) -> None:
        """Note that work on the row begins."""
        self._before = self._meter.charge_rows(1)

    def end(self) -> WorkTimes:
        """Note that the row is done, and return its times."""
        residence = self._meter.clock() - self._arrived
        if self._before is None:
            return WorkTimes(residence=residence)
        after = self._meter.charge_rows(-1)
        busy, cpu = (b - a for a, b in zip(self._before, after, strict=True))
        return WorkTimes(busy=busy, cpu=cpu, residence=residence)
