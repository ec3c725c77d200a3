"""A later process removes the folders of killed processes, and not those of living ones."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mustsee.run import outputs

HOLD = """
import sys, time
from mustsee.run import outputs
print(outputs.claim_folder("mustsee-rows-", sys.argv[1]), flush=True)
time.sleep(600)
"""


def start(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_only_the_folders_of_dead_processes_are_removed(tmp_path: Path) -> None:
    dead, abandoned = start(tmp_path)
    (abandoned / "rows").write_text("x")
    os.kill(dead.pid, signal.SIGKILL)
    dead.communicate()
    living, in_use = start(tmp_path)
    try:
        assert not abandoned.exists()
        mine = outputs.claim_folder("mustsee-rows-", str(tmp_path))
        assert in_use.exists()
        outputs.release(mine)
        assert not mine.exists()
    finally:
        living.kill()
        living.communicate()


@pytest.mark.parametrize(("age", "stays"), [(0.0, True), (outputs.UNCLAIMED_AFTER_S + 60, False)])
def test_a_folder_without_a_lock_file_is_kept_for_a_day(
    tmp_path: Path, age: float, stays: bool
) -> None:
    folder = tmp_path / "session_x"
    folder.mkdir()
    then = folder.stat().st_mtime - age
    os.utime(folder, (then, then))
    outputs.sweep([folder])
    assert folder.exists() is stays
