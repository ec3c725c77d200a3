"""Parts that are easy to watch: each call leaves a file, so that calls are counted over processes
and survive a kill.
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
from mustsee import schemas
from mustsee.errors import BadRow, UserError
from mustsee.records import Video
from mustsee.store import hardware


def calls(folder: Path) -> Counter[str]:
    """How often each row was begun."""
    return Counter(path.name.split(".")[0] for path in folder.iterdir())


@dataclass(frozen=True, kw_only=True)
class Upper:
    """Writes the id in capitals as the title. What it does besides is in the row's `uri`:
    `bad`, `bug`, `user`, `die` (always), `die-once`, `hang` (in native code, which lets others
    run), `seize` (in native code, which does not).
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
                av.open(str(path / f"{row.video_id}.fifo"))  # it waits for somebody who writes
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
    """A part whose model is found missing by the worker."""

    def open(self, run: RunContext) -> Opened:
        raise UserError("no weights here")


@dataclass(frozen=True, kw_only=True)
class Crowd(Upper):
    """A part that answers only when `together` workers have each begun a row."""

    together: int = 2

    def open(self, run: RunContext) -> Opened:
        def work(row: Video) -> Video:
            (Path(self.folder) / f"{os.getpid()}.pid").touch()
            for _ in range(600):
                if len(calls(Path(self.folder))) >= self.together:
                    return dataclasses.replace(row, title="crowd", tags=())
                time.sleep(0.1)
            raise BadRow("nobody came")

        return work


@dataclass(frozen=True, kw_only=True)
class Meet:
    """An async part that answers only when `together` rows are in it at the same time."""

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
    """As `Meet`, over rows that are the same to it where their `uri` is."""

    reads: ClassVar[tuple[str, ...]] = ("uri",)


@dataclass(frozen=True)
class Where:
    """Writes where its worker runs: as the title the environment of its interpreter, as the
    movie's name where a package was imported from, and as the language the variable STAGE.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("title", "movie_name", "language")
    package: str

    def open(self, run: RunContext) -> Opened:
        place = importlib.import_module(self.package).__file__
        named = os.environ.get("STAGE")

        def tell(row: Video) -> Video:
            return dataclasses.replace(row, title=sys.prefix, movie_name=place, language=named)

        return tell


WORKERS = set[int]()  # this process, where it is a stage's worker


@dataclass(frozen=True, kw_only=True)
class Told:
    """What was made of a piece, and by which process."""

    text: str
    process: int


@dataclass(frozen=True, kw_only=True)
class InPieces:
    """Writes its pieces, of which a row has as many as its `uri` says, as the title, and the
    processes that did them as the tags. Piece 0 waits until `met` pieces are begun. Each takes
    `cpu` seconds of CPU. `helpers`: what becomes of a piece that a helper begins, `die` or `fail`;
    `dies`: the piece with which the worker itself dies, the first time.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("title", "tags")
    result: ClassVar[type] = Told
    folder: str = hardware("")
    met: int = hardware(1)
    cpu: float = hardware(0.0)
    helpers: str = hardware("")
    dies: str = hardware("")

    def open(self, run: RunContext) -> Opened:
        WORKERS.add(os.getpid())
        each = run.pieces(self)

        def work(row: Video) -> Video:
            told = list(each(f"{row.video_id}-{n}" for n in range(int(row.uri))))
            tags = tuple(str(one.process) for one in told)
            return dataclasses.replace(row, title=" ".join(t.text for t in told), tags=tags)

        return work

    def open_chunked(self) -> Callable[[str], Told]:
        folder = Path(self.folder)

        def work(piece: str) -> Told:
            again = calls(folder)[piece]
            (folder / f"{piece}.{uuid.uuid4().hex}").touch()
            helps = os.getpid() not in WORKERS
            if helps and self.helpers == "fail":
                raise BadRow("helpers have no weights")
            if (helps and self.helpers == "die") or (piece == self.dies and not again):
                os.kill(os.getpid(), signal.SIGKILL)
            while piece.endswith("-0") and len(calls(folder)) < self.met:
                time.sleep(0.02)  # the stage's limit ends it
            until = time.thread_time() + self.cpu
            while time.thread_time() < until:
                pass
            return Told(text=piece.upper(), process=os.getpid())

        return work


def backwards(part: ChunkedPart) -> Each:
    """Pieces done in another order, each by one who did none before, and kept as in a store."""

    def each(pieces: Iterable[Any]) -> Iterator[Any]:
        done = [part.open_chunked()(piece) for piece in reversed(list(pieces))]
        kept = schemas.table(done[::-1], part.result).to_pylist()
        return (schemas.load(part.result, result) for result in kept)

    return each
