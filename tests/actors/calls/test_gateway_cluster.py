"""The gateway on a real Ray: several processes share a coordinator, and each kind is killed."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from actors.calls.coordinator_actor import call_coordinator, start_coordinator
from actors.engine.session import Session
from actors.llm.openai import OpenAI
from loopback.endpoint import Loopback
from mustsee.calls.call_log import FOLDER
from mustsee.calls.limits import Limits
from mustsee.calls.llm import Message, Request
from mustsee.errors import MustseeError
from mustsee.files.store import Store
from ray_jobs.runtime.cluster import connect_ray
from tests.support.killing import MARK, kill, mark, named, until

pytestmark = pytest.mark.slow
CALLS = 100
EXPECTED = [f"question {i}" for i in range(CALLS)]
ONCE = dict.fromkeys(EXPECTED, 1)


@pytest.fixture(autouse=True, scope="module")
def marked() -> Iterator[str]:
    """The mark of this Ray's processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, value := mark())
        with connect_ray():
            yield value


class Process:
    """A worker with an event loop of its own, as a stage has."""

    def __init__(self, config: OpenAI, store: Store, coordinator: Any) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._llm = Session(store=store, coordinator=coordinator).context().llm(config)

    def pid(self) -> int:
        return os.getpid()

    def ask(self, questions: int) -> list[str]:
        async def work() -> list[str]:
            message_lists = [(Message("user", f"question {i}"),) for i in range(questions)]
            requests = [Request(prompt="test", digest="", messages=m) for m in message_lists]
            return [r.text for r in await asyncio.gather(*map(self._llm.complete, requests))]

        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()


def question(payload: Any) -> str:
    return payload["messages"][-1]["content"]


def start(server: Loopback, folder: Any, coordinator: Any, **more: Any) -> Any:
    config = OpenAI(model="m", base_url=server.url, key_env=None, **more)
    return ray.remote(num_cpus=0)(Process).remote(config, Store(str(folder)), coordinator)


def test_processes_make_equal_calls_once_and_share_the_limits(tmp_path) -> None:
    with Loopback(payloads=[], reply=question, latency=0.2) as server:
        coordinator = start_coordinator()
        limits = Limits(requests_per_minute=1200)
        processes = [start(server, tmp_path, coordinator, limits=limits) for _ in range(3)]
        answers = ray.get([process.ask.remote(60) for process in processes])
        counts = Counter(map(question, server.payloads))
    assert answers == [[f"question {i}" for i in range(60)]] * 3
    assert counts == {f"question {i}": 1 for i in range(60)}
    llm = ray.get(coordinator.snapshot.remote()).llm.summary()
    assert (llm["calls"], llm["cached"], llm["failed"]) == (60, 120, 0)


class Scene:
    """A server that answers on command, a coordinator, and a process with `CALLS` calls in
    flight.
    """

    def __init__(self, folder: Path) -> None:
        self.gate = threading.Event()
        self.server = Loopback(payloads=[], reply=question, gate=self.gate).__enter__()
        self.out = folder / "out"
        restart_log = str(folder / "restart_log")
        self.coordinator = start_coordinator(out=str(self.out), restart_log=restart_log)
        self.folder = folder / "store"
        self.first = self.process()
        self.victim = psutil.Process(ray.get(self.first.pid.remote()))
        self.asked = self.first.ask.remote(CALLS)
        until(lambda: len(self.server.payloads or ()) == CALLS)

    def process(self) -> Any:
        return start(self.server, self.folder, self.coordinator)

    def times(self) -> Counter[str]:
        """The number of requests for each question at the server."""
        return Counter(map(question, self.server.payloads or ()))

    def spent(self) -> dict[str, Any]:
        return call_coordinator(self.coordinator.snapshot.remote()).spent.plain()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    new_scene = Scene(tmp_path)
    yield new_scene
    new_scene.gate.set()
    ray.kill(new_scene.coordinator)
    new_scene.server.__exit__()


def test_calls_of_a_killed_process_are_paid_once(scene: Scene) -> None:
    other = scene.process()
    ray.get(other.pid.remote())
    kill(scene.victim)
    began, answers = time.monotonic(), other.ask.remote(CALLS)
    scene.gate.set()
    assert ray.get(answers) == EXPECTED
    print(f"\nworker killed: went on after {time.monotonic() - began:.1f} s")
    assert scene.times() == ONCE
    spent = scene.spent()
    assert (spent["calls"], spent["unknown"]) == (CALLS, 0)


def test_calls_of_a_killed_process_and_its_sender_are_taken_over(scene: Scene, marked: str) -> None:
    other = scene.process()
    ray.get(other.pid.remote())
    kill(scene.victim, *named(marked, "actors.calls.sending"))
    began, answers = time.monotonic(), other.ask.remote(CALLS)
    until(lambda: len(scene.server.payloads or ()) == 2 * CALLS)
    print(f"\nworker and sender killed: all handed on after {time.monotonic() - began:.1f} s")
    scene.gate.set()
    assert ray.get(answers) == EXPECTED
    spent = scene.spent()
    assert (spent["calls"], spent["unknown"]) == (CALLS, CALLS)


def test_a_killed_sender_is_replaced(scene: Scene, marked: str) -> None:
    kill(*named(marked, "actors.calls.sending"))
    scene.gate.set()
    assert ray.get(scene.asked) == EXPECTED
    spent = scene.spent()
    assert (spent["calls"], spent["unknown"]) == (CALLS, CALLS)


def test_a_killed_coordinator_restarts_and_nothing_is_paid_twice(scene: Scene, marked: str) -> None:
    other = scene.process()
    ray.get(other.pid.remote())
    before = named(marked, "ray::Coordinator")
    assert len(before) == 1
    kill(*before)
    began, answers = time.monotonic(), other.ask.remote(CALLS + 20)
    scene.gate.set()
    assert ray.get(scene.asked) == EXPECTED
    print(f"\ncoordinator killed: went on after {time.monotonic() - began:.1f} s")
    assert ray.get(answers)[:CALLS] == EXPECTED
    assert set(scene.times().values()) == {1}
    spent = scene.spent()
    assert (spent["calls"], spent["unknown"], spent["runs"]) == (CALLS + 20, 0, 1)
    kill(scene.victim)  # the new coordinator notices it, too
    assert ray.get(other.ask.remote(CALLS)) == EXPECTED


def test_a_coordinator_that_stays_dead_is_one_line(scene: Scene) -> None:
    ray.kill(scene.coordinator)
    scene.gate.set()
    with pytest.raises(MustseeError) as caught:
        ray.get(scene.asked)
    assert "what is finished is kept" in str(caught.value.cause)
    with pytest.raises(MustseeError, match=r"\Athe call coordinator was killed .* from here\Z"):
        call_coordinator(scene.coordinator.snapshot.remote())
    until(lambda: len(Store(str(scene.folder)).keys("llm")) == CALLS)  # by the sender


def test_a_call_log_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    coordinator = start_coordinator(out=str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FOLDER).write_text("a file stands in the way")
    with Loopback(reply=question) as server:
        with pytest.raises(MustseeError) as caught:
            ray.get(start(server, tmp_path, coordinator).ask.remote(1))
        assert str(caught.value.cause).startswith("cannot read")
        assert "\n" not in str(caught.value.cause)
        assert server.counts["chat"] == 0
    with pytest.raises(MustseeError, match="call_log"):
        start_coordinator(out=str(tmp_path / "out"))
