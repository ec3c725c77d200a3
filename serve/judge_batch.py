"""Batches the requests of many callers, and turns away what could not be answered in time.

One worker thread runs the engine. A batch takes what is waiting, oldest first, up to a budget of
tokens (within it the engine sorts by length and pads little). The time of an answer is estimated
from the tokens before it and the rate at which the last batches were read; what would come too late
is turned away at once, with the time after which to try again: an overloaded judge answers fewer,
not later.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from mustsee.errors import Transient
from mustsee.judge.judge import Engine, Prepared, Reading


class Full(Transient):
    """The queue is full; `retry_after` says for how many seconds."""


@dataclass
class _Waiting:
    prepared: Sequence[Prepared]
    done: asyncio.Future[list[Reading]] = field(repr=False)
    tokens: int
    in_work: bool = False


class Batcher:
    """`score` from any number of callers on one event loop.

    `budget`: tokens in one batch. `patience`: seconds within which a request must be expected to be
    answered, though one that finds nobody before it is always taken. `linger`: seconds to wait for
    company when idle. `clock`: seconds.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        budget: int = 16384,
        patience: float = 15,
        linger: float = 0.002,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._engine, self._budget, self._patience = engine, budget, patience
        self._linger, self._clock = linger, clock
        self._waiting: deque[_Waiting] = deque()
        self._held = 0
        self._rate = 0.0  # tokens a second, smoothed; 0 before the first batch
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._loop: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        """Tokens waiting or in work."""
        return self._held

    def admit(self, tokens: int = 0) -> None:
        """Raises Full if a request of so many tokens that comes now would be answered too late."""
        if not self._held:
            return
        # before the first batch nothing is known of the rate, and one batch's worth is taken
        rate = self._rate or self._budget / self._patience
        seconds = (self._held + tokens) / rate
        if seconds > self._patience:
            after = min(max(math.ceil(seconds - self._patience / 2), 1), 30)
            raise Full("the judge has more work than it can do in time", float(after))

    async def score(self, prepared: Sequence[Prepared]) -> list[Reading]:
        """One reading each, in order. Raises Full, or what the engine raised."""
        if not prepared:
            return []
        tokens = sum(p.length for p in prepared)
        self.admit(tokens)
        loop = asyncio.get_running_loop()
        one = _Waiting(prepared, loop.create_future(), tokens)
        self._held += tokens
        self._waiting.append(one)
        if self._loop is None or self._loop.done():
            self._loop = loop.create_task(self._run())
        try:
            return await one.done
        finally:
            if not one.in_work:  # what is in work takes its time, though its caller may have gone
                self._held -= tokens

    def _next(self) -> list[_Waiting]:
        """The next batch: short enough that those behind it see their place move."""
        budget = min(self._budget, self._rate * self._patience / 10 or math.inf)
        batch: list[_Waiting] = []
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
            everything = [p for one in batch for p in one.prepared]
            try:
                found = await loop.run_in_executor(self._thread, self._engine.score, everything)
            except Exception as error:
                if len(batch) == 1 and not batch[0].done.done():
                    batch[0].done.set_exception(error)
                elif len(batch) > 1:  # one of them is at fault: each alone, so that it fails alone
                    await self._each_alone(batch)
                continue
            finally:
                self._held -= sum(one.tokens for one in batch)
            readings = iter(found)
            for one in batch:
                mine = [next(readings) for _ in one.prepared]
                if not one.done.done():
                    one.done.set_result(mine)
            rate = sum(one.tokens for one in batch) / max(self._clock() - started, 1e-6)
            self._rate = rate if not self._rate else 0.8 * self._rate + 0.2 * rate

    async def _each_alone(self, batch: list[_Waiting]) -> None:
        loop = asyncio.get_running_loop()
        for one in batch:
            try:
                found = await loop.run_in_executor(self._thread, self._engine.score, one.prepared)
                if not one.done.done():
                    one.done.set_result(found)
            except Exception as error:
                if not one.done.done():
                    one.done.set_exception(error)

    async def drain(self) -> None:
        """Wait until nothing is waiting or in work."""
        if self._loop is not None:
            await asyncio.wait([self._loop])
        self._thread.shutdown(wait=True)
