"""Batches the requests of many callers, and turns away what could not be answered in time.

One worker thread does the work. A batch takes what is waiting, oldest first, up to a budget of
tokens. The time of an answer is estimated from the tokens before it and the rate at which the last
batches were done; what would come too late is turned away at once, with the time after which to try
again: an overloaded judge answers fewer, not later.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mustsee.errors import Transient

T = TypeVar("T")
R = TypeVar("R")


class Full(Transient):
    """The queue is full; `retry_after` says for how many seconds."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(max(1, round(self.retry_after or 1)))}


def late_error(seconds: float, patience: float) -> Full:
    """Of a request that would take so many seconds: to be sent again when half of what it may take
    is free.
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
    """`do` from any number of callers on one event loop.

    `work` gives one result for each item, in order; `cost` says about how many tokens an item has.
    `budget`: tokens in one batch. `patience`: seconds within which a request must be expected to be
    answered, though one that finds nobody before it is always taken. `linger`: seconds to wait for
    company when idle. `clock`: seconds.
    """

    def __init__(
        self,
        work: Callable[[Sequence[T]], Sequence[R]],
        cost: Callable[[T], int],
        *,
        budget: int = 16384,
        patience: float = 15,
        linger: float = 0.002,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._work, self._cost = work, cost
        self._budget, self._patience = budget, patience
        self._linger, self._clock = linger, clock
        self._waiting: deque[_Waiting[T, R]] = deque()
        self._held = 0
        self._rate = 0.0  # tokens a second, smoothed; 0 before the first batch
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._loop: asyncio.Task[None] | None = None

    @property
    def held_tokens(self) -> int:
        """Tokens waiting or in work."""
        return self._held

    async def do(self, items: Sequence[T]) -> list[R]:
        """One result each, in order. Raises Full, or what the work raised."""
        if not items:
            return []
        tokens = sum(map(self._cost, items))
        self._admit(tokens)
        loop = asyncio.get_running_loop()
        one = _Waiting[T, R](items, loop.create_future(), tokens)
        self._held += tokens
        self._waiting.append(one)
        if self._loop is None or self._loop.done():
            self._loop = loop.create_task(self._run())
        try:
            return await one.done
        finally:
            if not one.in_work:  # what is in work takes its time, though its caller may have gone
                self._held -= tokens

    def _admit(self, tokens: int) -> None:
        if not self._held:
            return
        # before the first batch nothing is known of the rate, and one batch's worth is taken
        rate = self._rate or self._budget / self._patience
        seconds = (self._held + tokens) / rate
        if seconds > self._patience:
            raise late_error(seconds, self._patience)

    def _next(self) -> list[_Waiting[T, R]]:
        """The next batch: short enough that those behind it see their place move."""
        budget = min(self._budget, self._rate * self._patience / 10 or math.inf)
        batch: list[_Waiting[T, R]] = []
        tokens = 0
        while self._waiting:
            one = self._waiting[0]
            if one.done.done():  # its caller has gone
                self._waiting.popleft()
                continue
            if batch and tokens + one.tokens > budget:
                break
            one.in_work = True
            batch.append(self._waiting.popleft())
            tokens += one.tokens
        return batch

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._linger)
        while batch := self._next():
            started = self._clock()
            everything = [item for one in batch for item in one.items]
            try:
                found = await loop.run_in_executor(self._thread, self._work, everything)
            except Exception as error:
                if len(batch) == 1 and not batch[0].done.done():
                    batch[0].done.set_exception(error)
                elif len(batch) > 1:  # one of them is at fault: each alone, so that it fails alone
                    await self._each_alone(batch)
                continue
            finally:
                self._held -= sum(one.tokens for one in batch)
            results = iter(found)
            for one in batch:
                mine = [next(results) for _ in one.items]
                if not one.done.done():
                    one.done.set_result(mine)
            rate = sum(one.tokens for one in batch) / max(self._clock() - started, 1e-6)
            self._rate = rate if not self._rate else 0.8 * self._rate + 0.2 * rate

    async def _each_alone(self, batch: list[_Waiting[T, R]]) -> None:
        loop = asyncio.get_running_loop()
        for one in batch:
            try:
                found = await loop.run_in_executor(self._thread, self._work, one.items)
                if not one.done.done():
                    one.done.set_result(list(found))
            except Exception as error:
                if not one.done.done():
                    one.done.set_exception(error)

    async def drain(self) -> None:
        """Wait until nothing is waiting or in work."""
        if self._loop is not None:
            await asyncio.wait([self._loop])
        self._thread.shutdown(wait=True)
