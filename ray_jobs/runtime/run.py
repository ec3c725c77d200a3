"""`JobSettings`: how every job starts, works through its stages, and publishes its results.

    with self.run.open("neptune") as run:
        run.read(read_videos(self.videos))
        run.stage("probe", self.probe)
        return run.publish()

Stages are queued until `publish`: it checks that all of them fit the cluster, streams the rows
through Ray Data, and writes the output folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import RenderableType

from actors.calls.coordinator import call_coordinator, start_coordinator
from actors.engine.session import Session
from actors.engine.stage import Filter, Stage
from actors.part import LlmConfig, Part
from mustsee import schemas
from mustsee.calls.llm import Llm
from mustsee.calls.usage import UsageTotals
from mustsee.errors import UserError
from mustsee.layouts.reading import Rereadable, kept_questions
from mustsee.records import Question, Video
from mustsee.run import lease, outputs, process_folders, tables
from mustsee.run.best import best
from mustsee.run.decision import Decider
from mustsee.run.estimate import costs
from mustsee.run.inputs import begun
from mustsee.run.outputs import ScratchFile, check_writable
from mustsee.run.pace import StageSeconds
from mustsee.run.record import RunRecord, Snapshot
from mustsee.run.report import write_report
from mustsee.run.tables import Tables
from mustsee.store import Store
from ray_jobs.runtime import dry_run, forecast, trials
from ray_jobs.runtime.barrier import NAME, decision_stage, small
from ray_jobs.runtime.cluster import (
    Cluster,
    connect_ray,
    cores,
    hardware,
    lacking_workers,
    pools,
    preflight,
)
from ray_jobs.runtime.dry_run_rows import DryRun
from ray_jobs.runtime.experiment import NoTracker, Tracker, report_to_tracker
from ray_jobs.runtime.heartbeat import HEARTBEAT_S, show_step
from ray_jobs.runtime.known import Lookups, look_up_rows
from ray_jobs.runtime.progress import Progress
from ray_jobs.runtime.provenance import git_revision, prompt_hashes, versions
from ray_jobs.runtime.rehearse import open_rules_session
from ray_jobs.runtime.summary import SummaryParts, list_videos, summarise

if TYPE_CHECKING:  # Ray takes seconds to import: a mistake is said before
    from ray.data import Dataset

Layout = Callable[[Rereadable[Question], Path, Rereadable[Video]], object]
Extra = Callable[[Tables], Mapping[str, Any]]
Files = Callable[[Path, Tables], Sequence[RenderableType]]
Page = Callable[[Path, Mapping[str, Any], Store], object]


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The settings that every job has (`conf/job.yaml`)."""

    out: str
    store: str
    cluster: Cluster
    seed: int = 0
    budget_usd: float | None = None
    max_problem_share: float = 0.5
    retry_problems: bool = False
    rows_per_block: int | None = None
    try_endpoints: bool = True
    join: bool = False
    verbose: bool = False
    rehearsal: DryRun = field(default_factory=DryRun)
    log: Tracker = field(default_factory=NoTracker)
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not 0 <= self.max_problem_share <= 1:
            raise UserError(f"max_problem_share={self.max_problem_share!r}: a share, from 0 to 1")
        if self.rows_per_block is not None and self.rows_per_block < 1:
            raise UserError(f"rows_per_block={self.rows_per_block!r}: at least 1, or null")

    @contextlib.contextmanager
    def open(self, recipe: str) -> Generator[RunningJob]:
        """What a job queues its stages in. Ray is used from the first look at `session`: what is
        wrong with stages, keys and addresses is said before.
        """
        for key, folder in (("out", self.out), ("store", self.store)):
            check_writable(key, folder)
        if self.budget_usd is not None and self.budget_usd < 0:
            raise UserError(f"budget_usd={self.budget_usd!r}: 0 or more, or null for no limit")
        self.log.check()
        with contextlib.ExitStack() as held:
            held.enter_context(lease.hold_lease(self.out, recipe, join=self.join))
            running = RunningJob(recipe, self, time.monotonic(), held)
            held.callback(running.scratch.close)
            yield running


