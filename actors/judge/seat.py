"""A judge within a run, which is opened with the first answer. One in this process scores one batch
at a time, a served one many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Any, Protocol, runtime_checkable

from actors.part import RunContext
from mustsee.judge.judge import Judge, JudgeConfig, JudgeItem, Score


@runtime_checkable
class AsksModel(Protocol):
    """An engine that asks a configured model."""

    def for_run(self, run: RunContext) -> Any:
        """The same engine with its calls through the run's gateway: limits, store, budget,
        usage.
        """
        ...


@runtime_checkable
class TakesCallers(Protocol):
    """A configured engine that scores several batches at once."""

    @property
    def callers(self) -> int: ...


class ConfiguredJudge:
    """The judge of a configuration. If it asks a model, it does so through the run's gateway."""

    def __init__(self, config: JudgeConfig, run: RunContext) -> None:
        engine = config.engine
        if isinstance(engine, AsksModel):
            config = replace(config, engine=engine.for_run(run))
        self._config = config
        self._judge: Judge | None = None
        self._opening = Lock()
        callers = engine.callers if isinstance(engine, TakesCallers) else 1
        self._threads = ThreadPoolExecutor(callers)

    async def scores(self, items: Sequence[JudgeItem]) -> tuple[Judge, list[Score]]:
        """The judge, and its scores in the order of the items."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._score, items)

    async def equivalent(
        self, question: str, candidate: str, references: tuple[str, ...]
    ) -> bool | None:
        """Whether the candidate is equivalent to a reference; None if it cannot be judged."""
        item = JudgeItem(question=question, candidate=candidate, references=references)
        _, (score,) = await self.scores((item,))
        return None if score.error else score.equivalent

    def _score(self, items: Sequence[JudgeItem]) -> tuple[Judge, list[Score]]:
        with self._opening:
            judge = self._judge = self._judge or self._config.open()
        return judge, judge.score(items)
