"""What a job says while it works: by stage what is done, the rate, the time left, the money."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

Snapshot = Mapping[str, Any]


class Progress:
    """Draws `snapshot()` while the `with` block runs: a live table on a terminal, else a line now
    and then. `total`: rows in all; `stages`: their names in order.
    """

    def __init__(self, snapshot: Callable[[], Snapshot], stages: Sequence[str], total: int) -> None:
        self._snapshot, self._stages, self._total = snapshot, stages, total
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._console = Console(stderr=True)
        self._started = time.monotonic()

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        if self._console.is_terminal:
            with Live(console=self._console, refresh_per_second=4, transient=True) as live:
                while not self._done.wait(0.5):
                    live.update(self._table(self._snapshot()))
            return
        last = ""
        while not self._done.wait(5):
            line = self._line(self._snapshot())
            if line != last:
                print(f"[{time.monotonic() - self._started:5.0f} s] {line}", file=sys.stderr)
                last = line

    def _finished(self, events: Mapping[str, Any]) -> int:
        return sum(int(events.get(k, 0)) for k in ("computed", "reused", "problem"))

    def _line(self, snapshot: Snapshot) -> str:
        parts: list[str] = []
        for stage in self._stages:
            events = snapshot["stages"].get(stage, {})
            parts.append(f"{stage} {self._finished(events)}/{self._expected(snapshot, stage)}")
        calls = snapshot.get("llm", {})
        money = f"  {calls.get('calls', 0)} LLM calls, {calls.get('usd', 0.0):.2f} USD"
        return "  ".join(parts) + (money if calls.get("calls") else "")

    def _expected(self, snapshot: Snapshot, stage: str) -> int:
        """Rows that will come to this stage: all, less those that fell before it."""
        fallen = 0
        for earlier in self._stages[: self._stages.index(stage)]:
            events = snapshot["stages"].get(earlier, {})
            fallen += int(events.get("dropped", 0)) + int(events.get("problem", 0))
        return max(self._total - fallen, 0)

    def _table(self, snapshot: Snapshot) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in ("stage", "done", "reused", "dropped", "problems", "rate", "time left"):
            table.add_column(name, justify="left" if name == "stage" else "right")
        elapsed = time.monotonic() - self._started
        for stage in self._stages:
            events = snapshot["stages"].get(stage, {})
            finished, expected = self._finished(events), self._expected(snapshot, stage)
            rate = finished / elapsed
            left = (expected - finished) / rate if rate else None
            table.add_row(
                stage,
                f"{finished}/{expected}",
                *(str(events.get(k, 0) or "") for k in ("reused", "dropped", "problem")),
                f"{rate * 60:.1f}/min" if rate else "",
                "" if left is None or finished >= expected else f"{left:.0f} s",
            )
        calls = snapshot.get("llm", {})
        if calls.get("calls"):
            cost = f"{calls['calls']} calls, {calls.get('usd', 0.0):.2f} USD"
            table.add_row("LLM", cost, "", "", "", "", "")
        return table
