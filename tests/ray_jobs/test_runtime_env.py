"""A stage with its own environment runs in it; an invalid one is reported first."""

from __future__ import annotations

import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import iniconfig
import pytest
import ray

from actors.calls.coordinator_actor import start_coordinator
from actors.engine.hardware import Hardware
from actors.engine.session import Session
from actors.engine.stage import Stage
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Video
from ray_jobs.runtime.cluster import Cluster, connect_ray, preflight
from tests.support.parts import Where


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    with connect_ray():
        yield


def environment(folder: Path) -> Path:
    """A virtual environment like this one, with another version of iniconfig."""
    venv.create(folder, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    (packages / "iniconfig.py").touch()
    return packages


def hear(runtime_env: dict[str, Any] | None) -> Stage:
    hardware = Hardware(cpus=0.2, runtime_env=runtime_env)
    return Stage(name="hear", part=Where("iniconfig"), hardware=hardware)


def test_a_stage_runs_in_its_own_environment(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    packages = environment(folder)
    wanted = {"py_executable": str(folder / "bin/python"), "env_vars": {"STAGE": "hear"}}
    rows_out = []
    for n, stage in enumerate([hear(None), hear(wanted)]):
        session = Session(store=Store(f"{tmp_path}/{n}"), coordinator=start_coordinator())
        rows = ray.data.from_arrow(schemas.table([Video(video_id="v", uri="x")], Video))
        rows_out += stage.apply(rows, session, rows_per_block=1).take_all()
    values = [(r["title"], r["movie_name"], r["language"]) for r in rows_out]
    assert values == [
        (sys.prefix, iniconfig.__file__, None),
        (str(folder), str(packages / "iniconfig.py"), "hear"),
    ]


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"uvv": ["whisperx"]}, "'uvv'"),
        ({"env_vars": {"A": 1}}, "env_vars"),
        ({"uv": ["a"], "pip": ["a"]}, "same time"),
    ],
)
def test_an_invalid_environment_is_reported_before_any_work(
    environment: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UserError, match=rf"cluster\.stages\.hear\.runtime_env.*{reason}"):
        preflight([[hear(environment)]], Cluster(stages={}))
    preflight([[hear({"uv": ["whisperx==3.8.6"]})]], Cluster(stages={}))
