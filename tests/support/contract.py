"""Parts as a worker process runs them, for the contract tests of each kind of part."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import hydra

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.part import Part, RunContext
from mustsee.files.store import Store
from mustsee.records import Video
from ray_jobs.cli.compose import compose_by_hydra


def sent(group: str, choice: str, **arguments: Any) -> Part:
    """Return the checked part of `group=choice` as it arrives in a worker process."""
    config = compose_by_hydra("address", [f"+{group}={choice}"])[group]
    part = hydra.utils.instantiate(config, **arguments, _convert_="all")
    if hasattr(part, "check"):
        part.check(None)
    return pickle.loads(pickle.dumps(part))


def worker(part: Part, store: Store) -> tuple[Callable[..., list[Any]], Counter[str]]:
    """Return a function from rows to the result or exception of each, as in a stage, and the
    part's counters.
    """
    counts: Counter[str] = Counter()

    def llm(config: Any) -> Gateway:
        return Gateway(config.open(), store, Coordinator(), config)

    opened = part.open(RunContext(store, llm, lambda name, n: counts.update({name: n})))

    async def one(row: Video) -> Any:
        result = opened(row)
        return await result if inspect.isawaitable(result) else result

    async def work(rows: tuple[Video, ...]) -> list[Any]:
        return await asyncio.gather(*map(one, rows), return_exceptions=True)

    return lambda *rows: asyncio.run(work(rows)), counts
