"""`preview=N` prints questions of one video, writes no table, and gives its results to the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import ray

from loopback.endpoint import Loopback
from mustsee.errors import UserError
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime import preview

VIDEOS = Path(__file__).resolve().parents[2] / "examples/videos"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run_make(*overrides: str) -> int:
    return build(compose("make", list(overrides)))()


def test_a_preview_prints_cards_and_the_run_reuses_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = [f"videos={VIDEOS / 'birdhouse.mp4'}", f"out={out}"]
    assert run_make(*given, "preview=2") == 0
    printed = capsys.readouterr().out
    cards = [line for line in printed.splitlines() if line.startswith("╭")]
    assert len(cards) == 2
    assert sum("│ > " in line for line in printed.splitlines()) == 2
    assert "evidence at 0:" in printed
    assert not list(out.glob("*.parquet"))
    assert run_make(*given) == 0
    record = json.loads((out / "run.json").read_text())
    # `decide` needs the rows of all videos.
    assert {stage for stage, rows in record["computed"].items() if rows} <= {"decide"}
    assert record["llm"]["calls"] == 0


def test_a_long_video_is_shown_in_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "WHOLE_S", 100.0)
    monkeypatch.setattr(preview, "WINDOW_S", 60.0)
    (tmp_path / "videos.csv").write_text(
        f"uri,video_id\n{VIDEOS / 'broken.mp4'},broken\n{VIDEOS / 'pancakes.mp4'},pancakes\n"
    )
    given = [f"videos={tmp_path / 'videos.csv'}", f"out={tmp_path / 'out'}"]
    assert run_make(*given, "preview=1") == 0
    assert "preview of pancakes, 0:18 to 1:18 of 1:54" in capsys.readouterr().out


def test_a_preview_asks_an_endpoint_without_ray(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [f"videos={VIDEOS / 'birdhouse.mp4'}", f"out={tmp_path / 'out'}", "preview=1"]
    payloads = list[Any]()
    with Loopback(payloads=payloads) as server:
        model = ["llm=openai", f"llm.base_url={server.url}", "llm.key_env=null"]
        assert run_make(*given, *model) == 3
    assert "failed in ask" in capsys.readouterr().out  # the server's replies list no facts
    assert payloads
    assert not ray.is_initialized()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["preview=-1"], "preview=-1: must be 0 or more"),
        (["preview=1", "dry_run=true"], "give one of them"),
        (["preview=1", f"videos={VIDEOS / 'broken.mp4'}"], "none of the first videos can be read"),
    ],
)
def test_a_preview_that_cannot_be_made_says_why(
    tmp_path: Path, overrides: list[str], message: str
) -> None:
    given = [f"videos={VIDEOS / 'birdhouse.mp4'}", f"out={tmp_path / 'out'}"]
    with pytest.raises(UserError, match=message):
        run_make(*given, *overrides)