class RunningJob:
    """A job at work: the stages queued so far, where their rows end, and (once the tables are
    written) its record.
    """

    record: RunRecord

    def __init__(
        self, recipe: str, run: JobSettings, started: float, held: contextlib.ExitStack
    ) -> None:
        self.recipe, self.run, self.started, self._held = recipe, run, started, held
        self.scratch = ScratchFile()
        self._input: pa.Table | None = None
        self._steps: list[Stage | Decider] = []
        self._told: SummaryParts
        self._watched: Mapping[str, StageSeconds] = {}

    @cached_property
    def session(self) -> Session:
        """What the workers share, on the Ray cluster there is (`RAY_ADDRESS`) or on one that is
        started here.
        """
        self._held.enter_context(connect_ray())
        restart_log, out, store = f"{self.scratch.folder}/counts", self.run.out, self.run.store
        coordinator = start_coordinator(
            self.run.budget_usd, out=out, restart_log=restart_log, store=store, held=self._held
        )
        return Session(
            store=Store(store, on_damage=lambda damage: coordinator.note_damage.remote(damage)),
            coordinator=coordinator,
            retry_problems=self.run.retry_problems,
        )

    def read(self, table: pa.Table) -> None:
        """The rows to work on (`mustsee.run.inputs`)."""
        self._input = begun(table)

    def stage(
        self,
        name: str,
        part: Part,
        *,
        filters: Sequence[Filter] = (),
        forget: Sequence[str] = (),
    ) -> None:
        """Queue a stage. Its hardware is `cluster.stages.<name>`."""
        if name not in self.run.cluster.stages:
            raise UserError(f"cluster.stages has no {name!r}: add it to the cluster= choice")
        trials.check(part, self.run.budget_usd, endpoints=not self.run.rehearsal.free)
        self._steps.append(
            Stage(
                name=name,
                part=part,
                hardware=self.run.cluster.stages[name],
                filters=tuple(filters),
                forget=tuple(forget),
            )
        )

    def model(self, llm: LlmConfig) -> Llm:
        """A model that the job itself asks, beside its stages; in a dry run, rules in its place."""
        how = self.run.rehearsal
        endpoints = self.run.try_endpoints and not how.dry_run
        trials.check_here(llm, self.run.budget_usd, endpoints=endpoints)
        if not how.dry_run:
            return self.session.context().llm(llm)
        self._alone = open_rules_session(self.run.store, how.dry_run_call_seconds)
        return self._alone.context().llm(llm)

    def print_call_estimate(self) -> int:
        """A dry run of a job that asked `model` for itself: say what its calls would cost."""
        prompts = costs(self._alone.coordinator.snapshot().llm, UsageTotals())
        seconds = self._alone.clock.now if self._alone.clock else 0.0
        forecast.show(forecast.of_calls(self.recipe, prompts, seconds))
        return 0

    def together(self, decide: Decider) -> None:
        """A barrier: `decide` sees the small columns of all rows, and those that it names."""
        self._steps.append(decide)

    def publish(
        self,
        layouts: Mapping[str, Layout] | None = None,
        extra: Extra | None = None,
        files: Files | None = None,
        page: Page = write_report,
    ) -> int:
        """Work through the stages and write the output folder. Returns the exit code.

        `layouts`: name -> writer of the kept questions into `export/<name>`. `extra`: what the
        recipe adds to `run.json`, from all rows. `files`: writes further files into the folder, and
        returns what is said last. `page`: writes `report/index.html`, given the run's record.
        """
        assert self._input is not None, "read() comes first"
        stages = [step.name if isinstance(step, Stage) else NAME for step in self._steps]
        session = self.session
        self._steps = [s.sized_for(cores()) if isinstance(s, Stage) else s for s in self._steps]
        phases: list[list[Stage]] = [[]]
        for step in self._steps:
            if isinstance(step, Stage):
                phases[-1].append(step)
            else:
                phases.append([])
        preflight(phases, self.run.cluster)
        queued = [stage for phase in phases for stage in phase]
        endpoints = self.run.try_endpoints and not self.run.rehearsal.free
        with show_step("asking the endpoints from the workers, before any work"):
            trials.try_endpoints(queued, session.store, endpoints=endpoints)
        if self.run.rehearsal.dry_run:
            return self._forecast([[stage.name for stage in phase] for phase in phases])
        try:  # where the machine is so busy that nothing answers, that is what there is to say
            counters = functools.partial(self.snapshot, timeout=HEARTBEAT_S / 2)
            found = [pool for phase in phases for pool in pools(phase, self.run.cluster.shared)]
            lacking = functools.partial(lacking_workers, found)
            places = {stage.name: hardware(pool) for pool in found for stage in pool}
            count = sum(drop is None for drop in self._input["drop"].to_pylist())
            with Progress(counters, stages, count, lacking=lacking, hardware=places) as progress:
                self._watched = progress.watched
                for block in self._stream():
                    self.scratch.add(block)
        except Exception as error:
            if (aborted := self.snapshot().aborted) is None:
                raise
            raise aborted.to_error() from error
        with show_step("writing the tables and the report"):
            outputs.publish(
                self.run.out,
                lambda folder: self._write(folder, stages, layouts or {}, extra, files, page),
            )
        forecast.forget(self.run.out)
        tracker = report_to_tracker(self.run.log, self.run.out)
        told = dataclasses.replace(self._told, tracker=tracker)
        return summarise(self.record, told, self.run.out, self.run.max_problem_share)

    def _forecast(self, phases: Sequence[Sequence[str]]) -> int:
        """Say what the run would take, and keep that for when it has run."""
        assert self._input is not None
        how, began = self.run.rehearsal, time.monotonic() - self.started
        with show_step("dry run: probing the rows, and looking up what is finished"):
            size = self._rows_per_block(self._input)
            rows = dry_run.probe_rows(self._steps, self._input, self.session, size)
            todo = dry_run.remaining_rows(self._steps, rows, self.session)
        tried = dry_run.rehearse_rows(todo, rows, self.session, how)
        told = forecast.forecast(todo, tried, how, phases, began)
        forecast.show(told)
        forecast.keep(told, self.run.out, self.run.config)
        return 0

    def snapshot(self, timeout: float | None = None) -> Snapshot:
        """The counters as they are now. Raises TimeoutError after `timeout` seconds."""
        return call_coordinator(self.session.coordinator.snapshot.remote(), timeout)

    def _rows_per_block(self, rows: pa.Table) -> int:
        """One row a block while there are few; Ray pays 18-45 ms per block and operator."""
        return self.run.rows_per_block or min(16, max(1, rows.num_rows // 64))

    def _stream(self) -> Iterator[pa.Table]:
        """The rows at the end of all stages. A decision over all rows keeps of each only what it
        looks at: what the stages before it made is in the store, and comes from there.
        """
        assert self._input is not None
        rows, before, queued = self._input, list[Stage](), list[Stage]()
        for step in self._steps:
            if isinstance(step, Stage):
                queued.append(step)
                continue
            seen, gone = list[pa.Table](), set[str]()
            for table in self._worked(before, queued, rows, needed=step.columns):
                seen.append(table.select(small(table.column_names, step.columns)))
                if (failed := table.filter(table["problem"].is_valid())).num_rows:
                    yield failed  # the store need not have it
                    gone.update(failed["video_id"].to_pylist())
            stands = [name not in gone for name in rows["video_id"].to_pylist()]
            rows = rows.filter(pa.array(stands, pa.bool_()))
            before += queued
            queued = [decision_stage(step(pa.concat_tables(seen, promote_options="permissive")))]
        yield from self._worked(before, queued, rows)

    def _worked(
        self, before: Sequence[Stage], stages: Sequence[Stage], rows: pa.Table,
        needed: Sequence[str] = (),
    ) -> Iterator[pa.Table]:  # fmt: skip
        """The rows behind `stages`, where those `before` have done them all; of finished ones only
        those of the hidden columns that are `needed`.
        """
        less = [c for c in outputs.HIDDEN if c not in needed]
        blocks = look_up_rows(stages, rows, self.session, before=before, without=less)
        with Lookups(blocks) as looked:
            while (rest := (yield from looked.portion())).num_rows:
                size = self._rows_per_block(rest)
                for table in _tables(self._through(stages, _blocks(rest, size), size)):
                    yield table
                    yield from looked.found_rows()

    def _through(self, stages: Sequence[Stage], rows: Dataset, size: int) -> Dataset:
        for first, *then in pools(stages, self.run.cluster.shared):
            rows = first.apply(rows, self.session, rows_per_block=size, then=then)
        return rows

    def _write(
        self,
        folder: Path,
        stages: Sequence[str],
        layouts: Mapping[str, Layout],
        extra: Extra | None,
        files: Files | None,
        page: Page,
    ) -> Mapping[str, Any]:
        git = git_revision()
        # A job that only asks about a dataset leaves the questions of a failed row standing.
        outputs.write_rows(self.scratch, folder, git=git, fall=bool(layouts))
        written = Tables(folder)
        tables.write_problems(written, folder / "problems.parquet")
        last = files(folder, written) if files is not None else []
        snapshot = self.snapshot()
        self.record = RunRecord(
            recipe=self.recipe,
            config=self.run.config,
            git=git,
            versions=versions(),
            prompts=prompt_hashes(),
            funnel=tables.funnel(written, stages),
            questions=tables.question_counts(written),
            transcribed_by=tables.transcribed_by(written),
            stages={stage: snapshot.stage(stage) for stage in stages},
            llm=snapshot.llm,
            counts=snapshot.counts,
            spent=snapshot.spent,
            held=snapshot.held,
            damaged=snapshot.damaged,
            video_seconds=tables.video_seconds(written),
            cores=cores(),
            watched=self._watched,
            allowed={
                s.name: forecast.endpoint_limits(s) for s in self._steps if isinstance(s, Stage)
            },
            extra=extra(written) if extra else {},
        )
        # by layouts whose card quotes the record
        asked = kept_questions(Rereadable(written.questions))
        for name, layout in layouts.items():
            (folder / "export" / name).mkdir(parents=True)
            layout(asked, folder / "export" / name, Rereadable(written.videos))
        self.record = self.record.with_seconds(seconds := time.monotonic() - self.started)
        if found := forecast.compare_estimate(self.run.out, self.run.config, snapshot.llm, seconds):
            extra_too = {**self.record.extra, "estimate": found}
            self.record = dataclasses.replace(self.record, extra=extra_too)
        plain = self.record.plain()
        page(folder, plain, self.session.store)
        self._told = SummaryParts(
            videos=list_videos(written),
            best=best(asked) if layouts else [],
            makes=bool(layouts),
            files=sorted(
                f"{p.name}/" if p.is_dir() else p.name
                for p in folder.iterdir()
                if p.name != process_folders.LOCK
            ),
            last=last,
            stopped=tables.count_stopped_rows(written),
            verbose=self.run.verbose,
        )
        return plain


def _blocks(rows: pa.Table, size: int) -> Dataset:
    import ray

    return ray.data.from_blocks(  # from_arrow would first start a worker to measure them
        [rows.slice(i, size) for i in range(0, rows.num_rows, size)]
    )


def _tables(rows: Dataset) -> Iterable[Any]:
    return rows.iter_batches(batch_size=None, batch_format="pyarrow")


def standing_questions(rows: pa.Table) -> list[Question]:
    """The questions of the rows (as `together` gives them) that neither were dropped nor failed."""
    fates = zip(*(rows[c].to_pylist() for c in ("questions", "drop", "problem")), strict=True)
    return [
        schemas.load(Question, question)
        for asked, drop, problem in fates
        if drop is None and problem is None
        for question in asked or ()
    ]
