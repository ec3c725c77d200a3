"""`Stage`: the only caller of Ray Data's `map_batches`.

A stage runs a part over the rows of a dataset. It looks each row up in the store, then computes,
stores and counts the missing ones. A failure becomes the row's `problem`. Rows that are dropped or
have a problem are passed on unchanged. A block of rows arrives as an Arrow table and leaves as one,
in the same order, with the columns that the part writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import os
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from actors.calls.batches import blocks_held
from actors.calls.coordinator import OVERRAN_DEATHS
from actors.engine.hardware import Hardware
from actors.engine.memory import free_memory
from actors.engine.meter import Meter, RowWork
from actors.engine.session import Session
from actors.part import Opened, Part, Threaded, computes_locally, models_of
from mustsee.errors import BadRow, BudgetSpent, MustseeError, Transient
from mustsee.files import schemas
from mustsee.files.store import digest, identity
from mustsee.records import Problem, RequestCount, Video
from mustsee.run.record import RowOutcome

if TYPE_CHECKING:
    from ray.data import Dataset

Filter = Callable[[Video], str | None]
PASSED_ON_COLUMNS = ("video_id", "uri", "duration", "drop", "problem", "lineage")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of a job: a part, its hardware, and pure filters that judge each row afterwards.

    Results of `filters` are not stored, so changing a threshold computes nothing again. `forget`:
    columns that no later stage needs.
    """

    name: str
    part: Part
    hardware: Hardware = field(default_factory=Hardware)
    filters: tuple[Filter, ...] = ()
    forget: tuple[str, ...] = ()

    def sized_for(self, cores: float) -> Stage:
        """Return this stage with its worker count fitted to `cores`; without a model a part needs
        no further workers.
        """
        if not computes_locally(self.part):
            return self
        if not models_of(self.part):
            return replace(self, hardware=replace(self.hardware, concurrency=1))
        return replace(self, hardware=self.hardware.one_row_per_worker(cores))

    def apply(
        self, rows: Dataset, session: Session, *, rows_per_block: int, then: Sequence[Stage] = ()
    ) -> Dataset:
        """Return the dataset with the columns of this stage and of the stages `then`, which run in
        the same workers.
        """
        from ray.data import ActorPoolStrategy

        stages = (self, *then)
        hard = functools.reduce(Hardware.merged_with, [stage.hardware for stage in stages])
        blocks = max(blocks_held(stage.part, rows_per_block) for stage in stages)
        concurrency = max(hard.concurrency, blocks)
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
        # With the row's id, because equal rows share a key and may be computed at the same time.
        return digest([self.key, self.row.video_id])


