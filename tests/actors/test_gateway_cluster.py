"""The gateway on a real Ray: several processes share one coordinator, and one of them is killed."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from actors.coordinator import start_coordinator
from actors.gateway import KIND, Gateway
from actors.llm.openai import OpenAI
from mustsee.llm import Message, Request
from mustsee.run.limits import Limits
from mustsee.store import Store
from ray_jobs.benches.loopback import Loopback
from ray_jobs.running.cluster import connected


@pytest.fixture(autouse=True, scope="module")
def _ray() -> Iterator[None]:
    with connected():
        yield


class Process:
    """A worker with an event loop of its own, as a stage has."""

    def __init__(self, config: OpenAI, store: Store, coordinator: Any) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._llm = Gateway.connect(config, store, coordinator)

    def pid(self) -> int:
        return os.getpid()

    def ask(self, questions: int) -> list[str]:
        async def work() -> list[str]:
            said = [(Message("user", f"question {i}"),) for i in range(questions)]
            requests = [Request(prompt="test", digest="", messages=m) for m in said]
            return [r.text for r in await asyncio.gather(*map(self._llm.complete, requests))]

        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()


def question(payload: Any) -> str:
    return payload["messages"][-1]["content"]


def start(server: Loopback, folder: Any, coordinator: Any, **more: Any) -> Any:
    config = OpenAI(model="m", base_url=server.url, key_env=None, **more)
    return ray.remote(num_cpus=0)(Process).remote(config, Store(str(folder)), coordinator)


def test_processes_make_equal_calls_once_and_share_the_limits(tmp_path) -> None:
    with Loopback(payloads=[], reply=question, latency=0.2) as server:
        coordinator = start_coordinator(silence=600)  # a starved process is no dead one
        limits = Limits(requests_per_minute=1200)
        processes = [start(server, tmp_path, coordinator, limits=limits) for _ in range(3)]
        answers = ray.get([process.ask.remote(60) for process in processes])
        asked = Counter(map(question, server.payloads))
    assert answers == [[f"question {i}" for i in range(60)]] * 3
    assert asked == {f"question {i}": 1 for i in range(60)}
    llm = ray.get(coordinator.snapshot.remote()).llm.summary()
    assert (llm["calls"], llm["cached"], llm["failed"]) == (60, 120, 0)


def test_calls_of_a_killed_process_are_made_by_another(tmp_path) -> None:
    """The first process dies while its tenth call is at the server; what it had stored stays."""
    reached = threading.Event()

    def reply(payload: Any) -> str:
        if question(payload) == "question 9" and not reached.is_set():
            until(lambda: stored(tmp_path) == 9)
            victim.kill()
            victim.wait(60)
            reached.set()
        return question(payload)

    with Loopback(payloads=[], reply=reply) as server:
        coordinator = start_coordinator(silence=1.0)
        first = start(server, tmp_path, coordinator, max_connections=1)
        other = start(server, tmp_path, coordinator)
        victim = psutil.Process(ray.get(first.pid.remote()))
        lost = first.ask.remote(20)
        assert reached.wait(120)
        with pytest.raises(ray.exceptions.RayActorError):
            ray.get(lost)
        assert ray.get(other.ask.remote(20)) == [f"question {i}" for i in range(20)]
        asked = Counter(map(question, server.payloads))
    assert asked == {f"question {i}": 2 if i == 9 else 1 for i in range(20)}


def stored(folder: Path) -> int:
    return sum(not path.name.startswith(".") for path in (folder / KIND).glob("*/*"))


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
