"""`Session`: what the workers of a run share, and what they report to the coordinator. Its watchdog
kills a worker whose row exceeds its timeout: native code that hangs cannot be cancelled. Ray starts
another worker, to which the coordinator reports what happened to the row.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from actors.calls.coordinator_actor import CoordinatorHandle, call_coordinator
from actors.engine.chunks import ChunkRunner
from actors.engine.hardware import Hardware
from actors.part import RunContext
from mustsee.errors import MustseeError
from mustsee.files.store import Store
from mustsee.run.record import NOTHING, RowOutcome, Snapshot, WorkTimes

REPLY_TIMEOUT_S = 15.0  # seconds for an answer of the coordinator, which is lost if it takes longer


@contextlib.contextmanager
def kill_after(seconds: float | None, report: Callable[[], None]) -> Generator[None]:
    """After `seconds` in the block, call `report` and kill this process. Where the block lets no
    other thread run, nothing is reported and the process is killed `REPLY_TIMEOUT_S` later.
    """
    if seconds is None:
        yield
        return

    def end() -> None:
        with contextlib.suppress(Exception):
            report()
        os.kill(os.getpid(), signal.SIGKILL)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(
        seconds + REPLY_TIMEOUT_S, exit=True, file=sys.__stderr__ or 2
    )
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        timer.cancel()


@dataclass(frozen=True, kw_only=True)
class Session:
    """What every worker of a run shares: the store, and the coordinator's handle.

    `retry_problems`: rows with a stored problem, and those that lack replies, are computed again.
    `max_attempts`: workers that may die with a row before it becomes a problem. `here`: the
    caller's folder, which relative paths start from.
    """

    store: Store
    coordinator: CoordinatorHandle
    retry_problems: bool = False
    max_attempts: int = 2
    here: str = field(default_factory=os.getcwd)

    def begin(self, rows: Sequence[str]) -> list[int]:
        """As `Coordinator.begin`; waits for the answer."""
        return call_coordinator(self.coordinator.begin.remote(rows))

    def row_deadline(
        self, seconds: float | None, row: str, beside: Sequence[str]
    ) -> contextlib.AbstractContextManager[None]:
        """Kill this worker if the block takes longer than `seconds`. `beside`: rows begun together
        with this one.
        """
        return kill_after(
            seconds,
            lambda: call_coordinator(
                self.coordinator.record_overrun.remote(row, beside), REPLY_TIMEOUT_S
            ),
        )

    def event(
        self, stage: str, outcome: RowOutcome, took: WorkTimes = NOTHING, row: str | None = None,
        rows: int = 1,
    ) -> None:  # fmt: skip
        """Count rows, without waiting for the coordinator."""
        if rows:
            self.coordinator.event.remote(stage, outcome, took, row, rows)

    def abort(self, error: MustseeError) -> None:
        """Report why this worker ends the whole run."""
        with contextlib.suppress(MustseeError):  # the coordinator itself may be lost
            call_coordinator(self.coordinator.abort.remote(type(error).__name__, str(error)))

    def snapshot(self, timeout: float | None = None) -> Snapshot:
        """The coordinator's current counters. Raises TimeoutError after `timeout` seconds."""
        return call_coordinator(self.coordinator.snapshot.remote(), timeout)

    def context(self, stage: str = "", hardware: Hardware | None = None) -> RunContext:
        """Return what a part of that stage may use, or without a stage the job itself."""
        from actors.calls.gateway import Gateway
        from actors.calls.sender import Sender

        def count(name: str, n: int) -> None:
            self.coordinator.count.remote(name, n)

        async def liveness_address() -> tuple[str, int]:
            import ray

            if not ray.is_initialized():  # a call would start another Ray
                raise ConnectionError("the job's Ray has ended, and its coordinator with it")
            return await asyncio.to_thread(
                lambda: call_coordinator(self.coordinator.liveness_address.remote())
            )

        sender = Sender(self.store.root, liveness_address)
        return RunContext(
            store=self.store,
            llm=lambda config: Gateway.connect(
                config, self.store, self.coordinator, count, sender, stage
            ),
            count=count,
            retry_problems=self.retry_problems,
            pieces=ChunkRunner(
                stage=stage,
                hardware=hardware or Hardware(),
                store=self.store,
                count=count,
                took=lambda took: self.coordinator.event.remote(stage, "computed", took, rows=0),
                coordinator=self.coordinator,
                here=self.here,
            ),
        )
