"""The gateway, through which every model call of a run goes; recipes use it as the model.

A call is looked up in the store, joined to an equal call in flight (in this process or elsewhere in
the cluster), admitted by the coordinator (limits, budget), tried with bounded retries that honour
Retry-After, stored, and counted in the usage totals. Transient failures are never stored. In a
cluster a separate process makes the call and stores its reply (`actors.calls.sender`).
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

from actors.calls.batches import Batchable, BatchClient, Count
from actors.calls.coordinator import Coordinator
from actors.calls.coordinator_actor import CoordinatorClient, CoordinatorHandle, call_coordinator
from actors.calls.endpoint import CallEstimate, Endpoint
from actors.calls.no_answer import Failover, ReplyWaits
from actors.calls.sender import Sender, SenderDied
from actors.part import LlmConfig
from mustsee.calls.budget import AdmissionRequest
from mustsee.calls.limits import Quota
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.calls.usage import CallOutcome
from mustsee.errors import BudgetSpent, Busy, NoAnswer, Transient, Unwritable
from mustsee.files.schemas import dump, load
from mustsee.files.store import Store

KIND = "llm"  # the store's folder of replies
MAX_BACKOFF_S = 30.0  # seconds between two attempts, unless the endpoint asks for more
START_STEP_S = 0.02  # seconds; calls of a worker start together at multiples of it
UNBOUNDED_CALLS = 1 << 30  # calls at once of a model that is not an endpoint
# Calls that wait in the sender for a free connection, as a share of `max_connections`.
WAITING_SHARE = 1 / 16

Sleep = Callable[[float], Awaitable[None]]


@runtime_checkable
class MeteredModel(Protocol):
    """A configured model with limits, prices and temporary failures: any endpoint."""

    @property
    def endpoint(self) -> Endpoint: ...

    def estimate(self, request: Request) -> CallEstimate: ...


@runtime_checkable
class ReportsQuotas(Protocol):
    """A connected model whose endpoint reports its limits of "requests" and "tokens" with each
    reply.
    """

    @property
    def quotas(self) -> Mapping[str, Quota]: ...


def quota_reader(llm: object) -> Callable[[], Mapping[str, Quota]]:
    """Return what reads the limits that a model's endpoint reported with its last reply. Each call
    reads them, and the check of a protocol takes 40 µs.
    """
    if not isinstance(llm, ReportsQuotas):
        return dict
    reports = llm
    return lambda: reports.quotas


@runtime_checkable
class LearnsParameters(Protocol):
    """A connected model that learns which parameters its endpoint refuses, and keeps that in a
    store.
    """

    def remember(self, store: Store) -> None: ...


def open_model(config: LlmConfig, store: Store) -> Llm:
    """Connect a model that uses what the store knows of its endpoint."""
    llm = config.open()
    if isinstance(llm, LearnsParameters):
        llm.remember(store)
    return llm


@runtime_checkable
class HasSubstitutes(Protocol):
    """A configured model with fallbacks. `ways`: the model itself and its fallbacks, in order."""

    @property
    def ways(self) -> Sequence[Any]: ...


class Gateway:
    """An `Llm` that wraps another; it serves one event loop at a time. `sender`: makes the calls,
    to its model number `model_number`. `instead`: the model that this one is a fallback of.
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
        model_number: int = 0,
        stage: str = "",
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._llm, self._store, self._coordinator, self._meter = llm, store, coordinator, meter
        self._quotas = quota_reader(llm)
        self._batched, self._instead, self._sleep = batched, instead, sleep
        self._sender, self._model_number, self._stage = sender, model_number, stage
        self._name = uuid.uuid4().hex
        self._remote_store = "://" in store.root
        self._loop: asyncio.AbstractEventLoop | None = None
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._call_seconds: dict[str, float] = {}  # durations of calls that were answered
        self._waits = ReplyWaits(meter.endpoint.timeout if meter is not None else math.inf)
        self._last_error = "none"
        self._reported_quotas: Mapping[str, Quota] = {}

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
        """Connect a configured model through the gateway. `count` adds to a counter of the run.
        `sender`: makes an endpoint's calls; None: they are made here. `stage`: the calls are
        counted under it.

        Raises UserError if the model cannot be opened (a missing key).
        """
        ways = list[Any](config.ways if isinstance(config, HasSubstitutes) else (config,))
        is_metered = isinstance(config, MeteredModel)
        way_sender = sender if is_metered else None
        routes: list[Gateway] = []
        for way in ways:
            if is_metered:
                account = way.endpoint.account, way.endpoint.limits
                if isinstance(coordinator, Coordinator):
                    coordinator.register_account(*account)
                else:
                    call_coordinator(coordinator.register_account.remote(*account))
            gateway = cls(
                open_model(way, store),
                store,
                coordinator,
                way if is_metered else None,
                batched=way.by_batch(store, count) if isinstance(config, Batchable) else None,
                instead=ways[0].endpoint.model if routes else "",
                sender=way_sender,
                model_number=way_sender.model(way) if way_sender is not None else 0,
                stage=stage,
            )
            routes.append(gateway)
        return Failover(routes) if len(routes) > 1 else routes[0]

    @property
    def identity(self) -> str:
        return self._llm.identity

    async def stored_reply(self, request: Request) -> Reply | None:
        """The stored reply, if there is one."""
        return await self._stored(request.key(self.identity))

    async def complete(self, request: Request) -> Reply:
        """As `Llm.complete`. Equal requests at the same time are one call. A call continues when
        its caller is cancelled, so that no paid reply is lost.
        """
        self._bind()
        key = request.key(self.identity)
        task = self._in_flight.get(key)
        if task is not None:
            reply = replace(await asyncio.shield(task), cached=True)
            await self._client.report(self._entry("cached", key, request, reply))
            return reply
        task = asyncio.create_task(self._answer(key, request))
        self._in_flight[key] = task
        task.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.shield(task)

    def _bind(self) -> None:
        """Begin again on another event loop, to which tasks belong."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._in_flight = loop, {}
            most = self._meter.endpoint.max_connections if self._meter else UNBOUNDED_CALLS
            ahead = int(WAITING_SHARE * most) if self._sender is not None else 0
            self._room = asyncio.Semaphore(most + ahead)
            self._client = CoordinatorClient(self._coordinator, self._owner)

    def _owner(self) -> str:
        if self._sender is None or not self._sender.name:
            return self._name
        return f"{self._sender.name}/{self._model_number}"

    def _done(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._in_flight.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, because the caller may have been cancelled

    async def _answer(self, key: str, request: Request) -> Reply:
        stored = await self._stored(key)
        if stored is not None:
            await self._client.report(self._entry("cached", key, request, stored))
            return stored
        began = time.monotonic()
        try:
            reply = await self._retry(key, request)
        except Unwritable:  # not a failed call: the sender still has the paid reply to store
            raise
        except Exception as error:
            await self._client.report(self._entry("failed", key, request).billed_by(error))
            raise
        if reply.cached:
            await self._client.report(self._entry("cached", key, request, reply))
            return reply
        seconds = self._call_seconds.pop(key, 0.0)
        seconds_held = 0.0 if reply.batched else time.monotonic() - began - seconds
        # Stored before it is reported, because others look for it in the store then.
        if self._sender is None or reply.batched:
            await self._run_in_thread(keep, self._store, key, reply)
        await self._client.report(
            self._entry("done", key, request, reply, seconds=seconds, held=seconds_held)
        )
        return reply

    async def _retry(self, key: str, request: Request) -> Reply:
        """Make the call, with up to `attempts` failures; refusals for overload are not counted."""
        endpoint = self._meter.endpoint if self._meter is not None else None
        failures = tries = timeouts = 0
        while True:
            try:
                if reply := await self._complete_by_batch(key, request):
                    return reply
                async with self._room:
                    return await self._attempt(key, self._waits.lengthen(request, timeouts))
            except Transient as error:
                refused, tries = isinstance(error, Busy), tries + 1
                timeouts += error.waited > 0
                self._waits.record_timeout(request.prompt, error.waited)
                failures += not refused
                retry_after = error.retry_after
                if (
                    endpoint is None
                    or isinstance(error, NoAnswer)
                    or failures >= endpoint.attempts
                    or (retry_after or 0.0) > endpoint.patience
                ):
                    raise
                self._last_error = str(error)
                entry = self._entry("refused" if refused else "retry", key, request)
                entry = entry.billed_by(error)
                sender_died = isinstance(error, SenderDied)  # the coordinator notices that itself
            if not sender_died:
                await self._client.report(
                    replace(entry, retry_after=retry_after, said=self._last_error)
                )
            draw = random.Random(f"{key}/{tries}/backoff").uniform(0.5, 1.0)
            backoff = min(MAX_BACKOFF_S, 0.5 * 2 ** (failures or 1)) * draw
            if retry_after is not None:
                backoff = retry_after + min(backoff, 1.0)
            await self._sleep(backoff)

    async def _complete_by_batch(self, key: str, request: Request) -> Reply | None:
        """Make one attempt by batch. None: the call is to be made directly."""
        if self._batched is None or (ask := await self._batched.ask(key, request)) is None:
            return None
        return await self._wait_for_grant(ask) or await self._batched.complete(key, request)

    async def _attempt(self, key: str, request: Request) -> Reply:
        """Make one direct attempt once the coordinator admits it, within a connection's slot."""
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
            if stored := await self._wait_for_grant(ask):
                return stored
        if self._sender is not None:
            number = self._model_number
            reply, self._call_seconds[key] = await self._sender.complete(number, key, request)
        else:
            began = time.monotonic()
            reply = await self._llm.complete(request)
            self._call_seconds[key] = time.monotonic() - began
        self._waits.record_answer(request.prompt, self._call_seconds[key])
        return reply

    async def _wait_for_grant(self, ask: AdmissionRequest) -> Reply | None:
        """Wait until the call may be made. Returns the reply if an equal call was made elsewhere.
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
                    f"{self._meter.endpoint.place}: no answer for {ask.patience:g} s; its last "
                    f"error: {self._last_error}"
                )
            if grant.answer == "elsewhere" and not ask.batched:
                self._room.release()  # the awaited call may need this slot
                await self._sleep(grant.wait)
                await self._room.acquire()
            elif grant.answer != "go":
                await self._sleep(grant.wait)
            if grant.answer != "hold" and (stored := await self._stored(ask.key)):
                return stored  # an equal call was made elsewhere in the meantime
            if grant.answer == "go":
                break
        if grant.wait > 0:
            now = asyncio.get_running_loop().time()
            await self._sleep(align_to_step(grant.wait, now) if self._sender else grant.wait)
        return None

    def _entry(
        self, outcome: Any, key: str, request: Request, reply: Reply | None = None,
        seconds: float = 0.0, held: float = 0.0,
    ) -> CallOutcome:  # fmt: skip
        named = self._meter.endpoint.model if self._meter else self.identity
        return CallOutcome(
            outcome=outcome,
            model=named,
            prompt=request.prompt,
            tokens_in=reply.tokens_in if reply else 0,
            tokens_out=reply.tokens_out if reply else 0,
            tokens_thought=reply.tokens_thought if reply else 0,
            tokens_cached=reply.tokens_cached if reply else 0,
            usd=reply.usd if reply else 0.0,
            again=request.reason,
            instead=self._instead,
            key=key,
            account=self._meter.endpoint.account if self._meter else "",
            batched=reply.batched if reply else False,
            stage=self._stage,
            quotas=self._fresh_quotas(),
            seconds=seconds,
            held=held,
        )

    def _fresh_quotas(self) -> Mapping[str, Quota] | None:
        """The limits that the endpoint reported since the last call of this method."""
        quotas = self._quotas() if self._sender is None else self._sender.quotas(self._model_number)
        fresh, self._reported_quotas = quotas is not self._reported_quotas, quotas
        return quotas if fresh and quotas else None

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(16, thread_name_prefix="llm-store")

    async def _run_in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Use the store on a thread: a busy disk takes milliseconds, an object store tens of
        them.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, work, *arguments)

    async def _stored(self, key: str) -> Reply | None:
        value: bytes | None = (
            await self._run_in_thread(self._store.get, KIND, key)
            if self._remote_store
            else self._store.get(KIND, key)
        )
        return None if value is None else replace(load(Reply, json.loads(value)), cached=True)


def align_to_step(wait: float, now: float) -> float:
    """Return `wait` seconds, extended so that it ends at a multiple of `START_STEP_S` of the clock
    that shows `now`: calls that start at about the same time wake the sender once.
    """
    return math.ceil((now + wait) / START_STEP_S) * START_STEP_S - now


def keep(store: Store, key: str, reply: Reply) -> None:
    """Store a reply."""
    store.put(KIND, key, json.dumps(dump(reply), sort_keys=True).encode())
