"""A judge in this process, used by the HTTP routes and by the Serve replica."""

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
