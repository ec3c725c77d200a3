"""`Stage`: the only caller of Ray Data's `map_batches`.

A stage runs a part over the rows of a dataset. Each row is looked up in the store first; what is
missing is computed, stored and counted; what fails becomes the row's `problem`; a row that is
dropped or has a problem passes by untouched. A block of rows comes in as an Arrow table and leaves
as one, in the same order, with the columns that the part writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from actors.calls.batches import blocks_held
from actors.engine import problems
from actors.engine.hardware import Hardware
from actors.engine.meter import Meter, RowWork
from actors.engine.session import Session
from actors.part import Opened, Part, Threaded, is_local
from mustsee import schemas
from mustsee.errors import BadRow, BudgetSpent, MustseeError, Transient
from mustsee.records import Problem, Video
from mustsee.run.record import RowOutcome
from mustsee.store import digest, identity

if TYPE_CHECKING:
    from ray.data import Dataset

Filter = Callable[[Video], str | None]
PASSED_ON_COLUMNS = ("video_id", "uri", "duration", "drop", "problem", "lineage")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of a job: a part, its hardware, and pure filters that look at each row afterwards.

    `filters` are not stored: changing a threshold computes nothing anew. `forget`: columns that no
    later stage needs.
    """

    name: str
    part: Part
    hardware: Hardware = field(default_factory=Hardware)
    filters: tuple[Filter, ...] = ()
    forget: tuple[str, ...] = ()

    def sized_for(self, cores: float) -> Stage:
        """This stage on a cluster of so many cores."""
        if not is_local(self.part):
            return self
        return replace(self, hardware=self.hardware.one_row_per_worker(cores))

    def apply(
        self, rows: Dataset, session: Session, *, rows_per_block: int, then: Sequence[Stage] = ()
    ) -> Dataset:
        """The dataset with this stage's columns, and with those of the stages `then`, whose work
        its workers do as well.
        """
        from ray.data import ActorPoolStrategy

        stages = (self, *then)
        hard = functools.reduce(Hardware.merged_with, [stage.hardware for stage in stages])
        held = max(blocks_held(stage.part, rows_per_block) for stage in stages)
        concurrency = max(hard.concurrency, held)
        return rows.map_batches(
            WorkerChain,
            fn_constructor_args=(stages, session),
            batch_format="pyarrow",
            batch_size=rows_per_block,
            zero_copy_batch=True,
            num_cpus=hard.cpus,
            num_gpus=hard.gpus or None,
            resources={"TPU": hard.tpus} if hard.tpus else None,
            runtime_env=dict(hard.runtime_env) if hard.runtime_env else None,
            compute=ActorPoolStrategy(
                min_size=hard.least,
                max_size=hard.max_workers,
                max_concurrent_calls_per_actor=concurrency,
                max_tasks_in_flight_per_actor=2 * concurrency,
                enable_true_multi_threading=concurrency > 1,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class RowTask:
    """A row to be computed: its place in the block, and the key of its result."""

    index: int
    row: Video
    key: str

    @property
    def name(self) -> str:
        # of the row as well: rows that are alike share a key, and may be at work together
        return digest([self.key, self.row.video_id])


class WorkerChain:
    """The stages that share a process, one after the other."""

    def __init__(self, stages: Sequence[Stage], session: Session) -> None:
        meter = Meter()
        self._workers = [StageWorker(stage, session, meter) for stage in stages]
        for stage in stages:
            session.event(stage.name, "started")

    def __call__(self, table: pa.Table) -> pa.Table:
        for worker in self._workers:
            table = worker(table)
        return table


class StageWorker:
    """A stage in one process. The part is opened when the first row is really to be computed.
    `meter`: of the process, where other stages work in it as well.
    """

    def __init__(self, stage: Stage, session: Session, meter: Meter | None = None) -> None:
        self.stage, self.session, self._meter = stage, session, meter or Meter()
        if os.path.isdir(session.here):  # the workers of a cluster begin in its folder
            os.chdir(session.here)
        self._opening = threading.Lock()
        part = stage.part
        threaded = isinstance(part, Threaded) and part.threaded
        self._turn = contextlib.nullcontext() if threaded else threading.Lock()
        self._columns = tuple(
            dict.fromkeys((*PASSED_ON_COLUMNS, *part.reads, *part.needs, *part.writes))
        )

    @cached_property
    def _identity(self) -> Any:
        return identity(self.stage.part)

    def key(self, row: Video) -> str:
        """Where this row's result is stored: the hash of the part and of the columns it reads."""
        read = [getattr(row, column) for column in self.stage.part.reads]
        return digest([self.stage.name, self._identity, read])

    @cached_property
    def _opened(self) -> Opened:
        return self.stage.part.open(self.session.context(self.stage.name, self.stage.hardware))

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        import uvloop

        gc.freeze()  # what is loaded by now is no garbage, and takes 0.1 s to look through
        loop = uvloop.new_event_loop()
        threading.Thread(target=loop.run_forever, name=self.stage.name, daemon=True).start()
        return loop

    def __call__(self, table: pa.Table) -> pa.Table:
        try:
            return self._worked(table)
        except MustseeError as error:  # a full disk, a missing model: it ends the run
            self.session.abort(error)
            raise

    def _worked(self, table: pa.Table) -> pa.Table:
        present = [c for c in self._columns if c in table.column_names]
        rows = [schemas.load(Video, r) for r in table.select(present).to_pylist()]
        results: list[pa.Table | None] = [None] * len(rows)
        keys: list[str | None] = [None] * len(rows)
        missing: list[RowTask] = []
        for index, row in enumerate(rows):
            if row.drop is not None or row.problem is not None:
                continue
            key = keys[index] = self.key(row)
            stored = results[index] = self._stored(key)
            if stored is None:
                missing.append(RowTask(index=index, row=row, key=key))
        reused = sum(result is not None for result in results)
        self.session.event(self.stage.name, "reused", rows=reused)
        self._compute(missing, results)
        return self._assemble(table, rows, results, keys)

    def _stored(self, key: str) -> pa.Table | None:
        result = self.session.store.get_table(self.stage.name, key)
        failed = result is not None and result["problem"][0].is_valid
        return None if failed and self.session.retry_problems else result

    def _compute(self, tasks: Sequence[RowTask], results: list[pa.Table | None]) -> None:
        """Fill in the results of the rows that the store lacks: all together, or one by one where
        a worker has died with one of them, so that the row that kills becomes known.
        """
        if not tasks:
            return
        deaths = self.session.begin([task.name for task in tasks])
        if len(tasks) > 1 and any(deaths):
            for task, died in zip(tasks, deaths, strict=True):
                if died >= self.session.max_attempts:
                    results[task.index] = self._killed(task, died)
                else:
                    self._compute([task], results)
            return
        waiting: list[tuple[int, Coroutine[Any, Any, pa.Table]]] = []
        for task, died in zip(tasks, deaths, strict=True):
            answer = self._start(task, died, [each.name for each in tasks])
            if isinstance(answer, pa.Table):
                results[task.index] = answer
            else:
                waiting.append((task.index, answer))
        if waiting:
            with self._opening:
                loop = self._loop
            gathered = asyncio.run_coroutine_threadsafe(_gather([c for _, c in waiting]), loop)
            for (index, _), result in zip(waiting, gathered.result(), strict=True):
                results[index] = result

    def _start(
        self, task: RowTask, deaths: int, beside: Sequence[str]
    ) -> pa.Table | Coroutine[Any, Any, pa.Table]:
        """Compute a row: the result of a plain part, or the coroutine of an async one. `deaths`:
        workers that died with this row; `beside`: those begun together.
        """
        if deaths >= self.session.max_attempts:
            return self._killed(task, deaths)
        with self._opening:
            opened = self._opened
        stint = self._meter.row_work()
        try:
            limit = self.stage.hardware.seconds(task.row.duration)
            with self._turn, self.session.row_deadline(limit, task.name, beside):
                stint.begin()
                result: Any = opened(task.row)
            if inspect.isawaitable(result):
                return self._wait(task, result, stint)
            return self._done(task, result, stint)
        except Exception as error:
            return self._caught(task, error, stint)

    async def _wait(self, task: RowTask, answer: Awaitable[Video], stint: RowWork) -> pa.Table:
        try:
            return self._done(task, await answer, stint)
        except Exception as error:
            return self._caught(task, error, stint)

    def _settle(
        self, task: RowTask, result: pa.Table, outcome: RowOutcome, stint: RowWork, *, keep: bool
    ) -> pa.Table:
        if keep:
            self.session.store.put_table(self.stage.name, task.key, result)
        self.session.event(self.stage.name, outcome, stint.end(), task.name)
        return result

    def _done(self, task: RowTask, row: Video, stint: RowWork) -> pa.Table:
        columns = {c: schemas.column(c, [getattr(row, c)]) for c in self.stage.part.writes}
        columns["problem"] = schemas.column("problem", [None])
        return self._settle(task, pa.table(columns), "computed", stint, keep=True)

    def _caught(self, task: RowTask, error: Exception, stint: RowWork) -> pa.Table:
        """A failure of one row. What concerns the whole run (a full disk, a missing model, a bug of
        Ray) is let out.
        """
        if isinstance(error, MustseeError) and not isinstance(
            error, BadRow | Transient | BudgetSpent
        ):
            raise error
        result = _failed(problems.problem_from_error(self.stage.name, error))
        return self._settle(task, result, "problem", stint, keep=isinstance(error, BadRow))

    def _killed(self, task: RowTask, deaths: int) -> pa.Table:
        most = self.stage.hardware.seconds(task.row.duration)
        self.session.event(self.stage.name, "problem")
        return _failed(problems.problem_from_deaths(self.stage.name, deaths, most))

    def _assemble(
        self,
        table: pa.Table,
        rows: Sequence[Video],
        results: Sequence[pa.Table | None],
        keys: Sequence[str | None],
    ) -> pa.Table:
        """The block with the part's columns filled in, in the order in which the rows came."""
        written: dict[str, pa.Array] = {}
        for name in dict.fromkeys((*self.stage.part.writes, "problem")):
            kind = schemas.schema(Video).field(name).type
            old = table[name] if name in table.column_names else pa.nulls(len(rows), kind)
            pieces = [
                new[name] if new is not None and name in new.column_names else old.slice(i, 1)
                for i, new in enumerate(results)
            ]
            written[name] = pa.concat_arrays([_piece(piece, kind) for piece in pieces])
        lineage = [
            row.lineage if key is None else {**row.lineage, self.stage.name: key}
            for row, key in zip(rows, keys, strict=True)
        ]
        written["lineage"] = schemas.column("lineage", lineage)
        for name, array in written.items():
            position = table.schema.get_field_index(name)
            table = (
                table.append_column(name, array)
                if position < 0
                else table.set_column(position, name, array)
            )
        table = self._sift(table, results)
        return table.drop_columns([c for c in self.stage.forget if c in table.column_names])

    def _sift(self, table: pa.Table, results: Sequence[pa.Table | None]) -> pa.Table:
        """Write the first filter's reason into `drop`, for the rows that this stage has seen."""
        drops: list[str | None] = table["drop"].to_pylist()
        known = [c for c in table.column_names if c in schemas.schema(Video).names]
        dropped = 0
        for index, new in enumerate(results):
            if new is None or new["problem"][0].is_valid:
                continue
            if not drops[index] and self.stage.filters:
                row = schemas.load(Video, table.select(known).slice(index, 1).to_pylist()[0])
                drops[index] = next(
                    (reason for f in self.stage.filters if (reason := f(row))), None
                )
            dropped += bool(drops[index])
        self.session.event(self.stage.name, "dropped", rows=dropped)
        return table.set_column(
            table.schema.get_field_index("drop"), "drop", schemas.column("drop", drops)
        )


async def _gather(waiting: list[Coroutine[Any, Any, pa.Table]]) -> list[pa.Table]:
    return list(await asyncio.gather(*waiting))


def _failed(problem: Problem) -> pa.Table:
    return pa.table({"problem": schemas.column("problem", [problem])})


def _piece(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0)
    return values if values.type == kind else values.cast(kind)
