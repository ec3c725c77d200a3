"""The rows of a job on their way through its stages and barriers (Ray Data).

A barrier decides over all rows. For it the stages before it run to their end, and only the columns
that it reads are kept; the rows are then read again from the store, where those stages put them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from actors.engine.hardware import Hardware
from actors.engine.local import LocalSession
from actors.engine.session import Session
from actors.engine.stage import Stage, WorkerChain
from actors.part import Opened, RunContext
from mustsee.files.store import digest
from mustsee.questions.decision import Decider, Decision
from mustsee.records import Question, Video
from mustsee.run import outputs
from ray_jobs.runtime.cluster import DECISION, pools
from ray_jobs.runtime.lookups import Lookups, look_up_rows

if TYPE_CHECKING:  # Ray takes seconds to import, and mistakes are reported before that.
    from ray.data import Dataset

LARGE = frozenset(
    {"keyframes", "frames", "image_vectors", "shots", "texts"}
    | {"lines", "captions", "segments", "questions"}
)


@dataclass(frozen=True, kw_only=True)
class DecisionWriter:
    """Writes the decision over all rows into each row."""

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "cluster", "drop", "questions")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("cluster", "drop", "questions")
    decision: Decision

    @cached_property
    def identity(self) -> list[str]:
        """The class, its version and a hash of the decision, which is too long for a store key."""
        return ["DecisionWriter", self.version, digest(self.decision)]

    def open(self, run: RunContext) -> Opened:
        decision = self.decision

        def mark(row: Video) -> Video:
            return dataclasses.replace(
                row,
                cluster=decision.clusters.get(row.video_id, row.cluster),
                drop=decision.drops.get(row.video_id, row.drop),
                questions=row.questions and tuple(map(mark_question, row.questions)),
            )

        def mark_question(question: Question) -> Question:
            name = question.question_id
            left = decision.leaves.get(name, ())
            return dataclasses.replace(
                question,
                drop=question.drop or decision.questions.get(name),
                metrics={**question.metrics, **decision.metrics.get(name, {})},
                subsets=tuple(subset for subset in question.subsets if subset not in left),
            )

        return mark


def decision_stage(decision: Decision) -> Stage:
    """The stage that writes `decision` into the rows."""
    return Stage(name=DECISION, part=DecisionWriter(decision=decision), hardware=Hardware(cpus=0.1))


def small_columns(names: Sequence[str], also: Sequence[str] = ()) -> list[str]:
    """The columns that a decision may read: all but transcripts and media, and those in `also`."""
    return [n for n in names if n not in LARGE or n in also]


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Computes rows: in Ray's workers, or in this process with a `LocalSession`. `cores`: theirs.
    `shared`: groups of stages that share their workers.
    """

    session: Session
    cores: float
    shared: Sequence[Sequence[str]]

    def compute(
        self, stages: Sequence[Stage], blocks: Sequence[pa.Table], size: int
    ) -> Iterable[pa.Table]:
        """The blocks after `stages`. `size`: rows per block."""
        stages = [stage.sized_for(self.cores) for stage in stages]
        if isinstance(self.session, LocalSession):
            return map(WorkerChain(stages, self.session), blocks)
        import ray

        # `from_arrow` would first start a worker to measure the blocks.
        rows: Dataset = ray.data.from_blocks(list(blocks))
        for first, *then in pools(stages, self.shared):
            rows = first.apply(rows, self.session, rows_per_block=size, then=then)
        computed: Any = rows.iter_batches(batch_size=None, batch_format="pyarrow")
        return computed


@dataclass(frozen=True, kw_only=True)
class RowStream:
    """Streams rows through stages. `session`: that of the look-ups. `start_workers`: called when
    the first unfinished row is met, and again for each portion of them. `rows_per_block`: the
    user's block size; null derives it from the number of rows.
    """

    session: LocalSession
    start_workers: Callable[[], Workers]
    rows_per_block: int | None = None

    def stream(self, steps: Sequence[Stage | Decider], rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows as they leave the last stage."""
        before, queued = list[Stage](), list[Stage]()
        for step in steps:
            if isinstance(step, Stage):
                queued.append(step)
                continue
            seen, failed_ids = list[pa.Table](), set[str]()
            for table in self._finished_rows(before, queued, rows, needed=step.columns):
                seen.append(table.select(small_columns(table.column_names, step.columns)))
                if (failed := table.filter(table["problem"].is_valid())).num_rows:
                    yield failed  # The store need not hold a failed row.
                    failed_ids.update(failed["video_id"].to_pylist())
            if failed_ids:
                stands = [name not in failed_ids for name in rows["video_id"].to_pylist()]
                rows = rows.filter(pa.array(stands, pa.bool_()))
            before += queued
            # Rows come as they finish, and a sum of floats depends on the order.
            arrived = pa.concat_tables(seen, promote_options="permissive").sort_by("video_id")
            queued = [decision_stage(step(arrived))]
        yield from self._finished_rows(before, queued, rows)

    def _finished_rows(
        self, before: Sequence[Stage], stages: Sequence[Stage], rows: pa.Table,
        needed: Sequence[str] = (),
    ) -> Iterator[pa.Table]:  # fmt: skip
        """The rows after `stages`, given that the stages in `before` have finished all of them.

        Rows that the store holds already come without the hidden columns, except those in `needed`.
        """
        omitted = [c for c in outputs.HIDDEN if c not in needed]
        blocks = look_up_rows(stages, rows, self.session, before=before, without=omitted)
        workers = self._workers_for(stages)
        with Lookups(blocks) as lookups:
            yield from lookups.until_unfinished()
            if lookups.has_unfinished:
                workers()  # The look-up goes on while they start.
            while (rest := (yield from lookups.portion())).num_rows:
                size = block_size(rest, self.rows_per_block)
                for table in workers().compute(stages, _blocks(rest, size), size):
                    yield table
                    yield from lookups.found_rows()

    def _workers_for(self, stages: Sequence[Stage]) -> Callable[[], Workers]:
        """The workers of some stages: this process where they only write a decision into the rows,
        which takes less time than to start a worker.
        """
        if any(stage.name != DECISION for stage in stages):
            return self.start_workers
        return lambda: Workers(session=self.session, cores=1.0, shared=())


def block_size(rows: pa.Table, wanted: int | None) -> int:
    """Rows per block, where the user has not `wanted` a number: 1 for a small table, since Ray pays
    18-45 ms per block and operator.
    """
    return wanted or min(16, max(1, rows.num_rows // 64))


def _blocks(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(i, size) for i in range(0, rows.num_rows, size)]
