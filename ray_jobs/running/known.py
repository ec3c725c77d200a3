"""Rows of which the store has everything: they need no worker, and no block of their own.

A block costs Ray tens of milliseconds in each stage, whatever is in it; to look a row up takes a
quarter of one. So a run goes over its rows in portions, looks each portion up where the job runs,
and gives Ray those rows alone of which something is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence, Set
from typing import Any

import pyarrow as pa

from actors.coordinator import Coordinator
from actors.rehearse import Alone, Lookup
from actors.stage import Session, Stage
from mustsee.errors import MustseeError

PORTION = 8192  # rows that Ray is given at once, at most
BLOCK = 64  # rows looked up at once


def portions(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows, `PORTION` at a time."""
    for at in range(0, max(rows.num_rows, 1), PORTION):
        yield rows.slice(at, PORTION)


def known(
    stages: Sequence[Stage],
    rows: pa.Table,
    session: Session,
    *,
    before: Sequence[Stage] = (),
    without: Collection[str] = (),
) -> Generator[pa.Table, None, pa.Table]:
    """Yields the rows that are finished, as the last stage leaves them, and returns the others as
    they came, or as the stages `before` left them, all of whose results the store has.

    Finished ones are counted as reused. `without`: columns that nobody needs of them, such as
    pictures.
    """
    alone = Alone(
        store=session.store, coordinator=Coordinator(), retry_problems=session.retry_problems
    )
    behind = [Lookup(stage, alone) for stage in before]
    lookups = [Lookup(stage, alone) for stage in stages]
    if not behind and (not stages or not session.store.has(stages[0].name)):
        return rows
    rest: list[pa.Table] = []
    for at in range(0, max(rows.num_rows, 1), BLOCK):
        came = _through(behind, rows.slice(at, BLOCK))
        table, lacking = came, set[str]()
        for lookup in lookups:
            table, less = lookup.found(table)
            lacking.update(less)
        if table.num_rows:
            fates = _columns(came, "video_id", "drop", "problem")
            passing = {name for name, *fell in fates if any(fell)}
            _count([stage.name for stage in stages], table, passing, session)
            yield table.drop_columns([c for c in without if c in table.column_names])
        wanted = [name in lacking for name in came["video_id"].to_pylist()]
        rest.append(came.filter(pa.array(wanted, pa.bool_())))
    return pa.concat_tables(rest)


def _through(lookups: Sequence[Lookup], rows: pa.Table) -> pa.Table:
    """Rows behind stages that have done all. Raises MustseeError where the store has lost one."""
    for lookup in lookups:
        rows, lacking = lookup.found(rows)
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
