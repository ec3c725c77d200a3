"""`dry_run=true`: estimates what a run would take before any money is spent.

    python -m ray_jobs.neptune videos=V out=O llm=openai dry_run=true

All rows are looked up in the store, stage by stage. A few unfinished rows go through the stages for
real, in this process where no stage needs an accelerator. The scripted model stands in for paid
models (`ray_jobs.runtime.rehearse`); with `dry_run_usd` the models themselves are called, and their
replies are kept for the run. The work of these rows is extrapolated by the rows' sizes
(`mustsee.run.estimate`), printed, and written to `estimate.json`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import MeteredModel
from actors.engine.local import LocalSession, Lookup
from actors.engine.session import Session
from actors.engine.stage import Stage
from actors.judge.served import Served
from actors.llm.replay import Replay
from mustsee.files import schemas
from mustsee.records import Video
from mustsee.run.decision import Decider, RowSampler
from mustsee.run.estimate import choose_rows
from ray_jobs.runtime.barrier import decision_stage, small_columns
from ray_jobs.runtime.dry_run_rows import DryRun, RehearsedRows, RemainingWork
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.rehearse import needs_worker, open_rehearsal
from ray_jobs.runtime.stream import Workers
from ray_jobs.runtime.trials import walk_parts

BLOCK_ROWS = 16  # rows looked up at once
SIZED_COLUMNS = ("video_id", "duration", "start", "end", "questions", "drop", "problem")


def needs_ray(stages: Iterable[Stage]) -> bool:
    """Whether a dry run of some stages needs workers or a judge that Ray starts."""
    return "RAY_ADDRESS" in os.environ or any(
        needs_worker(stage)
        or any(isinstance(p, Served) and p.start is not None for p in walk_parts(stage.part))
        for stage in stages
    )


def probe_rows(
    steps: Sequence[Stage | Decider], rows: pa.Table, workers: Workers, size: int
) -> pa.Table:
    """All rows with their durations. The probe stage runs for it: it is cheap and stores them.
    `size`: rows per block.
    """
    first = steps[0] if steps else None
    if not isinstance(first, Stage) or first.name != "probe":
        return rows
    blocks = [rows.slice(i, size) for i in range(0, rows.num_rows, size)]
    tables = list(workers.compute([first], blocks, size))
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
    names = choose_rows({n: todo.sizes[n] for n in todo.since}, settings.dry_run_rows)
    ids = rows["video_id"].to_pylist()
    tables = {name: rows.slice(ids.index(name), 1) for name in names}
    if names:
        stand_in = "; a scripted model stands in for paid models" if settings.free else ""
        print(
            f"dry run: {len(names)} of {len(ids)} rows go through all stages for real{stand_in}",
            file=sys.stderr,
            flush=True,
        )
    rehearsed = RehearsedRows()
    made_up = False
    for number, stage in enumerate(todo.stages, 1):
        made_up = made_up or (settings.free and any(map(_is_made_up, walk_parts(stage.part))))
        rehearsed.did.append({})
        rehearsed.kept.append(not made_up or not names)
        if not names:
            continue
        started = time.monotonic()
        play = open_rehearsal(
            stage, session.store, made_up=made_up, call_seconds=settings.dry_run_call_seconds,
            budget_usd=None if settings.free else settings.dry_run_usd - rehearsed.spent,
        )  # fmt: skip
        did = rehearsed.did[-1]
        for count, name in enumerate(names, 1):
            step = f"{stage.name} (stage {number} of {len(todo.stages)})"
            with show_step(f"dry run: {step}, row {count} of {len(names)}"):
                tables[name], tried = play(tables[name])
            if tried is not None:
                did[name] = tried
        took = sum(tried.took for tried in did.values())
        rehearsed.opening += max(0.0, time.monotonic() - started - took)
        rehearsed.spent += 0.0 if settings.free else sum(t.cost.usd for t in did.values())
    for name in names:
        problem: Any = tables[name]["problem"][0].as_py()
        if problem is None or problem["error"] != "BudgetSpent":
            rehearsed.names.append(name)
        if problem is not None:
            rehearsed.failed.append(f"{name} failed in {problem['stage']}: {problem['message']}")
    return rehearsed


def _is_made_up(part: object) -> bool:
    """Whether what a dry run gets of a part is not for the run: the scripted model stands in for an
    endpoint, and replies that the store had would not be recorded.
    """
    return isinstance(part, MeteredModel) or (isinstance(part, Replay) and part.record is not None)
