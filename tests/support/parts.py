"""Parts for tests. Each call leaves a file, so calls are counted over processes and survive a
kill.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import os
import re
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import av

from actors.part import ChunkedPart, Each, Opened, RunContext
from mustsee.errors import BadRow, UserError
from mustsee.files import schemas
from mustsee.files.store import hardware
from mustsee.records import Video


def calls(folder: Path) -> Counter[str]:
    """Return how often each row was started."""
    return Counter(path.name.split(".")[0] for path in folder.iterdir())


@dataclass(frozen=True, kw_only=True)
class Upper:
    """Writes the id in capitals as the title. A row's `uri` adds a fault: `bad`, `bug`, `user`,
    `die` (always), `die-once`, `hang` (in native code that releases the interpreter lock), `seize`
    (in native code that holds it).
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("title", "tags")
    folder: str = hardware("")
    mark: str = "!"

    def open(self, run: RunContext) -> Opened:
        def work(row: Video) -> Video:
            path = Path(self.folder)
            before = calls(path)[row.video_id]
            (path / f"{row.video_id}.{uuid.uuid4().hex}").touch()
            if row.uri == "bad":
                raise BadRow(f"{row.video_id!r} is bad")
            if row.uri == "bug":
                raise ZeroDivisionError("a bug")
            if row.uri == "hang":
                os.mkfifo(path / f"{row.video_id}.fifo")
                av.open(str(path / f"{row.video_id}.fifo"))  # waits for a writer
            if row.uri == "seize":
                re.match(r"(a|aa)+$", "a" * 200 + "b")
            if row.uri == "user":
                raise UserError("no such model")
            if row.uri == "die" or (row.uri == "die-once" and not before):
                os.kill(os.getpid(), signal.SIGKILL)
            return dataclasses.replace(row, title=row.video_id.upper() + self.mark, tags=("a",))

        return work


@dataclass(frozen=True, kw_only=True)
class Closed(Upper):
    """A part whose model is missing in the worker."""

    def open(self, run: RunContext) -> Opened:
        raise UserError("no weights here")


@dataclass(frozen=True, kw_only=True)
class Crowd(Upper):
    """A part that returns once `together` workers have each started a row."""

    together: int = 2

    def open(self, run: RunContext) -> Opened:
        def work(row: Video) -> Video:
            (Path(self.folder) / f"{os.getpid()}.pid").touch()
            for _ in range(600):
                if len(calls(Path(self.folder))) >= self.together:
                    return dataclasses.replace(row, title="crowd", tags=())
                time.sleep(0.1)
            raise BadRow("the other workers did not start")

        return work


@dataclass(frozen=True, kw_only=True)
class Meet:
    """An async part that returns once `together` rows are in it at the same time."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("title",)
    together: int = 2

    def open(self, run: RunContext) -> Opened:
        barrier = asyncio.Barrier(self.together)

        async def meet(row: Video) -> Video:
            async with asyncio.timeout(30):
                await barrier.wait()
            return dataclasses.replace(row, title="met")

        return meet


@dataclass(frozen=True, kw_only=True)
class MeetAlike(Meet):
    """As `Meet`, with rows that are equal to it if their `uri` is."""

    reads: ClassVar[tuple[str, ...]] = ("uri",)


@dataclass(frozen=True)
class Where:
    """Writes its worker's environment: the interpreter's prefix as the title, the file of a package
    as the movie's name, and the variable STAGE as the language.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("title", "movie_name", "language")
    package: str

    def open(self, run: RunContext) -> Opened:
        place = importlib.import_module(self.package).__file__
        stage = os.environ.get("STAGE")

        def describe(row: Video) -> Video:
            return dataclasses.replace(row, title=sys.prefix, movie_name=place, language=stage)

        return describe


WORKERS = set[int]()  # the id of this process, if it is a stage's worker


@dataclass(frozen=True, kw_only=True)
class ChunkResult:
    """The text of a chunk and the process that made it."""

    text: str
    process: int


@dataclass(frozen=True, kw_only=True)
class InPieces:
    """Writes its chunks as the title and the processes that made them as the tags. A row's `uri` is
    its number of chunks. Chunk 0 waits until `met` chunks are started. Each takes `cpu` seconds of
    CPU. `helpers`: the fate of a chunk in a helper process, `die` or `fail`. `dies`: the chunk with
    which the worker itself dies, the first time.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("title", "tags")
    result: ClassVar[type] = ChunkResult
    folder: str = hardware("")
    met: int = hardware(1)
    cpu: float = hardware(0.0)
    helpers: str = hardware("")
    dies: str = hardware("")

    def open(self, run: RunContext) -> Opened:
        WORKERS.add(os.getpid())
        each = run.pieces(self)

        def work(row: Video) -> Video:
            results = list(each(f"{row.video_id}-{n}" for n in range(int(row.uri))))
            tags = tuple(str(one.process) for one in results)
            return dataclasses.replace(row, title=" ".join(r.text for r in results), tags=tags)

        return work

    def open_chunked(self) -> Callable[[str], ChunkResult]:
        folder = Path(self.folder)

        def work(chunk: str) -> ChunkResult:
            earlier = calls(folder)[chunk]
            (folder / f"{chunk}.{uuid.uuid4().hex}").touch()
            is_helper = os.getpid() not in WORKERS
            if is_helper and self.helpers == "fail":
                raise BadRow("helpers have no weights")
            if (is_helper and self.helpers == "die") or (chunk == self.dies and not earlier):
                os.kill(os.getpid(), signal.SIGKILL)
            while chunk.endswith("-0") and len(calls(folder)) < self.met:
                time.sleep(0.02)  # The stage's timeout ends it.
            deadline = time.thread_time() + self.cpu
            while time.thread_time() < deadline:
                pass
            return ChunkResult(text=chunk.upper(), process=os.getpid())

        return work


def backwards(part: ChunkedPart) -> Each:
    """Return an `Each` that makes chunks in reverse order, each by a new worker, stored as rows."""

    def each(chunks: Iterable[Any]) -> Iterator[Any]:
        results = [part.open_chunked()(chunk) for chunk in reversed(list(chunks))]
        stored = schemas.table(results[::-1], part.result).to_pylist()
        return (schemas.load(part.result, result) for result in stored)

    return each
