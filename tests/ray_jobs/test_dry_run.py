"""A dry run calls no model; its estimate is stored and compared with the run afterwards."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopback.endpoint import Loopback
from mustsee.recipes.neptune import layout as neptune
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.cluster import connect_ray
from tests.support.evaluation import questions

pytestmark = pytest.mark.slow
FIGURES = ("calls", "tokens_in", "tokens_out", "usd")


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    with connect_ray():
        yield


def letter(payload: Any) -> str:
    """A model's reply: other letters than those of the scripted model, and longer."""
    text = str(payload["messages"][-1]["content"])
    return f"By the options alone I would say this. ANSWER: {random.Random(text).choice('ABCDE')}"


class Runs:
    """Evaluations of 40 questions on 20 videos at a local endpoint."""

    def __init__(self, folder: Path, server: Loopback) -> None:
        self.out, self.server = folder / "out", server
        release = folder / "q.json"
        neptune.write(questions(40), release)
        self._given = [
            f"questions={release}", f"out={self.out}", "answer=openai", "llm=openai",
            "answer.see.condition=blind", f"llm.base_url={server.url}", "llm.key_env=null",
            "llm.limits.requests_per_minute=null", "llm.limits.tokens_per_minute=null",
        ]  # fmt: skip

    def __call__(self, *more: str) -> int:
        return build(compose("evaluate", [*self._given, *more]))()

    @property
    def estimate(self) -> dict[str, Any]:
        return json.loads((self.out / "estimate.json").read_text())

    @property
    def record(self) -> dict[str, Any]:
        return json.loads((self.out / "run.json").read_text())


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with Loopback(reply=letter, models=("gpt-6-luna",)) as server:
        yield Runs(tmp_path, server)


def test_an_estimate_from_five_rows_is_close_to_the_run(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs("dry_run=true") == 0
    # No model was called; its endpoint was asked once whether it serves it, and costs are known.
    assert runs.server.counts == {"models": 1}
    assert runs.estimate["models"]["notes"] == []
    assert not (runs.out / "run.json").exists()
    assert (runs.estimate["rows"], runs.estimate["tried"], runs.estimate["stored"]) == (20, 5, 0)
    output = capsys.readouterr().out
    for part in (
        "evaluate/",
        "calls",
        "USD",
        "20 rows",
        "a scripted model stood in for gpt-6-luna at",
    ):
        assert part in output

    assert runs() == 0
    compared = runs.record["estimate"]
    assert compared["calls"]["actual"] == runs.server.counts["chat"] == 40
    for name in FIGURES:
        if name != "tokens_out":  # The scripted model cannot know the length of replies.
            assert abs(compared[name]["off"]) < 0.2, (name, compared[name])
        assert compared[name]["low"] <= compared[name]["actual"] <= compared[name]["high"]
    assert not (runs.out / "estimate.json").exists()
    assert "(estimated 40" in capsys.readouterr().out

    assert runs("dry_run=true") == 0  # All results are in the store.
    assert runs.estimate["stored"] == 20
    assert {runs.estimate["totals"][name]["expected"] for name in FIGURES} == {0}


def test_calls_of_a_paid_dry_run_are_not_paid_again(runs: Runs) -> None:
    assert runs("dry_run=true", "dry_run_usd=1", "dry_run_rows=4") == 0
    calls = runs.server.counts["chat"]
    assert 0 < calls < 20
    assert runs.estimate["spent"] > 0
    assert runs() == 0
    assert runs.server.counts["chat"] == 40
    compared = runs.record["estimate"]
    assert compared["calls"]["actual"] == 40 - calls
    assert compared["calls"]["expected"] == pytest.approx(40 - calls, rel=0.2)


def test_an_estimate_of_other_settings_is_not_compared_with_the_run(runs: Runs) -> None:
    job = build(compose("evaluate", [*runs._given, "dry_run=true"]))
    assert job() == 0
    estimate = json.loads((runs.out / "estimate.json").read_text())
    (runs.out / "estimate.json").write_text(json.dumps({**estimate, "config": {"seed": 7}}))
    assert runs() == 0
    assert "estimate" not in runs.record


def test_a_dry_run_of_templates_counts_all_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "asked.txt"
    path.write_text("\n".join(f"What does the {q.question[15:-1]} hold?" for q in questions(40)))
    overrides = [f"questions={path}", f"out={tmp_path}/o", "llm=openai", "k=3", "dry_run=true"]
    assert build(compose("templates", overrides))() == 0
    assert "cinepile/templates" in capsys.readouterr().out
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("recorded", ["openai", "offline"])
def test_a_dry_run_of_a_recording_records_nothing_and_calls_no_endpoint(
    tmp_path: Path, runs: Runs, recorded: str
) -> None:
    release, out, replies = tmp_path / "q.json", tmp_path / "out", tmp_path / "replies.jsonl"
    given = [
        f"questions={release}", f"out={out}", "answer=openai", "answer.see.condition=blind",
        "llm=replay", f"+llm@llm.record={recorded}", f"llm.path={replies}",
    ]  # fmt: skip
    if recorded == "openai":
        given += [f"llm.record.base_url={runs.server.url}", "llm.record.key_env=null"]
    assert build(compose("evaluate", [*given, "dry_run=true"]))() == 0
    assert runs.server.counts["chat"] == 0
    assert not replies.exists()
    estimate = json.loads((out / "estimate.json").read_text())
    assert estimate["totals"]["calls"]["expected"] == 40
    assert build(compose("evaluate", given))() == 0
    assert len(replies.read_text().splitlines()) == 40  # The dry run's rows are among them.
