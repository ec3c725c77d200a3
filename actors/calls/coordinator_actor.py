"""The call coordinator as a Ray actor: starting it, calling it, and the errors of a lost one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from actors.calls.admission import AdmissionRequest, Grant
from actors.calls.coordinator import Coordinator
from actors.calls.coordinator_handle import CoordinatorHandle
from mustsee.calls.call_log import check_readable, run_name
from mustsee.calls.usage import CallOutcome
from mustsee.errors import MustseeError
from mustsee.files.store import is_local
from mustsee.run import other_runs
from mustsee.run.record import NOTHING, RowOutcome, Snapshot, WorkTimes

MAX_RESTARTS = 10  # restarts of the actor; more often than that, something else is wrong

T = TypeVar("T")


class RemoteLogCoordinator(Coordinator):
    """A coordinator whose call log is slow to write (an object store). A message is answered when
    its entries are written; messages that arrive during a write share the next one.
    """

    _writing: asyncio.Lock | None = None

    async def exchange(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, owner: str, entries: Sequence[CallOutcome], asks: Sequence[AdmissionRequest]
    ) -> list[Grant]:
        grants = super().exchange(owner, entries, asks)
        self._writing = self._writing or asyncio.Lock()
        mine = self.call_log.entry_count
        async with self._writing:
            if self.call_log.kept_count < mine:
                await asyncio.to_thread(self.call_log.write, *self.call_log.take())
        return grants


class ThreadSafeCoordinator(Coordinator):
    """The coordinator of a job without Ray, whose threads call it at the same time."""

    def __init__(self, *arguments: Any, **names: Any) -> None:
        self._lock = threading.RLock()
        super().__init__(*arguments, **names)

    def exchange(
        self, owner: str, entries: Sequence[CallOutcome], asks: Sequence[AdmissionRequest]
    ) -> list[Grant]:
        with self._lock:
            return super().exchange(owner, entries, asks)

    def event(
        self, stage: str, outcome: RowOutcome, took: WorkTimes = NOTHING, row: str | None = None,
        rows: int = 1,
    ) -> None:  # fmt: skip
        with self._lock:
            super().event(stage, outcome, took, row, rows)

    def count(self, name: str, n: int = 1) -> None:
        with self._lock:
            super().count(name, n)

    def snapshot(self) -> Snapshot:
        with self._lock:
            return super().snapshot()


def open_coordinator(
    budget_usd: float | None, out: str, store: str, stack: contextlib.ExitStack
) -> Coordinator:
    """Return the coordinator of a job without Ray. `out` is a local folder; else as
    `start_coordinator`.
    """
    return ThreadSafeCoordinator(budget_usd, **_places(out, store, stack))


def start_coordinator(
    budget_usd: float | None = None,
    out: str | None = None,
    restart_log: str | None = None,
    store: str | None = None,
    stack: contextlib.ExitStack | None = None,
) -> CoordinatorHandle:
    """Start the coordinator as a Ray actor and return its handle, which every worker gets. `out`:
    the folder whose runs share the budget and a call log. `restart_log`, `store`: as `Coordinator`.
    `stack`: closed at the end of the run.

    Raises MustseeError where earlier runs' call log cannot be read.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    kind = RemoteLogCoordinator
    if out is None or is_local(out):
        kind = Coordinator
    places = _places(out, store, stack)
    node = ray.get_runtime_context().get_node_id()  # the job's own, where it writes `out`
    here = NodeAffinitySchedulingStrategy(node, soft=True)
    actor: Any = ray.remote(kind)
    options = {"num_cpus": 0, "scheduling_strategy": here}
    if out is not None:
        options |= {"max_restarts": MAX_RESTARTS, "max_task_retries": -1}
    started = actor.options(**options).remote
    return started(budget_usd, restart_log=restart_log, **places)


def _places(
    out: str | None, store: str | None, stack: contextlib.ExitStack | None
) -> dict[str, str | None]:
    """The arguments `out`, `run` and `store` of a `Coordinator`; registers the run at its store."""
    if out is not None:
        out = os.path.abspath(out) if is_local(out) else out
        check_readable(out)
    run = run_name(out)
    if store is not None and stack is not None:
        store = stack.enter_context(other_runs.register_run(store, out, run))
    return {"out": out, "run": run, "store": store}


def call_coordinator(reference: Awaitable[T], timeout: float | None = None) -> T:
    """Wait for an answer of the coordinator's actor and return it. Raises the errors of
    `mustsee_error`, and TimeoutError after `timeout` seconds.
    """
    import ray
    from ray.exceptions import RayError

    answer: Any = reference
    try:
        return ray.get(answer, timeout=timeout)
    except RayError as error:
        raise mustsee_error(error) from None


def mustsee_error(error: Exception) -> Exception:
    """The error that a caller sees in place of Ray's: the coordinator's own, or MustseeError where
    the actor is lost.
    """
    from ray.exceptions import RayActorError, RayTaskError

    if isinstance(error, RayTaskError) and isinstance(error.cause, MustseeError):
        return error.cause
    if isinstance(error, RayActorError):
        return MustseeError(
            "the call coordinator was killed and could not be started again; what is finished is "
            "kept: the same command goes on from here"
        )
    return error
