"""The gateway: every model call of a run goes through it, and recipes see it as the model.

A call is looked up in the store, joined to an equal call in flight (in this process or elsewhere in
the cluster), admitted by the coordinator (limits, budget), tried with bounded retries that honour
Retry-After, stored, and entered in the usage totals. Transient failures are never stored. In a
cluster the call itself is made, and its reply stored, in a process apart (`actors.calls.sender`).
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from actors.calls.admission import AdmissionRequest
from actors.calls.batches import Batchable, BatchClient, Count
from actors.calls.coordinator import Coordinator
from actors.calls.coordinator_actor import call_coordinator
from actors.calls.coordinator_client import CoordinatorClient
from actors.calls.coordinator_handle import CoordinatorHandle
from actors.calls.endpoint import CallEstimate, Endpoint
from actors.calls.failover import Failover
from actors.calls.sender import Sender, SenderDied
from actors.part import LlmConfig
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.calls.quota import Quota
from mustsee.calls.usage import CallOutcome
from mustsee.errors import BudgetSpent, Busy, DiskFull, NoAnswer, Transient
from mustsee.schemas import dump, load
from mustsee.store import Store

KIND = "llm"  # the store's folder of replies
LONGEST_BACKOFF = 30.0  # seconds
START_STEP_S = 0.02  # seconds, in which a worker's calls start
UNBOUNDED_CALLS = 1 << 30  # calls at once of a model that is no endpoint
# of the calls in flight: so many more wait in the sender for one of them to end
WAITING_SHARE = 1 / 16

Sleep = Callable[[float], Awaitable[None]]


@runtime_checkable
class MeteredModel(Protocol):
    """A configured model that is limited, paid for, and may fail for a while: any endpoint."""

    @property
    def endpoint(self) -> Endpoint: ...

    def estimate(self, request: Request) -> CallEstimate: ...


@runtime_checkable
class ReportsQuotas(Protocol):
    """A connected model whose endpoint tells its limits: of "requests" and "tokens", by its last
    reply.
    """

    @property
    def quotas(self) -> Mapping[str, Quota]: ...


def reported_quotas(llm: object) -> Mapping[str, Quota]:
    """What a model's last reply told of its limits."""
    return llm.quotas if isinstance(llm, ReportsQuotas) else {}


@runtime_checkable
class HasSubstitutes(Protocol):
    """A configured model with others that may take its place: itself, and they in their order."""

    @property
    def ways(self) -> Sequence[Any]: ...


