"""The judge with a replica on each of two nodes, one of which dies without warning."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from benchmarks.judge import replica_count, serve_application
from tests.support.judge_app import CAR
from tests.support.killing import MARK, kill, mark, named, processes, raylet, until

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]
CLIENTS = 4
ROOM = 3  # CPUs for a replica with two and the front


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head and two nodes with room for one replica each; the front is on any of them."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv(MARK, marked := mark())
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=ROOM)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
    finally:
        cluster.shutdown()
        kill(*processes(marked))


class Clients:
    """Send requests one after the other until stopped, and return the replies."""

    def __init__(self, url: str) -> None:
        self._url, self._ended = f"{url}/v1/equivalence", threading.Event()
        self.statuses = Counter[int | str]()
        self.scores = set[float]()
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        with httpx2.Client(timeout=60) as client:
            while not self._ended.is_set():
                try:
                    reply = client.post(self._url, json={"items": [CAR]})
                except httpx2.HTTPError as error:
                    self.statuses[type(error).__name__] += 1
                    continue
                self.statuses[reply.status_code] += 1
                if reply.status_code == 200:
                    self.scores.add(reply.json()["data"][0]["score"])

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def test_a_dying_node_loses_only_its_own_requests(nodes: Any) -> None:
    from serve.judge import JudgeServeSettings, app

    settings = JudgeServeSettings(judge="lexical", no_auth="loopback", replicas=2, cpus=2.0)
    with serve_application(app(settings)) as url:
        until(lambda: replica_count() == 2)
        (front,) = named(os.environ[MARK], "ServeReplica:judge:Front")
        victim = next(n for n in nodes.worker_nodes if raylet(n) != front.ppid())
        clients = Clients(url)
        try:
            until(lambda: clients.statuses[200] >= 100)
            nodes.remove_node(victim, allow_graceful=False)  # perhaps with the clients' proxy
            died, before = time.monotonic(), clients.statuses[200]
            until(lambda: clients.statuses[200] >= before + 100)
            went_on = time.monotonic() - died
            until(lambda: replica_count() == 1)
            nodes.add_node(num_cpus=ROOM)
            until(lambda: replica_count() == 2)
            whole = time.monotonic() - died
        finally:
            clients.stop()
    print(f"\n{dict(clients.statuses)}; 100 more after {went_on:.1f} s, whole after {whole:.0f} s")
    assert sum(n for status, n in clients.statuses.items() if status != 200) <= CLIENTS
    assert len(clients.scores) == 1
