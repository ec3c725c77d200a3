"""Batches the requests of many callers, and refuses requests that could not be answered in time.

One worker thread does the work. A batch takes waiting requests, oldest first, up to a budget of
tokens. The time of a reply is estimated from the tokens before it and the rate of the last batches.
A request that would be late is refused at once, with the time after which to retry: an overloaded
judge answers fewer requests, not later ones.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from mustsee.errors import Transient
from mustsee.judge.judge import ForwardPass, Judge, JudgeItem, PreparedItem, Score
from mustsee.judge.prompt import MAX_CANDIDATE_WORDS

LINGER_S = 0.002  # seconds to wait for further requests when idle

T = TypeVar("T")
R = TypeVar("R")
EQUIVALENT_ITEM = JudgeItem(
    question="What colour is the car?", candidate="The car is red.", references=("It is red.",)
)
DIFFERENT_ITEM = JudgeItem(
    question="What colour is the car?",
    candidate="I cannot tell from the video.",
    references=("It is red.",),
)


class Full(Transient):
    """The queue is full. `retry_after`: seconds after which to retry."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(max(1, round(self.retry_after or 1)))}


def late_error(seconds: float, patience: float) -> Full:
    """The error for a request that would take `seconds`; it may retry once half of `patience` is
    free.
    """
    after = min(max(math.ceil(seconds - patience / 2), 1), 30)
    return Full("the judge has more work than it can do in time", float(after))


@dataclass
class _Waiting(Generic[T, R]):
    items: Sequence[T]
    done: asyncio.Future[list[R]] = field(repr=False)
    tokens: int
    in_work: bool = False