class WorkerChain:
    """The stages that share a process, in their order."""

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
    """A stage in one process. The part is opened when the first row must be computed. `meter`: the
    process's, where it is shared with other stages.
    """

    def __init__(self, stage: Stage, session: Session, meter: Meter | None = None) -> None:
        self.stage, self.session, self._meter = stage, session, meter or Meter()
        if os.path.isdir(session.here):  # a cluster starts its workers in another folder
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
        """The store's key of a row's result: the hash of the part and of the columns it reads."""
        values = [getattr(row, column) for column in self.stage.part.reads]
        return digest([self.stage.name, self._identity, values])

    @cached_property
    def _opened(self) -> Opened:
        return self.stage.part.open(self.session.context(self.stage.name, self.stage.hardware))

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        import uvloop

        gc.freeze()  # loaded models are never garbage, and scanning them takes 0.1 s
        loop = uvloop.new_event_loop()
        threading.Thread(target=loop.run_forever, name=self.stage.name, daemon=True).start()
        return loop

    def __call__(self, table: pa.Table) -> pa.Table:
        try:
            return self._work(table)
        except MustseeError as error:  # a full disk or a missing model ends the run
            self.session.abort(error)
            raise

    def _work(self, table: pa.Table) -> pa.Table:
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
        if result is None or not self.session.retry_problems:
            return result
        failed = result["problem"][0].is_valid
        return None if failed or any(count.unread for count in _requests_in(result)) else result

    def _compute(self, tasks: Sequence[RowTask], results: list[pa.Table | None]) -> None:
        """Fill in the results of the rows that the store lacks. They are computed together, or one
        by one where a worker died with any of them, to find the row that kills workers.
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
            result = self._start(task, died, [each.name for each in tasks])
            if isinstance(result, pa.Table):
                results[task.index] = result
            else:
                waiting.append((task.index, result))
        if waiting:
            with self._opening:
                loop = self._loop
            gathered = asyncio.run_coroutine_threadsafe(_gather([c for _, c in waiting]), loop)
            for (index, _), result in zip(waiting, gathered.result(), strict=True):
                results[index] = result

    def _start(
        self, task: RowTask, deaths: int, beside: Sequence[str]
    ) -> pa.Table | Coroutine[Any, Any, pa.Table]:
        """Compute a row: returns the result of a plain part, or the coroutine of an async one.
        `deaths`: workers that died with this row. `beside`: rows begun together.
        """
        if deaths >= self.session.max_attempts:
            return self._killed(task, deaths)
        with self._opening:
            opened = self._opened
        timer = self._meter.row_work()
        try:
            limit = self.stage.hardware.seconds(task.row.duration)
            with self._turn, self.session.row_deadline(limit, task.name, beside):
                timer.begin()
                result: Any = opened(task.row)
            if inspect.isawaitable(result):
                return self._wait(task, result, timer)
            return self._done(task, result, timer)
        except Exception as error:
            return self._caught(task, error, timer)

    async def _wait(self, task: RowTask, answer: Awaitable[Video], timer: RowWork) -> pa.Table:
        try:
            return self._done(task, await answer, timer)
        except Exception as error:
            return self._caught(task, error, timer)

    def _settle(
        self, task: RowTask, result: pa.Table, outcome: RowOutcome, timer: RowWork, *, keep: bool
    ) -> pa.Table:
        if keep:
            self.session.store.put_table(self.stage.name, task.key, result)
        times = timer.end()
        free_memory(times.busy)
        self.session.event(self.stage.name, outcome, times, task.name)
        return result

    def _done(self, task: RowTask, row: Video, timer: RowWork) -> pa.Table:
        columns = {c: schemas.column(c, [getattr(row, c)]) for c in self.stage.part.writes}
        columns["problem"] = schemas.column("problem", [None])
        if row.requests:
            named = tuple(replace(count, stage=self.stage.name) for count in row.requests)
            columns["requests"] = schemas.column("requests", [named])
        return self._settle(task, pa.table(columns), "computed", timer, keep=True)

    def _caught(self, task: RowTask, error: Exception, timer: RowWork) -> pa.Table:
        """Return the result of a row that failed. Errors of the whole run (a full disk, a missing
        model) are raised.
        """
        if isinstance(error, MustseeError) and not isinstance(
            error, BadRow | Transient | BudgetSpent
        ):
            raise error
        result = _failed(problem_from_error(self.stage.name, error))
        return self._settle(task, result, "problem", timer, keep=isinstance(error, BadRow))

    def _killed(self, task: RowTask, deaths: int) -> pa.Table:
        timeout = self.stage.hardware.seconds(task.row.duration)
        self.session.event(self.stage.name, "problem")
        return _failed(problem_from_deaths(self.stage.name, deaths, timeout))

    def _assemble(
        self,
        table: pa.Table,
        rows: Sequence[Video],
        results: Sequence[pa.Table | None],
        keys: Sequence[str | None],
    ) -> pa.Table:
        """Return the block with the part's columns, its rows in their order."""
        written: dict[str, pa.Array] = {}
        for name in dict.fromkeys((*self.stage.part.writes, "problem")):
            kind = schemas.schema(Video).field(name).type
            old = table[name] if name in table.column_names else pa.nulls(len(rows), kind)
            values = [
                new[name] if new is not None and name in new.column_names else old.slice(i, 1)
                for i, new in enumerate(results)
            ]
            written[name] = pa.concat_arrays([_array(value, kind) for value in values])
        lineage = [
            row.lineage if key is None else {**row.lineage, self.stage.name: key}
            for row, key in zip(rows, keys, strict=True)
        ]
        written["lineage"] = schemas.column("lineage", lineage)
        written["requests"] = self._merge_requests(table, results)
        for name, array in written.items():
            position = table.schema.get_field_index(name)
            table = (
                table.append_column(name, array)
                if position < 0
                else table.set_column(position, name, array)
            )
        table = self._apply_filters(table, results)
        return table.drop_columns([c for c in self.stage.forget if c in table.column_names])

    def _merge_requests(self, table: pa.Table, results: Sequence[pa.Table | None]) -> pa.Array:
        """Return the counts of requests of all stages: for rows with a new result, this stage's own
        replace its earlier ones.
        """
        before = (
            [_requests_in(table.slice(n, 1)) for n in range(table.num_rows)]
            if "requests" in table.column_names
            else [()] * table.num_rows
        )
        merged = [
            old
            if new is None
            else (*(c for c in old if c.stage != self.stage.name), *_requests_in(new))
            for old, new in zip(before, results, strict=True)
        ]
        return schemas.column("requests", merged)

    def _apply_filters(self, table: pa.Table, results: Sequence[pa.Table | None]) -> pa.Table:
        """Write the first filter's reason into `drop`, for the rows that this stage computed."""
        drops: list[str | None] = table["drop"].to_pylist()
        columns = [c for c in table.column_names if c in schemas.schema(Video).names]
        dropped = 0
        for index, new in enumerate(results):
            if new is None or new["problem"][0].is_valid:
                continue
            if not drops[index] and self.stage.filters:
                row = schemas.load(Video, table.select(columns).slice(index, 1).to_pylist()[0])
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


def _requests_in(result: pa.Table) -> tuple[RequestCount, ...]:
    """Return the counts of requests in the one row of a table."""
    if "requests" not in result.column_names:
        return ()
    counts: list[Any] = result["requests"][0].as_py() or []
    return tuple(schemas.load(RequestCount, count) for count in counts)


def _failed(problem: Problem) -> pa.Table:
    return pa.table({"problem": schemas.column("problem", [problem])})


def _array(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0)
    return values if values.type == kind else values.cast(kind)


def problem_from_error(stage: str, error: Exception) -> Problem:
    """The problem of an error that a part raised; an unexpected error is given with its place."""
    message = str(error)
    if not isinstance(error, MustseeError):
        frames = traceback.extract_tb(error.__traceback__)
        if frames:
            message += f" (at {frames[-1].filename.rsplit('/', 2)[-1]}:{frames[-1].lineno})"
    return Problem(stage=stage, error=type(error).__name__, message=message, attempts=1)


def problem_from_deaths(stage: str, deaths: int, most: float | None) -> Problem:
    """The problem of a row with which `deaths` workers died. `most`: its timeout in seconds."""
    if deaths >= OVERRAN_DEATHS:
        message = (
            f"it took longer than {most:g} s, the timeout of a video of this length "
            f"(cluster.stages.{stage}.limit), and its worker was killed: something hangs, or the "
            "machine is too slow; check the file, or set a higher limit"
        )
        return Problem(stage=stage, error="TooLong", message=message, attempts=1)
    message = (
        f"the worker was killed {deaths} times while it worked on this row (out of memory, or a "
        "crash in native code); check the file, or leave the row out"
    )
    return Problem(stage=stage, error="WorkerKilled", message=message, attempts=deaths)
