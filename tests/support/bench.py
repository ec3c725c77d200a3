"""Run a part on rows as a stage does, with a store, and with waits that take no time."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from pathlib import Path
from typing import Any

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.part import RunContext
from mustsee.calls.llm import Llm
from mustsee.files.store import Store
from mustsee.records import Video

RETRYABLE_FAULTS = ("429", "500", "503", "truncated", "dropped", "empty", "html")


async def at_once(seconds: float) -> None:
    """Let other tasks run, and do not wait."""
    await asyncio.sleep(0)


class Bench:
    """Keeps the store, the coordinator and the counters between runs."""

    def __init__(self, folder: Path) -> None:
        self.store, self.coordinator = Store(str(folder)), Coordinator()
        self.counts: Counter[str] = Counter()

    def run(self, part: Any, *rows: Video) -> list[Video]:
        def connect(config: Any) -> Llm:
            meter = config if hasattr(config, "estimate") else None
            if meter is not None:
                self.coordinator.register_account(meter.endpoint.account, meter.endpoint.limits)
            return Gateway(config.open(), self.store, self.coordinator, meter, sleep=at_once)

        def count(name: str, n: int) -> None:
            self.counts[name] += n

        async def work() -> list[Video]:
            opened = part.open(RunContext(store=self.store, llm=connect, count=count))
            results = [opened(row) for row in rows]
            return list(await asyncio.gather(*(r for r in results if inspect.isawaitable(r))))

        return asyncio.run(work())


def video(**columns: Any) -> Video:
    return Video(video_id="v", uri="v.mp4", **columns)
