"""A judge within a run: opened when the first answer comes, asked for one batch at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from actors.part import RunContext
from mustsee.judge.judge import Judge, JudgeConfig, JudgeItem, Score


@runtime_checkable
class AsksModel(Protocol):
    """An engine that asks a model behind the LLM seam."""

    def for_run(self, run: RunContext) -> Any:
        """The same engine, its calls through the run's gateway: limits, store, budget, usage
        totals.
        """
        ...


class ConfiguredJudge:
    """The judge of a configuration. One that asks a model does so through the run's gateway."""

    def __init__(self, config: JudgeConfig, run: RunContext) -> None:
        engine = config.engine
        if isinstance(engine, AsksModel):
            config = replace(config, engine=engine.for_run(run))
        self._config = config
        self._judge: Judge | None = None
        self._turn = asyncio.Lock()

    async def scores(self, items: Sequence[JudgeItem]) -> tuple[Judge, list[Score]]:
        """The judge, and its score of each item, in their order."""
        async with self._turn:
            return await asyncio.to_thread(self._scored, items)

    async def equivalent(
        self, question: str, candidate: str, references: tuple[str, ...]
    ) -> bool | None:
        """Whether the candidate is as good as any reference; null where that cannot be judged."""
        item = JudgeItem(question=question, candidate=candidate, references=references)
        _, (score,) = await self.scores((item,))
        return None if score.error else score.equivalent

    def _scored(self, items: Sequence[JudgeItem]) -> tuple[Judge, list[Score]]:
        if self._judge is None:
            self._judge = self._config.open()
        return self._judge, self._judge.score(items)
