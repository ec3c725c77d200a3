"""The first price of a run: from the lengths of its videos, within seconds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from actors.calls.endpoint import Endpoint
from actors.llm.openai import OpenAI
from mustsee.run.first_price import COUNTED, count_work
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.first_price import first_price, read_lengths, work_usd

EXAMPLES = Path(__file__).parents[3] / "examples/videos"
VIDEOS = pa.table({"video_id": ["a", "b"], "uri": [str(EXAMPLES / "birdhouse.mp4"), "/no/file"]})


@pytest.mark.parametrize("job", COUNTED)
def test_work_grows_with_the_length_and_adds_up(job: str) -> None:
    one, two, none = (count_work(job, lengths) for lengths in ([238.0], [238.0, 238.0], []))
    assert one is not None
    assert two is not None
    assert none is not None
    assert one == COUNTED[job][238]
    assert (two.calls, none.calls) == (2 * one.calls, 0)
    works = [count_work(job, [seconds]) for seconds in (10.0, 65.0, 600.0, 3572.0, 7200.0)]
    calls = [work.calls for work in works if work is not None]
    assert calls == sorted(calls)
    assert calls[-1] == pytest.approx(calls[-2] * 7200 / 3572), "beyond an hour in proportion"


def test_lengths_are_read_from_headers_or_columns() -> None:
    assert read_lengths(VIDEOS) == ([pytest.approx(64.7, abs=0.1)], True)
    columns = pa.table({"video_id": ["a"], "uri": ["/no/file"], "start": [10.0], "end": [40.0]})
    assert read_lengths(columns) == ([30.0], False)


def test_the_price_counts_frames_by_the_rule_of_the_model() -> None:
    work = COUNTED["make"][238]
    prices = {"a-model": (1.0, 10.0)}
    given = OpenAI(model="a-model", prices=prices, image_tokens=100)
    expected = work.tokens_in + 100 * work.frames + 10 * work.tokens_out
    assert work_usd(work, given) == pytest.approx(expected / 1e6)
    free = Endpoint(model="x", base_url="http://127.0.0.1:9/v1", key_env=None)
    assert work_usd(work, free) == 0


def test_the_line_names_calls_price_and_range_and_that_lengths_are_missing() -> None:
    job = build(compose("make", ["videos=v", "out=o", "llm=openai", "llm.model=gpt-6-luna"]))
    line = first_price("make", VIDEOS, [job.ask])  # type: ignore[attr-defined]
    assert "2 videos alone (lengths of 1 of them)" in line
    assert f"{round(2 * (count_work('make', [64.667]) or COUNTED['make'][65]).calls)} calls" in line
    assert " USD [" in line
    assert first_price("evaluate", VIDEOS, [job.ask]) == ""  # type: ignore[attr-defined]
    rules = build(compose("make", ["videos=v", "out=o"]))
    assert first_price("make", VIDEOS, [rules.ask]) == ""  # type: ignore[attr-defined]
