"""The gateway: one call for equal requests, bounded retries, budget, no call paid for twice."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from actors.calls.coordinator import Coordinator
from actors.calls.coordinator_actor import GATHER_S
from actors.calls.endpoint import CallEstimate
from actors.calls.gateway import START_STEP_S, Gateway, align_to_step
from actors.calls.sender import Sender
from mustsee.calls.budget import AdmissionRequest
from mustsee.calls.limits import Limits
from mustsee.calls.llm import Llm, Message, Reply, Request
from mustsee.calls.usage import CallOutcome
from mustsee.errors import BadRow, BudgetSpent, Transient
from mustsee.files.store import Store
from mustsee.run.record import StageCounts, WorkTimes


@dataclass
class Time:
    """A clock that advances only by sleeping."""

    now: float = 0.0
    naps: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Fake:
    """An endpoint that returns or raises the result of `play(request, call number)`."""

    play: Callable[[Request, int], str | Exception] = lambda request, n: request.messages[0].text
    usd: float = 0.0
    calls: list[Request] = field(default_factory=list)
    gate: asyncio.Event | None = None
    model: str = "fake"
    account: str = "fake"
    limits: Limits = field(default_factory=Limits)
    attempts: int = 4
    patience: float = 60.0
    timeout: float = 60.0
    max_connections: int = 256
    identity: str = "fake/1"

    @property
    def endpoint(self) -> Fake:
        return self

    def estimate(self, request: Request) -> CallEstimate:
        return CallEstimate(tokens_in=10, tokens_out=request.sampling.max_tokens, usd=self.usd)

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        self.calls.append(request)
        number = len(self.calls)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.play(request, number)
        if isinstance(answer, Exception):
            raise answer
        return Reply(text=answer, model="fake", tokens_in=7, tokens_out=3, usd=self.usd)


def asked(text: str, **more) -> Request:
    return Request(prompt="test", digest="", messages=(Message("user", text),), **more)


def gateway(
    fake: Fake, tmp_path: Path, coordinator: Coordinator | None = None, time: Time | None = None
):
    time = time or Time()
    coordinator = coordinator or Coordinator(clock=time)
    coordinator.register_account(fake.account, fake.limits)
    return Gateway(fake, Store(str(tmp_path)), coordinator, fake, sleep=time.sleep), coordinator


@dataclass
class SilentSender:
    """A sender that never answers; it records its calls."""

    given: list[str] = field(default_factory=list)
    name: str = "silent"

    async def begin(self) -> None: ...

    async def complete(self, model: int, key: str, request: Request) -> tuple[Reply, float]:
        self.given.append(key)
        await asyncio.Event().wait()
        raise AssertionError


def total(coordinator: Coordinator) -> dict:
    return coordinator.snapshot().llm.summary()


def test_a_stored_reply_is_not_asked_for_again(tmp_path):
    fake = Fake()
    first = asyncio.run(gateway(fake, tmp_path)[0].complete(asked("a")))
    again, coordinator = gateway(fake, tmp_path)
    second = asyncio.run(again.complete(asked("a")))
    assert (first.text, first.cached, second.text, second.cached) == ("a", False, "a", True)
    assert len(fake.calls) == 1
    assert (
        total(coordinator)["calls"],
        total(coordinator)["cached"],
        total(coordinator)["tokens_in"],
    ) == (0, 1, 0)


@pytest.mark.parametrize("cut", [0, 9, 40])
def test_a_damaged_reply_is_asked_for_again(tmp_path, cut):
    fake = Fake(usd=0.5)
    asyncio.run(gateway(fake, tmp_path)[0].complete(asked("a")))
    (path,) = (p for p in tmp_path.rglob("*.1"))
    path.write_bytes(path.read_bytes()[:cut])
    llm, coordinator = gateway(fake, tmp_path)
    assert asyncio.run(llm.complete(asked("a"))).text == "a"
    assert (len(fake.calls), total(coordinator)["usd"]) == (2, 0.5)
    assert asyncio.run(llm.complete(asked("a"))).cached


def test_what_decides_a_reply_is_in_its_key(tmp_path):
    fake = Fake()
    llm, _ = gateway(fake, tmp_path)
    different = [
        asked("a"),
        asked("b"),
        asked("a", seed=1),
        asked("a", attempt=1),
        asked("a", form={"type": "object"}),
        Request(prompt="test", digest="", messages=(Message("user", "a", (b"jpeg",)),)),
    ]

    async def run():
        for request in different + different:
            await llm.complete(request)

    asyncio.run(run())
    assert len(fake.calls) == len(different)


def test_variables_decide_the_replies_of_rules_only():
    """Rules read what a prompt does not say, such as detected objects."""
    one, other = (replace(asked("a"), variables={"seen": seen}) for seen in ("a dog", "a cat"))
    again = replace(asked("a"), variables={"seen": "a dog"})
    assert one.key("offline 1") == again.key("offline 1") != other.key("offline 1")
    assert one.key("openai m at u") == other.key("openai m at u")


def test_equal_requests_at_the_same_time_are_one_call(tmp_path):
    async def run():
        fake = Fake(gate=asyncio.Event())
        llm, coordinator = gateway(fake, tmp_path)
        tasks = [asyncio.create_task(llm.complete(asked("a"))) for _ in range(20)]
        while not fake.calls:
            await asyncio.sleep(0)
        fake.gate.set()
        return fake, coordinator, await asyncio.gather(*tasks)

    fake, coordinator, replies = asyncio.run(run())
    assert len(fake.calls) == 1
    assert sum(not reply.cached for reply in replies) == 1
    assert (total(coordinator)["calls"], total(coordinator)["cached"]) == (1, 19)


def test_equal_requests_of_two_processes_are_one_call(tmp_path):
    async def run():
        time = Time()
        coordinator = Coordinator(clock=lambda: 0.0)
        fake = Fake(gate=asyncio.Event())
        one, _ = gateway(fake, tmp_path, coordinator, time)
        two, _ = gateway(fake, tmp_path, coordinator, time)
        first = asyncio.create_task(one.complete(asked("a")))
        while not fake.calls:
            await asyncio.sleep(0)
        second = asyncio.create_task(two.complete(asked("a")))
        while not time.naps:  # the second call has to wait
            await asyncio.sleep(0)
        fake.gate.set()
        return fake, await first, await second

    fake, first, second = asyncio.run(run())
    assert len(fake.calls) == 1
    assert (first.cached, second.cached, second.text) == (False, True, "a")


def test_a_reply_stored_between_look_up_and_grant_is_used(tmp_path):
    """Another process makes the call between this one's look-up and its request for a grant."""

    class Late(Store):
        looks = 0

        def get(self, kind: str, key: str) -> bytes | None:
            Late.looks += 1
            return None if Late.looks == 1 else super().get(kind, key)

    other, fake = Fake(usd=0.4), Fake(usd=0.4)
    coordinator = Coordinator(budget_usd=1.0)
    asyncio.run(gateway(other, tmp_path, coordinator)[0].complete(asked("a")))
    llm = Gateway(fake, Late(str(tmp_path)), coordinator, fake, sleep=Time().sleep)
    reply = asyncio.run(llm.complete(asked("a")))
    assert (reply.text, reply.cached, fake.calls) == ("a", True, [])
    assert (
        total(coordinator)["calls"],
        total(coordinator)["cached"],
        total(coordinator)["usd"],
    ) == (1, 1, 0.4)
    assert asyncio.run(llm.complete(asked("b"))).text == "b"  # the reserved amount is free again


