"""The budget over all runs of a folder: the coordinator counts what they all have spent."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from actors.calls.coordinator import REUNION_S, Coordinator
from actors.calls.coordinator_actor import RemoteLogCoordinator
from mustsee.calls import call_log
from mustsee.calls.budget import AdmissionRequest
from mustsee.calls.call_log import FOLDER, CallLog, run_name
from mustsee.calls.limits import Limits
from mustsee.calls.llm import Reply
from mustsee.calls.usage import CallOutcome
from mustsee.errors import BudgetSpent
from mustsee.run.record import WorkTimes
from tests.actors.calls.test_gateway import Fake, Time, asked, gateway


def ask(key: str, usd: float = 0.1, **more) -> AdmissionRequest:
    return AdmissionRequest(key=key, account="a", prompt="p", usd=usd, **more)


def done(key: str, usd: float = 0.1) -> CallOutcome:
    return CallOutcome(outcome="done", model="m", prompt="p", key=key, usd=usd)


def test_the_budget_is_over_all_runs(tmp_path):
    async def run(llm):
        calls = (llm.complete(asked(str(i))) for i in range(30))
        return await asyncio.gather(*calls, return_exceptions=True)

    fake, out, count = Fake(usd=0.1), str(tmp_path / "out"), 0
    for budget, expected in ((0.5, 5), (0.5, 0), (1.2, 7), (9.0, 18)):
        time = Time()
        coordinator = Coordinator(budget_usd=budget, clock=time, out=out)
        replies = asyncio.run(run(gateway(fake, tmp_path, coordinator, time)[0]))
        assert len(fake.calls) - count == expected
        count = len(fake.calls)
        assert sum(isinstance(r, Reply) for r in replies) == count
        assert all(isinstance(r, Reply | BudgetSpent) for r in replies)
        spent = coordinator.snapshot().spent
        assert spent.total.usd == pytest.approx(count * 0.1)
        assert coordinator.snapshot().llm.total.calls == expected
    assert (count, spent.unknown) == (30, 0)


def test_a_snapshot_does_not_change_with_later_calls():
    coordinator = Coordinator()
    before = coordinator.snapshot()
    coordinator.exchange("o", [], [ask("a")])
    coordinator.exchange("o", [done("a"), replace(done("a"), outcome="cached")], [])
    total = coordinator.snapshot().llm.total
    assert (before.llm.total.calls, total.calls, total.cached) == (0, 1, 1)
    assert before.llm.by_prompt == {}


def test_calls_of_a_killed_run_count_with_their_greatest_cost(tmp_path):
    first = Coordinator(budget_usd=30.0, out=str(tmp_path))
    first.exchange("o", [], [ask("a")])
    for key in "bc":
        first.exchange("o", [done("a", 0.05)] if key == "b" else [], [])
        assert first.exchange("o", [], [ask(key)])[0].answer == "go"
    restarted = Coordinator(budget_usd=0.36, out=str(tmp_path))  # the first one was killed
    grants = restarted.exchange("o", [], [ask("d"), ask("e"), ask("f", 0.12)])
    assert [g.answer for g in grants] == ["go", "hold", "spent"]
    spent = restarted.snapshot().spent
    assert (spent.total.usd, spent.unknown) == (0.05, 2)
    assert spent.unknown_usd == pytest.approx(0.2)


def test_calls_of_a_killed_run_count_with_the_cost_that_others_had(tmp_path):
    """Its first call had no history, so the next run uses the cost of the calls before it."""
    first = Coordinator(budget_usd=9.0, out=str(tmp_path))
    assert first.exchange("o", [], [ask("a")])[0].answer == "go"
    restarted = Coordinator(budget_usd=9.0, out=str(tmp_path))
    restarted.exchange("o", [], [ask("b")])
    assert restarted.snapshot().spent.unknown_usd == pytest.approx(0.1)
    restarted.exchange("o", [done("b", 0.8)], [])
    assert restarted.snapshot().spent.unknown_usd == pytest.approx(0.8)
    third = Coordinator(budget_usd=1.65, out=str(tmp_path))
    assert third.exchange("o", [], [ask("c")])[0].answer == "spent"
    assert third.snapshot().spent.unknown_usd == pytest.approx(0.8)


def test_a_batch_in_flight_is_paid_once(tmp_path):
    """Its calls need the whole budget, and the run that waits for them again is granted them."""
    Coordinator(out=str(tmp_path)).exchange("o", [], [ask("a"), ask("b")])
    restarted = Coordinator(budget_usd=0.2, out=str(tmp_path))
    assert restarted.exchange("o", [], [ask("c")])[0].answer == "spent"
    joined = restarted.exchange("o", [], [ask("a", joined=True), ask("b", joined=True)])
    assert [g.answer for g in joined] == ["go", "go"]
    restarted.exchange("o", [done("a"), done("b")], [])
    spent = restarted.snapshot().spent
    assert (spent.total.calls, spent.unknown) == (2, 0)
    assert spent.total.usd == pytest.approx(0.2)


def test_calls_of_a_killed_worker_have_unknown_cost(tmp_path):
    coordinator = Coordinator(budget_usd=1.0, out=str(tmp_path))
    coordinator.exchange("dead/0", [], [ask("a")])
    coordinator.release_worker("dead")
    assert coordinator.exchange("alive", [], [ask("a")])[0].answer == "go"
    coordinator.exchange("alive", [done("a")], [])
    spent = coordinator.snapshot().spent
    assert (spent.total.calls, spent.unknown, spent.unknown_usd) == (1, 1, 0.1)
    spent = CallLog(str(tmp_path)).spent()
    assert (spent.total.calls, spent.unknown, spent.unknown_usd) == (1, 1, 0.1)


@pytest.mark.parametrize("still", [["a"], []], ids=["while its sender lives", "afterwards"])
def test_a_call_of_a_killed_worker_is_counted_when_its_reply_is_found(tmp_path, still):
    coordinator = Coordinator(budget_usd=1.0, out=str(tmp_path))
    coordinator.exchange("dead/0", [], [ask("a")])
    coordinator.release_worker("dead", still)  # its sender stored the reply, which was not reported
    coordinator.exchange("alive/0", [], [ask("a")])  # the call is granted, and its reply is found
    for _ in range(3):
        coordinator.exchange("alive/0", [replace(done("a", 0.05), outcome="cached")], [])
    for book in (coordinator.call_log, CallLog(str(tmp_path))):
        spent = book.spent()
        assert (spent.total.calls, spent.total.usd, spent.unknown) == (1, 0.05, 0)
    assert coordinator.snapshot().llm.total.cached == 2


def test_a_call_of_two_killed_runs_keeps_one_unknown_cost_when_its_reply_is_found(tmp_path):
    for sender in ("first/0", "second/0"):
        Coordinator(out=str(tmp_path)).exchange(sender, [], [ask("a")])
    coordinator = Coordinator(out=str(tmp_path))
    for _ in range(3):
        coordinator.exchange("o", [replace(done("a", 0.05), outcome="cached")], [])
    for book in (coordinator.call_log, CallLog(str(tmp_path))):
        spent = book.spent()
        assert (spent.total.calls, spent.total.usd, spent.unknown) == (1, 0.05, 1)


def test_a_call_of_a_killed_run_is_counted_when_its_reply_is_found(tmp_path):
    Coordinator(out=str(tmp_path)).exchange("dead/0", [], [ask("a"), ask("b")])
    coordinator = Coordinator(out=str(tmp_path))
    entries = [replace(done("a", 0.05), outcome="cached")]
    coordinator.exchange("o", entries * 2, [ask("b")])
    coordinator.exchange("o", [done("b")], [])
    coordinator.exchange("o", [replace(done("b"), outcome="cached")], [])
    spent = coordinator.snapshot().spent
    assert (spent.total.calls, spent.unknown) == (2, 1)  # b was made twice
    assert spent.total.usd == pytest.approx(0.15)


def test_a_restarted_coordinator_restores_its_state(tmp_path):
    """Also if a kill truncated the last lines; each later message is sent again."""
    names = {"out": str(tmp_path), "run": run_name(), "restart_log": str(tmp_path / "restart_log")}
    whole, restart_log = Coordinator(budget_usd=30.0), Path(names["restart_log"])
    broken = Coordinator(budget_usd=30.0, **names)
    first = [
        ("register_account", "a", Limits()),
        ("begin", ["r", "s"]),
        ("event", "ask", "computed", WorkTimes(busy=1.5, cpu=1.0), "r"),
    ]
    first += [("count", "n", 2), ("exchange", "x/0", [], [ask("a")])]
    ended = [done("a"), replace(done("d"), outcome="cached")]
    first += [("exchange", "x/0", ended, [ask("b"), ask("c")])]
    repeated = [("exchange", "x/0", [done("b")], [])]
    for coordinator in (whole, broken):
        for name, *arguments in first + repeated:
            getattr(coordinator, name)(*arguments)
    with restart_log.open("ab") as file:
        file.write(pickle.dumps(("count", ("torn", 1)))[:-4])
    (*_, book) = sorted((tmp_path / FOLDER).iterdir())
    with book.open("ab") as file:
        file.write(b'{"sent":"tor')
    back = Coordinator(budget_usd=30.0, **names)
    for name, *arguments in repeated:  # Ray repeats unanswered messages
        getattr(back, name)(*arguments)
    for coordinator in (whole, back):
        assert coordinator.exchange("y/0", [], [ask("c")])[0].answer == "elsewhere"
        assert coordinator.begin(["s"]) == [1]
        coordinator.exchange("x/0", [], [ask("c")])
        coordinator.exchange("x/0", [done("c")], [])
        assert [g.answer for g in coordinator.exchange("y/0", [], [ask("e", 29.8)])] == ["spent"]
    expected, actual = whole.snapshot(), back.snapshot()
    assert actual.stages == expected.stages
    assert actual.counts == expected.counts
    assert actual.spent.plain() == {**expected.spent.plain(), "damaged": 1}  # the torn line
    assert actual.llm.summary()["cached"] == expected.llm.summary()["cached"] == 1
    third = Coordinator(budget_usd=30.0, **names).snapshot()
    assert third.spent == actual.spent
    assert third.counts == actual.counts


def test_calls_of_lost_senders_are_released_after_a_coordinator_restart(tmp_path):
    names, time = {"out": str(tmp_path), "run": run_name()}, Time()
    Coordinator(**names).exchange("x/0", [], [ask("a")])
    back = Coordinator(clock=time, **names)
    assert back.exchange("y/0", [], [ask("a")])[0].answer == "elsewhere"
    time.now += REUNION_S + 1
    assert back.exchange("y/0", [], [ask("a")])[0].answer == "go"
    assert back.snapshot().spent.unknown == 1


def test_a_call_that_changes_between_batch_and_direct_holds_its_budget_once():
    coordinator = Coordinator(budget_usd=0.15)
    for batched in (True, False, True, False, True):
        assert coordinator.exchange("o", [], [ask("a", batched=batched)])[0].answer == "go"
    other = ask("b", 0.05, model="other", batched=True)
    assert coordinator.exchange("o", [], [other])[0].answer == "go"
    third = ask("c", 0.01, model="a third", batched=True)
    assert coordinator.exchange("o", [], [third])[0].answer == "hold"


def test_on_an_object_store_messages_share_a_write(tmp_path, monkeypatch):
    writes: list[bytes] = []

    def slow(self: CallLog, content: bytes, entered: int) -> None:
        time.sleep(0.02)
        writes.append(content)
        self._kept = entered

    monkeypatch.setattr(call_log.CallLog, "local", False)
    monkeypatch.setattr(call_log.CallLog, "write", slow)
    coordinator = RemoteLogCoordinator(out=str(tmp_path))

    async def admitted(key: str) -> bool:
        (grant,) = await coordinator.exchange(key, [], [ask(key)])
        return grant.answer == "go" and any(f'"{key}"'.encode() in w for w in writes)

    async def run() -> list[bool]:
        return await asyncio.gather(*(admitted(f"key{i}") for i in range(100)))

    assert all(asyncio.run(run()))  # each was logged before it was granted
    assert len(writes) == 2


CHILD = """
import asyncio, sys
from tests.actors.calls.test_money import forever

