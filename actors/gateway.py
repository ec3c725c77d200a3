"""The gateway: every model call of a run goes through it, and recipes see it as the model.

A call is looked up in the store, joined to an equal call in flight (in this process or elsewhere in
the cluster), let through by the desk (limits, budget), tried with bounded retries that honour
Retry-After, stored, and entered in the ledger. Transient failures are never stored.
"""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from actors.coordinator import Ask, Desk, Grant
from actors.endpoint import Endpoint, Estimate
from actors.part import LlmConfig
from mustsee.errors import BudgetSpent, Transient
from mustsee.llm import Llm, Reply, Request
from mustsee.run.ledger import Entry
from mustsee.schemas import dump, load
from mustsee.store import Store

KIND = "llm"  # the store's folder of replies
GATHER = 0.002  # seconds for which messages to the desk are gathered into one
HEARTBEAT = 3.0  # seconds
LONGEST_BACKOFF = 30.0  # seconds

Sleep = Callable[[float], Awaitable[None]]


@runtime_checkable
class Metered(Protocol):
    """A configured model that is limited, paid for, and may fail for a while: any endpoint."""

    @property
    def endpoint(self) -> Endpoint: ...

    def estimate(self, request: Request) -> Estimate: ...


class Gateway:
    """An `Llm` around another; it serves one event loop at a time. `sleep` is what waits."""

    def __init__(
        self,
        llm: Llm,
        store: Store,
        desk: Any,
        meter: Metered | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._llm, self._store, self._desk, self._meter = llm, store, desk, meter
        self._sleep = sleep
        self._remote_store = "://" in store.root
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flying: dict[str, asyncio.Task[Reply]] = {}

    @classmethod
    def connect(cls, config: LlmConfig, store: Store, desk: Any) -> Llm:
        """The configured model behind the gateway. `desk`: a `Desk`, or a Ray actor of one.

        Raises UserError when the model cannot be opened (a missing key).
        """
        meter = config if isinstance(config, Metered) else None
        if meter is not None:
            if isinstance(desk, Desk):
                desk.enroll(meter.endpoint.account, meter.endpoint.limits)
            else:
                import ray

                ray.get(desk.enroll.remote(meter.endpoint.account, meter.endpoint.limits))
        return cls(config.open(), store, desk, meter)

    @property
    def identity(self) -> str:
        return self._llm.identity

    async def complete(self, request: Request) -> Reply:
        """As `Llm.complete`. Equal requests at the same time are one call; the call goes on when
        the one who asked is cancelled, so that nothing paid for is lost.
        """
        self._bind()
        key = request.key(self.identity)
        task = self._flying.get(key)
        if task is not None:
            reply = replace(await asyncio.shield(task), cached=True)
            await self._courier.tell(self._entry("cached", key, request, reply))
            return reply
        task = asyncio.create_task(self._answer(key, request))
        self._flying[key] = task
        task.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(task)

    def _bind(self) -> None:
        """What is in flight belongs to one event loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._flying = loop, {}
            self._courier = Courier(self._desk)

    def _landed(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._flying.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen, though nobody may wait for it any more

    async def _answer(self, key: str, request: Request) -> Reply:
        stored = await self._stored(key)
        if stored is not None:
            await self._courier.tell(self._entry("cached", key, request, stored))
            return stored
        try:
            reply = await self._retrying(key, request)(self._attempt, key, request)
        except Exception:
            await self._courier.tell(self._entry("failed", key, request))
            raise
        if not reply.cached:
            await self._keep(key, reply)  # before the desk is told: others then look in the store
        outcome = "cached" if reply.cached else "done"
        await self._courier.tell(self._entry(outcome, key, request, reply))
        return reply

    def _retrying(self, key: str, request: Request) -> AsyncRetrying:
        meter = self._meter
        patience = meter.endpoint.patience if meter else 0.0

        def worth(error: BaseException) -> bool:
            return isinstance(error, Transient) and (error.retry_after or 0.0) <= patience

        def wait(state: RetryCallState) -> float:
            asked = _retry_after(state)
            draw = random.Random(f"{key}/{state.attempt_number}/backoff").uniform(0.5, 1.0)
            backoff = min(LONGEST_BACKOFF, 0.5 * 2**state.attempt_number) * draw
            return backoff if asked is None else asked + min(backoff, 1.0)

        async def before_sleep(state: RetryCallState) -> None:
            entry = self._entry("retry", key, request)
            await self._courier.tell(replace(entry, retry_after=_retry_after(state)))

        return AsyncRetrying(
            stop=stop_after_attempt(meter.endpoint.attempts if meter else 1),
            wait=wait,
            retry=retry_if_exception(worth),
            sleep=self._sleep,
            before_sleep=before_sleep,
            reraise=True,
        )

    async def _attempt(self, key: str, request: Request) -> Reply:
        """One try: let through by the desk, unless an equal call elsewhere made it meanwhile."""
        if self._meter is not None:
            estimate = self._meter.estimate(request)
            ask = Ask(
                key=key,
                account=self._meter.endpoint.account,
                prompt=request.prompt,
                tokens_in=estimate.tokens_in,
                tokens_out=estimate.tokens_out,
                usd=estimate.usd,
            )
            while True:
                grant = await self._courier.ask(ask)
                if grant.answer == "spent":
                    raise BudgetSpent(
                        "budget_usd is reached: no further paid call is made; what is finished is "
                        "kept, so the same command with a higher budget_usd goes on from here"
                    )
                if grant.answer != "go":
                    await self._sleep(grant.wait)
                if grant.answer != "hold" and (made := await self._stored(key)):
                    return made  # elsewhere, since `_answer` looked
                if grant.answer == "go":
                    break
            if grant.wait > 0:
                await self._sleep(grant.wait)
        return await self._llm.complete(request)

    def _entry(self, outcome: Any, key: str, request: Request, reply: Reply | None = None) -> Entry:
        named = self._meter.endpoint.model if self._meter else self.identity
        return Entry(
            outcome=outcome,
            model=named,
            prompt=request.prompt,
            tokens_in=reply.tokens_in if reply else 0,
            tokens_out=reply.tokens_out if reply else 0,
            usd=reply.usd if reply else 0.0,
            again=request.attempt > 0,
            key=key,
            account=self._meter.endpoint.account if self._meter else "",
        )

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(16, thread_name_prefix="llm-store")

    async def _aside(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """The store on a thread: a busy disk takes milliseconds, an object store tens of them."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, work, *arguments)

    async def _stored(self, key: str) -> Reply | None:
        value: bytes | None = (
            await self._aside(self._store.get, KIND, key)
            if self._remote_store
            else self._store.get(KIND, key)
        )
        return None if value is None else replace(load(Reply, json.loads(value)), cached=True)

    async def _keep(self, key: str, reply: Reply) -> None:
        value = json.dumps(dump(reply), sort_keys=True).encode()
        await self._aside(self._store.put, KIND, key, value)


def _retry_after(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after if isinstance(error, Transient) else None


class Courier:
    """Carries asks and entries to the desk: what comes within `GATHER` seconds is one message."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self._owner = uuid.uuid4().hex
        self._entries: list[tuple[Entry, asyncio.Future[None]]] = []
        self._asks: list[tuple[Ask, asyncio.Future[Grant]]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._held: set[str] = set()
        self._beating = False

    async def tell(self, entry: Entry) -> None:
        """Returns when the desk has counted it."""
        future: asyncio.Future[None] = self._wake()
        self._entries.append((entry, future))
        await future

    async def ask(self, ask: Ask) -> Grant:
        future: asyncio.Future[Grant] = self._wake()
        self._asks.append((ask, future))
        return await future

    def _wake(self) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if not self._entries and not self._asks:
            loop.call_later(GATHER, self._send)
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
        entries: list[tuple[Entry, asyncio.Future[None]]],
        asks: list[tuple[Ask, asyncio.Future[Grant]]],
    ) -> None:
        message = self._owner, [entry for entry, _ in entries], [ask for ask, _ in asks]
        try:
            if isinstance(self._desk, Desk):
                grants = self._desk.exchange(*message)
            else:
                grants = await self._desk.exchange.remote(*message)
        except Exception as error:
            for _, future in (*entries, *asks):
                if not future.done():
                    future.set_exception(error)
            return
        for _, future in entries:
            if not future.done():
                future.set_result(None)
        for (_, future), grant in zip(asks, grants, strict=True):
            if not future.done():
                future.set_result(grant)
        self._held -= {entry.key for entry, _ in entries}
        self._held |= {
            ask.key for (ask, _), grant in zip(asks, grants, strict=True) if grant.answer == "go"
        }
        if self._held and not self._beating and not isinstance(self._desk, Desk):
            self._spawn(self._beat())

    async def _beat(self) -> None:
        """Signs of life while calls are in flight: a silent owner's calls are given to others."""
        self._beating = True
        try:
            while self._held:
                await asyncio.sleep(HEARTBEAT)
                await self._desk.exchange.remote(self._owner, [], [])
        finally:
            self._beating = False
