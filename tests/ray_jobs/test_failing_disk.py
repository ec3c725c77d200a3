"""A disk whose writes fail (EIO) ends a run with one line, and loses no reply."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from actors.calls.gateway import KIND
from loopback.endpoint import Loopback
from mustsee.files.store import Store
from tests.ray_jobs.test_killed import ALL, Job, Whole, gated, request_counts, whole
from tests.support.failing_disk import failing_disk
from tests.support.killing import kill, mark, named, processes, until

__all__ = ["gated", "whole"]
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]


def test_the_library_makes_writes_fail(tmp_path: Path) -> None:
    disk = failing_disk(tmp_path / "bad", tmp_path)
    disk.folder.mkdir()
    disk.fail()
    code = (
        "import os, sys\n"
        "def tried(path):\n"
        "    file = os.open(path, os.O_CREAT | os.O_WRONLY)\n"
        "    try: os.write(file, b'x'); os.fsync(file); return 0\n"
        "    except OSError as error: return error.errno\n"
        "print(tried(sys.argv[1] + '/bad/a'), tried(sys.argv[1] + '/good'))\n"
    )
    tried = [sys.executable, "-c", code, str(tmp_path)]
    said = subprocess.run(tried, env=disk.variables, capture_output=True, text=True, check=True)
    assert said.stdout == "5 0\n"


@pytest.mark.parametrize("part", ["store", "out"])
def test_failing_writes_with_calls_in_flight_lose_no_reply(
    part: str, tmp_path: Path, gated: Loopback, whole: Whole
) -> None:
    disk = failing_disk(tmp_path / "job" / part, tmp_path)
    (tmp_path / "job").mkdir()
    job = Job(tmp_path / "job", gated.url, mark()).start(**disk.variables)
    try:
        until(lambda: gated.counts["chat"] == ALL or job.process.poll() is not None)
        disk.fail()
        assert gated.gate is not None
        gated.gate.set()
        output = job.end()
        assert job.process.returncode == 1, output
        said = [line for line in output.splitlines() if not line.startswith("[")]
        assert "Input/output error" in said[-1]
        assert said[-1].startswith("mustsee: cannot write")
        assert "Traceback" not in output
        disk.mend()
        until(lambda: not named(job.mark, "actors.calls.sending"))
        assert len(Store(job.store).keys(KIND)) == ALL
        again = job.start()
        output = again.end()
        assert again.process.returncode == 0, output
        assert again.tables == whole.tables
        assert set(request_counts(gated).values()) == {1}
        everything = again.usage["all_runs"]
        assert (everything["calls"], everything["unknown"], everything["unanswered"]) == (ALL, 0, 0)
    finally:
        kill(*processes(job.mark))
