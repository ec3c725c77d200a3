"""Requests of many callers in common batches, and no more of them than can be answered in time.

One worker thread runs the engine. A batch takes what is waiting, oldest first, up to a budget of
tokens (within it the engine sorts by length and pads little). What would wait longer than the queue
allows is turned away at once, with the time after which to try again: an overloaded judge answers
fewer, not later.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from longshot.errors import Transient
from longshot.gem import Engine, Prepared, Reading


class Full(Transient):
    """The queue is full; `retry_after` says for how many seconds."""


@dataclass
class _Waiting:
    prepared: Sequence[Prepared]
    done: asyncio.Future[list[Reading]] = field(repr=False)
    tokens: int


class Batcher:
    """`score` from any number of callers on one event loop.

    `budget`: tokens in one batch. `queue`: tokens that may wait or be in work; a request that alone
    is larger is taken when nothing else waits. `linger`: seconds to wait for company when idle.
    """

    def __init__(
        self, engine: Engine, *, budget: int = 16384, queue: int = 131072, linger: float = 0.002
    ) -> None:
        self._engine, self.budget, self.queue, self._linger = engine, budget, queue, linger
        self._waiting: deque[_Waiting] = deque()
        self._held = 0
        self._rate = 0.0  # tokens a second, smoothed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._loop: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        """Tokens waiting or in work."""
        return self._held

    async def score(self, prepared: Sequence[Prepared]) -> list[Reading]:
        """One reading each, in order. Raises Full, or what the engine raised."""
        if not prepared:
            return []
        tokens = sum(p.length for p in prepared)
        if self._held and self._held + tokens > self.queue:
            wait = math.ceil(self._held / self._rate) if self._rate else 1
            raise Full("the judge has more work than it can take", float(min(max(wait, 1), 30)))
        loop = asyncio.get_running_loop()
        one = _Waiting(prepared, loop.create_future(), tokens)
        self._held += tokens
        self._waiting.append(one)
        if self._loop is None or self._loop.done():
            self._loop = loop.create_task(self._run())
        try:
            return await one.done
        finally:
            self._held -= tokens

    def _next(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        tokens = 0
        while self._waiting:
            one = self._waiting[0]
            if one.done.done():  # its caller has gone
                self._waiting.popleft()
                continue
            if batch and tokens + one.tokens > self.budget:
                break
            batch.append(self._waiting.popleft())
            tokens += one.tokens
        return batch

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._linger)
        while batch := self._next():
            started = time.perf_counter()
            everything = [p for one in batch for p in one.prepared]
            try:
                found = await loop.run_in_executor(self._thread, self._engine.score, everything)
            except Exception as error:
                if len(batch) == 1 and not batch[0].done.done():
                    batch[0].done.set_exception(error)
                elif len(batch) > 1:  # one of them is at fault: each alone, so that it fails alone
                    await self._each_alone(batch)
                continue
            readings = iter(found)
            for one in batch:
                mine = [next(readings) for _ in one.prepared]
                if not one.done.done():
                    one.done.set_result(mine)
            rate = sum(one.tokens for one in batch) / max(time.perf_counter() - started, 1e-6)
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
