"""A job whose driver is killed continues: the same bytes, and nothing is computed twice."""

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.parts import calls

ROWS = 6
FILES = ("videos.parquet", "questions.parquet", "problems.parquet")


def start(out: Path, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.support.toy_job", str(out), str(folder), str(ROWS)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def stored(out: Path) -> int:
    return sum(len(list((out / "store" / s).rglob("[0-9a-f]*"))) for s in ("probe", "look", "ask"))


@pytest.mark.slow
def test_a_killed_driver_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    whole = start(tmp_path / "whole", tmp_path / "calls-whole")
    assert whole.wait(timeout=240) == 0
    for number, at_least in enumerate((1, 7)):
        out, folder = tmp_path / f"out{number}", tmp_path / f"calls{number}"
        broken = start(out, folder)
        deadline = time.monotonic() + 120
        while stored(out) < at_least and time.monotonic() < deadline:
            time.sleep(0.02)
        stored_before = stored_names(out)
        broken.send_signal(signal.SIGKILL)
        broken.wait()
        assert not (out / "run.json").exists()
        before = calls(folder)
        again = start(out, folder)
        assert again.wait(timeout=240) == 0
        for name in FILES:
            assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        # Whatever was stored before the kill was not computed again.
        repeated = calls(folder) - before
        assert sum(repeated.values()) <= 3 * ROWS - 2 - len(stored_before)
        assert all(count <= 2 for count in calls(folder).values())


def stored_names(out: Path) -> Counter[str]:
    paths = (p for s in ("probe", "look", "ask") for p in (out / "store" / s).rglob("*"))
    return Counter(p.name for p in paths if p.is_file() and not p.name.startswith("."))
