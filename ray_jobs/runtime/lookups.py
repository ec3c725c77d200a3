"""Looks up finished rows in the store, so that Ray is given only the unfinished ones.

A block costs Ray tens of milliseconds in each stage; looking a row up takes a quarter of a
millisecond. The job's process therefore looks up all rows, in blocks from all over the list, so
that it soon meets unfinished rows wherever they are. Ray starts with the first one. It is given
those of the first `PATIENCE_S` seconds, and the others in portions that are looked up while it
works.
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
from actors.engine.local import LocalSession, Lookup
from actors.engine.session import Session
from actors.engine.stage import Stage
from mustsee.errors import MustseeError

MAX_PORTION_ROWS = 8192  # rows, at most, that Ray is given at once
BLOCK_ROWS = 64  # rows looked up at once
PATIENCE_S = 5.0  # seconds after which Ray is given the unfinished rows so far
BYTES_PER_SECOND = 250_000  # bytes per second of video (2 Mbit/s), to estimate a length from a size
MAX_BLOCKS_AHEAD = 16  # blocks, at most, that are looked up and not taken yet


@dataclass(frozen=True)
class LookedUpBlock:
    """A block after its look-up: its finished rows (`done`), and the others unchanged (`rest`)."""

    number: int
    done: pa.Table | None
    rest: pa.Table


class Lookups:
    """Looks up the rows of a run in a thread while the `with` block runs.

    Finished rows are yielded as the thread finds them, the others are returned in portions.
    """

    def __init__(self, blocks: Iterator[LookedUpBlock]) -> None:
        self._blocks, self._ended = blocks, False
        self._queue = queue.Queue[LookedUpBlock | BaseException | None](MAX_BLOCKS_AHEAD)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look, name="look-up", daemon=True)
        self._waiting: dict[int, pa.Table] = {}
        self._first_met: float | None = None  # time of the first unfinished row, until a portion

    def __enter__(self) -> Lookups:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join(timeout=5)  # A remote store may take longer to answer.

    def _look(self) -> None:
        try:
            for block in self._blocks:
                if not self._put(block):
                    return
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _put(self, item: LookedUpBlock | BaseException | None) -> bool:
        """Queue an item. Returns False once the `with` block has ended."""
        while not self._closed.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def _take(self, *, wait: bool) -> Iterator[pa.Table]:
        """Yield the finished rows of the next block, and keep its other rows for a portion.

        Raises queue.Empty without a block, and the errors of the look-up.
        """
        item = self._queue.get(block=wait)
        if isinstance(item, BaseException):
            raise item
        if item is None:
            self._ended = True
            return
        if item.rest.num_rows:
            self._waiting[item.number] = item.rest
        if item.done is not None:
            yield item.done

    @property
    def _lacking(self) -> int:
        return sum(rest.num_rows for rest in self._waiting.values())

    @property
    def has_unfinished(self) -> bool:
        """Whether an unfinished row has been looked up that is in no portion yet."""
        return bool(self._waiting)

    def until_unfinished(self) -> Iterator[pa.Table]:
        """Yield finished rows until an unfinished one is met, or all are looked up."""
        while not self._ended and not self.has_unfinished:
            yield from self._take(wait=True)
        self._first_met = time.monotonic()

    def portion(self) -> Generator[pa.Table, None, pa.Table]:
        """Yield finished rows until there is a portion of unfinished ones, or for `PATIENCE_S`.

        Returns the portion, the longest videos first; no rows where all are finished.
        """
        started, self._first_met = self._first_met or time.monotonic(), None
        while not self._ended and (lacking := self._lacking) < MAX_PORTION_ROWS:
            if lacking and time.monotonic() - started > PATIENCE_S:
                break
            yield from self._take(wait=True)
        tables = [self._waiting[number] for number in sorted(self._waiting)]
        self._waiting.clear()
        return longest_first(pa.concat_tables(tables)) if tables else pa.table({})

    def found_rows(self) -> Iterator[pa.Table]:
        """Yield the finished rows that have been looked up since, without waiting."""
        try:
            while not self._ended and self._lacking < MAX_PORTION_ROWS:
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
    """Look up the rows, `BLOCK_ROWS` at a time, and count finished ones as reused.

    Finished rows come as the last stage leaves them. The others come as they are, or as the stages
    in `before` left them: the store has all results of these. `without`: columns that are left out
    of finished rows, such as frames.
    """
    local = LocalSession(
        store=session.store, coordinator=Coordinator(), retry_problems=session.retry_problems
    )
    # What `before` has finished in this run is final, also where replies were lost once more.
    final = LocalSession(store=session.store, coordinator=Coordinator())
    earlier = [Lookup(stage, final) for stage in before]
    lookups = [Lookup(stage, local) for stage in stages]
    count = -(-rows.num_rows // BLOCK_ROWS)
    if not earlier and (not stages or not session.store.has(stages[0].name)):
        for number in range(count):
            yield LookedUpBlock(number, None, rows.slice(number * BLOCK_ROWS, BLOCK_ROWS))
        return
    for number in spread(count):
        arrived = _through(earlier, rows.slice(number * BLOCK_ROWS, BLOCK_ROWS))
        table, lacking = arrived, set[str]()
        for lookup in lookups:
            table, ids = lookup.look_up(table)
            lacking.update(ids)
        done = None
        if table.num_rows:
            fates = _columns(arrived, "video_id", "drop", "problem")
            passing = {name for name, *reasons in fates if any(reasons)}
            _count([stage.name for stage in stages], table, passing, session)
            done = table.drop_columns([c for c in without if c in table.column_names])
        wanted = [name in lacking for name in arrived["video_id"].to_pylist()]
        yield LookedUpBlock(number, done, arrived.filter(pa.array(wanted, pa.bool_())))


def spread(count: int) -> list[int]:
    """The numbers below `count`, ordered by their reversed binary digits: any prefix of the order
    is spread over the whole range.
    """
    return sorted(range(count), key=lambda n: f"{n:032b}"[::-1])


def longest_first(rows: pa.Table) -> pa.Table:
    """The rows, the longest videos or clips first (Graham's longest processing time first).

    A long row would otherwise start when the others end. Equal rows keep their order. A row that
    has not been probed goes by its file's size. More rows than Arrow holds in one chunk (2 GB of
    frames) keep their order, which is spread well enough.
    """
    rows = rows.combine_chunks()
    columns = [c for c in ("duration", "start", "end", "size") if c in rows.column_names]
    lengths = [_seconds(row) for row in rows.select(columns).to_pylist()]
    order = sorted(range(rows.num_rows), key=lambda n: -lengths[n])
    return rows if len(rows.to_batches()) > 1 else rows.take(order)


def _seconds(row: Mapping[str, Any]) -> float:
    if row.get("duration") is not None:
        return row["duration"]
    if row.get("end") is not None:
        return row["end"] - (row.get("start") or 0.0)
    return (row.get("size") or 0) / BYTES_PER_SECOND


def _through(lookups: Sequence[Lookup], rows: pa.Table) -> pa.Table:
    """The rows after stages that have finished them. Raises MustseeError for a lost result."""
    for lookup in lookups:
        rows, lacking = lookup.look_up(rows)
        if lacking:
            raise MustseeError(
                f"the store has lost the result of stage {lookup.stage.name!r} for {lacking[0]!r} "
                "during this run: run the same command again; finished results are kept"
            )
    return rows


def _count(stages: Sequence[str], done: pa.Table, passing: Set[str], session: Session) -> None:
    """Report the finished rows to the coordinator, as workers would.

    A row's lineage names the stages that it went through; the last of them dropped a dropped row.
    `passing`: ids of rows that every stage skips.
    """
    reused, dropped = Counter[str](), Counter[str]()
    for name, lineage, drop in _columns(done, "video_id", "lineage", "drop"):
        if name not in passing:
            names = {each["name"] for each in lineage or ()}
            through = [stage for stage in stages if stage in names]
            reused.update(through)
            dropped.update(through[-1:] if drop is not None else [])
    for stage in stages:
        session.event(stage, "reused", rows=reused[stage])
        session.event(stage, "dropped", rows=dropped[stage])


def _columns(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)