def test_calls_of_a_killed_process_are_taken_over(tmp_path):
    time = Time()
    coordinator = Coordinator(clock=time)
    ask = AdmissionRequest(key="k", account="fake", prompt="test")
    assert coordinator.exchange("dead/0", [], [ask])[0].answer == "go"
    assert coordinator.exchange("alive/0", [], [ask])[0].answer == "elsewhere"
    coordinator.release_worker("dead", [ask.key])  # its sender continues the call
    assert coordinator.exchange("alive/0", [], [ask])[0].answer == "elsewhere"
    coordinator.release_worker("dead")
    assert coordinator.exchange("dead/0", [], [ask])[0].answer == "hold"  # a late message
    assert coordinator.exchange("alive/0", [], [ask])[0].answer == "go"


def test_cancelling_the_caller_loses_no_reply(tmp_path):
    async def run():
        fake = Fake(gate=asyncio.Event())
        llm, _ = gateway(fake, tmp_path)
        task = asyncio.create_task(llm.complete(asked("a")))
        while not fake.calls:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        fake.gate.set()
        reply = await llm.complete(asked("a"))
        return fake, reply

    fake, reply = asyncio.run(run())
    assert reply.text == "a"
    assert len(fake.calls) == 1


def test_every_call_waits_for_retry_after(tmp_path):
    time = Time()
    fake = Fake(play=lambda r, n: Transient("busy", retry_after=20.0) if n == 1 else "fine")
    llm, coordinator = gateway(fake, tmp_path, time=time)
    assert asyncio.run(llm.complete(asked("a"))).text == "fine"
    assert time.now >= 20.0
    assert (total(coordinator)["retries"], total(coordinator)["retry_after_waits"]) == (1, 1)
    assert total(coordinator)["retry_after_seconds"] == 20.0
    coordinator.exchange("x", [CallOutcome(outcome="retry", model="m", prompt="p", retry_after=9.0,
                              account="fake")], [])  # fmt: skip
    grant = coordinator.exchange(
        "y", [], [AdmissionRequest(key="other", account="fake", prompt="p")]
    )[0]
    assert grant.answer == "hold"
    assert grant.wait == pytest.approx(9.0, abs=0.2)