class Gateway:
    """An `Llm` around another; it serves one event loop at a time. `sender`: makes the calls, which
    are to the model that it knows by the number `known_as`. `sleep` is what waits.
    """

    def __init__(
        self,
        llm: Llm,
        store: Store,
        coordinator: Coordinator | CoordinatorHandle,
        meter: MeteredModel | None = None,
        *,
        batched: BatchClient | None = None,
        instead: str = "",
        sender: Sender | None = None,
        known_as: int = 0,
        stage: str = "",
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._llm, self._store, self._coordinator, self._meter = llm, store, coordinator, meter
        self._batched, self._instead, self._sleep = batched, instead, sleep
        self._sender, self._known_as, self._stage = sender, known_as, stage
        self._name = uuid.uuid4().hex
        self._remote_store = "://" in store.root
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flying: dict[str, asyncio.Task[Reply]] = {}
        self._took: dict[str, float] = {}  # seconds of the calls that were answered
        self._said = "nothing"
        self._told: Mapping[str, Quota] = {}

    @classmethod
    def connect(
        cls,
        config: LlmConfig,
        store: Store,
        coordinator: Coordinator | CoordinatorHandle,
        count: Count = lambda name, n: None,
        sender: Sender | None = None,
        stage: str = "",
    ) -> Gateway | Failover:
        """The configured model behind the gateway. `coordinator`: a `Coordinator`, or a Ray
        actor of one. `count` adds to a counter of the run. `sender`: makes an endpoint's calls;
        None: they are made here. `stage`: what the calls are entered under.

        Raises UserError when the model cannot be opened (a missing key).
        """
        ways = config.ways if isinstance(config, HasSubstitutes) else ()
        if len(ways) > 1:
            named = ["", *[ways[0].endpoint.model] * (len(ways) - 1)]
            return Failover(
                [
                    cls._connect(way, store, coordinator, count, sender, stage, instead)
                    for way, instead in zip(ways, named, strict=True)
                ]
            )
        return cls._connect(config, store, coordinator, count, sender, stage)

    @classmethod
    def _connect(
        cls,
        config: LlmConfig,
        store: Store,
        coordinator: Coordinator | CoordinatorHandle,
        count: Count,
        sender: Sender | None,
        stage: str,
        instead: str = "",
    ) -> Gateway:
        meter = config if isinstance(config, MeteredModel) else None
        if meter is not None:
            if isinstance(coordinator, Coordinator):
                coordinator.register_account(meter.endpoint.account, meter.endpoint.limits)
            else:
                endpoint = meter.endpoint
                call_coordinator(
                    coordinator.register_account.remote(endpoint.account, endpoint.limits)
                )
        batched = config.by_batch(store, count) if isinstance(config, Batchable) else None
        sender = sender if meter is not None else None
        return cls(
            config.open(),
            store,
            coordinator,
            meter,
            batched=batched,
            instead=instead,
            sender=sender,
            known_as=sender.model(config) if sender is not None else 0,
            stage=stage,
        )

    @property
    def identity(self) -> str:
        return self._llm.identity

    async def stored_reply(self, request: Request) -> Reply | None:
        """The reply that was kept, if there is one."""
        return await self._stored(request.key(self.identity))

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
            most = self._meter.endpoint.max_connections if self._meter else UNBOUNDED_CALLS
            ahead = int(WAITING_SHARE * most) if self._sender is not None else 0
            self._room = asyncio.Semaphore(most + ahead)
            self._client = CoordinatorClient(self._coordinator, self._owner)

    def _owner(self) -> str:
        if self._sender is None or not self._sender.name:
            return self._name
        return f"{self._sender.name}/{self._known_as}"

    def _done(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._flying.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen, though nobody may wait for it any more

    async def _answer(self, key: str, request: Request) -> Reply:
        stored = await self._stored(key)
        if stored is not None:
            await self._client.report(self._entry("cached", key, request, stored))
            return stored
        began = time.monotonic()
        try:
            reply = await self._tried(key, request)
        except DiskFull:  # it was paid for, and the sender has the reply: a later run finds both
            raise
        except Exception:
            await self._client.report(self._entry("failed", key, request))
            raise
        if reply.cached:
            await self._client.report(self._entry("cached", key, request, reply))
            return reply
        took = self._took.pop(key, 0.0)
        held = 0.0 if reply.batched else time.monotonic() - began - took
        if self._sender is None or reply.batched:  # before it is reported: others then look there
            await self._aside(keep, self._store, key, reply)
        entry = self._entry("done", key, request, reply)
        await self._client.report(replace(entry, seconds=took, held=held))
        return reply

    async def _tried(self, key: str, request: Request) -> Reply:
        """Try until it is answered: `attempts` times, and once more for every time that it is only
        refused because there are too many others.
        """
        endpoint = self._meter.endpoint if self._meter is not None else None
        failures = tries = 0
        while True:
            try:
                if made := await self._by_batch(key, request):
                    return made
                async with self._room:
                    return await self._attempt(key, request)
            except Transient as error:
                refused, tries = isinstance(error, Busy), tries + 1
                failures += not refused
                asked = error.retry_after
                if (
                    endpoint is None
                    or isinstance(error, NoAnswer)
                    or failures >= endpoint.attempts
                    or (asked or 0.0) > endpoint.patience
                ):
                    raise
                self._said = str(error)
                unknown = isinstance(error, SenderDied)  # whether it was billed
            entry = self._entry("refused" if refused else "retry", key, request)
            if not unknown:
                await self._client.report(replace(entry, retry_after=asked, said=self._said))
            draw = random.Random(f"{key}/{tries}/backoff").uniform(0.5, 1.0)
            backoff = min(LONGEST_BACKOFF, 0.5 * 2 ** (failures or 1)) * draw
            await self._sleep(backoff if asked is None else asked + min(backoff, 1.0))

    async def _by_batch(self, key: str, request: Request) -> Reply | None:
        """One try by batch; None where the call is to be made directly."""
        if self._batched is None or (ask := await self._batched.ask(key, request)) is None:
            return None
        return await self._admitted(ask) or await self._batched.complete(key, request)

    async def _attempt(self, key: str, request: Request) -> Reply:
        """One direct try, in the room of a connection, once the coordinator admits it."""
        if self._meter is not None:
            estimate = self._meter.estimate(request)
            ask = AdmissionRequest(
                key=key,
                account=self._meter.endpoint.account,
                prompt=request.prompt,
                model=self._meter.endpoint.model,
                tokens_in=estimate.tokens_in,
                tokens_out=estimate.tokens_out,
                usd=estimate.usd,
                usd_in=estimate.usd_in,
                patience=self._meter.endpoint.patience,
            )
            if made := await self._admitted(ask):
                return made
        if self._sender is not None:
            reply, self._took[key] = await self._sender.complete(self._known_as, key, request)
            return reply
        began = time.monotonic()
        reply = await self._llm.complete(request)
        self._took[key] = time.monotonic() - began
        return reply

    async def _admitted(self, ask: AdmissionRequest) -> Reply | None:
        """Wait until the call may be made; the reply, where an equal call was made elsewhere.
        Raises BudgetSpent and NoAnswer.
        """
        while True:
            if self._sender is not None:
                await self._sender.begin()
            grant = await self._client.ask(ask)
            if grant.answer == "spent":
                raise BudgetSpent(
                    "budget_usd is reached by the runs of this out=: no further paid call is "
                    "made; what is finished is kept, so the same command with a higher budget_usd "
                    "goes on from here"
                )
            if grant.answer == "dead":
                assert self._meter is not None
                raise NoAnswer(
                    f"{self._meter.endpoint.place}: no answer for {ask.patience:g} s; the last "
                    f"that it said: {self._said}"
                )
            if grant.answer == "elsewhere" and not ask.batched:
                self._room.release()  # who is waited for may need it
                await self._sleep(grant.wait)
                await self._room.acquire()
            elif grant.answer != "go":
                await self._sleep(grant.wait)
            if grant.answer != "hold" and (made := await self._stored(ask.key)):
                return made  # elsewhere, since `_answer` looked
            if grant.answer == "go":
                break
        if grant.wait > 0:
            now = asyncio.get_running_loop().time()
            await self._sleep(align_to_step(grant.wait, now) if self._sender else grant.wait)
        return None

    def _entry(
        self, outcome: Any, key: str, request: Request, reply: Reply | None = None
    ) -> CallOutcome:
        named = self._meter.endpoint.model if self._meter else self.identity
        return CallOutcome(
            outcome=outcome,
            model=named,
            prompt=request.prompt,
            tokens_in=reply.tokens_in if reply else 0,
            tokens_out=reply.tokens_out if reply else 0,
            tokens_thought=reply.tokens_thought if reply else 0,
            usd=reply.usd if reply else 0.0,
            again=request.reason,
            instead=self._instead,
            key=key,
            account=self._meter.endpoint.account if self._meter else "",
            batched=reply.batched if reply else False,
            stage=self._stage,
            quotas=self._told_quotas(),
        )

    def _told_quotas(self) -> Mapping[str, Quota] | None:
        """What the endpoint told of its limits since this was asked last."""
        told = (
            reported_quotas(self._llm)
            if self._sender is None
            else self._sender.quotas(self._known_as)
        )
        fresh, self._told = told is not self._told, told
        return told if fresh and told else None

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


def align_to_step(wait: float, now: float) -> float:
    """So many seconds, and on to the next `START_STEP_S` of the clock that shows `now`: calls that
    start at about the same time wake the sender once.
    """
    return math.ceil((now + wait) / START_STEP_S) * START_STEP_S - now


def keep(store: Store, key: str, reply: Reply) -> None:
    """Store a reply."""
    store.put(KIND, key, json.dumps(dump(reply), sort_keys=True).encode())
