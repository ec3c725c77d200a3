"""`Sender`: makes a worker's model calls in a separate process, so that paid replies survive the
worker.

A worker starts its sender process with its first call. The process makes the call, stores the
reply, and then passes it to the worker. When the worker has died it finishes and stores the calls
in flight, and ends. It contains no Ray, video or model code that could crash it. Its own side is
`actors.calls.sending`.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from actors.part import LlmConfig
from mustsee.calls.limits import Quota
from mustsee.calls.llm import Reply, Request
from mustsee.errors import MustseeError, Transient

# Forked twice, so that it is not a child of the worker: Ray kills a worker's children with it.
START = (
    "import os, sys; os.fork() and os._exit(0); "
    "from actors.calls.sending import main; main(int(sys.argv[1]))"
)
MAX_STARTS = 3  # starts of a sender process that is killed before it has begun
NO_QUOTAS: Mapping[str, Quota] = {}


class SenderDied(Transient):
    """The sender process was killed with the call in flight, so whether it was billed is
    unknown.
    """


@dataclass(frozen=True)
class SenderStart:
    """To the sender: its name, the store's root, and the address of the coordinator's
    `LivenessServer`.
    """

    name: str
    store: str
    address: tuple[str, int]


@dataclass(frozen=True)
class CoordinatorRestarted:
    """To the sender: the coordinator has restarted, at this address."""

    address: tuple[str, int]


@dataclass(frozen=True)
class SenderModel:
    """To the sender: calls with this model number go to this model."""

    number: int
    config: LlmConfig


@dataclass(frozen=True)
class Call:
    """To the sender: make this call and store the reply under the key."""

    number: int
    model: int
    key: str
    request: Request


@dataclass(frozen=True)
class CallEnded:
    """From the sender: the call's stored reply and the seconds that it took, or its error.
    `quotas`: limits that the endpoint of the model number `model` reported.
    """

    number: int
    reply: Reply | None
    seconds: float = 0.0
    error: Exception | None = None
    model: int = 0
    quotas: Mapping[str, Quota] | None = None


@dataclass(frozen=True)
class SenderStarted:
    """From the sender: it has started, or the reason why it cannot work."""

    reason: str = ""


@dataclass(frozen=True)
class CoordinatorLost:
    """From the sender: its liveness connection to the coordinator was closed."""


READ_BYTES = 1 << 20  # bytes of one read
HEADER_BYTES = 8  # bytes of the length before each group of messages


class Pipe:
    """One end, on one event loop at a time (`attach`). `on_message` is called with each message,
    `on_end` once, when the other process has ended.
    """

    def __init__(
        self, end: socket.socket, on_message: Callable[[Any], None], on_end: Callable[[], None]
    ) -> None:
        end.setblocking(False)
        self._socket, self._on_message, self._on_end = end, on_message, on_end
        self._waiting: list[Any] = []
        self._in, self._out, self._full = bytearray(), bytearray(), False
        # One buffer for all reads: allocating it costs more than a read.
        self._buffer = bytearray(READ_BYTES)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work on this loop from now on, and continue messages that are partly sent or read."""
        self._loop = loop
        loop.add_reader(self._socket, self._read)
        loop.call_soon(self._flush)

    def send(self, message: Any) -> None:
        """Send a message with the others of this turn of the event loop."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(message)

    def _flush(self) -> None:
        if self._waiting:
            packed = pickle.dumps(self._waiting, protocol=pickle.HIGHEST_PROTOCOL)
            self._waiting = []
            self._out += len(packed).to_bytes(HEADER_BYTES, "big") + packed
        self._write()

    def _write(self) -> None:
        if self._full:
            self._loop.remove_writer(self._socket)
            self._full = False
        while self._out:
            try:
                sent = self._socket.send(self._out)
            except BlockingIOError:
                self._loop.add_writer(self._socket, self._write)
                self._full = True
                return
            except OSError:  # the other process has ended, which `_read` notices, too
                self._out.clear()
                return
            del self._out[:sent]

    def _read(self) -> None:
        try:
            size = self._socket.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._on_end()
            return
        self._in += memoryview(self._buffer)[:size]
        while len(self._in) >= HEADER_BYTES:
            end = HEADER_BYTES + int.from_bytes(self._in[:HEADER_BYTES], "big")
            if len(self._in) < end:
                return
            messages = pickle.loads(memoryview(self._in)[HEADER_BYTES:end])
            del self._in[:end]
            for message in messages:
                self._on_message(message)


class Sender:
    """A worker's side of its sender process; it serves one event loop at a time. `address`: returns
    the address of the coordinator's `LivenessServer`.
    """

    def __init__(self, store: str, address: Callable[[], Awaitable[tuple[str, int]]]) -> None:
        self._store, self._address = store, address
        self._models: list[LlmConfig] = []
        self._quotas: dict[int, Mapping[str, Quota]] = {}
        self._pipe: Pipe | None = None
        self.name = ""  # unique; empty until the process has started
        self._loop: asyncio.AbstractEventLoop | None = None
        self._numbers = 0

    def model(self, config: LlmConfig) -> int:
        """Register a model and return its number for `complete`."""
        self._models.append(config)
        return len(self._models) - 1

    def quotas(self, model: int) -> Mapping[str, Quota]:
        """The limits that the model's endpoint reported last."""
        return self._quotas.get(model, NO_QUOTAS)

    async def begin(self) -> None:
        """Start the sender process unless it runs.

        Raises MustseeError if it cannot reach the coordinator, or is killed at every start.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._starting = loop, asyncio.Lock()
            self._calls: dict[int, asyncio.Future[tuple[Reply, float]]] = {}
            self._reconnecting: set[asyncio.Task[None]] = set()
            if self._pipe is not None:
                self._pipe.attach(loop)
        for _ in range(MAX_STARTS):
            if self._pipe is not None:
                return
            async with self._starting:
                if self._pipe is None:
                    await self._start(loop)
        if self._pipe is None:
            raise MustseeError(
                f"the process that makes a worker's calls was killed {MAX_STARTS} times when it "
                "started; check whether this machine has memory left. What is finished is kept: "
                "the same command goes on from here"
            )

    async def complete(self, model: int, key: str, request: Request) -> tuple[Reply, float]:
        """As `Llm.complete`; returns the stored reply and the seconds that the endpoint took. Also
        raises SenderDied.
        """
        await self.begin()
        assert self._pipe is not None
        assert self._loop is not None
        for number in range(self._sent_models, len(self._models)):
            self._pipe.send(SenderModel(number, self._models[number]))
        self._sent_models, self._numbers = len(self._models), self._numbers + 1
        future = self._calls[self._numbers] = self._loop.create_future()
        # Only the offline rules read the variables, and they have no sender.
        sent = replace(request, variables={}) if request.variables else request
        self._pipe.send(Call(self._numbers, model, key, sent))
        return await future

    async def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a sender process and set `_pipe`, unless the process was killed meanwhile."""
        name, address = uuid.uuid4().hex[:12], await self._address()
        ours, theirs = socket.socketpair()
        with theirs:
            paths = os.pathsep.join(path for path in sys.path if path)
            process = subprocess.Popen(
                [sys.executable, "-c", START, str(theirs.fileno()), f"for={os.getpid()}"],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,
            )
        await asyncio.to_thread(process.wait)
        self._has_started: asyncio.Future[SenderStarted | None] = loop.create_future()
        self._new_name, self._new_pipe = name, Pipe(ours, self._receive, self._on_process_end)
        self._new_pipe.attach(loop)
        self._new_pipe.send(SenderStart(name, self._store, address))
        started = await self._has_started
        if started is not None and started.reason:
            raise MustseeError(
                f"the process that makes a worker's calls did not start: {started.reason}"
            )

    def _receive(self, message: Any) -> None:
        if isinstance(message, SenderStarted):
            self._has_started.set_result(message)
            if not message.reason:
                self.name, self._pipe, self._sent_models = self._new_name, self._new_pipe, 0
        elif isinstance(message, CoordinatorLost):
            task = asyncio.ensure_future(self._reconnect())
            self._reconnecting.add(task)
            task.add_done_callback(self._reconnecting.discard)
        else:
            self._end(message)

    def _end(self, ended: CallEnded) -> None:
        if ended.quotas:
            self._quotas[ended.model] = ended.quotas
        # A call of an earlier event loop has no future any more.
        if future := self._calls.pop(ended.number, None):
            if ended.reply is not None:
                future.set_result((ended.reply, ended.seconds))
            else:
                future.set_exception(
                    ended.error or SenderDied("the call ended without a reply", sent=True)
                )

    async def _reconnect(self) -> None:
        try:
            address = await self._address()
        except ConnectionError:  # the job has ended, so that nobody waits for replies
            return
        if self._pipe is not None:
            self._pipe.send(CoordinatorRestarted(address))

    def _on_process_end(self) -> None:
        if not self._has_started.done():
            self._has_started.set_result(None)
        self._pipe = None
        for future in self._calls.values():
            if not future.done():
                future.set_exception(
                    SenderDied("the process that makes the calls was killed", sent=True)
                )
        self._calls.clear()
