"""The first price of a dry run, within seconds: from the lengths of the videos alone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pyarrow as pa

from actors.calls.endpoint import Endpoint
from actors.llm.openai import OpenAI
from mustsee.calls.image_tokens import image_rule
from mustsee.errors import BadRow, Transient
from mustsee.media.files import open_container
from mustsee.run.estimate import duration, money
from mustsee.run.first_price import FRAME, RANGE, Work, count_work
from ray_jobs.runtime.asked_models import asked_endpoints

MAX_READ = 200  # videos whose headers are read; the others count as these
READ_S = 3.0  # seconds for reading them
READERS = 8  # headers that are read at once


def first_price(job: str, rows: pa.Table, parts: Sequence[Any]) -> str:
    """Return a line on what a run would cost; empty for a job whose videos were not counted, and
    where no model is asked. `parts`: that ask the questions.
    """
    endpoints = list(asked_endpoints(parts).values())
    if count_work(job, ()) is None or not endpoints or not rows.num_rows:
        return ""
    lengths, is_sample = read_lengths(rows)
    work = count_work(job, lengths)
    if work is None or not lengths:
        return ""
    times = rows.num_rows / len(lengths)
    prices = sorted(times * work_usd(work, endpoint) for endpoint in endpoints)
    about = f" (lengths of {len(lengths)} of them)" if is_sample else ""
    seconds = duration(times * sum(lengths))
    return (
        f"first price, from the lengths of {rows.num_rows} videos alone{about}: "
        f"{round(times * work.calls):,} calls for {seconds} of video, "
        f"{money(prices[-1])} USD [{money(RANGE[0] * prices[0])}, {money(RANGE[1] * prices[-1])}], "
        "with the job's own settings and nothing in the store; it is refined now"
    )


def work_usd(work: Work, endpoint: Endpoint) -> float:
    """Return the price of work if one model does all of it, in USD."""
    frame = endpoint.image_tokens if isinstance(endpoint, OpenAI) else None
    if frame is None:
        frame = image_rule(endpoint.model).image(*FRAME, getattr(endpoint, "detail", "auto"))
    tokens_in = work.tokens_in + work.frames * frame
    price = endpoint.price
    return (tokens_in * price.tokens_in + work.tokens_out * price.tokens_out) / 1e6


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
