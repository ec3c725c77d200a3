"""A Ray that starts slowly or not at all, and its private folders."""

import os
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
import ray.data
from ray.data._internal.execution.operators import actor_pool_map_operator

from mustsee.errors import MustseeError, UserError
from ray_jobs.runtime import cluster


class Starter:
    def __init__(self, failures: int) -> None:
        self.failures, self.tries = failures, 0

    def __call__(self, **_: Any) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise Exception("The current node timed out during startup.\nA long trace follows.")


@pytest.mark.parametrize(("failures", "tries"), [(0, 1), (2, 3)])
def test_a_slow_start_is_retried_and_reported(
    failures: int, tries: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    starter = Starter(failures)
    monkeypatch.setattr(ray, "init", starter)
    cluster._start("starting Ray", 3, address="local")
    assert starter.tries == tries
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith("mustsee: starting Ray failed (The current") for line in lines] == [
        True
    ] * failures


def test_a_failed_start_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "init", Starter(9))
    with pytest.raises(MustseeError, match=r"starting Ray failed: The current node") as caught:
        cluster._start("starting Ray", 3, address="local")
    assert "\n" not in str(caught.value)


def test_joining_a_cluster_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    starter = Starter(9)
    monkeypatch.setattr(ray, "init", starter)
    monkeypatch.setattr(cluster, "answers", lambda address: True)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    lines = r"^joining the Ray cluster at head:6379 failed: The"
    with pytest.raises(MustseeError, match=lines), cluster.connect_ray():
        pass
    assert starter.tries == 1


def test_the_sessions_of_ray_are_in_a_private_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mustsee-7"
    cluster.make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)  # the mode that an earlier version set
    cluster.make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert cluster._SESSIONS.parent == cluster._PRIVATE


def test_the_ray_of_the_judge_has_its_own_private_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "_PRIVATE", tmp_path / "mustsee-7")
    cluster.show_judge_folder()
    folder = Path(capsys.readouterr().out.strip())
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert folder not in (cluster._SESSIONS, *cluster._SESSIONS.parents)
    recipe = (cluster.ROOT / "Makefile").read_text().partition("\njudge:")[2].partition("\n\n")[0]
    assert "RAY_TMPDIR=$$(" in recipe
    assert "show_judge_folder" in recipe


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, link, file = tmp_path / "theirs", tmp_path / "link", tmp_path / "file"
    theirs.mkdir()
    link.symlink_to(theirs)
    file.touch()
    monkeypatch.setattr(cluster, "_PRIVATE", link)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(UserError, match="is not yours"), cluster.connect_ray():
        pass
    with pytest.raises(SystemExit, match="2"):
        cluster.show_judge_folder()
    with pytest.raises(UserError, match="is not yours"):
        cluster.make_private(file)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(UserError, match="its owner is user"):
        cluster.make_private(theirs)


@pytest.mark.slow
def test_a_local_ray_starts_no_actors_of_ray_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    tracker = actor_pool_map_operator.get_or_create_actor_location_tracker
    with cluster.connect_ray():
        pool = ray.data.ActorPoolStrategy(size=1)
        doubled = ray.data.from_items([1, 2, 3]).map_batches(Doubler, compute=pool, num_cpus=0.1)
        assert sorted(row["item"] for row in doubled.iter_rows()) == [2, 4, 6]
        assert ray.util.list_named_actors(all_namespaces=True) == []
        names = {" ".join(p.cmdline()) for p in psutil.Process().children(recursive=True)}
        assert not [name for name in names if "dashboard.py" in name or "monitor.py" in name]
    assert actor_pool_map_operator.get_or_create_actor_location_tracker is tracker


class Doubler:
    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"item": batch["item"] * 2}
