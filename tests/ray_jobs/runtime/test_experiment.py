"""A finished run is reported to an experiment tracker, whose errors do no harm."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mustsee.errors import UserError
from ray_jobs.runtime.experiment import (
    FinishedRun,
    Mlflow,
    NoTracker,
    figures,
    report_to_tracker,
)

RECORD: dict[str, Any] = {
    "recipe": "neptune",
    "config": {"seed": 0, "llm": {"model": "gpt-4.1-mini"}, "videos": "videos"},
    "questions": {"made": 4, "kept": 3, "dropped": {"sight": 1}, "subsets": {}, "types": {}},
    "funnel": [{"stage": "probe", "in": 2, "out": 1, "dropped": {}, "problems": 1}],
    "llm": {"calls": 9, "cached": 0, "tokens_in": 90, "tokens_out": 9, "usd": 0.5,
            "usd_per_kept_question": None},
    "seconds": {"probe": 0.5, "total": 2.0},
}  # fmt: skip
SCORE = {
    "model": "gpt-4.1", "weighted": {"value": 0.5, "low": 0.4, "high": 0.6}, "macro": None,
    "named": {"M-Avg": 0.5}, "unparsed": 0.0, "asked": 4, "failed": 0,
}  # fmt: skip


@dataclass
class Kept:
    """A tracker that remembers the run that it was given."""

    runs: list[FinishedRun] = field(default_factory=list[FinishedRun])
    texts: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def check(self) -> None:
        pass

    def keep(self, run: FinishedRun) -> str:
        self.runs.append(run)
        self.texts |= {path.name: path.read_bytes() for path in run.files}
        return "here"


@pytest.fixture
def out(tmp_path: Path) -> str:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text("<p>report")
    (tmp_path / "run.json").write_text(json.dumps(RECORD))
    return str(tmp_path)


def test_a_tracker_gets_the_whole_run(out: str) -> None:
    tracker = Kept()
    assert report_to_tracker(tracker, out) == "log:    here"
    (run,) = tracker.runs
    assert run.settings == {"seed": 0, "llm.model": "gpt-4.1-mini", "videos": "videos"}
    assert run.figures["questions/dropped/sight"] == 1
    assert run.figures["funnel/probe/problems"] == 1
    assert run.figures["llm/usd"] == 0.5
    assert "llm/usd_per_kept_question" not in run.figures  # No question was kept.
    assert tracker.texts["index.html"] == b"<p>report"


def test_scores_are_reported_with_intervals_under_the_models_names() -> None:
    one = figures(RECORD, [SCORE])
    assert (one["scores/weighted/low"], one["scores/named/M-Avg"]) == (0.4, 0.5)
    two = figures(RECORD, [SCORE, {**SCORE, "model": "o5"}])
    assert two["scores gpt-4.1/weighted/value"] == two["scores o5/weighted/value"] == 0.5


def test_a_failing_tracker_is_reported_and_does_not_fail_the_run(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Kept):
        def keep(self, run: FinishedRun) -> str:
            raise OSError("connection refused for sesame-sesame\nand a long trace")

    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "sesame-sesame")
    line = report_to_tracker(Broken(), out) or ""
    assert "Broken failed: connection refused for (key); the run itself is complete" in line
    assert report_to_tracker(NoTracker(), out) is None


def test_a_password_in_an_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", ModuleType("mlflow"))
    with pytest.raises(UserError, match="MLFLOW_TRACKING_PASSWORD"):
        Mlflow(experiment="e", uri="https://me:sesame@tracker.example").check()


def test_a_missing_client_is_reported_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UserError, match=r"log=mlflow needs mlflow .* 'mustsee\[mlflow\]'"):
        Mlflow(experiment="e").check()


def test_mlflow_gets_valid_names_and_small_requests(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, Any] = {"params": [], "metrics": {}}

    class Run:
        info = type("Info", (), {"run_id": "r1"})

        def __enter__(self) -> "Run":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    client = ModuleType("mlflow")
    vars(client).update(
        set_tracking_uri=lambda uri: None,
        set_experiment=lambda name: None,
        start_run=lambda **_: Run(),
        log_params=sent["params"].append,
        log_metrics=sent["metrics"].update,
        log_artifact=lambda path: None,
        get_tracking_uri=lambda: "http://tracker",
    )
    monkeypatch.setitem(sys.modules, "mlflow", client)
    record = {**RECORD, "config": {f"key{i}": i for i in range(250)}}
    (Path(out) / "run.json").write_text(json.dumps(record))
    results = {"results": [{**SCORE, "named": {"M-Avg (9 tasks: dev)": 0.5}}]}
    (Path(out) / "results.json").write_text(json.dumps(results))
    assert "run r1" in (report_to_tracker(Mlflow(experiment="e"), out) or "")
    assert [len(some) for some in sent["params"]] == [100, 100, 50]
    assert sent["metrics"]["scores/named/M-Avg _9 tasks_ dev_"] == 0.5
