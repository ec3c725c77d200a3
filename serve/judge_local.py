"""A judge in this process, as the HTTP surface and the Serve replica use it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from mustsee.judge.judge import ForwardPass, Judge, JudgeItem, PreparedItem, Score
from mustsee.judge.prompt import MAX_CANDIDATE_WORDS
from serve.judge_batch import RequestBatcher

EQUIVALENT_ITEM = JudgeItem(
    question="What colour is the car?", candidate="The car is red.", references=("It is red.",)
)
DIFFERENT_ITEM = JudgeItem(
    question="What colour is the car?",
    candidate="I cannot tell from the video.",
    references=("It is red.",),
)


@runtime_checkable
class WarmedEngine(Protocol):
    """An engine whose first call is slow (it compiles), unless `warm` has made it before."""

    def warm(self) -> None: ...


class LocalBackend:
    """A judge in this process. `budget`, `patience` and `clock` are the `RequestBatcher`'s."""

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
        # planned and read in one place, so that the time of both is in the estimate
        self.batcher = RequestBatcher(
            self._read, cost, budget=budget, patience=patience, clock=clock
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
        found = await self.batcher.do(items)
        return [self.judge.verdict(plan, readings, threshold) for plan, readings in found]

    def _read(self, items: Sequence[JudgeItem]) -> list[tuple[PreparedItem, list[ForwardPass]]]:
        plans = [self.judge.plan(item) for item in items]
        readings = iter(self.judge.engine.score([p for plan in plans for p in plan.prepared]))
        return [(plan, [next(readings) for _ in plan.prepared]) for plan in plans]

    async def ready(self) -> str | None:
        like, unlike = await self.score([EQUIVALENT_ITEM, DIFFERENT_ITEM], None)
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


def cost(item: JudgeItem) -> int:
    """About how many tokens are read for an item: those of the texts, and of the prompt round them,
    once for each reference.
    """
    shared = len(item.question) + min(len(item.candidate), 6 * MAX_CANDIDATE_WORDS)
    return sum(16 + (shared + len(reference)) // 4 for reference in item.references)
