"""Model calls at half price: the calls that wait in a worker are sent as one batch.

    python -m ray_jobs.neptune videos=V out=O llm=openai llm.batch=auto

Each batch that was sent is recorded in the store. A batch whose worker was killed before it could
record it is found by its tag at the endpoint. So a call that is needed again, in this or a later
run, waits for the same batch. Calls that a batch lost (expired, cancelled, an error, no line) go
into the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from actors.calls.batch_route import BatchEntry, BatchRoute, Job, line
from actors.calls.connection import Connection, ParameterRefused
from actors.calls.endpoint import CallEstimate
from actors.calls.parameters import EndpointParameters
from actors.part import capabilities_of, models_of
from mustsee.calls.budget import AdmissionRequest
from mustsee.calls.llm import Reply, Request
from mustsee.errors import BadRow, Transient, UserError
from mustsee.files.store import Store, digest

KIND = "batches"  # the store's folder of batches that were sent
MAX_AGE_S = 3 * 86400.0  # age of batches that are still joined; endpoints delete files soon after
CANCEL_TIMEOUT_S = 900.0  # seconds that a cancellation may take; OpenAI says ten minutes
MAX_CLOCK_SKEW_S = 300.0  # seconds between our clock and the endpoint's or the store's
POLL_GROWTH = 1.5  # factor from one pause between two polls to the next

Count = Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """Size and timing of batches.

    A batch is sent after `quiet` seconds without a new call, after `longest` seconds in any case,
    or with `most` calls or `most_bytes`. With batch=auto, fewer than `least` calls are made
    directly.
    """

    price: float = 0.5
    """Price of a batched call, as a share of the usual one."""
    rows: int = 256
    """Rows that each worker holds together, so that their calls fill a batch."""
    quiet: float = 10
    """Seconds without a new call after which a batch is sent."""
    longest: float = 120
    """Seconds after which it is sent in any case."""
    most: int = 50_000
    """Calls in one batch."""
    most_bytes: int = 200_000_000
    """Size of a batch's file, bytes."""
    least: int = 20
    """Calls below which batch: auto makes them directly."""
    pauses: tuple[float, float] = (5.0, 120.0)
    """Seconds between two polls of a batch: the first, and the longest."""
    deadline: float = 90_000.0
    """Seconds after which an unfinished batch is cancelled; with auto, its missing calls are
    then made directly."""

    def __post_init__(self) -> None:
        for name in ("rows", "quiet", "longest", "most", "most_bytes", "least", "deadline"):
            if getattr(self, name) <= 0:
                raise UserError(f"batches.{name}={getattr(self, name)!r}: must be more than 0")
        if not 0 <= self.price <= 1:
            raise UserError(f"batches.price={self.price!r}: must be a share of the price, 0 to 1")


@runtime_checkable
class Batchable(Protocol):
    """A configured model whose calls may be batched."""

    def by_batch(self, store: Store, count: Count) -> BatchClient | None: ...