def test_retries_are_bounded_with_growing_pauses_and_store_nothing(tmp_path):
    time = Time()
    fake = Fake(play=lambda r, n: Transient("down"))
    llm, coordinator = gateway(fake, tmp_path, time=time)
    with pytest.raises(Transient, match="down"):
        asyncio.run(llm.complete(asked("a")))
    assert len(fake.calls) == fake.attempts
    assert time.naps == sorted(time.naps)
    assert all(0.5 <= nap <= 8 for nap in time.naps)
    assert (
        total(coordinator)["calls"],
        total(coordinator)["retries"],
        total(coordinator)["failed"],
    ) == (0, 3, 1)
    fake.play = lambda r, n: "up again"
    assert asyncio.run(llm.complete(asked("a"))).text == "up again"


def test_a_retry_after_of_hours_is_not_waited_for(tmp_path):
    time = Time()
    fake = Fake(play=lambda r, n: Transient("tomorrow", retry_after=86400.0))
    llm, _ = gateway(fake, tmp_path, time=time)
    with pytest.raises(Transient):
        asyncio.run(llm.complete(asked("a")))
    assert (len(fake.calls), time.naps) == (1, [])


def test_a_bad_request_is_not_retried(tmp_path):
    fake = Fake(play=lambda r, n: BadRow("context too long"))
    llm, _ = gateway(fake, tmp_path)
    with pytest.raises(BadRow):
        asyncio.run(llm.complete(asked("a")))
    assert len(fake.calls) == 1


def test_the_budget_is_never_exceeded_and_finished_replies_are_kept(tmp_path):
    async def run(llm):
        return await asyncio.gather(
            *(llm.complete(asked(str(i))) for i in range(30)), return_exceptions=True
        )

    fake, time = Fake(usd=0.1), Time()
    coordinator = Coordinator(budget_usd=1.0, clock=time)
    answers = asyncio.run(run(gateway(fake, tmp_path, coordinator, time)[0]))
    finished = [a for a in answers if isinstance(a, Reply)]
    assert all(isinstance(a, BudgetSpent) for a in answers if not isinstance(a, Reply))
    assert len(finished) == len(fake.calls) == 10
    assert total(coordinator)["usd"] == pytest.approx(1.0)
    more = Coordinator(budget_usd=10.0, clock=time)
    answers = asyncio.run(run(gateway(fake, tmp_path, more, time)[0]))
    assert [a.text for a in answers] == [str(i) for i in range(30)]
    assert len(fake.calls) == 30
    assert total(more)["cached"] == 10


def test_requests_per_minute_hold_across_gateways():
    """Two owners share 60 requests a minute; a call on hold asks again after its wait."""
    time = Time()
    coordinator = Coordinator(clock=time)
    coordinator.register_account("fake", Limits(requests_per_minute=60))
    waiting = [(0.0, f"{owner}{i}") for i in range(10) for owner in "ab"]
    starts: list[float] = []
    while waiting:
        time.now, key = heapq.heappop(waiting)
        ask = AdmissionRequest(key=key, account="fake", prompt="p")
        (grant,) = coordinator.exchange(key[0], [], [ask])
        if grant.answer == "go":
            starts.append(time.now + grant.wait)
        else:
            heapq.heappush(waiting, (time.now + grant.wait, key))
    assert sorted(starts) == pytest.approx([float(i) for i in range(20)], abs=0.1)


