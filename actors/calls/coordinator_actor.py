"""The call coordinator as a Ray actor: starting it, calling it, and the errors of a lost one.

A call is admitted before it starts and reported when it ends. `CoordinatorClient` sends whatever
arrives within `GATHER_S` seconds as one message, so thousands of calls a second cost the
coordinator a few hundred messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from actors.calls.coordinator import Coordinator
from mustsee.calls.budget import AdmissionRequest, Grant
from mustsee.calls.call_log import check_readable, run_name
from mustsee.calls.limits import Limits
from mustsee.calls.usage import CallOutcome
from mustsee.errors import MustseeError
from mustsee.files.store import StoreDamage, is_local
from mustsee.run import other_runs
from mustsee.run.record import NOTHING, RowOutcome, Snapshot, WorkTimes

MAX_RESTARTS = 10  # restarts of the actor; more often than that, something else is wrong

T = TypeVar("T")
P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)
GATHER_S = 0.005  # seconds for which messages are gathered into one


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


def _locked(method: Callable[P, T]) -> Callable[P, T]:
    """The method of a `ThreadSafeCoordinator` that one thread at a time runs."""

    @functools.wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        coordinator: Any = args[0]
        with coordinator.lock:
            return method(*args, **kwargs)

    return run


class ThreadSafeCoordinator(Coordinator):
    """The coordinator of a job without Ray, whose threads call it at the same time."""

    def __init__(self, *arguments: Any, **names: Any) -> None:
        self.lock = threading.RLock()
        super().__init__(*arguments, **names)

    exchange = _locked(Coordinator.exchange)
    event = _locked(Coordinator.event)
    count = _locked(Coordinator.count)
    snapshot = _locked(Coordinator.snapshot)


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


class RemoteMethod(Protocol[P, T_co]):
    """A method of an actor. `remote` sends a message and returns a reference to the answer, to be
    awaited or given to `call_coordinator`.
    """

    def remote(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T_co]: ...


class EventMethod(Protocol):
    """`Coordinator.event` of an actor, whose last arguments may be left out."""

    def remote(
        self, stage: str, outcome: RowOutcome, took: WorkTimes = NOTHING, row: str | None = None,
        rows: int = 1,
    ) -> Awaitable[None]: ...  # fmt: skip


class CoordinatorHandle(Protocol):
    """The methods of `Coordinator` that are called through its actor."""

    liveness_address: RemoteMethod[[], tuple[str, int]]
    register_account: RemoteMethod[[str, Limits], None]
    exchange: RemoteMethod[[str, Sequence[CallOutcome], Sequence[AdmissionRequest]], list[Grant]]
    begin: RemoteMethod[[Sequence[str]], list[int]]
    record_overrun: RemoteMethod[[str, Sequence[str]], None]
    event: EventMethod
    count: RemoteMethod[[str, int], None]
    note_damage: RemoteMethod[[StoreDamage], None]
    acquire_helpers: RemoteMethod[[str, str, int, int], int]
    release_helpers: RemoteMethod[[str, str], None]
    abort: RemoteMethod[[str, str], None]
    snapshot: RemoteMethod[[], Snapshot]


class CoordinatorClient:
    """Connects one gateway to the coordinator (a `Coordinator`, or its Ray actor). `owner`: returns
    the owner of calls that start now.
    """

    def __init__(
        self, coordinator: Coordinator | CoordinatorHandle, owner: Callable[[], str]
    ) -> None:
        self._coordinator, self._owner = coordinator, owner
        self._entries: list[tuple[CallOutcome, asyncio.Future[None]]] = []
        self._asks: list[tuple[AdmissionRequest, asyncio.Future[Grant]]] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def report(self, entry: CallOutcome) -> None:
        """Report the end of a call, and wait until the coordinator has counted it."""
        future: asyncio.Future[None] = self._wake()
        self._entries.append((entry, future))
        await future

    async def ask(self, ask: AdmissionRequest) -> Grant:
        """Ask whether a call may start."""
        future: asyncio.Future[Grant] = self._wake()
        self._asks.append((ask, future))
        return await future

    def _wake(self) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if not self._entries and not self._asks:
            loop.call_later(GATHER_S, self._send)
        return loop.create_future()

    def _send(self) -> None:
        entries, asks = self._entries, self._asks
        self._entries, self._asks = [], []
        self._spawn(self._exchange(entries, asks))

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _exchange(
        self,
        entries: list[tuple[CallOutcome, asyncio.Future[None]]],
        asks: list[tuple[AdmissionRequest, asyncio.Future[Grant]]],
    ) -> None:
        message = self._owner(), [entry for entry, _ in entries], [ask for ask, _ in asks]
        try:
            if isinstance(self._coordinator, Coordinator):
                grants = self._coordinator.exchange(*message)
            else:
                grants = await self._coordinator.exchange.remote(*message)
        except Exception as error:
            for _, future in (*entries, *asks):
                if not future.done():
                    future.set_exception(mustsee_error(error))
            return
        for _, future in entries:
            if not future.done():
                future.set_result(None)
        for (_, future), grant in zip(asks, grants, strict=True):
            if not future.done():
                future.set_result(grant)
