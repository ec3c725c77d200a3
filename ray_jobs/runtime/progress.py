"""The progress of a running job: by stage the rows done, the rate and the time left; model calls,
waits and money.

Rates are those of now, over the last minute or the last few rows, whichever is longer: what went
before (start-up, results from the store, stages that had nothing to do) says nothing of what is
left. The run ends when its slowest stage does.

Times left are told from the seconds between rows as the last finished row left them, less the
seconds since, up to half a row: they count down between two rows. A row that takes longer than the
others does not make the time longer; from then on it is "at least".
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
from mustsee.run.report import clock
from ray_jobs.runtime.heartbeat import HEARTBEAT_S, quiet

RATE_WINDOW_S = 60.0  # seconds that a rate is taken over, at least
MIN_RATE_ROWS = 3  # rows that it is taken over, at least
REPEAT_AFTER_S = 15.0  # seconds for a run that has no future to end, before it is told once more


class RowRate:
    """Rows that are worked on per second, those from the store not counted. The clock starts when
    the stage has its first row to do.
    """

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def see(self, now: float, worked: int, *, begun: bool) -> None:
        """`worked`: rows so far. `begun`: rows have come, or could have."""
        if begun or worked:
            self._seen.append((now, worked))
            old = [i for i, (at, n) in enumerate(self._seen) if self._enough(at, n)]
            del self._seen[: max(old, default=0)]

    def _enough(self, at: float, worked: int) -> bool:
        now, total = self._seen[-1]
        return now - at >= RATE_WINDOW_S and total - worked >= MIN_RATE_ROWS

    @property
    def per_second(self) -> float:
        """0 where nothing is known yet."""
        if not self._seen:
            return 0.0
        (since, before), (now, worked) = self._seen[0], self._seen[-1]
        return (worked - before) / (now - since) if now > since else 0.0

    @property
    def gap(self) -> float | None:
        """Seconds between two rows, up to the last that finished; None before any has."""
        if not self._seen:
            return None
        (since, before), (_, worked) = self._seen[0], self._seen[-1]
        return (self._last - since) / (worked - before) if worked > before else None

    @property
    def idle_seconds(self) -> float:
        """Seconds since a row finished."""
        return self._seen[-1][0] - self._last if self._seen else 0.0

    @property
    def _last(self) -> float:
        worked = self._seen[-1][1]
        return next(at for at, n in self._seen if n == worked)


@dataclass(frozen=True, kw_only=True)
class StageState:
    """One stage at one moment. `gap`: seconds between rows, None where that is not known; `waited`:
    seconds since the last row. `seconds_left`: None where that is not known; at least so many
    where the next row is `is_late`.
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
        if not self.rows_left or self.gap is None:
            return None if self.rows_left else 0.0
        return self.rows_left * self.gap - min(self.waited, self.gap / 2)

    @property
    def is_late(self) -> bool:
        return self.rows_left > 0 and self.gap is not None and self.waited > self.gap

    @property
    def done_text(self) -> str:
        """Rows done of those expected; failed ones are done, and said."""
        failed = f" ({self.counts.problem} failed)" if self.counts.problem else ""
        return f"{self.counts.finished_rows}/{self.expected}{failed}"

    @property
    def time_left(self) -> str:
        """As a person reads it; empty where there is none, or it is not known."""
        if not self.seconds_left and not self.is_late:
            return ""
        return f"{'at least ' if self.is_late else ''}{clock(self.seconds_left or 0.0)}"


