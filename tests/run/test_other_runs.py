"""Runs with one store on one machine do not send a call that another of them has in flight."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from mustsee.calls.call_log import run_name
from mustsee.files.store import Store
from mustsee.run.other_runs import FOLDER, REFRESH_S, OtherRuns, register_run
from tests.actors.calls.test_gateway import Fake, asked


class Run:
    """A run with its own output folder."""

    def __init__(self, folder: Path, name: str, registrations: ExitStack) -> None:
        out = str(folder / name)
        self.name = run_name(out)
        store = register_run(str(folder / "store"), out, self.name)
        self.store = registrations.enter_context(store)
        self.coordinator = Coordinator(out=out, run=self.name, store=self.store)

    def gateway(self, fake: Fake) -> Gateway:
        self.coordinator.register_account(fake.account, fake.limits)
        store = Store(self.store)
        return Gateway(fake, store, self.coordinator, fake, sleep=lambda s: asyncio.sleep(s / 100))


def test_two_concurrent_runs_pay_once(tmp_path: Path) -> None:
    async def work(registrations: ExitStack) -> tuple[list[Any], list[Fake]]:
        fakes = [Fake(gate=asyncio.Event()) for _ in range(2)]
        runs = [
            Run(tmp_path, name, registrations).gateway(fake)
            for name, fake in zip("ab", fakes, strict=True)
        ]
        first = [asyncio.create_task(runs[0].complete(asked(f"q{n}"))) for n in range(20)]
        while len(fakes[0].calls) < 20:
            await asyncio.sleep(0)
        second = [asyncio.create_task(runs[1].complete(asked(f"q{n}"))) for n in range(25)]
        while len(fakes[1].calls) < 5:  # the calls of the second run alone
            await asyncio.sleep(0)
        for fake in fakes:
            assert fake.gate is not None
            fake.gate.set()
        return [await task for task in [*first, *second]], fakes

    with ExitStack() as registrations:
        replies, fakes = asyncio.run(asyncio.wait_for(work(registrations), 60))
    sent = Counter(request.messages[0].text for fake in fakes for request in fake.calls)
    assert sent == {f"q{n}": 1 for n in range(25)}
    assert [reply.text for reply in replies[20:]] == [f"q{n}" for n in range(25)]
    assert sum(reply.cached for reply in replies) == 20


def register(store: Path, name: str, **changes: Any) -> Path:
    """Register a run of this process with one call in flight; `changes`: of its registration."""
    call_log = store / f"{name}.jsonl"
    call_log.parent.mkdir(exist_ok=True)
    call_log.write_text(json.dumps({"sent": "k", "usd": 1.0}) + "\n")
    with register_run(str(store), str(store / "out"), name):
        path = store / FOLDER / f"{name}.json"
        registration = json.loads(path.read_text())
    path.write_text(json.dumps({**registration, "call_log": str(call_log), **changes}))
    return call_log


def test_a_call_that_ended_or_was_lost_is_not_in_flight(tmp_path: Path) -> None:
    call_log = register(tmp_path, "other")
    others = OtherRuns(str(tmp_path), "mine")
    for more in ({"lost": "k"}, {"outcome": "done", "model": "m", "prompt": "p", "key": "k"}):
        others.refresh()
        assert others.is_in_flight("k")
        with call_log.open("a") as file:
            file.write(json.dumps(more)[:9])
            file.flush()
            others.refresh()  # an incomplete line is not read yet
            assert others.is_in_flight("k")
            file.write(json.dumps(more)[9:] + "\n")
        others.refresh()
        assert not others.is_in_flight("k")
        with call_log.open("a") as file:
            file.write(json.dumps({"sent": "k"}) + "\n")


@pytest.mark.parametrize("more", [{"process": "gone"}, {"machine": "another"}])
def test_calls_of_a_dead_run_or_another_machine_are_not_in_flight(
    tmp_path: Path, more: dict[str, str]
) -> None:
    register(tmp_path, "other", **more)
    others = OtherRuns(str(tmp_path), "mine")
    others.refresh()
    assert not others.is_in_flight("k")
    assert (tmp_path / FOLDER / "other.json").exists() == ("machine" in more)


def test_calls_of_an_ended_run_in_a_living_process_are_not_in_flight(tmp_path: Path) -> None:
    now = [0.0]
    others = OtherRuns(str(tmp_path), "mine", clock=lambda: now[0])
    os.makedirs(tmp_path / "out" / "call_log")
    with register_run(str(tmp_path), str(tmp_path / "out"), "other"):
        call_log = tmp_path / "out" / "call_log" / "other.jsonl"
        call_log.write_text(json.dumps({"sent": "k", "usd": 1.0}) + "\n")
        others.refresh()
        assert others.is_in_flight("k")
    now[0] += REFRESH_S
    others.refresh()
    assert not others.is_in_flight("k")
