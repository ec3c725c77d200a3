"""What a sender does (`actors.calls.sender`): a process that makes calls, and is alone in its
memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import socket
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from actors.calls.gateway import MeteredModel, keep, reported_quotas
from actors.calls.liveness import LivenessConnection
from actors.calls.pipe import Pipe
from actors.calls.sender import (
    Call,
    CallEnded,
    CoordinatorLost,
    CoordinatorRestarted,
    SenderModel,
    SenderStart,
    SenderStarted,
)
from mustsee.calls.llm import Llm, Reply
from mustsee.errors import DiskFull, MustseeError
from mustsee.store import Store, is_local, resolve

STORE_THREADS = 16  # that store replies
GATHER_SHARE = 1 / 50  # of what a call takes: so long are replies gathered, to be stored and ...
LONGEST_GATHER = 0.05  # seconds; ... handed on together: each alone would wake three processes
RECONNECT_AFTER_S = 1.0  # seconds before a lifeline that could not be tied is tried again
# bytes on the store's disk for what is out when it fills: a file takes 4 kB
RESERVED_BYTES = 4 << 20
FULL_S = 60.0  # seconds for which a full disk is tried again when the run is over
FULL_PAUSE_S = 0.5  # between two tries
Came = tuple[CallEnded, str, Reply, float]  # an end, its key, its reply, the seconds that it took


class SenderProcess:
    """The sender of one worker, until that is gone and nothing is out any more."""

    def __init__(self, end: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._pipe = loop, Pipe(end, self._got, self._worker_gone)
        self._pipe.attach(loop)
        self._models: dict[int, tuple[Llm, asyncio.Semaphore]] = {}
        self._out: dict[int, str] = {}  # calls by number, and their keys
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(STORE_THREADS)
        self._came: list[Came] = []
        self._takes = 0.0  # seconds, of late
        self._lifeline: LivenessConnection | None = None
        self._reserve: DiskReserve | None = None
        self._full: DiskFull | None = None
        self._unsaved: list[Came] = []  # for which there was no room
        self._over = loop.create_future()

    async def wait(self) -> None:
        """Until all is done."""
        await self._over

    def _got(self, message: Any) -> None:
        if isinstance(message, Call):
            self._out[message.number] = message.key
            task = self._loop.create_task(self._call(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif isinstance(message, SenderModel):
            assert isinstance(message.config, MeteredModel)  # the others need no sender
            room = asyncio.Semaphore(message.config.endpoint.max_connections)
            self._models[message.number] = message.config.open(), room
        elif isinstance(message, CoordinatorRestarted):
            if self._tie(message.address):
                self._loop.call_later(RECONNECT_AFTER_S, self._pipe.send, CoordinatorLost())
        elif isinstance(message, SenderStart):
            self._name, self._store = message.name, Store(message.store)
            self._on_disk = is_local(message.store)
            self._reserve = DiskReserve(message.store) if self._on_disk else None
            self._pipe.send(SenderStarted(self._tie(message.address)))

    def _tie(self, address: tuple[str, int]) -> str:
        """Tie the lifeline; why not, where that fails."""
        try:
            self._lifeline = LivenessConnection(address, self._name)
        except OSError as error:
            return (
                f"it does not reach the call coordinator at {address[0]}:{address[1]} "
                f"({error.strerror or error}); the nodes of a Ray cluster must reach each other on "
                "all ports"
            )
        self._loop.add_reader(self._lifeline.socket, self._coordinator_gone)
        return ""

    def _coordinator_gone(self) -> None:
        assert self._lifeline is not None  # nobody writes to it: it is at its end
        self._loop.remove_reader(self._lifeline.socket)
        self._lifeline.socket.close()
        self._lifeline = None
        self._pipe.send(CoordinatorLost())

    def _worker_gone(self) -> None:
        if self._lifeline is not None:
            self._loop.remove_reader(self._lifeline.socket)
            self._lifeline.report_worker_gone(self._out.values())
        self._alone = True
        self._end()

    _alone = False

    def _end(self) -> None:
        if self._alone and not self._out and not self._over.done():
            self._save(self._loop.time() + FULL_S)

    def _save(self, deadline: float) -> None:
        """Store what there was no room for, now that nobody else writes; then it is over."""
        if self._reserve is not None:
            self._reserve.release()
        self._unsaved = _store_again(self._store, self._unsaved)
        if self._unsaved and self._loop.time() < deadline:
            self._loop.call_later(FULL_PAUSE_S, self._save, deadline)
        else:
            self._over.set_result(None)

    async def _call(self, call: Call) -> None:
        """Where no more may be in flight it waits for one that ends: not for the worker to learn of
        that.
        """
        llm, room = self._models[call.model]
        try:
            async with room:
                if self._full is not None:  # it is not sent
                    raise MustseeError(str(self._full))
                began = self._loop.time()
                reply = await llm.complete(call.request)
        except Exception as error:
            self._hand(replace(self._ended(call), error=_portable(error)))
            return
        took = self._loop.time() - began
        self._takes += (took - self._takes) / 16
        if not self._came:
            self._loop.call_later(gather_seconds(self._takes, len(self._out)), self._keep)
        self._came.append((self._ended(call), call.key, reply, took))

    def _ended(self, call: Call) -> CallEnded:
        """A call's end, with what its endpoint told of its limits."""
        llm, _ = self._models[call.model]
        return CallEnded(call.number, None, model=call.model, quotas=reported_quotas(llm) or None)

    def _keep(self) -> None:
        """Store what came, one after the other on a disk, side by side where each takes its time;
        then hand it on.
        """
        came, self._came = self._came, []
        for some in [came] if self._on_disk else [[one] for one in came]:
            kept = self._loop.run_in_executor(self._threads, _kept, self._store, some)
            kept.add_done_callback(lambda done: self._stored(done.result()))

    def _stored(self, ended: Sequence[tuple[Came, CallEnded]]) -> None:
        for came, each in ended:
            if isinstance(each.error, DiskFull):  # which ends the run
                self._full = each.error
                self._unsaved.append(came)
            self._hand(each)

    def _hand(self, ended: CallEnded) -> None:
        if not self._alone:
            self._pipe.send(ended)
        del self._out[ended.number]
        self._end()


