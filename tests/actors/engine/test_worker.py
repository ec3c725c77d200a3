"""The folder of a worker: relative paths start from the caller's folder."""

from pathlib import Path

import pytest

from actors.engine.session import Session
from actors.engine.stage import Stage, StageWorker
from mustsee.files.store import Store
from tests.support.parts import Upper


def test_a_worker_changes_to_the_callers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "caller").mkdir()
    (tmp_path / "cluster").mkdir()
    monkeypatch.chdir(tmp_path / "caller")
    session = Session(store=Store("runs/store"), coordinator=None)
    monkeypatch.chdir(tmp_path / "cluster")
    StageWorker(Stage(name="look", part=Upper(folder="calls")), session)
    session.store.put("look", "abc", b"x")
    assert (tmp_path / "caller" / "runs" / "store" / "look" / "ab" / "abc.1").is_file()


def test_a_folder_missing_on_another_machine_is_not_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session(store=Store("s"), coordinator=None, here=str(tmp_path / "not here"))
    StageWorker(Stage(name="look", part=Upper(folder="calls")), session)
    assert Path.cwd() == tmp_path
