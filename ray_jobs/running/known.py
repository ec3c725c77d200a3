"""Rows of which the store has everything: they need no worker, and no block of their own.

A block costs Ray tens of milliseconds in each stage, whatever is in it; to look a row up takes a
quarter of one. So a run goes over its rows in portions, looks each portion up where the job runs,
and gives Ray those rows alone of which something is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from typing import Any

import pyarrow as pa

from actors.coordinator import Coordinator
from actors.rehearse import Alone, Lookup
from actors.stage import Session, Stage

PORTION = 8192  # rows that Ray is given at once, at most
BLOCK = 64  # rows looked up at once


def portions(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows, `PORTION` at a time."""
    for at in range(0, max(rows.num_rows, 1), PORTION):
        yield rows.slice(at, PORTION)


def known(
    stages: Sequence[Stage], rows: pa.Table, session: Session, *, without: Collection[str] = ()
) -> tuple[list[pa.Table], pa.Table]:
    """The rows that are finished, as the last stage leaves them, and the others as they came.

    Finished ones are counted as reused. `without`: columns that nobody needs of them, such as
    pictures.
    """
    if not stages or not session.store.has(stages[0].name):
        return [], rows
    alone = Alone(
        store=session.store, coordinator=Coordinator(), retry_problems=session.retry_problems
    )
    lookups = [Lookup(stage, alone) for stage in stages]
    ids = rows["video_id"].to_pylist()
    done: list[pa.Table] = []
    lacking: set[str] = set()
    for at in range(0, rows.num_rows, BLOCK):
        table = rows.slice(at, BLOCK)
        for lookup in lookups:
            table, less = lookup.found(table)
            lacking.update(less)
        if table.num_rows:
            done.append(table.drop_columns([c for c in without if c in table.column_names]))
    fallen = [a is not None or b is not None for a, b in _columns(rows, "drop", "problem")]
    passing = {n for n, fell in zip(ids, fallen, strict=True) if fell}
    _count([stage.name for stage in stages], done, passing, session)
    wanted = [name in lacking for name in ids]
    return done, rows.filter(pa.array(wanted, pa.bool_()))


def _count(
    stages: Sequence[str], done: Sequence[pa.Table], passing: Set[str], session: Session
) -> None:
    """Tell the coordinator what its workers would have told. A row's lineage names the stages that
    it went through; where it is dropped, the last of them has done it. `passing`: rows that no
    stage looks at.
    """
    reused, dropped = Counter[str](), Counter[str]()
    for name, lineage, drop in (
        row for table in done for row in _columns(table, "video_id", "lineage", "drop")
    ):
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