class Progress:
    """Draws `snapshot()` while the `with` block runs: a live table on a terminal, else a line every
    `EVERY` seconds. `total`: rows in all; `stages`: their names in order; `hardware`: of a stage's
    workers; `lacking(stage)`: what a stage without a worker waits for. That `snapshot` raises
    TimeoutError is said; MustseeError ends the block at once, as its own error. `watched`: what
    was seen of each stage.
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
        self._failed: MustseeError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._console = Console(stderr=True)
        self._quiet = quiet()
        self._started = self._seen = now()
        self._in_trouble: set[str] = set()  # accounts, as of the last snapshot, ...
        self._told_of: set[str] = set()  # ... and those whose trouble has been printed

    def __enter__(self) -> Progress:
        self._quiet.__enter__()
        # Not SIGINT: what a script starts in the background ignores that.
        self._before = signal.signal(signal.SIGUSR1, self._interrupt)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=5)
        signal.signal(signal.SIGUSR1, self._before)
        self._quiet.__exit__(None, None, None)
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            self._draw()
        except MustseeError as error:  # nobody counts any more: the run has no future
            self._failed = error
            while not self._done.is_set():  # a signal just before a wait does not end the wait
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
        spoken = self._started
        while not self._done.wait(1.0):
            try:
                line = self.line()  # asked for more often than said: rates want each row's end
            except TimeoutError:
                line = f"{self._clock()} the counters do not answer: the machine is busy"
            if self._now() - spoken >= HEARTBEAT_S:
                print(line, file=sys.stderr, flush=True)
                spoken = self._now()
                self.mark_printed()

    def states(self, snapshot: Snapshot) -> list[StageState]:
        """The stages as they are now."""
        now = self._now()
        since, self._seen = now - self._seen, now
        found: list[StageState] = []
        for stage in self._stages:
            counts, before = snapshot.stage(stage), found[-1].counts if found else None
            fell = sum(s.counts.dropped + s.counts.problem for s in found)
            begun = before is None or before.finished_rows > before.dropped + before.problem
            self._rates[stage].see(now, counts.computed + counts.problem, begun=begun)
            came = self._total if before is None else before.finished_rows - before.dropped
            came -= before.problem if before is not None else 0
            self._watch(stage, counts, came, max(self._total - fell, 0), since)
            found.append(
                StageState(
                    name=stage,
                    counts=counts,
                    begun=begun,
                    expected=max(self._total - fell, 0),
                    per_second=self._rates[stage].per_second,
                    gap=self._rates[stage].gap,
                    waited=self._rates[stage].idle_seconds,
                )
            )
        self._calls.see(now, snapshot.llm.total.calls, begun=False)
        return found

    def _watch(
        self, stage: str, counts: StageCounts, came: int, expected: int, since: float
    ) -> None:
        hard = self._hardware.get(stage, Hardware())
        places = min(counts.started, hard.max_workers) * hard.concurrency
        now = stage_state(
            started=counts.started,
            waiting=came - counts.finished_rows,
            left=expected - counts.finished_rows,
            places=places,
        )
        self.watched[stage].see(now, since, places)

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
        parts = [
            stages,
            f"{reused} reused" if reused else "",
            self._money(snapshot),
            _whole(states),
            self._trouble(snapshot),
        ]
        return f"{self._clock()} " + " | ".join(filter(None, parts))

    def _trouble(self, snapshot: Snapshot) -> str:
        """What endpoints say in place of answers, of those that were not told of."""
        self._in_trouble = set(snapshot.trouble)
        fresh = [said for a, said in snapshot.trouble.items() if a not in self._told_of]
        return ", ".join(f"waiting for {said}" for said in fresh)

    def mark_printed(self) -> None:
        """The line was printed: the trouble in it is not printed again while it lasts."""
        self._told_of = self._in_trouble

    def _clock(self) -> str:
        return f"[{clock(self._now() - self._started)}]"

    def _waits(self, state: StageState) -> str:
        """What a stage that has rows and no worker yet waits for."""
        if not state.begun or state.counts.started or state.counts.finished_rows:
            return ""
        return f"({self._lacking(state.name) or 'a worker is starting'})"

    def _pace(self, state: StageState) -> str:
        """How fast a stage is, or what it waits for."""
        if waits := self._waits(state):
            return waits
        if not state.time_left or not state.per_second:
            return ""
        return f"{state.per_second * 60:.1f}/min {state.time_left} left"

    def table(self) -> Table:
        """What a terminal shows."""
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
        waits = ", ".join(f"{s.name} {told}" for s in states if (told := self._waits(s)))
        said = self._trouble(snapshot)
        told = " | ".join(filter(None, (waits, self._money(snapshot), _whole(states), said)))
        table.caption = f"{self._clock()} {told}".replace("[", r"\[")
        return table

    def _money(self, snapshot: Snapshot) -> str:
        total = snapshot.llm.total
        if not total.calls + total.cached + total.retries + snapshot.in_batches:
            return ""
        pace = self._calls.per_second * 60
        waits = f", {total.retry_after_seconds:.0f} s of waits asked for"
        held = "".join(
            f", {s:.0f} s held by {limit}" for limit, s in snapshot.held.items() if s >= 1
        )
        return (
            f"{total.calls} model call{'s' if total.calls != 1 else ''}"
            + (f" {pace:.0f}/min" if pace else "")
            + (f", {total.cached} from the store" if total.cached else "")
            + (f", {total.retries} tried again" if total.retries else "")
            + (waits if total.retry_after_seconds else "")
            + f", {total.usd:.2f} USD"
            + held
            + (f", {snapshot.in_batches} calls in batches" if snapshot.in_batches else "")
        )


def _whole(states: Sequence[StageState]) -> str:
    """The time left of the whole run, as far as its stages have begun."""
    known = [s.seconds_left for s in states if s.seconds_left is not None]
    longest = max(known, default=0.0)
    if not longest:
        return ""
    more = len(known) < len(states) or any(s.is_late for s in states)
    return f"{'at least ' if more else ''}{clock(longest)} left"
