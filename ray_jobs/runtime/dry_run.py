"""`dry_run=true`: estimates what a run would take before any money is spent.

    python -m ray_jobs.neptune videos=V out=O llm=openai dry_run=true

All rows are looked up in the store, stage by stage. A few unfinished rows go through the stages for
real. Rules stand in for paid models (`ray_jobs.runtime.rehearse`); with `dry_run_usd` the models
themselves are called, and their replies are kept for the run. The work of these rows is
extrapolated by the rows' sizes (`mustsee.run.estimate`), printed, and written to `estimate.json`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import MeteredModel
from actors.engine.local import LocalSession, Lookup
from actors.engine.session import Session
from actors.engine.stage import Stage
from actors.llm.replay import Replay
from mustsee import schemas
from mustsee.records import Video
from mustsee.run.decision import Decider, RowSampler
from mustsee.run.estimate import TriedRow, choose_rows
from ray_jobs.runtime.barrier import decision_stage, small_columns
from ray_jobs.runtime.dry_run_rows import DryRun, RehearsedRows, RemainingWork
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.rehearse import RehearsalWorker
from ray_jobs.runtime.trials import walk_parts

BLOCK_ROWS = 16  # rows looked up at once
SIZED_COLUMNS = ("video_id", "duration", "start", "end", "questions", "drop", "problem")


def probe_rows(
    steps: Sequence[Stage | Decider], rows: pa.Table, session: Session, size: int
) -> pa.Table:
    """All rows with their durations. The probe stage runs for it: it is cheap and stores them."""
    first = steps[0] if steps else None
    if not isinstance(first, Stage) or first.name != "probe":
        return rows
    import ray

    blocks = [rows.slice(i, size) for i in range(0, rows.num_rows, size)]
    probed = first.apply(ray.data.from_blocks(blocks), session, rows_per_block=size)
    tables: Any = list(probed.iter_batches(batch_size=None, batch_format="pyarrow"))
    return pa.concat_tables(tables, promote_options="permissive")


def remaining_rows(
    steps: Sequence[Stage | Decider], rows: pa.Table, session: Session
) -> RemainingWork:
    """The stages, decisions and rows that the store lacks."""
    sizes = _sizes(rows)
    stages: list[Stage] = []
    since: dict[str, int] = {}
    share, sampled, undecided = 1.0, 0, list[str]()
    for step in steps:
        if isinstance(step, Stage):
            stages.append(step)
        elif undecided or (looked_up := _look_up(stages, rows, session, step.columns))[0]:
            undecided.append(type(step).__name__)
            if isinstance(step, RowSampler) and step.size is not None and sizes:
                share, sampled = min(1.0, step.size / len(sizes)), len(stages)
        else:
            stages.append(decision_stage(step(looked_up[1])))
    since, _ = _look_up(stages, rows, session)
    return RemainingWork(
        stages=stages, since={n: i for n, i in since.items() if n in sizes}, sizes=sizes,
        share=share, sampled=sampled, undecided=undecided,
    )  # fmt: skip


def _sizes(rows: pa.Table) -> dict[str, float]:
    """By id of the rows that are left: the number of questions, or else seconds of video."""
    columns = rows.select([c for c in SIZED_COLUMNS if c in rows.column_names])
    sizes: dict[str, float] = {}
    for each in columns.to_pylist():
        video = schemas.load(Video, {"uri": "", **each})
        if video.drop is None and video.problem is None:
            cut = (video.end or 0.0) - (video.start or 0.0)
            sizes[video.video_id] = len(video.questions or ()) or video.duration or max(cut, 1.0)
    return sizes


def _look_up(
    stages: Sequence[Stage], rows: pa.Table, session: Session, also: Sequence[str] = ()
) -> tuple[dict[str, int], pa.Table]:
    """By id of each unfinished row the number of its first missing stage; and the small columns of
    the finished rows.
    """
    local = LocalSession(
        store=session.store, coordinator=Coordinator(), retry_problems=session.retry_problems
    )
    lookups = [Lookup(stage, local) for stage in stages]
    since: dict[str, int] = {}
    done: list[pa.Table] = []
    for at in range(0, rows.num_rows, BLOCK_ROWS):
        table = rows.slice(at, BLOCK_ROWS)
        for number, lookup in enumerate(lookups):
            table, lacking = lookup.look_up(table)
            since.update(dict.fromkeys(lacking, number))
        done.append(table.select(small_columns(table.column_names, also)))
    return since, pa.concat_tables(done, promote_options="permissive")


def rehearse_rows(
    todo: RemainingWork, rows: pa.Table, session: Session, settings: DryRun
) -> RehearsedRows:
    """Take a few rows through all stages, one stage after the other."""
    import ray

    names = choose_rows({n: todo.sizes[n] for n in todo.since}, settings.dry_run_rows)
    ids = rows["video_id"].to_pylist()
    tables = {name: rows.slice(ids.index(name), 1) for name in names}
    if names:
        stand_in = "; rules stand in for paid models" if settings.free else ""
        print(
            f"dry run: {len(names)} of {len(ids)} rows go through all stages for real{stand_in}",
            file=sys.stderr,
            flush=True,
        )
    rehearsed = RehearsedRows()
    made_up = False
    worker, of_worker = None, None
    for stage in todo.stages:
        made_up = made_up or (settings.free and any(map(_is_made_up, walk_parts(stage.part))))
        if not names:
            rehearsed.did.append({})
            rehearsed.kept.append(True)
            continue
        budget = None if settings.free else settings.dry_run_usd - rehearsed.spent
        started = time.monotonic()
        if worker is None or _process(stage) != of_worker:
            if worker is not None:
                ray.kill(worker)
            worker, of_worker = _start_worker(stage), _process(stage)
        opened = worker.open.remote(
            stage, session.store, made_up=made_up, budget_usd=budget,
            call_seconds=settings.dry_run_call_seconds,
        )  # fmt: skip
        ray.get(opened)
        did: dict[str, TriedRow] = {}
        for number, name in enumerate(names, 1):
            step = f"{stage.name} (stage {len(rehearsed.did) + 1} of {len(todo.stages)})"
            with show_step(f"dry run: {step}, row {number} of {len(names)}"):
                tables[name], tried = ray.get(worker.play.remote(tables[name]))
            if tried is not None:
                did[name] = tried
        took = sum(tried.took for tried in did.values())
        rehearsed.opening += max(0.0, time.monotonic() - started - took)
        rehearsed.spent += 0.0 if settings.free else sum(t.cost.usd for t in did.values())
        rehearsed.did.append(did)
        rehearsed.kept.append(not made_up)
    if worker is not None:
        ray.kill(worker)
    for name in names:
        problem: Any = tables[name]["problem"][0].as_py()
        if problem is None or problem["error"] != "BudgetSpent":
            rehearsed.names.append(name)
        if problem is not None:
            rehearsed.failed.append(f"{name} failed in {problem['stage']}: {problem['message']}")
    return rehearsed


def _is_made_up(part: object) -> bool:
    """Whether what a dry run gets of a part is not for the run: rules stand in for an endpoint, and
    replies that the store had would not be recorded.
    """
    return isinstance(part, MeteredModel) or (isinstance(part, Replay) and part.record is not None)


def _process(stage: Stage) -> tuple[float, float, str]:
    """What stages that share a worker have in common: their accelerators and environment."""
    hardware = stage.hardware
    return hardware.gpus, hardware.tpus, repr(hardware.runtime_env)


def _start_worker(stage: Stage) -> Any:
    import ray

    hardware = stage.hardware
    options = ray.remote(RehearsalWorker).options(
        num_cpus=hardware.cpus,
        num_gpus=hardware.gpus,
        resources={"TPU": hardware.tpus} if hardware.tpus else {},
        runtime_env=dict(hardware.runtime_env) if hardware.runtime_env else None,
    )
    return options.remote()
