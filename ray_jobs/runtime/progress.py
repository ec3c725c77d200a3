"""The progress of a running job: rows done, rate and time left by stage; calls, waits and money.

A rate covers the last minute or the last few rows, whichever is longer. Older rows are no guide to
the rest: they include start-up, results from the store and stages without work. The run ends when
its slowest stage ends.

The time left is the number of rows left times the seconds between rows. It counts down between two
rows, by at most half a row. A row that takes longer than the others does not raise it; the time is
then shown as "at least".
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.table import Table

from actors.engine.hardware import Hardware
from mustsee.errors import MustseeError
from mustsee.run.pace import StageSeconds, stage_state
from mustsee.run.record import Snapshot, StageCounts
from mustsee.text import clock
from ray_jobs.runtime.heartbeat import HEARTBEAT_S, quiet

RATE_WINDOW_S = 60.0  # smallest number of seconds that a rate covers
MIN_RATE_ROWS = 3  # smallest number of rows that a rate covers
REPEAT_AFTER_S = 15.0  # seconds after which a failed run that has not ended is interrupted again


class RowRate:
    """The computed rows per second of one stage; rows from the store do not count.

    The clock starts when the stage has its first row to compute.
    """

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def see(self, now: float, worked: int, *, begun: bool) -> None:
        """Record that `worked` rows are computed. `begun`: whether the stage can have rows."""
        if begun or worked:
            self._seen.append((now, worked))
            old = [i for i, (at, n) in enumerate(self._seen) if self._enough(at, n)]
            del self._seen[: max(old, default=0)]

    def _enough(self, at: float, worked: int) -> bool:
        now, total = self._seen[-1]
        return now - at >= RATE_WINDOW_S and total - worked >= MIN_RATE_ROWS

    @property
    def per_second(self) -> float:
        """The rate; 0 before the first row."""
        if not self._seen:
            return 0.0
        (since, before), (now, worked) = self._seen[0], self._seen[-1]
        return (worked - before) / (now - since) if now > since else 0.0

    @property
    def gap(self) -> float | None:
        """Seconds between two rows, up to the last finished one; None before the first."""
        if not self._seen:
            return None
        (since, before), (_, worked) = self._seen[0], self._seen[-1]
        return (self._last - since) / (worked - before) if worked > before else None

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last row finished."""
        return self._seen[-1][0] - self._last if self._seen else 0.0

    @property
    def _last(self) -> float:
        worked = self._seen[-1][1]
        return next(at for at, n in self._seen if n == worked)


@dataclass(frozen=True, kw_only=True)
class StageState:
    """The state of one stage.

    `gap`: seconds between rows; None while unknown. `waited`: seconds since the last row.
    """

    name: str
    counts: StageCounts
    begun: bool
    expected: int
    per_second: float
    gap: float | None
    waited: float

    @property
    def rows_left(self) -> int:
        return max(self.expected - self.counts.finished_rows, 0)

    @property
    def seconds_left(self) -> float | None:
        """The time left; None while unknown, and a lower bound while `is_late`."""
        if not self.rows_left or self.gap is None:
            return None if self.rows_left else 0.0
        return self.rows_left * self.gap - min(self.waited, self.gap / 2)

    @property
    def is_late(self) -> bool:
        """Whether the next row takes longer than the rows before."""
        return self.rows_left > 0 and self.gap is not None and self.waited > self.gap

    @property
    def done_text(self) -> str:
        """Rows done of the expected rows. Failed rows count as done and are named."""
        failed = f" ({self.counts.problem} failed)" if self.counts.problem else ""
        return f"{self.counts.finished_rows}/{self.expected}{failed}"

    @property
    def time_left(self) -> str:
        """The time left in words; empty where it is zero or unknown."""
        if not self.seconds_left and not self.is_late:
            return ""
        return f"{'at least ' if self.is_late else ''}{clock(self.seconds_left or 0.0)}"


