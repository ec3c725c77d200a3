"""A job with calls in flight and a killed process writes the same bytes and pays once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from actors.calls.gateway import KIND
from loopback.endpoint import Loopback
from loopback.replies import content_hash
from mustsee.files.store import Store
from ray_jobs.runtime.local_ray import LINE
from tests.support.asking_job import CALLS, ROWS
from tests.support.disks import fill_disk, small_disk
from tests.support.killing import MARK, kill, mark, named, processes, raylet, until

ROOT = Path(__file__).parents[2]
FILES = ("videos.parquet", "questions.parquet", "problems.parquet")
ALL = ROWS * CALLS
COORDINATOR, WORKER = "ray::Coordinator", "ray::MapWorker"
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]


@dataclass
class Job:
    """A run of `asking_job` as a process, with its output."""

    folder: Path
    url: str
    mark: str

    def start(self, workers: str = "1", **variables: str) -> Job:
        job = "tests.support.asking_job"
        self.process = subprocess.Popen(
            [sys.executable, "-m", job, self.out, self.store, self.url, workers],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
            env={**os.environ, MARK: self.mark, **variables},
        )  # fmt: skip
        return self

    @property
    def out(self) -> str:
        return str(self.folder / "out")

    @property
    def store(self) -> str:
        return str(self.folder / "store")

    def end(self) -> str:
        """Wait for the end and return the output."""
        output, _ = self.process.communicate()
        return output

    @property
    def usage(self) -> dict[str, Any]:
        return json.loads(Path(self.out, "run.json").read_text())["llm"]

    @property
    def tables(self) -> list[bytes]:
        return [Path(self.out, name).read_bytes() for name in FILES]


@dataclass(frozen=True)
class Whole:
    """The tables of an undisturbed run at this port, since the address is in the lineage."""

    port: int
    tables: list[bytes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    with Loopback() as server:
        job = Job(tmp_path_factory.mktemp("whole"), server.url, mark()).start()
        output = job.end()
        assert job.process.returncode == 0, output
    return Whole(server.port, job.tables)


@pytest.fixture
def gated(whole: Whole) -> Iterator[Loopback]:
    """An endpoint that answers once its gate is open."""
    gate = threading.Event()
    with Loopback(payloads=[], gate=gate, port=whole.port) as server:
        yield server
        gate.set()


@pytest.fixture
def job(tmp_path: Path, gated: Loopback) -> Iterator[Job]:
    """A job with all of its calls in flight."""
    running = Job(tmp_path, gated.url, mark()).start()
    with running.process:
        try:
            until(lambda: gated.counts["chat"] == ALL or running.process.poll() is not None)
            yield running
        finally:
            kill(*processes(running.mark))


def request_counts(server: Loopback) -> Counter[str]:
    return Counter(map(content_hash, server.payloads or ()))


def kill_worker(job: Job) -> None:
    (worker,) = named(job.mark, WORKER)
    kill(worker)


def kill_coordinator(job: Job) -> None:
    (coordinator,) = named(job.mark, COORDINATOR)
    kill(coordinator)


def kill_driver(job: Job) -> None:
    kill(psutil.Process(job.process.pid))
    job.end()


@pytest.mark.parametrize("kills", [kill_worker, kill_coordinator])
def test_a_run_continues_after_a_process_is_killed(
    kills: Callable[[Job], None], job: Job, gated: Loopback, whole: Whole
) -> None:
    kills(job)
    began = time.monotonic()
    assert gated.gate is not None
    gated.gate.set()
    output = job.end()
    assert job.process.returncode == 0, output
    print(f"\n{kills.__name__}: ended {time.monotonic() - began:.1f} s later")
    assert job.tables == whole.tables
    assert set(request_counts(gated).values()) == {1}
    everything = job.usage["all_runs"]
    assert (everything["runs"], everything["calls"], everything["unknown"]) == (1, ALL, 0)
    assert json.loads(Path(job.out, "run.json").read_text())["computed"] == {"ask": ROWS}


def test_calls_in_flight_of_a_killed_driver_are_paid_once(
    job: Job, gated: Loopback, whole: Whole
) -> None:
    kill_driver(job)
    assert gated.gate is not None
    gated.gate.set()
    until(lambda: len(Store(job.store).keys(KIND)) == ALL)
    until(lambda: not named(job.mark, "actors.calls.sending"))
    again = job.start()
    output = again.end()
    assert again.process.returncode == 0, output
    assert again.tables == whole.tables
    assert set(request_counts(gated).values()) == {1}
    everything = again.usage["all_runs"]
    assert (everything["calls"], everything["unknown"]) == (ALL, 0)
    assert everything["usd"] == pytest.approx(sum(map(cost, gated.payloads or ())))


def test_a_run_whose_ray_dies_has_the_last_word_and_goes_on(
    job: Job, gated: Loopback, whole: Whole
) -> None:
    kill(*(p for p in psutil.Process(job.process.pid).children() if p.name() == "raylet"))
    assert gated.gate is not None
    gated.gate.set()
    output = job.end()
    assert job.process.returncode == 1, output
    assert output.splitlines()[-1] == LINE
    until(lambda: not named(job.mark, "actors.calls.sending"))
    again = job.start()
    output = again.end()
    assert again.process.returncode == 0, output
    assert LINE not in output
    assert again.tables == whole.tables
    assert set(request_counts(gated).values()) == {1}


def test_a_full_disk_with_calls_in_flight_loses_no_reply(
    tmp_path: Path, gated: Loopback, whole: Whole
) -> None:
    with small_disk(tmp_path / "small", mib=24) as small:
        job = Job(small, gated.url, mark()).start()
        try:
            until(lambda: gated.counts["chat"] == ALL or job.process.poll() is not None)
            filled = fill_disk(small)
            assert gated.gate is not None
            gated.gate.set()
            output = job.end()
            assert job.process.returncode == 1
            assert "No space left" in output
            until(lambda: not named(job.mark, "actors.calls.sending"))
            assert len(Store(job.store).keys(KIND)) == ALL
            filled.unlink()
            again = job.start()
            output = again.end()
            assert again.process.returncode == 0, output
            assert again.tables == whole.tables
            assert set(request_counts(gated).values()) == {1}
            everything = again.usage["all_runs"]
            assert (everything["calls"], everything["unknown"]) == (ALL, 0)
        finally:
            kill(*processes(job.mark))


def cost(payload: Any) -> float:
    """The price of a call at the endpoint."""
    from loopback.replies import canned_reply, completion

    used = completion(payload, canned_reply)["usage"]
    return (used["prompt_tokens"] + 2 * used["completion_tokens"]) / 1_000_000


def test_a_coordinator_that_dies_repeatedly_ends_the_run_with_one_line(job: Job) -> None:
    while job.process.poll() is None:
        kill(*named(job.mark, COORDINATOR))
        time.sleep(0.1)
    output = [line for line in job.end().splitlines() if not line.startswith("[")]
    assert job.process.returncode == 1
    assert output[-1].startswith("mustsee: the call coordinator was killed")
    assert "what is finished is kept" in output[-1]
    assert "Traceback" not in "\n".join(output)


def test_an_unreadable_call_log_is_reported_before_any_work(
    tmp_path: Path, gated: Loopback
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "call_log").write_text("a file stands in the way")
    job = Job(tmp_path, gated.url, mark()).start()
    output = job.end().splitlines()
    assert job.process.returncode == 1
    assert output[-1].startswith("mustsee: cannot read")
    assert not any("Traceback" in line for line in output)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head without CPUs and three nodes with one: one node more than two workers need."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv(MARK, mark())
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(3):
            cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        cluster.shutdown()


def test_a_run_continues_after_the_death_of_a_node(
    cluster: Any,
    tmp_path: Path,
    gated: Loopback,
    whole: Whole,
    request: pytest.FixtureRequest,
) -> None:
    job = Job(tmp_path, gated.url, os.environ[MARK])
    request.addfinalizer(lambda: kill(*named(job.mark, "asking_job")))
    job.start("2", RAY_ADDRESS=cluster.address)
    until(lambda: gated.counts["chat"] == 2 * CALLS or job.process.poll() is not None)
    (one, other) = named(job.mark, WORKER)
    assert one.ppid() != other.ppid()
    (sender,) = named(job.mark, f"for={one.pid}")
    (node,) = (n for n in cluster.worker_nodes if raylet(n) == one.ppid())
    cluster.remove_node(node, allow_graceful=False)
    kill(one, sender)  # All processes of a machine die with it.
    began = time.monotonic()
    until(lambda: gated.counts["chat"] > 2 * CALLS or job.process.poll() is not None)
    print(f"\nnode killed: went on after {time.monotonic() - began:.1f} s")
    assert gated.gate is not None
    gated.gate.set()
    output = job.end()
    assert job.process.returncode == 0, output
    assert job.tables == whole.tables
    twice = sum(n - 1 for n in request_counts(gated).values())
    print(f"{twice} paid twice")
    assert twice == CALLS
    everything = job.usage["all_runs"]
    assert (everything["calls"], everything["unknown"]) == (ALL, twice)


def test_a_node_that_joins_late_gets_rows(
    tmp_path: Path,
    gated: Loopback,
    whole: Whole,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv(MARK, mark())
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    request.addfinalizer(nodes.shutdown)
    nodes.add_node(num_cpus=1)
    job = Job(tmp_path, gated.url, os.environ[MARK])
    request.addfinalizer(lambda: kill(*named(job.mark, "asking_job")))
    job.start("1-2", RAY_ADDRESS=nodes.address)
    until(lambda: gated.counts["chat"] == CALLS or job.process.poll() is not None)
    (first,) = named(job.mark, WORKER)
    late = nodes.add_node(num_cpus=1)
    until(lambda: gated.counts["chat"] == 2 * CALLS or job.process.poll() is not None)
    (second,) = (w for w in named(job.mark, WORKER) if w.pid != first.pid)
    assert second.ppid() == raylet(late)
    assert gated.gate is not None
    gated.gate.set()
    output = job.end()
    assert job.process.returncode == 0, output
    assert job.tables == whole.tables
    assert set(request_counts(gated).values()) == {1}
