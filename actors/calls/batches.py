"""Model calls at half price: those that wait in a worker are gathered and sent as one batch.

    python -m ray_jobs.neptune videos=V out=O llm=openai llm.batch=auto

A batch is written down in the store once it is sent, and found by its tag at the endpoint where the
worker was killed before that; so whoever asks for one of its calls again, in this run or a later
one, waits for the same batch. What it lost (expired, cancelled, an error, no line) goes into the
next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from actors.calls.admission import AdmissionRequest
from actors.calls.batch_route import BatchEntry, BatchRoute, Job, line
from actors.calls.connection import Connection
from actors.calls.endpoint import CallEstimate
from actors.part import capabilities_of, models_of
from mustsee.calls.llm import Reply, Request
from mustsee.errors import BadRow, Transient, UserError
from mustsee.store import Store, digest

KIND = "batches"  # the store's folder of what was sent
LOOK_BACK = 3 * 86400.0  # seconds: older batches are not waited for, nor are their files kept long
CANCEL_TIMEOUT_S = 900.0  # seconds that a batch may take to be cancelled; OpenAI says ten minutes
MAX_CLOCK_SKEW_S = 300.0  # seconds between our clock and that of the endpoint or the store
POLL_GROWTH = 1.5  # of the pause between two looks at a batch

Count = Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """What goes into a batch and how long it may take.

    `price`: of a call, as a share of the usual one. `rows`: that a worker holds at once, so that
    their calls wait together. A batch is sent after `quiet` seconds without a new call, after
    `longest` seconds in any case, or when it holds `most` calls or `most_bytes`. With batch=auto,
    fewer than `least` calls are made directly. `pauses`: seconds between two looks at a batch, the
    first and the longest. One that is not over after `deadline` seconds is cancelled.
    """

    price: float = 0.5
    rows: int = 256
    quiet: float = 10.0
    longest: float = 120.0
    most: int = 50_000
    most_bytes: int = 200_000_000
    least: int = 20
    pauses: tuple[float, float] = (5.0, 120.0)
    deadline: float = 90_000.0

    def __post_init__(self) -> None:
        for name in ("rows", "quiet", "longest", "most", "most_bytes", "least", "deadline"):
            if getattr(self, name) <= 0:
                raise UserError(f"batches.{name}={getattr(self, name)!r}: more than 0")
        if not 0 <= self.price <= 1:
            raise UserError(f"batches.price={self.price!r}: a share of the price, from 0 to 1")


@runtime_checkable
class Batchable(Protocol):
    """A configured model whose calls may be batched."""

    def by_batch(self, store: Store, count: Count) -> BatchClient | None: ...


def blocks_held(part: Any, rows_per_block: int) -> int:
    """Blocks that a worker is to hold at once for the calls of its rows to fill a batch."""
    rows = max((capabilities_of(llm).batch_rows for llm in models_of(part)), default=0)
    return -(-rows // rows_per_block)


@dataclass(frozen=True)
class _Waiting:
    """A call, and where its answer goes: None says that it is to be made directly."""

    key: str
    line: bytes
    answer: asyncio.Future[BatchEntry | None]


class BatchChat(Protocol):
    """The chat whose calls go by batch: how a request is written, and a reply read."""

    @property
    def connection(self) -> Connection: ...
    @property
    def identity(self) -> str: ...
    def body(self, request: Request, /) -> dict[str, Any]: ...
    def read(self, request: Request, completion: Mapping[str, Any], /) -> Reply: ...
    def refuses_schema(self, request: Request, error: BadRow, /) -> bool: ...


class BatchConfig(Protocol):
    """What is set of a model whose calls may go by batch."""

    @property
    def model(self) -> str: ...
    @property
    def account(self) -> str: ...
    @property
    def batch(self) -> str: ...
    @property
    def batches(self) -> BatchSettings: ...
    def estimate(self, request: Request, /) -> CallEstimate: ...


class BatchClient:
    """The way by batch of one worker's calls to one model, on one event loop at a time."""

    def __init__(self, chat: BatchChat, config: BatchConfig, store: Store, count: Count) -> None:
        self._chat, self._config, self._store, self._count = chat, config, store, count
        self._rules = config.batches
        self._route = BatchRoute(chat.connection)
        self._tag = digest([chat.identity, store.root])[:32]
        self._direct: set[str] = set()  # calls that shall not wait for another batch
        self._none_such = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def _bind(self) -> None:
        """What waits belongs to one event loop."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        self._loop = loop
        self._group: list[_Waiting] = []
        self._bytes, self._last = 0, 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking, self._begun = asyncio.Lock(), False
        self._looked = time.time() - LOOK_BACK
        self._read: set[str] = set()  # batches that are known, by their names in the store
        self._sent: dict[str, str] = {}  # key -> the batch that holds it
        self._joined: dict[str, dict[str, _Waiting]] = {}
        self._answers: dict[str, BatchEntry] = {}  # of batches that are over, not yet asked for

    async def ask(self, key: str, request: Request) -> AdmissionRequest | None:
        """What the coordinator is to admit, apart from the limits of direct calls; None: no batch.

        Raises UserError where batches are wanted always and the endpoint has none.
        """
        self._bind()
        async with self._looking:
            if not self._begun:
                await self._look()
        if self._none_such or key in self._direct:
            return None
        estimate = self._config.estimate(request)
        return AdmissionRequest(
            key=key,
            account=f"{self._config.account} by batch",
            prompt=request.prompt,
            model=self._config.model,
            tokens_in=estimate.tokens_in,
            tokens_out=estimate.tokens_out,
            usd=estimate.usd * self._rules.price,
            usd_in=estimate.usd_in * self._rules.price,
            batched=True,
            joined=key in self._sent,
        )

    async def complete(self, key: str, request: Request) -> Reply | None:
        """As `Llm.complete`; None where the call is to be made directly."""
        self._bind()
        answer = self._answers.pop(key, None) or await self._gathered(key, request)
        if answer is None:
            return None
        if answer.lost:
            raise Transient(f"{self._chat.connection.place}: {answer.lost}")
        try:
            if answer.status >= 400:
                told = answer.body.get("error", answer.body)
                raise self._chat.connection.refusal(answer.status, told)
            reply = self._chat.read(request, answer.body)
        except BadRow as error:
            if self._chat.refuses_schema(request, error):
                raise Transient(str(error)) from None
            raise
        return replace(reply, usd=reply.usd * self._rules.price, batched=True)

    async def _gathered(self, key: str, request: Request) -> BatchEntry | None:
        """The call's answer, once its batch is over."""
        loop = asyncio.get_running_loop()
        wanted = line(key, self._chat.body(request))
        if self._group and self._bytes + len(wanted) > self._rules.most_bytes:
            self._send_off()
        if not self._group:
            self._spawn(self._until_quiet())
        waiting = _Waiting(key, wanted, loop.create_future())
        self._group.append(waiting)
        self._bytes += len(wanted)
        self._last = loop.time()
        if len(self._group) >= self._rules.most:
            self._send_off()
        return await waiting.answer

    async def _until_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        group, began = self._group, loop.time()
        while group is self._group:
            ends = min(self._last + self._rules.quiet, began + self._rules.longest)
            if (left := ends - loop.time()) <= 0:
                self._send_off()
            else:
                await asyncio.sleep(left)

    def _send_off(self) -> None:
        group, self._group, self._bytes = self._group, [], 0
        self._spawn(self._send(group))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, group: list[_Waiting]) -> None:
        """Join the batches that hold these calls already, and make one of the others."""
        try:
            async with self._looking:
                await self._look()
            fresh = [w for w in group if w.key not in self._sent]
            for waiting in (w for w in group if w.key in self._sent):
                self._count("calls joined to a batch", 1)
                self._join(self._sent[waiting.key], waiting)
            if self._config.batch == "auto" and len(fresh) < self._rules.least:
                _settle(fresh, None)
            elif fresh:
                await self._submit(fresh)
        except Exception as error:
            _fail(group, error)

    async def _submit(self, fresh: Sequence[_Waiting]) -> None:
        job = await self._route.submit((w.line for w in fresh), self._tag)
        await self._note(job, [w.key for w in fresh])
        self._count("batches sent", 1)
        for waiting in fresh:
            self._join(job.id, waiting)

    def _join(self, batch: str, waiting: _Waiting) -> None:
        if batch not in self._joined:
            self._joined[batch] = {}
            self._spawn(self._watch(batch))
        self._joined[batch][waiting.key] = waiting

    async def _watch(self, batch: str) -> None:
        """Wait for a batch and hand out what it holds."""
        try:
            job = await self._over(Job(id=batch, status="unknown", created=time.time()))
            if job.full:
                await asyncio.sleep(self._rules.pauses[1])
                await self._halve(list(self._forget(batch).values()))
                return
            found = await self._found(job)
        except Exception as error:
            _fail(self._forget(batch).values(), error)
            return
        late = job.status == "failed" or time.time() - job.created > self._rules.deadline
        lost = f"its batch is {job.status} and holds no reply to it; {job.why}".rstrip("; ")
        waiting = self._forget(batch)
        self._answers |= {key: found[key] for key in found if key not in waiting}
        for key, each in waiting.items():
            answer = found.get(key) or BatchEntry(lost=lost)
            if answer.lost and late and self._config.batch == "auto":
                self._direct.add(key)
            _settle([each], answer)

    def _forget(self, batch: str) -> dict[str, _Waiting]:
        """Those that wait for a batch, which nobody is to join any more."""
        self._sent = {key: holder for key, holder in self._sent.items() if holder != batch}
        return self._joined.pop(batch)

    async def _halve(self, waiting: list[_Waiting]) -> None:
        """Send calls again that were more than the endpoint lets wait: in two batches if many."""
        try:
            middle = len(waiting) // 2 if len(waiting) > self._rules.least else 0
            for part in (waiting[:middle], waiting[middle:]):
                if part:
                    await self._submit(part)
        except Exception as error:
            _fail(waiting, error)

    async def _over(self, job: Job) -> Job:
        """The batch when it is over, cancelled after the deadline if need be."""
        cancelled = False
        for pause in self._pauses():
            job = await self._state(job)
            age = time.time() - job.created
            if job.is_over or age > self._rules.deadline + CANCEL_TIMEOUT_S:
                return job
            if age > self._rules.deadline and not cancelled:
                with contextlib.suppress(Transient):  # then at the next look
                    await self._route.cancel(job.id)
                    cancelled = True
            await asyncio.sleep(pause)
        raise AssertionError("pauses never end")

    async def _found(self, job: Job) -> dict[str, BatchEntry]:
        """What a batch holds. It is paid for: what fails to come is fetched again, not bought."""
        began = time.monotonic()
        for pause in self._pauses():
            try:
                return await self._route.answers(job)
            except Transient:
                if time.monotonic() - began > self._rules.deadline:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("pauses never end")

    async def _state(self, job: Job) -> Job:
        """How a batch stands now; as before, where the endpoint does not say it for the moment."""
        try:
            return await self._route.state(job.id) or replace(job, status="failed", why="unknown")
        except Transient:
            return job

    def _pauses(self) -> Iterator[float]:
        pause, longest = self._rules.pauses
        while True:
            yield pause
            pause = min(longest, POLL_GROWTH * pause)

    async def _note(self, job: Job, keys: list[str]) -> None:
        """Write down which calls a batch holds."""
        told = {"tag": self._tag, "id": job.id, "created": job.created, "keys": keys}
        name = self._name(job.id)
        await asyncio.to_thread(self._store.put, KIND, name, json.dumps(told).encode())
        self._learn(name, told)

    def _learn(self, name: str, told: Any) -> None:
        self._read.add(name)
        if told["tag"] == self._tag:
            self._sent |= dict.fromkeys(told["keys"], told["id"])

    async def _look(self) -> None:
        """Learn of the batches that others sent: from the store, and from the endpoint where their
        worker did not live to write them down.
        """
        since, now = self._looked, time.time()
        names = await asyncio.to_thread(self._store.keys, KIND, since)
        told = [(name, await self._told(name)) for name in names if name not in self._read]
        whole = [(name, batch) for name, batch in told if batch is not None]
        for name, batch in sorted(whole, key=lambda each: each[1]["created"]):
            self._learn(name, batch)
        jobs = await self._route.list_batches(since)
        self._none_such = jobs is None
        if jobs is None and self._config.batch == "always":
            raise UserError(
                f"{self._chat.connection.place} has no batch route: take batch=auto or never"
            )
        for job in reversed(jobs or ()):
            unknown = job.tag == self._tag and self._name(job.id) not in self._read
            if unknown and job.status != "failed":
                await self._note(job, await self._route.keys(job))
                self._count("batches found", 1)
        self._looked, self._begun = now - MAX_CLOCK_SKEW_S, True

    async def _told(self, name: str) -> Any:
        """What is written down of a batch; None where it was damaged."""
        return json.loads(await asyncio.to_thread(self._store.get, KIND, name) or b"null")

    def _name(self, batch: str) -> str:
        """Where a batch is written down in the store."""
        return digest([self._tag, batch])


def _settle(group: Iterable[_Waiting], answer: BatchEntry | None) -> None:
    for waiting in group:
        if not waiting.answer.done():
            waiting.answer.set_result(answer)


def _fail(group: Iterable[_Waiting], error: Exception) -> None:
    for waiting in group:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