class Progress:
    """Shows `snapshot()` while the `with` block runs: a live table on a terminal, otherwise a line
    every `HEARTBEAT_S` seconds.

    `stages`: names in order. `total`: number of rows. `lacking(stage)`: the resources that a stage
    without a worker waits for. `hardware`: of each stage's workers.
    `watched`: the recorded states of each stage.

    A TimeoutError of `snapshot` is shown. A MustseeError interrupts the block and is raised by it.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        stages: Sequence[str],
        total: int,
        now: Callable[[], float] = time.monotonic,
        lacking: Callable[[str], str] = lambda stage: "",
        hardware: Mapping[str, Hardware] | None = None,
    ) -> None:
        self._snapshot, self._stages, self._total, self._now = snapshot, stages, total, now
        self._lacking, self._hardware = lacking, hardware or {}
        self.watched = {stage: StageSeconds() for stage in stages}
        self._rates = {stage: RowRate() for stage in stages}
        self._calls = RowRate()
        self._done = threading.Event()
        self._failure: MustseeError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._console = Console(stderr=True)
        self._quiet = quiet()
        self._started = self._seen = now()
        self._in_trouble: set[str] = set()  # accounts in trouble in the last snapshot
        self._printed_trouble: set[str] = set()  # accounts whose trouble has been printed

    def __enter__(self) -> Progress:
        self._quiet.__enter__()
        # SIGUSR1 instead of SIGINT, which is ignored by processes in the background of a script.
        self._previous_handler = signal.signal(signal.SIGUSR1, self._interrupt)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=5)
        signal.signal(signal.SIGUSR1, self._previous_handler)
        self._quiet.__exit__(None, None, None)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._draw()
        except MustseeError as error:  # Without a coordinator the run cannot finish.
            self._failure = error
            while not self._done.is_set():  # One signal is not enough if it comes before a wait.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
                self._done.wait(REPEAT_AFTER_S)

    def _interrupt(self, *_: object) -> None:
        if not self._done.is_set():
            raise KeyboardInterrupt

    def _draw(self) -> None:
        if self._console.is_terminal:
            with Live(console=self._console, refresh_per_second=4, transient=True) as live:
                while not self._done.wait(0.5):
                    with contextlib.suppress(TimeoutError):
                        live.update(self.table())
            return
        last_line = self._started
        while not self._done.wait(1.0):
            try:
                line = self.line()  # More often than it is printed: rates need each row's end.
            except TimeoutError:
                line = f"{self._clock()} the counters do not answer: the machine is busy"
            if self._now() - last_line >= HEARTBEAT_S:
                print(line, file=sys.stderr, flush=True)
                last_line = self._now()
                self.mark_printed()

    def states(self, snapshot: Snapshot) -> list[StageState]:
        """The state of each stage at this snapshot."""
        now = self._now()
        elapsed, self._seen = now - self._seen, now
        states: list[StageState] = []
        for stage in self._stages:
            counts, before = snapshot.stage(stage), states[-1].counts if states else None
            lost = sum(s.counts.dropped + s.counts.problem for s in states)
            arrived = self._total
            if before is not None:
                arrived = before.finished_rows - before.dropped - before.problem
            begun = before is None or arrived > 0
            self._rates[stage].see(now, counts.computed + counts.problem, begun=begun)
            self._watch(stage, counts, arrived, max(self._total - lost, 0), elapsed)
            states.append(
                StageState(
                    name=stage,
                    counts=counts,
                    begun=begun,
                    expected=max(self._total - lost, 0),
                    per_second=self._rates[stage].per_second,
                    gap=self._rates[stage].gap,
                    waited=self._rates[stage].idle_seconds,
                )
            )
        self._calls.see(now, snapshot.llm.total.calls, begun=False)
        return states

    def _watch(
        self, stage: str, counts: StageCounts, arrived: int, expected: int, elapsed: float
    ) -> None:
        """Record the state in which the stage was for the last `elapsed` seconds."""
        hardware = self._hardware.get(stage, Hardware())
        places = min(counts.started, hardware.max_workers) * hardware.concurrency
        now = stage_state(
            started=counts.started,
            waiting=arrived - counts.finished_rows,
            left=expected - counts.finished_rows,
            places=places,
        )
        self.watched[stage].see(now, elapsed, places)

    def line(self) -> str:
        """One line of a plain log: `[1:30] look 12/40 8.1/min 3:27 left, ... | 2 reused | ...`."""
        snapshot = self._snapshot()
        states = self.states(snapshot)
        stages = ", ".join(
            " ".join(filter(None, (s.name, s.done_text, self._pace(s))))
            for s in states
            if s.counts.finished_rows or s.begun
        )
        reused = sum(s.counts.reused for s in states)
        columns = [
            stages,
            f"{reused} reused" if reused else "",
            self._money(snapshot),
            _run_time_left(states),
            self._trouble(snapshot),
        ]
        return f"{self._clock()} " + " | ".join(filter(None, columns))

    def _trouble(self, snapshot: Snapshot) -> str:
        """The errors of endpoints that have not been printed yet."""
        self._in_trouble = set(snapshot.trouble)
        printed = self._printed_trouble
        fresh = [text for account, text in snapshot.trouble.items() if account not in printed]
        return ", ".join(f"waiting for {text}" for text in fresh)

    def mark_printed(self) -> None:
        """Record that the last line was printed, so that its trouble is not printed again."""
        self._printed_trouble = self._in_trouble

    def _clock(self) -> str:
        return f"[{clock(self._now() - self._started)}]"

    def _waits(self, state: StageState) -> str:
        """The reason why a stage with rows has no worker yet; empty where it has one."""
        if not state.begun or state.counts.started or state.counts.finished_rows:
            return ""
        return f"({self._lacking(state.name) or 'a worker is starting'})"

    def _pace(self, state: StageState) -> str:
        """The stage's rate and time left, or what it waits for."""
        if reason := self._waits(state):
            return reason
        if not state.time_left or not state.per_second:
            return ""
        return f"{state.per_second * 60:.1f}/min {state.time_left} left"

    def table(self) -> Table:
        """The table for a terminal."""
        snapshot = self._snapshot()
        states = self.states(snapshot)
        table = Table(box=None, pad_edge=False)
        for name in ("stage", "done", "reused", "dropped", "problems", "rate", "time left"):
            table.add_column(name, justify="left" if name == "stage" else "right")
        for state in states:
            counts = state.counts
            table.add_row(
                state.name,
                f"{counts.finished_rows}/{state.expected}",
                *(str(n or "") for n in (counts.reused, counts.dropped, counts.problem)),
                f"{state.per_second * 60:.1f}/min" if state.per_second else "",
                state.time_left,
            )
        table.caption_justify = "left"
        waits = ", ".join(f"{s.name} {reason}" for s in states if (reason := self._waits(s)))
        trouble = self._trouble(snapshot)
        texts = (waits, self._money(snapshot), _run_time_left(states), trouble)
        caption = f"{self._clock()} {' | '.join(filter(None, texts))}"
        table.caption = caption.replace("[", r"\[")
        return table

    def _money(self, snapshot: Snapshot) -> str:
        total = snapshot.llm.total
        if not total.calls + total.cached + total.retries + snapshot.in_batches:
            return ""
        pace = self._calls.per_second * 60
        waits = f", {total.retry_after_seconds:.0f} s of Retry-After waits"
        held = "".join(
            f", {s:.0f} s held by {limit}" for limit, s in snapshot.held.items() if s >= 1
        )
        return (
            f"{total.calls} model call{'s' if total.calls != 1 else ''}"
            + (f" {pace:.0f}/min" if pace else "")
            + (f", {total.cached} from the store" if total.cached else "")
            + (f", {total.retries} retried" if total.retries else "")
            + (waits if total.retry_after_seconds else "")
            + f", {total.usd:.2f} USD"
            + held
            + (f", {snapshot.in_batches} calls in batches" if snapshot.in_batches else "")
        )


def _run_time_left(states: Sequence[StageState]) -> str:
    """The time left of the whole run, from the stages that have begun."""
    times = [s.seconds_left for s in states if s.seconds_left is not None]
    longest = max(times, default=0.0)
    if not longest:
        return ""
    is_bound = len(times) < len(states) or any(s.is_late for s in states)
    return f"{'at least ' if is_bound else ''}{clock(longest)} left"
