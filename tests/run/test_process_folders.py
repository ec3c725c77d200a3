"""What a killed process leaves is swept by a later one; what a living one works in is not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mustsee.run import process_folders

HOLD = """
import sys, time
from mustsee.run import process_folders
print(process_folders.claim_folder("mustsee-rows-", sys.argv[1]), flush=True)
time.sleep(600)
"""


def start(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_killed_process_goes_and_of_a_living_one_stays(tmp_path: Path) -> None:
    dead, left = start(tmp_path)
    (left / "rows").write_text("x")
    os.kill(dead.pid, signal.SIGKILL)
    dead.communicate()
    living, held = start(tmp_path)
    try:
        assert not left.exists()
        mine = process_folders.claim_folder("mustsee-rows-", str(tmp_path))
        assert held.exists()
        process_folders.release(mine)
        assert not mine.exists()
    finally:
        living.kill()
        living.communicate()


@pytest.mark.parametrize(
    ("age", "stays"), [(0.0, True), (process_folders.UNCLAIMED_AFTER_S + 60, False)]
)
def test_a_folder_that_nobody_claimed_is_left_for_a_day(
    tmp_path: Path, age: float, stays: bool
) -> None:
    folder = tmp_path / "session_x"
    folder.mkdir()
    then = folder.stat().st_mtime - age
    os.utime(folder, (then, then))
    process_folders.sweep([folder])
    assert folder.exists() is stays
