"""The benchmark of a whole job: how its ratios follow from walls, CPU seconds and calls."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import end_to_end
from benchmarks.end_to_end import EndToEndBench
from loopback.endpoint import Loopback

WALLS_S = {"start": 8.0, "out": 108.0, "asked": 58.0}  # by output folder


class FakeJob:
    """A job in place of a child process: it moves the clock, and writes a run record."""

    def __init__(self) -> None:
        self.now = 0.0
        self.commands: list[Sequence[str]] = []

    def monotonic(self) -> float:
        return self.now

    def __call__(self, arguments: Sequence[str], what: str) -> str:
        self.commands.append(arguments)
        out = Path(next(a for a in arguments if a.startswith("out=")).removeprefix("out="))
        again = out.exists()
        self.now += 18.0 if again and out.name == "out" else WALLS_S[out.name]
        out.mkdir(exist_ok=True)
        rows = {"look": 3}
        record = {
            "cpu_seconds": {"look": 50.0, "ask": 110.0},
            "computed": {} if again else rows,
            "reused": rows if again else {},
        }
        (out / "run.json").write_text(json.dumps(record))
        return ""


def test_ratios_are_walls_beyond_the_start_over_the_ideal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job, replies = FakeJob(), tmp_path / "replies.jsonl"
    replies.touch()
    monkeypatch.setattr(end_to_end, "run_child", job)
    monkeypatch.setattr(end_to_end, "time", job)
    monkeypatch.setattr(end_to_end, "local_cores", lambda: 2)
    monkeypatch.setattr(Loopback, "__enter__", _serve_200_calls)
    monkeypatch.setattr(Loopback, "__exit__", lambda *_: None)
    table = EndToEndBench(videos="V", overrides=["seed=1"], replies=str(replies))()
    ratios = {row[0]: row[-1] for row in table.rows}
    assert ratios["first run"] == (108 - 8) / (160 / 2)
    assert ratios["second run"] == 18 / 108
    assert ratios["at an endpoint"] == (58 - 8) / (200 * 2 / 16)
    asked = job.commands[-1]
    assert asked[:2] == ["-m", "ray_jobs.make"]
    assert {"seed=1", "llm=openai", "base_url=http://here/v1"} <= set(asked)
    assert any(a.startswith("store=") and a.endswith("/out/store") for a in asked)


def _serve_200_calls(server: Loopback) -> Loopback:
    server.counts["chat"] = 200
    server.url = "http://here/v1"
    return server
