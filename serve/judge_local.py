"""A judge in this process, as the HTTP surface and the Serve replica use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

from mustsee.judge.judge import Item, Judge, Score
from serve.judge_batch import Batcher

LIKE = Item(
    question="What colour is the car?", candidate="The car is red.", references=("It is red.",)
)
UNLIKE = Item(
    question="What colour is the car?",
    candidate="I cannot tell from the video.",
    references=("It is red.",),
)


@runtime_checkable
class Warmed(Protocol):
    """An engine whose first call is slow (it compiles), unless `warm` has made it before."""

    def warm(self) -> None: ...


class LocalBackend:
    """A judge in this process. `budget` and `patience` are the `Batcher`'s."""

    def __init__(
        self, judge: Judge, name: str, *, budget: int = 16384, patience: float = 15
    ) -> None:
        self.judge, self.name = judge, name
        if isinstance(judge.engine, Warmed):
            judge.engine.warm()
        self.batcher = Batcher(judge.engine, budget=budget, patience=patience)
        # tokenizers are not for two threads at once
        self._planner = ThreadPoolExecutor(1, thread_name_prefix="plan")

    async def describe(self) -> Mapping[str, Any]:
        record, identity = self.judge.record, self.judge.engine.identity
        return {
            "model": f"{self.name}-{identity.weights[:12]}",
            "prompt_version": identity.prompt[:16],
            "threshold": record.threshold,
            "limit": self.judge.engine.limit,
            "record": json.loads(record.dump()),
        }

    async def score(self, items: list[Item], threshold: float | None) -> list[Score]:
        self.batcher.admit()
        plans = await asyncio.get_running_loop().run_in_executor(
            self._planner, lambda: [self.judge.plan(item) for item in items]
        )
        readings = iter(await self.batcher.score([p for plan in plans for p in plan.prepared]))
        return [
            self.judge.verdict(plan, [next(readings) for _ in plan.prepared], threshold)
            for plan in plans
        ]

    async def ready(self) -> str | None:
        like, unlike = await self.score([LIKE, UNLIKE], None)
        if like.score is None or unlike.score is None:
            return f"the fixed pair was not scored: {like.error or unlike.error}"
        if not like.score > unlike.score:
            return (
                f"the fixed pair is scored the wrong way round: {like.score:.3f} for the same "
                f"answer, {unlike.score:.3f} for a refusal"
            )
        return None

    async def drain(self) -> None:
        await self.batcher.drain()
        self._planner.shutdown(wait=False)