class RequestBatcher(Generic[T, R]):
    """Runs `work` in batches for any number of callers on one event loop.

    `work` returns one result for each item, in order. `cost`: approximate tokens of an item.
    `budget`: tokens in one batch. `patience`: longest expected time of a reply, in seconds; a
    request to an idle judge is always accepted. `clock`: returns seconds.
    """

    def __init__(
        self,
        work: Callable[[Sequence[T]], Sequence[R]],
        cost: Callable[[T], int],
        *,
        budget: int = 16384,
        patience: float = 15,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._work, self._cost = work, cost
        self._budget, self._patience = budget, patience
        self._clock = clock
        self._waiting: deque[_Waiting[T, R]] = deque()
        self._held = 0
        self._rate = 0.0  # tokens per second, smoothed; 0 before the first batch
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._loop: asyncio.Task[None] | None = None

    @property
    def held_tokens(self) -> int:
        """Tokens of the waiting and running requests."""
        return self._held

    async def do(self, items: Sequence[T]) -> list[R]:
        """Return one result for each item, in order. Raises Full, or the error of `work`."""
        if not items:
            return []
        tokens = sum(map(self._cost, items))
        self._admit(tokens)
        loop = asyncio.get_running_loop()
        request = _Waiting[T, R](items, loop.create_future(), tokens)
        self._held += tokens
        self._waiting.append(request)
        if self._loop is None or self._loop.done():
            self._loop = loop.create_task(self._run())
        try:
            return await request.done
        finally:
            if not request.in_work:  # A running request counts until its batch ends.
                self._held -= tokens

    def _admit(self, tokens: int) -> None:
        if not self._held:
            return
        # Before the first batch the rate is unknown; it is set to accept one batch.
        rate = self._rate or self._budget / self._patience
        seconds = (self._held + tokens) / rate
        if seconds > self._patience:
            raise late_error(seconds, self._patience)

    def _next(self) -> list[_Waiting[T, R]]:
        """The next batch. It is short enough that the requests behind it advance."""
        budget = min(self._budget, self._rate * self._patience / 10 or math.inf)
        batch: list[_Waiting[T, R]] = []
        tokens = 0
        while self._waiting:
            request = self._waiting[0]
            if request.done.done():  # Its caller has left.
                self._waiting.popleft()
                continue
            if batch and tokens + request.tokens > budget:
                break
            request.in_work = True
            batch.append(self._waiting.popleft())
            tokens += request.tokens
        return batch

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(LINGER_S)
        while batch := self._next():
            started = self._clock()
            items = [item for request in batch for item in request.items]
            try:
                results = iter(await loop.run_in_executor(self._thread, self._work, items))
            except Exception as error:
                if len(batch) == 1 and not batch[0].done.done():
                    batch[0].done.set_exception(error)
                elif len(batch) > 1:  # Only the request that causes the error should fail.
                    await self._run_separately(batch)
                continue
            finally:
                self._held -= sum(request.tokens for request in batch)
            for request in batch:
                own = [next(results) for _ in request.items]
                if not request.done.done():
                    request.done.set_result(own)
            rate = sum(request.tokens for request in batch) / max(self._clock() - started, 1e-6)
            self._rate = rate if not self._rate else 0.8 * self._rate + 0.2 * rate

    async def _run_separately(self, batch: list[_Waiting[T, R]]) -> None:
        loop = asyncio.get_running_loop()
        for request in batch:
            try:
                results = await loop.run_in_executor(self._thread, self._work, request.items)
                if not request.done.done():
                    request.done.set_result(list(results))
            except Exception as error:
                if not request.done.done():
                    request.done.set_exception(error)

    async def drain(self) -> None:
        """Wait until all requests are done."""
        if self._loop is not None:
            await asyncio.wait([self._loop])
        self._thread.shutdown(wait=True)


@runtime_checkable
class WarmedEngine(Protocol):
    """An engine with a slow first call (it compiles), which `warm` makes ahead of time."""

    def warm(self) -> None: ...


class LocalBackend:
    """A judge in this process. `budget`, `patience` and `clock` are those of `RequestBatcher`."""

    def __init__(
        self,
        judge: Judge,
        name: str,
        *,
        budget: int = 16384,
        patience: float = 15,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.judge, self.name = judge, name
        if isinstance(judge.engine, WarmedEngine):
            judge.engine.warm()
        # Planning and scoring run together, so that the time estimate covers both.
        self.batcher = RequestBatcher(
            self._score_items, cost, budget=budget, patience=patience, clock=clock
        )

    async def describe(self) -> Mapping[str, Any]:
        record, identity = self.judge.record, self.judge.engine.identity
        return {
            "model": f"{self.name}-{identity.weights[:12]}",
            "prompt_version": identity.prompt[:16],
            "threshold": record.threshold,
            "limit": self.judge.engine.limit,
            "record": json.loads(record.dump()),
        }

    async def score(self, items: list[JudgeItem], threshold: float | None) -> list[Score]:
        scored = await self.batcher.do(items)
        return [self.judge.verdict(plan, passes, threshold) for plan, passes in scored]

    def _score_items(
        self, items: Sequence[JudgeItem]
    ) -> list[tuple[PreparedItem, list[ForwardPass]]]:
        plans = [self.judge.plan(item) for item in items]
        passes = iter(self.judge.engine.score([p for plan in plans for p in plan.prepared]))
        return [(plan, [next(passes) for _ in plan.prepared]) for plan in plans]

    async def ready(self) -> str | None:
        same, other = await self.score([EQUIVALENT_ITEM, DIFFERENT_ITEM], None)
        if same.score is None or other.score is None:
            return f"the fixed pair was not scored: {same.error or other.error}"
        if not same.score > other.score:
            return (
                f"the fixed pair is scored the wrong way round: {same.score:.3f} for the same "
                f"answer, {other.score:.3f} for a refusal"
            )
        return None

    async def drain(self) -> None:
        await self.batcher.drain()


def cost(item: JudgeItem) -> int:
    """The approximate number of tokens of an item: texts and prompt, once for each reference."""
    shared = len(item.question) + min(len(item.candidate), 6 * MAX_CANDIDATE_WORDS)
    return sum(16 + (shared + len(reference)) // 4 for reference in item.references)
