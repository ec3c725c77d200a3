"""`JobSettings` and `RunningJob`: how every job starts, runs its stages and publishes its results.

    with self.run.open("neptune") as run:
        run.read(read_videos(self.videos))
        run.stage("probe", self.probe)
        return run.publish()

`stage` queues a stage and `together` a barrier, a decision that needs all rows. Nothing runs before
`publish`. It looks up which rows the store has already. With the first one that it lacks, Ray
starts, unless the stages run in this process (`in_process`). The rows stream through the stages
(`ray_jobs.runtime.stream`), finished ones go into a scratch file, and at the end the output folder
is written whole and the summary printed. `dry_run=true` and `preview=N` end in `publish`, too,
before all this: with an estimate (`dry_run`, `forecast`), and with questions of one video.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import RenderableType

from actors.calls.coordinator_actor import (
    ThreadSafeCoordinator,
    open_coordinator,
    start_coordinator,
)
from actors.engine.local import LocalSession
from actors.engine.session import Session
from actors.engine.stage import Filter, Stage
from actors.part import LlmConfig, NeedsRows, Part
from actors.stages.vet import Vet
from mustsee.calls.llm import Llm
from mustsee.calls.usage import UsageTotals
from mustsee.errors import UserError
from mustsee.files.store import Store, is_local
from mustsee.layouts.reading import Rereadable, kept_questions
from mustsee.questions.decision import Decider
from mustsee.records import Question, Video
from mustsee.run import lease, outputs, tables
from mustsee.run.best import best
from mustsee.run.estimate import costs
from mustsee.run.inputs import first_rows
from mustsee.run.outputs import ScratchFile, check_not_another_recipes, check_writable
from mustsee.run.pace import StageSeconds
from mustsee.run.record import RunRecord, Snapshot
from mustsee.run.report import write_report
from mustsee.run.tables import Tables
from ray_jobs.runtime import cluster, dry_run, forecast, preview, trials
from ray_jobs.runtime.asked_models import asked_endpoints, describe_models
from ray_jobs.runtime.cluster import Cluster
from ray_jobs.runtime.dry_run import DryRun
from ray_jobs.runtime.experiment import NoTracker, Tracker, report_to_tracker
from ray_jobs.runtime.heartbeat import HEARTBEAT_S, show_step
from ray_jobs.runtime.progress import Progress
from ray_jobs.runtime.provenance import git_revision, prompt_hashes, versions
from ray_jobs.runtime.rehearse import ScriptedSession, open_scripted_session
from ray_jobs.runtime.serve_judges import serve_judges
from ray_jobs.runtime.stream import RowStream, Workers, block_size
from ray_jobs.runtime.summary import SummaryParts, list_videos, summarise

Layout = Callable[[Rereadable[Question], Path, Rereadable[Video]], object]
Extra = Callable[[Tables], Mapping[str, Any]]
Files = Callable[[Path, Tables], Sequence[RenderableType]]
Page = Callable[[Path, Mapping[str, Any], Store], object]


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The settings that every job has; `conf/job.yaml` explains them."""

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
    overwrite: bool = False
    verbose: bool = False
    preview: int = 0
    rehearsal: DryRun = field(default_factory=DryRun)
    log: Tracker = field(default_factory=NoTracker)
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not 0 <= self.max_problem_share <= 1:
            raise UserError(f"max_problem_share={self.max_problem_share!r}: must be from 0 to 1")
        if self.rows_per_block is not None and self.rows_per_block < 1:
            raise UserError(f"rows_per_block={self.rows_per_block!r}: must be 1 or more, or null")
        if self.preview < 0:
            raise UserError(f"preview={self.preview!r}: must be 0 or more")
        if self.preview and self.rehearsal.dry_run:
            raise UserError("preview and dry_run both end without the run: give one of them")
        if self.preview and not is_local(self.out):
            raise UserError(f"preview={self.preview}: out={self.out!r} must be a local folder")

    @contextlib.contextmanager
    def open(self, recipe: str, *, light: bool = False) -> Generator[RunningJob]:
        """Yield the job to queue stages in, and hold the lease of the output folder meanwhile.

        `light`: no stage touches a video, so no Ray is started where the stages ask only rules.

        Ray starts when the first row must be computed, so mistakes in stages, keys and addresses
        are reported before, and a job whose rows are all finished starts none.
        """
        for key, folder in (("out", self.out), ("store", self.store)):
            check_writable(key, folder)
        if not (self.overwrite or self.preview or self.rehearsal.dry_run):
            check_not_another_recipes(self.out, recipe)
        if self.budget_usd is not None and self.budget_usd < 0:
            raise UserError(
                f"budget_usd={self.budget_usd!r}: must be at least 0, or null (no limit)"
            )
        self.log.check()
        with contextlib.ExitStack() as resources:
            resources.enter_context(lease.hold_lease(self.out, recipe, join=self.join))
            running = RunningJob(recipe, self, time.monotonic(), resources, light=light)
            resources.callback(running.scratch.close)
            yield running


