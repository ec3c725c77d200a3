"""The first price of a run: from the lengths of its videos, within seconds, and near the refined
estimate of the same dry run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from actors.engine.stage import Stage
from mustsee.errors import BadRow
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.dry_run import first_price, read_lengths, rehearse_lengths

EXAMPLES = Path(__file__).parents[3] / "examples/videos"
VIDEOS = pa.table({"video_id": ["a", "b"], "uri": [str(EXAMPLES / "birdhouse.mp4"), "/no/file"]})
MODEL = ("llm=openai", "llm.model=gpt-6-luna")


def stages(job: str, *overrides: str) -> list[Stage]:
    made = build(compose(job, ["videos=v", "out=o", *overrides]))
    return [Stage(name=name, part=getattr(made, name)) for name in ("ask", "vet")]


def test_lengths_are_read_from_headers_or_columns() -> None:
    assert read_lengths(VIDEOS) == ([pytest.approx(64.7, abs=0.1)], True)
    columns = pa.table({"video_id": ["a"], "uri": ["/no/file"], "start": [10.0], "end": [40.0]})
    assert read_lengths(columns) == ([30.0], False)


def test_the_work_grows_with_the_length_and_follows_from_the_settings() -> None:
    short, long = rehearse_lengths(stages("make", *MODEL), [60.0, 600.0])
    assert 0 < short.calls < long.calls
    assert 0 < short.usd < long.usd
    fewer = stages(
        "make", *MODEL, "ask.settings.moments.windows=4", "ask.settings.deep.questions=6"
    )
    (less,) = rehearse_lengths(fewer, [600.0])
    assert less.calls < 0.5 * long.calls


@pytest.mark.parametrize("job", ["make", "neptune"])
def test_the_line_names_calls_price_and_range_and_that_lengths_are_missing(job: str) -> None:
    asking = stages(job, *MODEL)
    line = first_price(VIDEOS, asking)
    (cost,) = rehearse_lengths(asking, read_lengths(VIDEOS)[0])
    assert "2 videos alone (lengths of 1 of them)" in line
    assert f" {round(2 * cost.calls)} calls of ask and vet for 2 min of video, " in line
    assert " USD [" in line


def test_jobs_that_ask_no_model_about_videos_have_no_first_price() -> None:
    assert first_price(VIDEOS, stages("make")) == ""
    assert first_price(VIDEOS, stages("make", *MODEL)[1:]) == ""
    assert first_price(VIDEOS.slice(0, 0), stages("make", *MODEL)) == ""


def test_a_made_up_video_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise BadRow("no such prompt")

    monkeypatch.setattr("ray_jobs.runtime.rehearse.fill_reply", fail)
    line = first_price(VIDEOS, stages("neptune", *MODEL))
    assert line.startswith("first price: not known, since a made-up video fails: ask: ")
    assert "no such prompt" in line


@pytest.mark.slow
def test_the_first_price_is_near_the_refined_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [f"videos={EXAMPLES / 'birdhouse.mp4'}", f"out={tmp_path}", *MODEL, "dry_run=true"]
    assert build(compose("make", given))() == 0
    line = capsys.readouterr().out.splitlines()[0]
    found = re.search(r": ([\d,]+) calls of .* video, ([\d.]+) USD", line)
    assert found is not None, line
    totals = json.loads((tmp_path / "estimate.json").read_text())["totals"]
    for first, name in zip(found.groups(), ("calls", "usd"), strict=True):
        refined = totals[name]["expected"]
        assert 2 / 3 < float(first.replace(",", "")) / refined < 3 / 2, (name, line, refined)