asyncio.run(forever(sys.argv[1]))
"""


async def forever(out: str) -> None:
    """One call after another, until killed."""
    coordinator, number = Coordinator(out=out), 0
    while True:
        coordinator.exchange("o", [], [ask(str(number))])
        print(number, flush=True)
        coordinator.exchange("o", [done(str(number))], [])
        number += 1


def test_every_granted_call_is_in_the_log_after_a_kill(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert child.stdout is not None
    for _ in range(500):
        last = child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    lines = [*child.stdout.read().split("\n")[:-1], last.strip()]
    child.stdout.close()
    child.wait(60)
    spent = CallLog(str(tmp_path)).spent()
    assert spent.total.calls + spent.unknown >= max(map(int, lines)) + 1
    assert spent.unknown <= 1


def test_an_entry_costs_little(tmp_path):
    """CPU time of a call's two messages, with a call log on a disk."""
    coordinator = Coordinator(budget_usd=1e6, out=str(tmp_path))
    began = time.process_time()
    for i in range(2000):
        coordinator.exchange("o", [], [ask(f"{i:064d}", 1e-6)])
        coordinator.exchange("o", [done(f"{i:064d}", 1e-6)], [])
    assert (time.process_time() - began) / 2000 < 0.0005
    assert sum(len(p.read_bytes().splitlines()) for p in (tmp_path / FOLDER).iterdir()) == 4000