class RunningJob:
    """A job in progress: its queued stages, the finished rows (`scratch`), and the run record.

    `record` is set once the tables are written. `started`: seconds of the monotonic clock.
    """

    record: RunRecord

    def __init__(
        self, recipe: str, run: JobSettings, started: float, resources: contextlib.ExitStack,
        *, light: bool = False,
    ) -> None:  # fmt: skip
        self._light = light
        self.recipe, self.run, self.started, self._resources = recipe, run, started, resources
        self.scratch = ScratchFile()
        self._input: pa.Table | None = None
        self._steps: list[Stage | Decider] = []
        self._asked: list[LlmConfig] = []  # models that the job calls outside its stages
        self._summary: SummaryParts
        self._watched: Mapping[str, StageSeconds] = {}
        self._workers: Workers | None = None
        self._all_found = False

    @property
    def in_process(self) -> bool:
        """Whether there is no Ray: the stages run in this process, one after the other, or the
        store had all rows.
        """
        if self.run.preview or self._all_found:
            return True
        if self.run.rehearsal.dry_run:
            return not dry_run.needs_ray(self._stages)
        has_barrier = len(self._stages) < len(self._steps)
        light = self._light and is_local(self.run.out) and not has_barrier
        return light and all(trials.asks_only_rules(stage.part) for stage in self._stages)

    @property
    def _stages(self) -> list[Stage]:
        """The queued stages, without the barriers between them."""
        return [step for step in self._steps if isinstance(step, Stage)]

    @property
    def _phases(self) -> list[list[Stage]]:
        """The stages between the barriers; those of a phase run at the same time."""
        phases: list[list[Stage]] = [[]]
        for step in self._steps:
            if isinstance(step, Stage):
                phases[-1].append(step)
            else:
                phases.append([])
        return phases

    @property
    def _step_names(self) -> list[str]:
        return [step.name if isinstance(step, Stage) else cluster.DECISION for step in self._steps]

    @cached_property
    def _lookups(self) -> LocalSession:
        """The session that looks rows up, and counts them, in this process."""
        counts = ThreadSafeCoordinator()
        return LocalSession(
            store=Store(self.run.store, on_damage=counts.note_damage),
            coordinator=counts,
            retry_problems=self.run.retry_problems,
        )

    @cached_property
    def session(self) -> Session:
        """The store and coordinator that all workers share.

        Connects to the Ray cluster of `RAY_ADDRESS`, or starts one on this machine, unless the
        stages run `in_process`.
        """
        restart_log, out, store = f"{self.scratch.folder}/counts", self.run.out, self.run.store
        if self.in_process:
            local = open_coordinator(self.run.budget_usd, out, store, self._resources)
            return LocalSession(
                store=Store(store, on_damage=local.note_damage),
                coordinator=local,
                retry_problems=self.run.retry_problems,
            )
        self._resources.enter_context(cluster.connect_ray())
        self._resources.enter_context(serve_judges([stage.part for stage in self._stages]))
        coordinator = start_coordinator(
            self.run.budget_usd,
            out=out,
            restart_log=restart_log,
            store=store,
            stack=self._resources,
        )
        return Session(
            store=Store(store, on_damage=lambda damage: coordinator.note_damage.remote(damage)),
            coordinator=coordinator,
            retry_problems=self.run.retry_problems,
        )

    def read(self, table: pa.Table) -> None:
        """Set the rows of the run (`mustsee.run.inputs`)."""
        self._input = self.scratch.map_table(first_rows(table))

    def stage(
        self, name: str, part: Part, *, filters: Sequence[Filter] = (), forget: Sequence[str] = ()
    ) -> None:
        """Queue a stage with the hardware of `cluster.stages.<name>`."""
        if name not in self.run.cluster.stages:
            raise UserError(
                f"cluster.stages has no {name!r}: add this stage to the file of cluster="
            )
        trials.check(part, self.run.budget_usd, endpoints=not self.run.rehearsal.free)
        if isinstance(part, NeedsRows) and self._input is not None:
            part = part.for_rows(self._input["video_id"].to_pylist())
        self._steps.append(
            Stage(
                name=name,
                part=part,
                hardware=self.run.cluster.stages[name],
                filters=tuple(filters),
                forget=tuple(forget),
            )
        )

    @cached_property
    def _scripted(self) -> ScriptedSession:
        """The session in which the scripted model stands in for `model`, in a dry run."""
        return open_scripted_session(self.run.store, self.run.rehearsal.dry_run_call_seconds)

    def model(self, llm: LlmConfig) -> Llm:
        """A model that the job calls outside its stages; in a dry run the scripted model."""
        rehearsal = self.run.rehearsal
        endpoints = self.run.try_endpoints and not rehearsal.dry_run
        trials.check_here(llm, self.run.budget_usd, endpoints=endpoints)
        if not rehearsal.dry_run:
            return self.session.context().llm(llm)
        self._asked.append(llm)
        return self._scripted.context().llm(llm)

    def print_call_estimate(self) -> int:
        """Print what the calls of `model` would cost, after a dry run without rows."""
        prompts = costs(self._scripted.coordinator.snapshot().llm, UsageTotals())
        seconds = self._scripted.clock.now
        estimate = forecast.of_calls(self.recipe, prompts, seconds)
        forecast.show(estimate, describe_models(asked_endpoints(self._asked)))
        return 0

    def together(self, decide: Decider) -> None:
        """Queue a barrier: `decide` reads the small columns of all rows, and those it names."""
        self._steps.append(decide)

    def publish(
        self,
        layouts: Mapping[str, Layout] | None = None,
        extra: Extra | None = None,
        files: Files | None = None,
        page: Page = write_report,
        *,
        measures: bool = False,
    ) -> int:
        """Run the stages, write the output folder and print the summary. Returns the exit code.

        `layouts`: writers of the kept questions by name; each writes into `export/<name>`.
        `extra`: returns what the recipe adds to `run.json`.
        `files`: writes further files into the folder and returns the last lines of the summary.
        `page`: writes `report/index.html` from the run record.
        `measures`: the job measures a dataset that is given to it, so a row that fails here does
        not drop its questions.
        """
        assert self._input is not None, "call read() before publish()"
        if not self.in_process or self.run.rehearsal.dry_run:
            cluster.check_stages(self._stages)
        if self.run.preview:
            return self._preview()
        if self.run.rehearsal.dry_run:
            return self._forecast()
        self._stream_rows()
        with show_step("writing the tables and the report"):
            outputs.publish(
                self.run.out,
                lambda folder: self._write(folder, layouts or {}, extra, files, page, measures),
            )
        forecast.forget(self.run.out)
        tracker = report_to_tracker(self.run.log, self.run.out)
        parts = dataclasses.replace(self._summary, tracker=tracker)
        return summarise(self.record, parts, self.run.out, self.run.max_problem_share)

    def _stream_rows(self) -> None:
        """Look the rows up, and compute the unfinished ones. Workers start with the first of these,
        so that a job whose rows are all finished needs no Ray.
        """
        assert self._input is not None
        with (
            self.naming_aborts(),
            show_step("looking up finished rows"),
            contextlib.ExitStack() as shown,
        ):
            stream = RowStream(
                session=self._lookups,
                start_workers=functools.partial(self._start_workers, shown),
                rows_per_block=self.run.rows_per_block,
            )
            for block in stream.stream(self._steps, self._input):
                self.scratch.add(block)
        self._all_found = self._workers is None

    @contextlib.contextmanager
    def naming_aborts(self) -> Generator[None]:
        """Where a worker has ended the run, raise its own error: Ray passes it on as text only."""
        try:
            yield
        except UserError:  # of this process, perhaps before there are workers
            raise
        except Exception as error:
            if "session" not in vars(self) or (aborted := self.snapshot().aborted) is None:
                raise
            raise aborted.to_error() from error

    def _start_workers(self, shown: contextlib.ExitStack) -> Workers:
        """Start the workers on the first call, and show the progress until `shown` closes."""
        if self._workers is None:
            assert self._input is not None
            self._prepare_workers()
            shared = self.run.cluster.shared
            worker_pools = [pool for phase in self._phases for pool in cluster.pools(phase, shared)]
            progress = Progress(
                # With a timeout, the progress line can report that the coordinator does not answer.
                functools.partial(self.snapshot, timeout=HEARTBEAT_S / 2),
                self._step_names,
                self._input["drop"].null_count,
                lacking=functools.partial(
                    cluster.lacking_workers, [] if self.in_process else worker_pools
                ),
                hardware={
                    stage.name: cluster.hardware(pool) for pool in worker_pools for stage in pool
                },
            )
            self._watched = shown.enter_context(progress).watched
            self._workers = Workers(session=self.session, cores=self._cores, shared=shared)
        return self._workers

    def _prepare_workers(self) -> None:
        """Start Ray if the job needs it, size the stages for the cluster, and check that they fit
        it and that their endpoints answer.
        """
        session = self.session
        self._steps = [s.sized_for(self._cores) if isinstance(s, Stage) else s for s in self._steps]
        if not self.in_process:
            cluster.preflight(self._phases, self.run.cluster)
        with show_step("testing the endpoints from the workers"):
            trials.try_endpoints(
                self._stages,
                session.store,
                endpoints=self.run.try_endpoints and not self.run.rehearsal.free,
                in_process=self.in_process,
            )

    @property
    def _cores(self) -> float:
        """CPU cores of the workers; of those that a run would have, in a dry run without Ray."""
        if self.in_process:
            return float(cluster.local_cores()) if self.run.rehearsal.dry_run else 1.0
        return cluster.cores()

    def _preview(self) -> int:
        """Print questions of one video (`ray_jobs.runtime.preview`)."""
        assert self._input is not None
        self._prepare_workers()
        if not {"probe", "ask"} <= {*self._step_names}:
            raise UserError(
                f"preview={self.run.preview}: {self.recipe} makes no questions of videos"
            )
        with self.naming_aborts():
            went_through = preview.show_preview(
                self._stages, self._input, self.session, self.run.preview, self.started
            )
        return 0 if went_through else 3  # as a run with too many problems

    def _forecast(self) -> int:
        """Print what the run would take, and write it to `estimate.json` for the run's record."""
        assert self._input is not None
        if line := dry_run.first_price(self._input, self._stages):
            print(line, flush=True)
        self._prepare_workers()
        rehearsal, startup_s = self.run.rehearsal, time.monotonic() - self.started
        with show_step("dry run: probing the rows and looking up finished ones in the store"):
            size = block_size(self._input, self.run.rows_per_block)
            workers = Workers(session=self.session, cores=self._cores, shared=())
            rows = dry_run.probe_rows(self._steps, self._input, workers, size)
            remaining = dry_run.remaining_rows(self._steps, rows, self.session)
        rehearsed = dry_run.rehearse_rows(remaining, rows, self.session, rehearsal)
        phases = [[stage.name for stage in phase] for phase in self._phases]
        estimate = forecast.forecast(
            remaining, rehearsed, rehearsal, phases, startup_s, self._cores
        )
        models = describe_models(asked_endpoints([stage.part for stage in remaining.stages]))
        forecast.show(estimate, models)
        forecast.keep(estimate, models, self.run.out, self.run.config)
        return 0

    def snapshot(self, timeout: float | None = None) -> Snapshot:
        """The coordinator's current counters. Raises TimeoutError after `timeout` seconds."""
        return self.session.snapshot(timeout).with_lookups(self._lookups.snapshot())

    def _write(
        self,
        folder: Path,
        layouts: Mapping[str, Layout],
        extra: Extra | None,
        files: Files | None,
        page: Page,
        measures: bool,
    ) -> Mapping[str, Any]:
        """Write all files of the output folder but `run.json`, and return the content of that. The
        arguments are those of `publish`.
        """
        git, names = git_revision(), self._step_names
        asking = next((s.part for s in self._stages if s.name == "ask"), None)
        vetting = next((s.part for s in self._stages if isinstance(s.part, Vet)), None)
        outputs.write_rows(self.scratch, folder, git=git, drops_with_row=not measures)
        written = Tables(folder)
        tables.write_problems(written, folder / "problems.parquet")
        last = files(folder, written) if files is not None else []
        snapshot, rule = self.snapshot(), vetting.guess_rule if vetting else None
        subset = rule.subset if rule else None
        by_rules = asking is not None and trials.asks_only_rules(asking)
        facts = tables.count_funnels(written, subset, by_rules=by_rules)
        questions = tables.question_counts(written, rule)
        self.record = RunRecord(
            recipe=self.recipe,
            config=self.run.config,
            git=git,
            versions=versions(),
            prompts=prompt_hashes(),
            funnel=tables.funnel(written, names),
            questions=dataclasses.replace(questions, without=facts.explain_all(questions.without)),
            transcribed_by=tables.transcribed_by(written),
            stages={name: snapshot.stage(name) for name in names},
            llm=snapshot.llm,
            counts=snapshot.counts,
            spent=snapshot.spent,
            held=snapshot.held,
            damaged=snapshot.damaged,
            facts=facts,
            video_seconds=tables.video_seconds(written),
            cores=self._cores,
            watched=self._watched,
            allowed={stage.name: forecast.endpoint_limits(stage) for stage in self._stages},
            left_out=trials.left_out([s.part for s in self._stages], self.session.store),
            extra=extra(written) if extra else {},
        )
        # The layouts come after the record, which their cards quote.
        kept = kept_questions(Rereadable(written.questions))
        for name, layout in layouts.items():
            (folder / "export" / name).mkdir(parents=True)
            layout(kept, folder / "export" / name, Rereadable(written.videos))
        self.record = self.record.with_seconds(seconds := time.monotonic() - self.started)
        comparison = forecast.compare_estimate(self.run.out, self.run.config, snapshot.llm, seconds)
        if comparison is not None:
            extended = {**self.record.extra, "estimate": comparison}
            self.record = dataclasses.replace(self.record, extra=extended)
        plain = self.record.plain()
        page(folder, plain, self.session.store)
        self._summary = SummaryParts(
            videos=list_videos(written, subset),
            best=best(kept, subset=subset) if asking is not None else [],
            makes=asking is not None,
            files=sorted(
                f"{p.name}/" if p.is_dir() else p.name
                for p in folder.iterdir()
                if p.name != outputs.LOCK
            ),
            last=last,
            stopped=tables.count_stopped_rows(written),
            verbose=self.run.verbose,
        )
        return plain
