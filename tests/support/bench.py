"""A part run on rows as a stage runs it, against a store, with waits that take no time."""

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
from mustsee.records import Video
from mustsee.store import Store

MENDED = ("429", "500", "503", "truncated", "dropped", "empty", "html")  # faults of no lasting harm


async def at_once(seconds: float) -> None:
    """Waits no longer than others take to have their turn."""
    await asyncio.sleep(0)


class Bench:
    """Keeps between runs what a run keeps: the store, the coordinator, and what was counted."""

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
            found = [opened(row) for row in rows]
            return list(await asyncio.gather(*(f for f in found if inspect.isawaitable(f))))

        return asyncio.run(work())


def video(**columns: Any) -> Video:
    return Video(video_id="v", uri="v.mp4", **columns)
