"""Mistakes are reported before Ray starts, or by the workers before any video is decoded, in one
line and with exit code 2.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.engine.hardware import Hardware
from actors.engine.stage import Stage
from actors.llm.openai import OpenAI
from actors.part import Opened, RunContext
from loopback.endpoint import Loopback
from mustsee.errors import UserError
from mustsee.files.store import Store, writable
from ray_jobs.cli.launch import build, compose, launch
from ray_jobs.runtime import trials
from ray_jobs.runtime.cluster import connect_ray

ROOT = Path(__file__).parents[2]
VIDEO = "examples/videos/birdhouse.mp4"


def job(name: str, *overrides: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a job from a shell without a key."""
    return subprocess.run(
        [sys.executable, "-m", f"ray_jobs.{name}", *overrides],
        capture_output=True, text=True, cwd=ROOT, timeout=120,
        env={**{k: v for k, v in os.environ.items() if k != "OPENAI_API_KEY"}, **environment},
    )  # fmt: skip


def refused(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """The error is one line, after the line that reports the start of the job."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.removeprefix("mustsee: neptune: starting\n").count("\n") == 1, done.stderr
    assert done.stderr.startswith("mustsee: ")
    for part in parts:
        assert part in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        ([], ["OPENAI_API_KEY", "export"]),
        (["base_url=127.0.0.1:9/v1"], ["base_url='127.0.0.1:9/v1'", "expected http"]),
        (["base_url=http://127.0.0.1:9/v1", "key_env=null"], ["port 9", "connection refused"]),
    ],
)
def test_mistakes_that_the_driver_can_find_are_reported_before_ray_starts(
    overrides: list[str], parts: list[str], tmp_path: Path
) -> None:
    settings = [f"llm.{o}" for o in overrides]
    done = job("neptune", f"videos={VIDEO}", f"out={tmp_path}/o", "llm=openai", *settings,
               RAY_TMPDIR="/nowhere/at/all")  # fmt: skip
    refused(done, *parts)
    assert not (tmp_path / "o").exists()


JOBS = {
    "make": [f"videos={VIDEO}"],
    "neptune": [f"videos={VIDEO}"],
    "cinepile": [f"videos={VIDEO}", f"descriptions={VIDEO}", f"templates={VIDEO}"],
    "evaluate": [f"questions={VIDEO}"],
    "audit": [f"questions={VIDEO}"],
    "add": [f"questions={VIDEO}", f"made={Path(VIDEO).parent}"],
    "clean": [f"questions={VIDEO}"],
    "compare": [f"evaluations={Path(VIDEO).parent}"],
    "rescore": [f"evaluation={Path(VIDEO).parent}"],
    "certificate": [f"questions={VIDEO}", f"videos={VIDEO}"],
    "egoschema": [f"narrations={VIDEO}", "columns=ego4d"],
    "mlvu": [],
    "export": [f"questions={VIDEO}"],
    "probe": [],
    "report": [],
    "templates": [f"questions={VIDEO}"],
    "judge_train": [],
    "judge_calibrate": [],
    "sentences_train": [f"sentences={VIDEO}"],
}


@pytest.mark.parametrize("name", JOBS)
def test_a_folder_that_is_not_writable_is_refused_by_every_job(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(sys, "argv", [name, f"out={tmp_path}/file/out", *JOBS[name]])
    with pytest.raises(SystemExit) as ended:
        launch(name)
    stderr = capsys.readouterr().err
    refused(
        subprocess.CompletedProcess([], int(str(ended.value)), "", stderr),
        f"out='{tmp_path}/file/out'", "cannot be written", "is a file, not a folder",
    )  # fmt: skip


def test_every_job_that_writes_is_tested() -> None:
    with_out = {
        path.stem
        for path in (ROOT / "conf").glob("*.yaml")
        if "\nout:" in path.read_text() or "\n  - job\n" in path.read_text()
    }
    assert with_out - {"job", "doctor"} == set(JOBS)  # The doctor writes nothing.


def test_a_recipe_that_only_a_model_can_follow_is_refused_without_one() -> None:
    """The error is one line, and says what to set."""

    def check_ask(job: str, *overrides: str) -> None:
        trials.check(build(compose(job, ["out=y", *overrides])).ask, None)

    inputs = {
        "neptune": ("videos=x",),
        "cinepile": ("videos=x", "descriptions=x"),
        "egoschema": ("narrations=x",),
    }
    for job, given in inputs.items():
        with pytest.raises(UserError, match=r"llm=offline has no rules.*llm=openai.*replay") as no:
            check_ask(job, *given)
        assert "\n" not in str(no.value)
    check_ask("neptune", "videos=x", "ask=facts")
    for job in ("neptune", "egoschema"):
        replies = f"llm.path={ROOT}/examples/replies/{job}.jsonl"
        check_ask(job, *inputs[job], "+experiment=recorded", replies)


@pytest.mark.parametrize("place", ["/proc/mustsee", "/sys/mustsee", "/dev/null", "/dev/null/x"])
def test_folders_that_cannot_be_created_are_not_writable(place: str) -> None:
    if not Path(place).parents[-2].exists():
        pytest.skip(f"this machine has no {place}")
    assert writable(place)


def test_testing_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    assert writable(str(tmp_path / "a" / "b")) is None
    assert writable(str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def _ray() -> Iterator[None]:
    with connect_ray():
        yield


class Asking:
    """A part that has a model."""

    version, reads, needs, writes = "1", ("video_id",), (), ("title",)

    def open(self, run: RunContext) -> Opened:
        raise AssertionError("nothing is opened")


def stage(*models: OpenAI, **hardware: Any) -> Stage:
    part: Any = Asking() if not models else list(models)
    return Stage(name="ask", part=part, hardware=Hardware(**hardware))


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
def test_the_workers_try_each_endpoint_once(tmp_path: Path) -> None:
    with Loopback(models=("m",)) as server:
        good = OpenAI(model="m", base_url=server.url, key_env=None)
        stages = [stage(good), stage(good, good), stage(good, workers=4)]
        trials.try_endpoints(stages, Store(str(tmp_path)))
        assert server.stats["models"] == 1
        wrong = OpenAI(model="n", base_url=server.url, key_env=None)
        with pytest.raises(UserError, match="no such model"):
            trials.try_endpoints([stage(good), stage(wrong)], Store(str(tmp_path)))
        trials.try_endpoints([stage(wrong)], Store(str(tmp_path)), endpoints=False)
        assert server.stats["models"] == 4  # the list and the model, twice


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
def test_a_key_that_only_the_driver_has_names_the_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTSEE_TEST_KEY", "sk-0123456789")  # The workers lack it.
    with Loopback() as server:
        asks = stage(OpenAI(model="m", base_url=server.url, key_env="MUSTSEE_TEST_KEY"))
        with pytest.raises(UserError, match=r"on the workers.*--runtime-env-json '\{\"env_vars\""):
            trials.try_endpoints([asks], Store(str(tmp_path)))
        settings = {"env_vars": {"MUSTSEE_TEST_KEY": "sk-0123456789"}}
        trials.try_endpoints([stage(*asks.part, runtime_env=settings)], Store(str(tmp_path)))  # type: ignore[misc]