def test_unused_tokens_are_returned_to_the_limit(tmp_path):
    coordinator = Coordinator(clock=lambda: 0.0)
    coordinator.register_account("fake", Limits(tokens_per_minute=6000))
    ask = AdmissionRequest(key="k", account="fake", prompt="p", tokens_in=400, tokens_out=600)
    assert coordinator.exchange("o", [], [ask])[0].wait == pytest.approx((400 + 512 - 100) / 100)
    ended = CallOutcome(
        outcome="done", model="m", prompt="p", key="k", account="fake", tokens_in=50
    )
    coordinator.exchange("o", [ended], [])
    second = AdmissionRequest(key="k2", account="fake", prompt="p", tokens_in=100, tokens_out=600)
    assert coordinator.exchange("o", [], [second])[0].wait == pytest.approx(0.5)


def test_stage_counters_add_up():
    coordinator = Coordinator()
    coordinator.event("look", "computed", WorkTimes(busy=1.5))
    coordinator.event("look", "computed", WorkTimes(busy=0.5))
    coordinator.event("look", "dropped")
    coordinator.count("shots", 7)
    snapshot = coordinator.snapshot()
    coordinator.event("look", "reused")
    assert snapshot.stages == {"look": StageCounts(computed=2, dropped=1, seconds=2.0)}
    assert snapshot.counts == {"shots": 7}


def test_rows_of_a_block_begin_one_by_one_after_a_worker_death():
    coordinator = Coordinator()
    assert coordinator.begin(["a", "b", "c"]) == [0, 0, 0]
    coordinator.event("look", "computed", row="a")
    assert coordinator.begin(["b", "c"]) == [1, 0]  # a worker died with b
    assert coordinator.begin(["b"]) == [1]
    assert coordinator.begin(["b", "c"]) == [2, 0]  # with b again
    assert coordinator.begin(["c"]) == [0]
    coordinator.event("look", "computed", row="c")
    assert coordinator.begin(["a", "c"]) == [0, 0]


def test_the_coordinator_takes_far_less_than_a_millisecond_per_call():
    import time

    coordinator = Coordinator(budget_usd=1e6)
    coordinator.register_account("a", Limits(requests_per_minute=1e9, tokens_per_minute=1e12))
    began = time.process_time()
    for i in range(2000):
        coordinator.exchange(
            "o", [], [AdmissionRequest(key=str(i), account="a", prompt="p", tokens_in=9, usd=1e-6)]
        )
        coordinator.exchange("o", [CallOutcome(outcome="done", model="m", prompt="p", key=str(i),
                                  account="a", usd=1e-6)], [])  # fmt: skip
    assert (time.process_time() - began) / 2000 < 0.0005


@pytest.mark.parametrize(("most", "given"), [(64, 68), (32, 34), (15, 15), (1, 1)])
def test_some_calls_wait_in_the_sender_when_many_are_in_flight(tmp_path, most, given):
    """So the next call starts without messages through three processes."""
    fake, sender = Fake(max_connections=most, limits=Limits(search=False)), SilentSender()
    coordinator = Coordinator()
    coordinator.register_account(fake.account, fake.limits)
    llm = Gateway(fake, Store(str(tmp_path)), coordinator, fake, sender=cast("Sender", sender))

    async def work():
        calls = [asyncio.ensure_future(llm.complete(asked(f"{i}"))) for i in range(200)]
        async with asyncio.timeout(20):
            while len(sender.given) < given:
                await asyncio.sleep(0)
        await asyncio.sleep(10 * GATHER_S)
        for call in calls:
            call.cancel()

    asyncio.run(work())
    assert len(sender.given) == given


def test_calls_that_start_at_about_the_same_time_start_together():
    starts = [now + align_to_step(wait, now) for now, wait in ((7.021, 0.001), (7.023, 0.016))]
    assert starts == [pytest.approx(7.04)] * 2
    assert 5.0 <= align_to_step(5.0, 7.021) < 5.0 + START_STEP_S
