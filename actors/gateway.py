"""The gateway: every model call of a run goes through it, and recipes see it as the model.

A call is looked up in the store, joined to an equal call in flight (in this process or elsewhere in
the cluster), admitted by the coordinator (limits, budget), tried with bounded retries that honour
Retry-After, stored, and entered in the ledger. Transient failures are never stored.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from actors.batches import Batchable, Batched, Count
from actors.coordinator import Ask, Coordinator
from actors.coordinator_client import CoordinatorClient
from actors.endpoint import Endpoint, Estimate
from actors.part import LlmConfig
from mustsee.errors import BudgetSpent, Transient
from mustsee.llm import Llm, Reply, Request
from mustsee.run.ledger import Entry
from mustsee.schemas import dump, load
from mustsee.store import Store

KIND = "llm"  # the store's folder of replies
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
        coordinator: Any,
        meter: Metered | None = None,
        *,
        batched: Batched | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._llm, self._store, self._coordinator, self._meter = llm, store, coordinator, meter
        self._batched, self._sleep = batched, sleep
        self._remote_store = "://" in store.root
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flying: dict[str, asyncio.Task[Reply]] = {}

    @classmethod
    def connect(
        cls, config: LlmConfig, store: Store, coordinator: Any, count: Count = lambda name, n: None
    ) -> Gateway:
        """The configured model behind the gateway. `coordinator`: a `Coordinator`, or a Ray
        actor of one. `count` adds to a counter of the run.

        Raises UserError when the model cannot be opened (a missing key).
        """
        meter = config if isinstance(config, Metered) else None
        if meter is not None:
            if isinstance(coordinator, Coordinator):
                coordinator.enroll(meter.endpoint.account, meter.endpoint.limits)
            else:
                import ray

                ray.get(coordinator.enroll.remote(meter.endpoint.account, meter.endpoint.limits))
        batched = config.by_batch(store, count) if isinstance(config, Batchable) else None
        return cls(config.open(), store, coordinator, meter, batched=batched)

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
            await self._client.report(self._entry("cached", key, request, reply))
            return reply
        task = asyncio.create_task(self._answer(key, request))
        self._flying[key] = task
        task.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.shield(task)

    def _bind(self) -> None:
        """What is in flight belongs to one event loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._flying = loop, {}
            self._client = CoordinatorClient(self._coordinator)

    def _done(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._flying.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen, though nobody may wait for it any more

    async def _answer(self, key: str, request: Request) -> Reply:
        stored = await self._stored(key)
        if stored is not None:
            await self._client.report(self._entry("cached", key, request, stored))
            return stored
        try:
            reply = await self._retrying(key, request)(self._attempt, key, request)
        except Exception:
            await self._client.report(self._entry("failed", key, request))
            raise
        if not reply.cached:
            await self._keep(key, reply)  # before it is reported: others then look in the store
        outcome = "cached" if reply.cached else "done"
        await self._client.report(self._entry(outcome, key, request, reply))
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
            await self._client.report(replace(entry, retry_after=_retry_after(state)))

        return AsyncRetrying(
            stop=stop_after_attempt(meter.endpoint.attempts if meter else 1),
            wait=wait,
            retry=retry_if_exception(worth),
            sleep=self._sleep,
            before_sleep=before_sleep,
            reraise=True,
        )

    async def _attempt(self, key: str, request: Request) -> Reply:
        """One try, by batch or directly, once the coordinator admits it."""
        if self._batched is not None and (ask := await self._batched.ask(key, request)) is not None:
            made = await self._admitted(ask) or await self._batched.complete(key, request)
            if made is not None:
                return made
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
            if made := await self._admitted(ask):
                return made
        return await self._llm.complete(request)

    async def _admitted(self, ask: Ask) -> Reply | None:
        """Wait until the call may be made; the reply, where an equal call was made elsewhere.
        Raises BudgetSpent.
        """
        while True:
            grant = await self._client.ask(ask)
            if grant.answer == "spent":
                raise BudgetSpent(
                    "budget_usd is reached by the runs of this out=: no further paid call is "
                    "made; what is finished is kept, so the same command with a higher budget_usd "
                    "goes on from here"
                )
            if grant.answer != "go":
                await self._sleep(grant.wait)
            if grant.answer != "hold" and (made := await self._stored(ask.key)):
                return made  # elsewhere, since `_answer` looked
            if grant.answer == "go":
                break
        if grant.wait > 0:
            await self._sleep(grant.wait)
        return None

    def _entry(self, outcome: Any, key: str, request: Request, reply: Reply | None = None) -> Entry:
        named = self._meter.endpoint.model if self._meter else self.identity
        return Entry(
            outcome=outcome,
            model=named,
            prompt=request.prompt,
            tokens_in=reply.tokens_in if reply else 0,
            tokens_out=reply.tokens_out if reply else 0,
            tokens_thought=reply.tokens_thought if reply else 0,
            usd=reply.usd if reply else 0.0,
            again=request.reason,
            key=key,
            account=self._meter.endpoint.account if self._meter else "",
            batched=reply.batched if reply else False,
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
