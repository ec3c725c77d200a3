"""The sender process (`actors.calls.sender`), which makes a worker's calls and stores the
replies.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from actors.calls.gateway import MeteredModel, keep, open_model, quota_reader
from actors.calls.liveness import LivenessConnection
from actors.calls.sender import (
    Call,
    CallEnded,
    CoordinatorLost,
    CoordinatorRestarted,
    Pipe,
    SenderModel,
    SenderStart,
    SenderStarted,
)
from mustsee.calls.limits import Quota
from mustsee.calls.llm import Llm, Reply
from mustsee.errors import MustseeError, Unwritable
from mustsee.files.store import Store, is_local, resolve

STORE_THREADS = 16  # threads that store replies
# Replies are gathered for a share of the duration of a call, and at most for some seconds, and then
# stored and passed on together, because each group wakes three processes.
GATHER_SHARE = 1 / 50
MAX_GATHER_S = 0.05
RECONNECT_AFTER_S = 1.0  # seconds before another attempt at a liveness connection
# Bytes reserved on the store's disk for replies that arrive when it is full; a file takes 4 kB.
RESERVED_BYTES = 4 << 20
RETRY_S = 60.0  # seconds of attempts to store what could not be written, after the worker has ended
RETRY_PAUSE_S = 0.5  # seconds between two of these attempts
# The end of a call, the key and the reply to be stored, and the seconds that the call took.
UnstoredReply = tuple[CallEnded, str, Reply, float]


@dataclass(frozen=True)
class ConnectedModel:
    """A model of the worker, with its free connections and what its endpoint says of its limits."""

    llm: Llm
    room: asyncio.Semaphore
    quotas: Callable[[], Mapping[str, Quota]]


class SenderProcess:
    """The sender process of one worker. It ends when the worker has ended and no call is in
    flight.
    """

    def __init__(self, end: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._pipe = loop, Pipe(end, self._receive, self._on_worker_end)
        self._pipe.attach(loop)
        self._models: dict[int, ConnectedModel] = {}
        self._in_flight: dict[int, str] = {}  # number of a call -> its key
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(STORE_THREADS)
        self._unstored: list[UnstoredReply] = []
        self._call_seconds = 0.0  # moving average of the duration of a call
        self._liveness: LivenessConnection | None = None
        self._reserve: DiskReserve | None = None
        self._unwritable: Unwritable | None = None
        self._unsaved: list[UnstoredReply] = []  # replies that could not be written
        self._over = loop.create_future()
        self._worker_ended = False

    async def wait(self) -> None:
        """Wait until the worker has ended and all replies are stored."""
        await self._over

    def _receive(self, message: Any) -> None:
        if isinstance(message, Call):
            self._in_flight[message.number] = message.key
            task = self._loop.create_task(self._call(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif isinstance(message, SenderModel):
            assert isinstance(message.config, MeteredModel)  # other models have no sender
            llm = open_model(message.config, self._store)
            room = asyncio.Semaphore(message.config.endpoint.max_connections)
            self._models[message.number] = ConnectedModel(llm, room, quota_reader(llm))
        elif isinstance(message, CoordinatorRestarted):
            if self._connect(message.address):
                self._loop.call_later(RECONNECT_AFTER_S, self._pipe.send, CoordinatorLost())
        elif isinstance(message, SenderStart):
            self._name, self._store = message.name, Store(message.store)
            self._on_disk = is_local(message.store)
            self._reserve = DiskReserve(message.store) if self._on_disk else None
            self._pipe.send(SenderStarted(self._connect(message.address)))

    def _connect(self, address: tuple[str, int]) -> str:
        """Open the liveness connection; returns the reason if that fails, or ""."""
        try:
            self._liveness = LivenessConnection(address, self._name)
        except OSError as error:
            return (
                f"it cannot reach the call coordinator at {address[0]}:{address[1]} "
                f"({error.strerror or error}); the nodes of a Ray cluster must reach each other on "
                "all ports"
            )
        self._loop.add_reader(self._liveness.socket, self._on_coordinator_end)
        return ""

    def _on_coordinator_end(self) -> None:
        assert self._liveness is not None  # the coordinator never writes, so the end was reached
        self._loop.remove_reader(self._liveness.socket)
        self._liveness.socket.close()
        self._liveness = None
        self._pipe.send(CoordinatorLost())

    def _on_worker_end(self) -> None:
        if self._liveness is not None:
            self._loop.remove_reader(self._liveness.socket)
            self._liveness.report_worker_gone(self._in_flight.values())
        self._worker_ended = True
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._worker_ended and not self._in_flight and not self._over.done():
            self._save(self._loop.time() + RETRY_S)

    def _save(self, deadline: float) -> None:
        """Store the replies that could not be written, until `deadline`; then the process
        ends.
        """
        if self._reserve is not None:
            self._reserve.release()
        self._unsaved = _store_again(self._store, self._unsaved)
        if self._unsaved and self._loop.time() < deadline:
            self._loop.call_later(RETRY_PAUSE_S, self._save, deadline)
        else:
            self._over.set_result(None)

    async def _call(self, call: Call) -> None:
        """Make a call, once one of the model's connections is free. Waiting here, not in the
        worker, saves the message that would report a free one.
        """
        model = self._models[call.model]
        try:
            async with model.room:
                if self._unwritable is not None:  # its reply could not be stored, so it is not sent
                    raise MustseeError(str(self._unwritable))
                began = self._loop.time()
                reply = await model.llm.complete(call.request)
        except Exception as error:
            self._report(replace(self._ended(call), error=_portable(error)))
            return
        seconds = self._loop.time() - began
        self._call_seconds += (seconds - self._call_seconds) / 16
        if not self._unstored:
            wait = gather_seconds(self._call_seconds, len(self._in_flight))
            self._loop.call_later(wait, self._store_replies)
        self._unstored.append((self._ended(call), call.key, reply, seconds))

    def _ended(self, call: Call) -> CallEnded:
        """The end of a call, with the limits that its endpoint reported."""
        quotas = self._models[call.model].quotas() or None
        return CallEnded(call.number, None, model=call.model, quotas=quotas)

    def _store_replies(self) -> None:
        """Store the gathered replies and report them: one after the other on a disk, at the same
        time in an object store, where each write waits.
        """
        replies, self._unstored = self._unstored, []
        for group in [replies] if self._on_disk else [[one] for one in replies]:
            stored = self._loop.run_in_executor(self._threads, _store_group, self._store, group)
            stored.add_done_callback(lambda done: self._report_stored(done.result()))

    def _report_stored(self, ended: Sequence[tuple[UnstoredReply, CallEnded]]) -> None:
        for reply, each in ended:
            if isinstance(each.error, Unwritable):  # this ends the run
                self._unwritable = each.error
                self._unsaved.append(reply)
            self._report(each)

    def _report(self, ended: CallEnded) -> None:
        if not self._worker_ended:
            self._pipe.send(ended)
        del self._in_flight[ended.number]
        self._end_if_done()


def gather_seconds(call_seconds: float, in_flight: int) -> float:
    """Seconds for which replies are gathered, with `in_flight` calls of `call_seconds` each; 0 if
    no second reply is expected in that time.
    """
    wait = min(GATHER_SHARE * call_seconds, MAX_GATHER_S)
    return wait if in_flight * wait > call_seconds else 0.0


class DiskReserve:
    """Space on the store's disk, reserved by an unnamed file: other writers find the disk full
    while there is still space for the replies of calls in flight. It is freed with the process.
    """

    def __init__(self, root: str) -> None:
        self._file: Any = None
        with contextlib.suppress(OSError, AttributeError):  # the disk is full, or not on Linux
            folder = resolve(root)[1]
            os.makedirs(folder, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
            os.posix_fallocate(self._file.fileno(), 0, RESERVED_BYTES)

    def release(self) -> None:
        """Free the reserved space."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _store_group(
    store: Store, replies: Sequence[UnstoredReply]
) -> list[tuple[UnstoredReply, CallEnded]]:
    """Store replies and return the end of each call: its reply, or the error of storing it."""
    ended: list[tuple[UnstoredReply, CallEnded]] = []
    for each in replies:
        end, key, reply, seconds = each
        try:
            keep(store, key, reply)
        except Exception as error:
            ended.append((each, replace(end, error=_portable(error))))
        else:
            ended.append((each, replace(end, reply=reply, seconds=seconds)))
    return ended


def _store_again(store: Store, replies: Sequence[UnstoredReply]) -> list[UnstoredReply]:
    """Store replies and return those that could not be stored."""
    return [each for each, ended in _store_group(store, replies) if ended.error is not None]


def _portable(error: Exception) -> Exception:
    """The error, or a RuntimeError with its message if it cannot be pickled."""
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

    gc.set_threshold(50_000)  # hundreds of calls at once hold many objects that are not garbage
    uvloop.run(work())
    os._exit(0)  # all is done, but a thread may still hang on a lost connection
