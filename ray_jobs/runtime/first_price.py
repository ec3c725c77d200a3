"""The first price of a dry run, within seconds: from the lengths of the videos alone.

The stages from `ask` on run on made-up rows: of the shortest, the middling and the longest video;
between these it is interpolated. Somebody speaks throughout, and all frames are grey. So the price
follows from the job's own settings and prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pyarrow as pa

from actors.engine.stage import Stage
from mustsee.errors import BadRow, Transient
from mustsee.files import schemas
from mustsee.files.store import ReadOnlyStore
from mustsee.media.files import open_container
from mustsee.records import Line, Video
from mustsee.run.estimate import Cost, choose_rows, duration, money
from mustsee.run.inputs import first_rows
from ray_jobs.runtime.asked_models import asked_endpoints
from ray_jobs.runtime.rehearse import Rehearsal, SimulatedClock, transcribe

MAX_READ = 200  # videos whose headers are read; the others count as these
READ_S = 3.0  # seconds for reading them
READERS = 8  # headers that are read at once
RANGE = (0.4, 2.5)  # times the price: chosen, not measured; as wide as a whole dry run says
NO_STORE = "mustsee-no-store"  # a folder that does not exist: nothing is reused


def first_price(rows: pa.Table, stages: Sequence[Stage]) -> str:
    """Return a line on what a run would cost; empty for a job that asks no questions of videos,
    and where its stages ask no paid model.
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
