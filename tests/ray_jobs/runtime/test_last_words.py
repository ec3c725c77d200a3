"""A run that is ended from outside leaves a last line of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ray_jobs.runtime.last_words import LINE

ROOT = Path(__file__).parents[3]
BLOCK = "from ray_jobs.runtime.last_words import last_words\nimport os, signal, sys\n"


def run(inside: str) -> tuple[int, list[str]]:
    """Run statements inside the block; return the exit code and the lines of stderr."""
    code = BLOCK + f"with last_words():\n    print('before', file=sys.stderr)\n    {inside}\n"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    return ended.returncode, ended.stderr.splitlines()


@pytest.mark.parametrize(
    ("how", "status"),
    [("os.kill(os.getpid(), signal.SIGKILL)", -9), ("os._exit(1)", 1), ("os.abort()", -6)],
)
def test_the_last_line_says_that_the_same_command_goes_on(how, status):
    assert run(how) == (status, ["before", LINE])


def test_a_run_that_ends_by_itself_does_not_say_so():
    assert run("pass") == (0, ["before"])
    status, lines = run("sys.exit(3)")
    assert (status, lines) == (3, ["before"])
    status, lines = run("raise ValueError")
    assert (status, lines[-1]) == (1, "ValueError")
