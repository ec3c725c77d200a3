"""A run replaces no tables of another recipe, and a sweep none of its own, without being told."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig

from actors.engine.hardware import Hardware
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.records import Video
from ray_jobs.cli import launch as launching
from ray_jobs.cli.launch import build, compose, launch
from ray_jobs.runtime.cluster import Cluster
from ray_jobs.runtime.dry_run import DryRun
from ray_jobs.runtime.run import JobSettings
from tests.support.parts import Upper


@pytest.fixture
def job(tmp_path: Path) -> JobSettings:
    (tmp_path / "calls").mkdir()
    return JobSettings(
        out=str(tmp_path / "out"), store=str(tmp_path / "store"),
        cluster=Cluster(stages={"look": Hardware(cpus=0.2)}),
    )  # fmt: skip


def run(job: JobSettings, recipe: str) -> str:
    """Return the recipe whose tables the folder holds after a run."""
    with job.open(recipe, light=True) as running:
        running.read(schemas.table([Video(video_id="v", uri="x")], Video))
        running.stage("look", Upper(folder=str(Path(job.out).parent / "calls")))
        assert running.publish() == 0
    return json.loads((Path(job.out) / "run.json").read_text())["recipe"]


def test_a_folder_of_another_recipe_is_refused_unless_the_user_allows_it(job: JobSettings) -> None:
    assert run(job, "make") == run(job, "make") == "make"
    with pytest.raises(UserError, match="holds the tables of make, which neptune would"):
        run(job, "neptune")
    assert json.loads((Path(job.out) / "run.json").read_text())["recipe"] == "make"
    assert run(dataclasses.replace(job, overwrite=True), "neptune") == "neptune"
    with pytest.raises(UserError, match="holds the tables of neptune"):
        run(job, "make")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"recipe": null}', "\x00\xff"])
def test_a_run_json_that_is_not_our_own_is_not_replaced(content: str, job: JobSettings) -> None:
    Path(job.out).mkdir()
    (Path(job.out) / "run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match="overwrite=true"):
        run(job, "make")
    assert run(dataclasses.replace(job, overwrite=True), "make") == "make"


def test_what_writes_no_tables_is_not_refused(job: JobSettings) -> None:
    run(job, "make")
    for trying in ({"preview": 3}, {"rehearsal": DryRun(dry_run=True)}):
        with dataclasses.replace(job, **trying).open("neptune", light=True):  # pyright: ignore
            pass


def test_every_job_with_tables_has_the_key() -> None:
    made: Any = build(compose("make", ["videos=x", "out=y", "overwrite=true"]))
    assert made.run.overwrite


def swept(monkeypatch: pytest.MonkeyPatch, *given: str) -> tuple[list[DictConfig], int]:
    """Return the configurations that a command runs, and its exit code."""
    done = list[DictConfig]()

    def build_nothing(config: DictConfig) -> Any:
        return lambda: done.append(config) or 0

    monkeypatch.setattr("sys.argv", ["make", "-m", *given])
    monkeypatch.setattr(launching, "build", build_nothing)
    with pytest.raises(SystemExit) as ended:
        launch("make")
    return done, int(str(ended.value.code))


def test_combinations_of_a_sweep_that_share_a_folder_get_one_each_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "a b's"
    given = (f"videos={tmp_path}", f'out="{out}"', "seed=1,2", "hear=auto,tiny")
    done, code = swept(monkeypatch, *given)
    assert code == 0
    names = ["seed-1_hear-auto", "seed-1_hear-tiny", "seed-2_hear-auto", "seed-2_hear-tiny"]
    assert [config.out for config in done] == [str(out / name) for name in names]
    assert {config.store for config in done} == {str(out / "store")}


def test_a_sweep_that_names_its_folders_keeps_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = (f"videos={tmp_path}", f"out='{tmp_path}/${{seed}}'", f"store={tmp_path}/s", "seed=1,2")
    done, _ = swept(monkeypatch, *given)
    assert [config.out for config in done] == [f"{tmp_path}/1", f"{tmp_path}/2"]
    assert {config.store for config in done} == {f"{tmp_path}/s"}


def test_combinations_whose_folders_cannot_be_told_apart_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (f"videos={tmp_path}", f"out={tmp_path}/o", "language='a/b','a-b'")
    assert swept(monkeypatch, *given) == ([], 2)
    assert "write into the same folder" in capsys.readouterr().err
