"""A run on a slow, failing object store, or with a clock that jumps, writes the same bytes as
without, and pays every call once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from loopback import s3
from loopback.endpoint import Loopback
from loopback.replies import content_hash
from mustsee.files.store import resolve
from tests.support.asking_job import CALLS, ROWS
from tests.support.killing import MARK, kill, mark, named, processes, until

ROOT = Path(__file__).parents[2]
FILES = ("videos.parquet", "questions.parquet", "problems.parquet")
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]
JUMPS = """
import sys, time

real, since = time.time, time.monotonic()

def jumping():
    ours = sys._getframe(1).f_globals.get("__name__", "").split(".")[0]
    if ours not in ("mustsee", "actors", "ray_jobs", "serve", "loopback", "benchmarks"):
        return real()
    return real() + (-4e7, 4e7)[int(time.monotonic() - since) % 2]  # jumps by more than a year

time.time = jumping
"""


def run(out: str, store: str, url: str, **variables: str) -> tuple[list[bytes], dict[str, Any]]:
    """Return the tables of a run of `asking_job`, and its `run.json`."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.asking_job", out, store, url, "1"],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]

    def content(name: str) -> bytes:
        filesystem, folder = resolve(out)
        with filesystem.open_input_file(f"{folder}/{name}") as file:
            return file.read()

    return [content(name) for name in FILES], json.loads(content("run.json"))


def test_a_slow_store_that_fails_one_request_in_twenty_changes_nothing(tmp_path: Path) -> None:
    with Loopback() as server:
        whole, _ = run(str(tmp_path / "out"), str(tmp_path / "store"), server.url)
        paid = server.counts["chat"]
        with s3.serve_objects(fails=0.05, seconds=0.02) as (objects, address):
            place = address.format("out"), address.format("store")
            tables, record = run(*place, server.url)
            failed = objects.failed.total() - objects.failed[""]
            again, second = run(*place, server.url)
    assert failed >= 5
    assert tables == again == whole
    assert paid == ROWS * CALLS
    assert server.counts["chat"] == 2 * paid
    assert (record["llm"]["calls"], second["llm"]["calls"]) == (paid, 0)
    assert second["llm"]["all_runs"]["calls"] == paid
    assert record["llm"]["all_runs"]["unknown"] == 0


def test_a_run_on_an_object_store_is_killed_and_goes_on(tmp_path: Path) -> None:
    """Its senders store the replies that are in the air, so that none is paid for twice."""
    with Loopback() as server:
        whole, _ = run(str(tmp_path / "out"), str(tmp_path / "store"), server.url)
    gate = threading.Event()
    with (
        s3.serve_objects(fails=0.02, seconds=0.005) as (_, address),
        Loopback(port=server.port, gate=gate, payloads=[]) as gated,
    ):
        place, marked = (address.format("out"), address.format("store")), mark()
        job = [sys.executable, "-m", "tests.support.asking_job", *place, gated.url, "1"]
        with subprocess.Popen(job, cwd=ROOT, env={**os.environ, MARK: marked}) as running:
            try:
                until(lambda: gated.counts["chat"] == ROWS * CALLS or running.poll() is not None)
                running.kill()
                running.wait()
                gate.set()
                until(lambda: not named(marked, "actors.calls.sending"))
            finally:
                kill(*processes(marked))
        tables, record = run(*place, gated.url)
        asked = Counter(map(content_hash, gated.payloads or ()))
    assert tables == whole
    assert set(asked.values()) == {1}
    everything = record["llm"]["all_runs"]
    assert (everything["calls"], everything["unknown"]) == (ROWS * CALLS, 0)
    assert (everything["unanswered"], everything["damaged"]) == (0, 0)


def test_a_clock_that_jumps_by_more_than_a_year_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(JUMPS)
    with Loopback() as server:
        whole, _ = run(str(tmp_path / "out"), str(tmp_path / "store"), server.url)
        place = str(tmp_path / "out2"), str(tmp_path / "store2")
        path = os.pathsep.join([str(tmp_path / "clock"), str(ROOT)])
        tables, record = run(*place, server.url, PYTHONPATH=path)
    assert tables == whole
    assert record["llm"]["calls"] == ROWS * CALLS
    assert server.counts["chat"] == 2 * ROWS * CALLS
    assert 0 < record["seconds"]["total"] < 900
    assert 0 <= record["llm"]["seconds"] < 900 * ROWS * CALLS