def gather_seconds(takes: float, out: int) -> float:
    """Seconds for which replies are gathered while so many calls are out, each of which takes so
    many seconds: none where no second one is to be expected meanwhile.
    """
    wait = min(GATHER_SHARE * takes, LONGEST_GATHER)
    return wait if out * wait > takes else 0.0


class DiskReserve:
    """Room on the store's disk, held by a file without a name: who else writes there meets a full
    disk while there is still room for the replies that are out. It goes with its process.
    """

    def __init__(self, root: str) -> None:
        self._file: Any = None
        with contextlib.suppress(OSError, AttributeError):  # full already, or no such call here
            folder = resolve(root)[1]
            os.makedirs(folder, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
            os.posix_fallocate(self._file.fileno(), 0, RESERVED_BYTES)

    def release(self) -> None:
        """Make room."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _kept(store: Store, came: Sequence[Came]) -> list[tuple[Came, CallEnded]]:
    """How calls ended whose replies are stored by now."""
    ended: list[tuple[Came, CallEnded]] = []
    for each in came:
        end, key, reply, took = each
        try:
            keep(store, key, reply)
        except Exception as error:
            ended.append((each, replace(end, error=_portable(error))))
        else:
            ended.append((each, replace(end, reply=reply, seconds=took)))
    return ended


def _store_again(store: Store, came: Sequence[Came]) -> list[Came]:
    """Those of these replies that could not be stored."""
    return [each for each, ended in _kept(store, came) if ended.error is not None]


def _portable(error: Exception) -> Exception:
    """The error, or one that says the same where it cannot travel."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def main(descriptor: int) -> None:
    """Serve the worker at the other end of an inherited socket."""

    async def work() -> None:
        sending = SenderProcess(socket.socket(fileno=descriptor), asyncio.get_running_loop())
        await sending.wait()

    import uvloop

    gc.set_threshold(50_000)  # hundreds of calls at once hold many objects that are no garbage
    uvloop.run(work())
    os._exit(0)  # nothing is left to be done, and a thread may still hang on a lost connection