def blocks_held(part: Any, rows_per_block: int) -> int:
    """The number of blocks that a worker holds at once so that its calls fill a batch."""
    rows = max((capabilities_of(llm).batch_rows for llm in models_of(part)), default=0)
    return -(-rows // rows_per_block)


@dataclass(frozen=True)
class _Waiting:
    """A call, and the future of its result: None if the call is to be made directly."""

    key: str
    line: bytes
    entry: asyncio.Future[BatchEntry | None]


class BatchChat(Protocol):
    """A chat whose calls are batched: writes requests and reads replies."""

    @property
    def connection(self) -> Connection: ...
    @property
    def identity(self) -> str: ...
    @property
    def parameters(self) -> EndpointParameters: ...
    def body(self, request: Request, /) -> dict[str, Any]: ...
    def whole_body(self, request: Request, /) -> dict[str, Any]: ...
    def read(self, request: Request, completion: Mapping[str, Any], /) -> Reply: ...


class BatchConfig(Protocol):
    """Configuration of a model whose calls may be batched."""

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
    """Batches the calls of one worker to one model, on one event loop at a time."""

    def __init__(self, chat: BatchChat, config: BatchConfig, store: Store, count: Count) -> None:
        self._chat, self._config, self._store, self._count = chat, config, store, count
        self._rules = config.batches
        self._route = BatchRoute(chat.connection)
        self._tag = digest([chat.identity, store.root])[:32]
        self._direct: set[str] = set()  # calls that do not wait for another batch
        self._has_no_route = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def _bind(self) -> None:
        """Begin again on another event loop, to which futures and tasks belong."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        self._loop = loop
        self._group: list[_Waiting] = []
        self._bytes, self._last = 0, 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing, self._has_refreshed = asyncio.Lock(), False
        # The clock of the day as it was at first: it may be set while a batch is waited for.
        self._day = time.time() - time.monotonic()
        self._refreshed = self._now() - MAX_AGE_S
        self._known_batches: set[str] = set()  # names in the store
        self._sent: dict[str, str] = {}  # key -> the batch that contains it
        self._joined: dict[str, dict[str, _Waiting]] = {}
        self._entries: dict[str, BatchEntry] = {}  # of finished batches, not yet asked for

    def _now(self) -> float:
        """UNIX seconds, on a clock that is never set."""
        return self._day + time.monotonic()

    async def ask(self, key: str, request: Request) -> AdmissionRequest | None:
        """The request to admit a batched call, under limits of its own. None: the call is not
        batched.

        Raises UserError with batch=always if the endpoint has no batch route.
        """
        self._bind()
        async with self._refreshing:
            if not self._has_refreshed:
                await self._refresh()
        if self._has_no_route or key in self._direct:
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
        """As `Llm.complete`. None: the call is to be made directly."""
        self._bind()
        entry = self._entries.pop(key, None) or await self._wait_in_batch(key, request)
        if entry is None:
            return None
        if entry.lost:
            raise Transient(f"{self._chat.connection.place}: {entry.lost}")
        sent = self._chat.whole_body(request)
        try:
            if entry.status >= 400:
                raise self._chat.connection.refusal(entry.status, entry.body, sent=sent)
            self._chat.connection.check_reply(entry.body, sent)
            reply = self._chat.read(request, entry.body)
        except (BadRow, Transient) as error:
            if usage := error.usage:
                error.usage = replace(usage, usd=usage.usd * self._rules.price)
            if not isinstance(error, ParameterRefused):
                raise
            await self._chat.parameters.learn(error)  # the next batch is sent without it
            raise Transient(str(error), usage=error.usage) from None
        return replace(reply, usd=reply.usd * self._rules.price, batched=True)

    async def _wait_in_batch(self, key: str, request: Request) -> BatchEntry | None:
        """Add the call to the next batch and wait for its result."""
        loop = asyncio.get_running_loop()
        call_line = line(key, self._chat.body(request))
        if self._group and self._bytes + len(call_line) > self._rules.most_bytes:
            self._send_group()
        if not self._group:
            self._spawn(self._send_when_quiet())
        waiting = _Waiting(key, call_line, loop.create_future())
        self._group.append(waiting)
        self._bytes += len(call_line)
        self._last = loop.time()
        if len(self._group) >= self._rules.most:
            self._send_group()
        return await waiting.entry

    async def _send_when_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        group, began = self._group, loop.time()
        while group is self._group:
            ends = min(self._last + self._rules.quiet, began + self._rules.longest)
            if (remaining := ends - loop.time()) <= 0:
                self._send_group()
            else:
                await asyncio.sleep(remaining)

    def _send_group(self) -> None:
        group, self._group, self._bytes = self._group, [], 0
        self._spawn(self._send(group))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, group: list[_Waiting]) -> None:
        """Join the batches that contain these calls already, and send the others as one."""
        try:
            async with self._refreshing:
                await self._refresh()
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
        await self._record(job, [w.key for w in fresh])
        self._count("batches sent", 1)
        for waiting in fresh:
            self._join(job.id, waiting)

    def _join(self, batch: str, waiting: _Waiting) -> None:
        if batch not in self._joined:
            self._joined[batch] = {}
            self._spawn(self._wait_for(batch))
        self._joined[batch][waiting.key] = waiting

    async def _wait_for(self, batch: str) -> None:
        """Wait for a batch and hand out its results."""
        try:
            job = await self._wait_until_over(Job(id=batch, status="unknown", created=self._now()))
            if job.full:
                await asyncio.sleep(self._rules.pauses[1])
                await self._halve(list(self._forget(batch).values()))
                return
            entries = await self._fetch_entries(job)
        except Exception as error:
            _fail(self._forget(batch).values(), error)
            return
        late = job.status == "failed" or self._now() - job.created > self._rules.deadline
        lost = f"its batch is {job.status} and has no reply to it; {job.why}".rstrip("; ")
        waiting = self._forget(batch)
        self._entries |= {key: entries[key] for key in entries if key not in waiting}
        for key, each in waiting.items():
            entry = entries.get(key) or BatchEntry(lost=lost)
            if entry.lost and late and self._config.batch == "auto":
                self._direct.add(key)
            _settle([each], entry)

    def _forget(self, batch: str) -> dict[str, _Waiting]:
        """Remove a batch, so that no call joins it, and return the calls that wait for it."""
        self._sent = {key: other for key, other in self._sent.items() if other != batch}
        return self._joined.pop(batch)

    async def _halve(self, waiting: list[_Waiting]) -> None:
        """Send the calls of a batch that was too large for the queue again, many in two batches."""
        try:
            middle = len(waiting) // 2 if len(waiting) > self._rules.least else 0
            for half in (waiting[:middle], waiting[middle:]):
                if half:
                    await self._submit(half)
        except Exception as error:
            _fail(waiting, error)

    async def _wait_until_over(self, job: Job) -> Job:
        """Wait until a batch is over, and cancel it after the deadline."""
        cancelled = False
        for pause in self._pauses():
            job = await self._state(job)
            age = self._now() - job.created
            if job.is_over or age > self._rules.deadline + CANCEL_TIMEOUT_S:
                return job
            if age > self._rules.deadline and not cancelled:
                with contextlib.suppress(Transient):  # tried again at the next poll
                    await self._route.cancel(job.id)
                    cancelled = True
            await asyncio.sleep(pause)
        raise AssertionError("pauses never end")

    async def _fetch_entries(self, job: Job) -> dict[str, BatchEntry]:
        """Fetch the results of a batch. They are paid for, so a failed fetch is tried again."""
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
        """The present state of a batch; the last known one while the endpoint fails."""
        try:
            return await self._route.state(job.id) or replace(job, status="failed", why="unknown")
        except Transient:
            return job

    def _pauses(self) -> Iterator[float]:
        pause, longest = self._rules.pauses
        while True:
            yield pause
            pause = min(longest, POLL_GROWTH * pause)

    async def _record(self, job: Job, keys: list[str]) -> None:
        """Record in the store which calls a batch contains."""
        record = {"tag": self._tag, "id": job.id, "created": job.created, "keys": keys}
        name = self._name(job.id)
        await asyncio.to_thread(self._store.put, KIND, name, json.dumps(record).encode())
        self._add_record(name, record)

    def _add_record(self, name: str, record: Any) -> None:
        self._known_batches.add(name)
        if record["tag"] == self._tag:
            self._sent |= dict.fromkeys(record["keys"], record["id"])

    async def _refresh(self) -> None:
        """Find the batches of other workers: in the store, and at the endpoint where a worker was
        killed before it recorded its batch.
        """
        since, now = self._refreshed, self._now()
        names = await asyncio.to_thread(self._store.keys, KIND, since)
        new = [n for n in names if n not in self._known_batches]
        records = [(name, await self._read_record(name)) for name in new]
        intact = [(name, record) for name, record in records if record is not None]
        for name, record in sorted(intact, key=lambda each: each[1]["created"]):
            self._add_record(name, record)
        jobs = await self._route.list_batches(since)
        self._has_no_route = jobs is None
        if jobs is None and self._config.batch == "always":
            raise UserError(
                f"{self._chat.connection.place} has no batch route: set batch=auto or never"
            )
        for job in reversed(jobs or ()):
            unknown = job.tag == self._tag and self._name(job.id) not in self._known_batches
            if unknown and job.status != "failed":
                await self._record(job, await self._route.keys(job))
                self._count("batches found", 1)
        self._refreshed, self._has_refreshed = now - MAX_CLOCK_SKEW_S, True

    async def _read_record(self, name: str) -> Any:
        """The record of a batch; None if it is damaged."""
        return json.loads(await asyncio.to_thread(self._store.get, KIND, name) or b"null")

    def _name(self, batch: str) -> str:
        """The name of a batch's record in the store."""
        return digest([self._tag, batch])


def _settle(group: Iterable[_Waiting], entry: BatchEntry | None) -> None:
    for waiting in group:
        if not waiting.entry.done():
            waiting.entry.set_result(entry)


def _fail(group: Iterable[_Waiting], error: Exception) -> None:
    for waiting in group:
        if not waiting.entry.done():
            waiting.entry.set_exception(error)
