"""The progress of a running job: by stage the rows done, the rate and the time left; the cost."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table

from mustsee.run.record import Snapshot


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

    def _line(self, snapshot: Snapshot) -> str:
        parts = [
            f"{stage} {snapshot.stage(stage).finished}/{self._expected(snapshot, stage)}"
            for stage in self._stages
        ]
        total = snapshot.llm.total
        money = f"  {total.calls} LLM calls, {total.usd:.2f} USD"
        waiting = f"  {snapshot.in_batches} calls in batches" if snapshot.in_batches else ""
        return "  ".join(parts) + (money if total.calls else "") + waiting

    def _expected(self, snapshot: Snapshot, stage: str) -> int:
        """Rows that will come to this stage: all, less those that fell before it."""
        before = map(snapshot.stage, self._stages[: self._stages.index(stage)])
        return max(self._total - sum(counts.dropped + counts.problem for counts in before), 0)

    def _table(self, snapshot: Snapshot) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in ("stage", "done", "reused", "dropped", "problems", "rate", "time left"):
            table.add_column(name, justify="left" if name == "stage" else "right")
        elapsed = time.monotonic() - self._started
        for stage in self._stages:
            counts, expected = snapshot.stage(stage), self._expected(snapshot, stage)
            finished = counts.finished
            rate = finished / elapsed
            left = (expected - finished) / rate if rate else None
            table.add_row(
                stage,
                f"{finished}/{expected}",
                *(str(n or "") for n in (counts.reused, counts.dropped, counts.problem)),
                f"{rate * 60:.1f}/min" if rate else "",
                "" if left is None or finished >= expected else f"{left:.0f} s",
            )
        total = snapshot.llm.total
        if total.calls:
            cost = f"{total.calls} calls, {total.usd:.2f} USD"
            table.add_row("LLM", cost, "", "", "", "", "")
        if snapshot.in_batches:
            table.add_row("batches", f"{snapshot.in_batches} calls wait", "", "", "", "", "")
        return table
