"""The chunks of a long video that are in memory at once, without Ray."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from actors.engine.chunks import ChunkRunner
from actors.engine.hardware import Hardware
from mustsee.files.store import Store
from tests.support.parts import ChunkResult


class Window:
    """A chunk that says how many of its kind are in memory when it is made."""

    alive: ClassVar[weakref.WeakSet[Window]] = weakref.WeakSet()
    most: ClassVar[int] = 0

    def __init__(self, number: int) -> None:
        self.identity = number
        Window.alive.add(self)
        Window.most = max(Window.most, len(Window.alive))


@dataclass(frozen=True)
class Heard:
    version: ClassVar[str] = "1"
    result: ClassVar[type] = ChunkResult

    def open_chunked(self) -> Callable[[Window], ChunkResult]:
        return lambda window: ChunkResult(text=str(window.identity), process=0)


class Alone(ChunkRunner):
    """A runner on a cluster without room for helpers."""

    def helper_quota(self, video: str, wanted: int) -> int:
        return 0

    def free_workers(self) -> int:
        return 0


def test_a_worker_holds_the_chunk_that_it_computes_and_the_next(tmp_path: Path) -> None:
    coordinator: Any = SimpleNamespace(release_helpers=SimpleNamespace(remote=lambda *_: None))
    runner = Alone(
        stage="hear", hardware=Hardware(), store=Store(str(tmp_path)), here=".",
        count=lambda *_: None, took=lambda _: None, coordinator=coordinator,
    )  # fmt: skip
    part: Any = Heard()

    def chunks() -> Iterator[Window]:
        return (Window(number) for number in range(9))

    found = [result.text for result in runner(part)(chunks())]
    assert found == [str(number) for number in range(9)]
    assert Window.most == 2
