"""`dry_run=true`: estimates what a run would take before any money is spent.

    python -m ray_jobs.neptune videos=V out=O llm=openai dry_run=true

All rows are looked up in the store, stage by stage. A few unfinished rows go through the stages for
real, in this process where no stage needs an accelerator. The scripted model stands in for paid
models (`ray_jobs.runtime.rehearse`); with `dry_run_usd` the models themselves are called, and their
replies are kept for the run. The work of these rows is extrapolated by the rows' sizes
(`mustsee.run.estimate`), printed, and written to `estimate.json` (`ray_jobs.runtime.forecast`).

Before that a first price is printed within seconds, from the lengths of the videos alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import MeteredModel
from actors.engine.local import LocalSession, Lookup
from actors.engine.session import Session
from actors.engine.stage import Stage
from actors.judge.served import Served
from actors.llm.replay import Replay
from mustsee.errors import BadRow, Transient, UserError
from mustsee.files import schemas
from mustsee.files.store import ReadOnlyStore
from mustsee.media.files import open_container
from mustsee.questions.decision import Decider, RowSampler
from mustsee.records import Line, Video
from mustsee.run.estimate import Cost, TriedRow, choose_rows, duration
from mustsee.run.inputs import first_rows
from mustsee.text import money
from ray_jobs.runtime.asked_models import asked_endpoints
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.rehearse import (
    Rehearsal,
    SimulatedClock,
    needs_worker,
    open_rehearsal,
    transcribe,
)
from ray_jobs.runtime.stream import Workers, decision_stage, small_columns
from ray_jobs.runtime.trials import walk_parts

BLOCK_ROWS = 16  # rows looked up at once
SIZED_COLUMNS = ("video_id", "duration", "start", "end", "questions", "drop", "problem")
MAX_READ = 200  # videos whose headers are read; the others count as these
READ_S = 3.0  # seconds for reading them
READERS = 8  # headers that are read at once
RANGE = (0.4, 2.5)  # times the price: chosen, not measured; as wide as a whole dry run says
NO_STORE = "mustsee-no-store"  # a folder that does not exist: nothing is reused


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """The settings of a dry run.

    `dry_run`: print what the run would take, and end.
    `dry_run_rows`: number of rows that the estimate is made from.
    `dry_run_usd`: budget of model calls on these rows; 0: the scripted model stands in.
    `dry_run_call_seconds`: duration of one call; None: from its tokens.
    """

    dry_run: bool = False
    dry_run_rows: int = 5
    dry_run_usd: float = 0.0
    dry_run_call_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.dry_run_rows < 1:
            raise UserError(f"dry_run_rows={self.dry_run_rows!r}: must be at least 1")
        if self.dry_run_usd < 0:
            raise UserError(f"dry_run_usd={self.dry_run_usd!r}: must be 0 or more")

    @property
    def free(self) -> bool:
        """Whether no endpoint is called."""
        return self.dry_run and not self.dry_run_usd


@dataclass(frozen=True, kw_only=True)
class RemainingWork:
    """The work that the store lacks.

    `stages`: all stages, and those that write the decisions which could be made already.
    `since`: by row id, the number of its first missing stage.
    `sizes`: by row id, its number of questions or its seconds of video.
    `share`: share of the rows that an open sampling decision keeps, from stage `sampled` on.
    `undecided`: names of decisions that could not be made yet.
    """

    stages: Sequence[Stage]
    since: Mapping[str, int]
    sizes: Mapping[str, float]
    share: float = 1.0
    sampled: int = 0
    undecided: Sequence[str] = ()


@dataclass(kw_only=True)
class RehearsedRows:
    """The rows that went through the stages.

    `did[n]`: the work of stage `n` by row id. `kept[n]`: whether its results are in the store.
    `failed`: messages of failed rows. `opening`: seconds that all stages took to start.
    `spent`: USD.
    """

    did: list[dict[str, TriedRow]] = field(default_factory=list[dict[str, TriedRow]])
    kept: list[bool] = field(default_factory=list[bool])
    names: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    opening: float = 0.0
    spent: float = 0.0


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


def first_price(rows: pa.Table, stages: Sequence[Stage]) -> str:
    """Return a line on what a run would cost; empty for a job that asks no questions of videos,
    and where its stages ask no paid model.

    The stages from `ask` on run on made-up rows: of the shortest, the middling and the longest
    video; between these it is interpolated. Somebody speaks throughout, and all frames are grey. So
    the price follows from the job's own settings and prompts.
    """
    names = [stage.name for stage in stages]
    asking = stages[names.index("ask") :] if "ask" in names else []
    asking = [stage for stage in asking if asked_endpoints([stage.part])]
    if not asking or not rows.num_rows:
        return ""
    lengths, is_sample = read_lengths(rows)
    sizes = {str(n): length for n, length in enumerate(lengths)}
    chosen = sorted({min(lengths), *(sizes[n] for n in choose_rows(sizes, 1)), max(lengths)})
    try:
        costs = rehearse_lengths(asking, chosen)
    except BadRow as error:
        return f"first price: not known, since a made-up video fails: {error}; the estimate follows"
    if not any(cost.calls for cost in costs):
        return ""
    times = rows.num_rows / len(lengths)

    def total(name: str) -> float:
        values = [getattr(cost, name) for cost in costs]
        return times * float(np.interp(lengths, chosen, values).sum())

    about = f" (lengths of {len(lengths)} of them)" if is_sample else ""
    usd, calls = total("usd"), total("calls")
    low, high = (money(factor * usd) for factor in RANGE)
    return (
        f"first price, from the lengths of {rows.num_rows} videos alone{about}: {round(calls):,} "
        f"calls of {' and '.join(stage.name for stage in asking)} for "
        f"{duration(times * sum(lengths))} of video, {money(usd)} USD "
        f"[{low}, {high}], with nothing in the store and speech throughout; it is refined now"
    )


def rehearse_lengths(stages: Sequence[Stage], lengths: Sequence[float]) -> list[Cost]:
    """Return what the calls of stages cost for made-up rows of so many seconds. Raises BadRow for a
    row that fails.
    """
    tables = [_make_row(n, seconds) for n, seconds in enumerate(lengths)]
    costs = [Cost() for _ in lengths]
    for stage in stages:
        rehearsal = Rehearsal(
            stage, ReadOnlyStore(NO_STORE), made_up=True, budget_usd=None,
            clock=SimulatedClock(stopped=True),
        )  # fmt: skip
        for n, table in enumerate(tables):
            tables[n], tried = rehearsal.play(table)
            if problem := tables[n]["problem"][0].as_py():
                raise BadRow(f"{problem['stage']}: {problem['message']}")
            costs[n] = costs[n].plus(tried.cost) if tried else costs[n]
    return costs


def _make_row(number: int, seconds: float) -> pa.Table:
    lines = tuple(
        Line(start=each["start"], end=each["end"], text=each["text"])
        for each in transcribe(seconds)
    )
    row = Video(video_id=f"length {number}", uri="", duration=seconds, lines=lines)
    return first_rows(schemas.table([row], Video))


def read_lengths(rows: pa.Table) -> tuple[list[float], bool]:
    """Return the lengths of the videos in seconds, as far as their headers can be read in time, and
    whether some are missing.
    """
    number = rows.num_rows
    places = [n * number // min(number, MAX_READ) for n in range(min(number, MAX_READ))]
    names = [name for name in ("uri", "start", "end", "duration") if name in rows.column_names]
    chosen = rows.select(names).take(places).to_pylist()
    pool = ThreadPoolExecutor(READERS)
    done, _ = wait([pool.submit(_length, row) for row in chosen], timeout=READ_S)
    pool.shutdown(wait=False, cancel_futures=True)
    found = [length for read in done if (length := read.result())]
    return found, len(found) < number


def _length(row: dict[str, Any]) -> float:
    """Return the seconds of a row; 0 if its header cannot be read."""
    start, end = row.get("start") or 0.0, row.get("end") or row.get("duration")
    if end:
        return end - start
    if not row["uri"]:
        return 0.0
    try:
        with open_container(row["uri"]) as container:
            return (container.duration or 0) / 1e6 - start
    except (BadRow, Transient):
        return 0.0
