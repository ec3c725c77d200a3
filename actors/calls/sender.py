"""Model calls are made in a process apart, so that what is paid for outlives the worker that asked.

A worker starts its sender with its first call. The sender makes the call, stores the reply, and
only then hands it to the worker. When the worker is gone it finishes what is out, stores that, and
ends; no Ray, no video and no model is in it that might take it along. `main` is the sender's side,
`Sender` the worker's.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from actors.calls.pipe import Pipe
from actors.part import LlmConfig
from mustsee.calls.llm import Reply, Request
from mustsee.calls.quota import Quota
from mustsee.errors import MustseeError, Transient

# A child's child belongs to nobody: Ray ends the children of a worker together with it.
START = (
    "import os, sys; os.fork() and os._exit(0); "
    "from actors.calls.sending import main; main(int(sys.argv[1]))"
)


MAX_STARTS = 3  # of a sender that is killed before it has begun
NO_QUOTAS: Mapping[str, Quota] = {}


class SenderDied(Transient):
    """The sender was killed with the call out: whether it was billed is not known."""


@dataclass(frozen=True)
class SenderStart:
    """To the sender: who it is, the store's root, and where the coordinator holds lifelines."""

    name: str
    store: str
    address: tuple[str, int]


@dataclass(frozen=True)
class CoordinatorRestarted:
    """To the sender: the coordinator has started again, there."""

    address: tuple[str, int]


@dataclass(frozen=True)
class SenderModel:
    """To the sender: the calls of this number go to this model."""

    number: int
    config: LlmConfig


@dataclass(frozen=True)
class Call:
    """To the sender: make this call, and keep the reply under the key."""

    number: int
    model: int
    key: str
    request: Request


@dataclass(frozen=True)
class CallEnded:
    """From the sender: the call's reply, which is stored, and the seconds that it took, or what
    went wrong. `quotas`: what the endpoint told of its limits meanwhile, for the model of that
    number.
    """

    number: int
    reply: Reply | None
    seconds: float = 0.0
    error: Exception | None = None
    model: int = 0
    quotas: Mapping[str, Quota] | None = None


@dataclass(frozen=True)
class SenderStarted:
    """From the sender: it is there, or why it is of no use."""

    reason: str = ""


@dataclass(frozen=True)
class CoordinatorLost:
    """From the sender: the coordinator is gone."""


class Sender:
    """The way of one process to its sender; it serves one event loop at a time. `address`: asks the
    coordinator where lifelines are held.
    """

    def __init__(self, store: str, address: Callable[[], Awaitable[tuple[str, int]]]) -> None:
        self._store, self._address = store, address
        self._models: list[LlmConfig] = []
        self._quotas: dict[int, Mapping[str, Quota]] = {}
        self._pipe: Pipe | None = None
        self.name = ""  # which no other one ever has; of none, while it has not begun
        self._loop: asyncio.AbstractEventLoop | None = None
        self._numbers = 0

    def model(self, config: LlmConfig) -> int:
        """The number of a model, by which `complete` knows it."""
        self._models.append(config)
        return len(self._models) - 1

    def quotas(self, model: int) -> Mapping[str, Quota]:
        """What the model's endpoint told of its limits last."""
        return self._quotas.get(model, NO_QUOTAS)

    async def begin(self) -> None:
        """Start the sender unless it is there.

        Raises MustseeError where it cannot reach the coordinator, or does not live.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._starting = loop, asyncio.Lock()
            self._calls: dict[int, asyncio.Future[tuple[Reply, float]]] = {}
            self._tying: set[asyncio.Task[None]] = set()
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
                "started; see whether this machine has memory left. What is finished is kept: the "
                "same command goes on from here"
            )

    async def complete(self, model: int, key: str, request: Request) -> tuple[Reply, float]:
        """As `Llm.complete`, and the seconds that the endpoint took; the reply is stored. Raises
        SenderDied, too.
        """
        await self.begin()
        assert self._pipe is not None
        assert self._loop is not None
        for number in range(self._known, len(self._models)):
            self._pipe.send(SenderModel(number, self._models[number]))
        self._known, self._numbers = len(self._models), self._numbers + 1
        future = self._calls[self._numbers] = self._loop.create_future()
        # only rules read the variables
        self._pipe.send(Call(self._numbers, model, key, replace(request, variables={})))
        return await future

    async def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a sender: `_pipe` leads to it, unless it was killed meanwhile."""
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
        self._begun: asyncio.Future[SenderStarted | None] = loop.create_future()
        self._name, self._coming = name, Pipe(ours, self._got, self._lost)
        self._coming.attach(loop)
        self._coming.send(SenderStart(name, self._store, address))
        begun = await self._begun
        if begun is not None and begun.reason:
            raise MustseeError(
                f"the process that makes a worker's calls did not start: {begun.reason}"
            )

    def _got(self, message: Any) -> None:
        if isinstance(message, SenderStarted):
            self._begun.set_result(message)
            if not message.reason:
                self.name, self._pipe, self._known = self._name, self._coming, 0
        elif isinstance(message, CoordinatorLost):
            task = asyncio.ensure_future(self._tie())
            self._tying.add(task)
            task.add_done_callback(self._tying.discard)
        else:
            self._end(message)

    def _end(self, ended: CallEnded) -> None:
        if ended.quotas:
            self._quotas[ended.model] = ended.quotas
        if future := self._calls.pop(ended.number, None):  # else of an earlier event loop
            if ended.reply is not None:
                future.set_result((ended.reply, ended.seconds))
            else:
                future.set_exception(ended.error or SenderDied("the call ended without a reply"))

    async def _tie(self) -> None:
        address = await self._address()
        if self._pipe is not None:
            self._pipe.send(CoordinatorRestarted(address))

    def _lost(self) -> None:
        if not self._begun.done():
            self._begun.set_result(None)
        self._pipe = None
        for future in self._calls.values():
            if not future.done():
                future.set_exception(SenderDied("the process that makes the calls was killed"))
        self._calls.clear()
