"""Rows of which the store has everything: they need no worker, and no block of their own.

A block costs Ray tens of milliseconds in each stage, whatever is in it; to look a row up takes a
quarter of one. So a run looks its rows up where the job runs, a block here and a block there, so
that it soon meets what is missing wherever in the list that is, and gives Ray those rows alone: the
first after `PATIENCE_S` seconds, the others in portions, which are looked up while Ray works.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from actors.calls.coordinator import Coordinator
from actors.engine.session import Session
from actors.engine.stage import Stage
from mustsee.errors import MustseeError
from ray_jobs.runtime.rehearse import LocalSession, Lookup

MAX_PORTION_ROWS = 8192  # rows that Ray is given at once, at most
BLOCK_ROWS = 64  # rows looked up at once
PATIENCE_S = 5.0  # seconds after which Ray is given what lacks something so far
# of a second of video, by which a size is set against a length (2 Mbit/s)
BYTES_PER_SECOND = 250_000
MAX_BLOCKS_AHEAD = 16  # blocks looked up that nobody has taken yet, at most


@dataclass(frozen=True)
class LookedUpBlock:
    """A block after it was looked up: its finished rows, and the others as they came."""

    number: int
    done: pa.Table | None
    rest: pa.Table


class Lookups:
    """The rows of a run, looked up in a thread of its own while this is entered: finished ones
    come as they are found, the others by portions.
    """

    def __init__(self, blocks: Iterator[LookedUpBlock]) -> None:
        self._blocks, self._over = blocks, False
        self._queue = queue.Queue[LookedUpBlock | BaseException | None](MAX_BLOCKS_AHEAD)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look, name="look-up", daemon=True)
        self._waiting: dict[int, pa.Table] = {}

    def __enter__(self) -> Lookups:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join(timeout=5)  # a store far away may answer later than anybody waits

    def _look(self) -> None:
        try:
            for block in self._blocks:
                if not self._put(block):
                    return
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _put(self, item: LookedUpBlock | BaseException | None) -> bool:
        """False where nobody wants more."""
        while not self._left.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def _take(self, *, wait: bool) -> Iterator[pa.Table]:
        """Of the next block the finished rows; its others wait to be given to Ray. Raises
        queue.Empty, and what the look-up raised.
        """
        item = self._queue.get(block=wait)
        if isinstance(item, BaseException):
            raise item
        if item is None:
            self._over = True
            return
        if item.rest.num_rows:
            self._waiting[item.number] = item.rest
        if item.done is not None:
            yield item.done

    @property
    def _lacking(self) -> int:
        return sum(rest.num_rows for rest in self._waiting.values())

    def portion(self) -> Generator[pa.Table, None, pa.Table]:
        """Yields finished rows until there is a portion of others to be had, or `PATIENCE_S` has
        ended, and returns that, the longest videos first: no rows where all is done.
        """
        begun = time.monotonic()
        while not self._over and (lacking := self._lacking) < MAX_PORTION_ROWS:
            if lacking and time.monotonic() - begun > PATIENCE_S:
                break
            yield from self._take(wait=True)
        tables = [self._waiting[number] for number in sorted(self._waiting)]
        self._waiting.clear()
        return longest_first(pa.concat_tables(tables)) if tables else pa.table({})

    def found_rows(self) -> Iterator[pa.Table]:
        """Finished rows that were found since, without waiting."""
        try:
            while not self._over and self._lacking < MAX_PORTION_ROWS:
                yield from self._take(wait=False)
        except queue.Empty:
            return


def look_up_rows(
    stages: Sequence[Stage],
    rows: pa.Table,
    session: Session,
    *,
    before: Sequence[Stage] = (),
    without: Collection[str] = (),
) -> Iterator[LookedUpBlock]:
    """The rows, `BLOCK_ROWS` at a time: those that are finished as the last stage leaves them, the
    others as they came, or as the stages `before` left them, all of whose results the store has.

    Finished ones are counted as reused. `without`: columns that nobody needs of them, such as
    pictures.
    """
    alone = LocalSession(
        store=session.store, coordinator=Coordinator(), retry_problems=session.retry_problems
    )
    behind = [Lookup(stage, alone) for stage in before]
    lookups = [Lookup(stage, alone) for stage in stages]
    count = -(-rows.num_rows // BLOCK_ROWS)
    if not behind and (not stages or not session.store.has(stages[0].name)):
        for number in range(count):
            yield LookedUpBlock(number, None, rows.slice(number * BLOCK_ROWS, BLOCK_ROWS))
        return
    for number in spread(count):
        came = _through(behind, rows.slice(number * BLOCK_ROWS, BLOCK_ROWS))
        table, lacking = came, set[str]()
        for lookup in lookups:
            table, less = lookup.look_up(table)
            lacking.update(less)
        done = None
        if table.num_rows:
            fates = _columns(came, "video_id", "drop", "problem")
            passing = {name for name, *fell in fates if any(fell)}
            _count([stage.name for stage in stages], table, passing, session)
            done = table.drop_columns([c for c in without if c in table.column_names])
        wanted = [name in lacking for name in came["video_id"].to_pylist()]
        yield LookedUpBlock(number, done, came.filter(pa.array(wanted, pa.bool_())))


def spread(count: int) -> list[int]:
    """The numbers below `count` in an order that soon has some of every stretch: by their binary
    digits backwards.
    """
    return sorted(range(count), key=lambda n: f"{n:032b}"[::-1])


def longest_first(rows: pa.Table) -> pa.Table:
    """The rows by the lengths of their videos, or clips, so that no long one is begun when the
    others end (Graham's longest processing time first); equal ones as they came. What has not been
    probed yet goes by the size of its file. Of more than Arrow holds in one piece (2 GB of
    pictures) the rows stay as they came: so many are spread well enough.
    """
    rows = rows.combine_chunks()
    asked = [c for c in ("duration", "start", "end", "size") if c in rows.column_names]
    lengths = [_seconds(row) for row in rows.select(asked).to_pylist()]
    order = sorted(range(rows.num_rows), key=lambda n: -lengths[n])
    return rows if len(rows.to_batches()) > 1 else rows.take(order)


def _seconds(row: Mapping[str, Any]) -> float:
    if row.get("duration") is not None:
        return row["duration"]
    if row.get("end") is not None:
        return row["end"] - (row.get("start") or 0.0)
    return (row.get("size") or 0) / BYTES_PER_SECOND


def _through(lookups: Sequence[Lookup], rows: pa.Table) -> pa.Table:
    """Rows behind stages that have done all. Raises MustseeError where the store has lost one."""
    for lookup in lookups:
        rows, lacking = lookup.look_up(rows)
        if lacking:
            raise MustseeError(
                f"the store has lost what {lookup.stage.name!r} said of {lacking[0]!r} during this "
                "run; run the same command again: what is finished is kept"
            )
    return rows


def _count(stages: Sequence[str], done: pa.Table, passing: Set[str], session: Session) -> None:
    """Tell the coordinator what its workers would have told. A row's lineage names the stages that
    it went through; where it is dropped, the last of them has done it. `passing`: rows that no
    stage looks at.
    """
    reused, dropped = Counter[str](), Counter[str]()
    for name, lineage, drop in _columns(done, "video_id", "lineage", "drop"):
        if name not in passing:
            gone = {each["name"] for each in lineage or ()}
            through = [stage for stage in stages if stage in gone]
            reused.update(through)
            dropped.update(through[-1:] if drop is not None else [])
    for stage in stages:
        session.event(stage, "reused", rows=reused[stage])
        session.event(stage, "dropped", rows=dropped[stage])


def _columns(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)
