"""The judge's batches and gate: scores reach their callers, and late requests are refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import httpx2
import pytest
from starlette.requests import ClientDisconnect

from actors.judge.baselines import Lexical
from mustsee.judge.judge import ForwardPass, Judge, JudgeConfig, PreparedTriple, Record
from serve.guard import Arrivals
from serve.judge_batch import Full, LocalBackend, RequestBatcher
from serve.judge_guard import MAX_UNTIMED_REQUESTS, Keys, LatencyGate, RequestLimits, waited_seconds
from serve.judge_http import create_app
from tests.support.judge_app import BEARER, CAR, KEY

LENGTH = attrgetter("length")


class Slow:
    """Reads the number in a candidate. Each batch waits until the test releases it."""

    identity = JudgeConfig(engine=Lexical(), uncalibrated=True).open().engine.identity
    limit = 1000

    def __init__(self) -> None:
        self.go, self.batches = threading.Event(), list[int]()

    def prepare(self, triple: Any) -> PreparedTriple:
        return PreparedTriple(triple, 10)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        self.go.wait(10)
        self.batches.append(len(prepared))
        if any(p.triple == "poison" for p in prepared):
            raise RuntimeError("this one cannot be scored")
        return [ForwardPass(float(p.payload or p.triple)) for p in prepared]


def test_every_caller_gets_its_own_scores() -> None:
    async def everything() -> None:
        engine = Slow()
        batcher = RequestBatcher(engine.score, LENGTH, budget=2000)
        triples = [
            [PreparedTriple(str(100 * i + k), 10) for k in range(1 + i % 3)] for i in range(300)
        ]
        tasks = [asyncio.ensure_future(batcher.do(m)) for m in triples]
        await asyncio.sleep(0)
        engine.go.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        taken = [i for i, f in enumerate(results) if not isinstance(f, BaseException)]
        for i in taken:
            assert [r.logit_diff for r in results[i]] == [float(p.triple) for p in triples[i]]
        assert 90 <= len(taken) < 300
        refused = [f for f in results if isinstance(f, BaseException)]
        assert all(isinstance(f, Full) and (f.retry_after or 0) >= 1 for f in refused)
        assert 100 < max(engine.batches) <= 200
        assert batcher.held_tokens == 0
        await batcher.drain()

    asyncio.run(everything())


def test_requests_that_would_be_late_are_refused_by_the_measured_rate() -> None:
    """The engine reads 100 tokens a second, by a clock that it advances itself."""

    async def everything() -> None:
        now, engine = [0.0], Slow()
        read = engine.score

        def score(prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
            now[0] += sum(p.length for p in prepared) / 100
            return read(prepared)

        engine.score = score  # type: ignore[method-assign]
        engine.go.set()
        batcher = RequestBatcher(engine.score, LENGTH, patience=5, clock=lambda: now[0])
        await batcher.do([PreparedTriple("1", 10)])
        await batcher.do([PreparedTriple("2", 5000)])  # The judge is idle, so it is accepted.
        engine.go.clear()
        tasks = [asyncio.ensure_future(batcher.do([PreparedTriple("3", 10)])) for _ in range(80)]
        await asyncio.sleep(0)
        assert batcher.held_tokens == 500  # five seconds of work
        with pytest.raises(Full) as full:
            await batcher.do([PreparedTriple("4", 10)])
        assert full.value.retry_after == 3  # when half of the work is done
        engine.go.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(f, Full) for f in results) == 30
        assert max(engine.batches) == 5  # a tenth of the patience
        await batcher.drain()

    asyncio.run(everything())


def test_running_work_counts_although_its_caller_has_left() -> None:
    async def everything() -> None:
        engine, begun = Slow(), threading.Event()
        read = engine.score

        def score(prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
            begun.set()
            return read(prepared)

        engine.score = score  # type: ignore[method-assign]
        batcher = RequestBatcher(engine.score, LENGTH, budget=100, patience=5)
        abandoned = asyncio.ensure_future(batcher.do([PreparedTriple("1", 5000)]))
        await asyncio.to_thread(begun.wait)
        abandoned.cancel()
        await asyncio.wait([abandoned])
        with pytest.raises(Full):
            await batcher.do([PreparedTriple("2", 10)])
        engine.go.set()
        await batcher.drain()
        assert batcher.held_tokens == 0

    asyncio.run(everything())


def test_a_request_that_breaks_the_engine_fails_alone() -> None:
    async def everything() -> None:
        engine = Slow()
        engine.go.set()
        batcher = RequestBatcher(engine.score, LENGTH)
        jobs = ["1", "poison", "2"]
        results = await asyncio.gather(
            *(batcher.do([PreparedTriple(j, 10)]) for j in jobs), return_exceptions=True
        )
        assert [f[0].logit_diff for f in results[::2]] == [1.0, 2.0]
        assert isinstance(results[1], RuntimeError)
        await batcher.drain()

    asyncio.run(everything())


def numbered(triple: Any) -> PreparedTriple:
    """An engine that gives a refusal a lower score than any other candidate."""
    return PreparedTriple(triple, 10, payload="-1" if "cannot" in triple.candidate else "1")


def test_an_overloaded_judge_gives_a_retry_time() -> None:
    """This holds for both limits: tokens waiting at the engine, and requests at the gate."""
    engine, now = Slow(), [0.0]
    engine.prepare = numbered  # type: ignore[method-assign]
    judge = Judge(engine, Record(threshold=0.5, identity=Slow.identity, dev="d"))
    read = engine.score

    def score(prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        now[0] += len(prepared)  # One second each, by a clock that the engine advances itself.
        return read(prepared)

    engine.score = score  # type: ignore[method-assign]

    async def flood(patience: float, waiting: int) -> list[httpx2.Response]:
        engine.go.set()
        backend = LocalBackend(judge, "slow", patience=patience, clock=lambda: now[0])
        app = create_app(backend, Keys.read(KEY), RequestLimits(waiting=waiting))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://judge") as client:
            assert (await client.get("/health")).status_code == 200
            engine.go.clear()
            asking = [
                asyncio.ensure_future(
                    client.post("/v1/equivalence", json={"items": [CAR]}, headers=BEARER)
                )
                for _ in range(8)
            ]
            while sum(task.done() for task in asking) < 6:
                await asyncio.sleep(0.001)
            engine.go.set()
            replies = await asyncio.gather(*asking)
        await backend.drain()
        return replies

    for patience, waiting in ((2.0, 100), (100.0, 2)):
        replies = asyncio.run(flood(patience, waiting))
        assert sorted(r.status_code for r in replies) == [200] * 2 + [429] * 6
        refused = [r for r in replies if r.status_code == 429]
        assert all(int(r.headers["retry-after"]) >= 1 for r in refused)
        assert all(r.json()["error"]["code"] == "overloaded" for r in refused)


def test_the_gate_admits_requests_by_the_time_of_the_last_ones() -> None:
    now = [0.0]
    door = LatencyGate(RequestLimits(seconds=10), clock=lambda: now[0])
    first = door.enter(6_000)
    now[0] = 1.0
    first(200)  # 10,000 bytes a second, including the fixed cost of a request
    inside = [door.enter(6_000) for _ in range(5)]
    with pytest.raises(Full) as full:
        door.enter(6_000)  # The sixth would take six seconds, more than half of ten.
    assert full.value.headers == {"Retry-After": "4"}
    retry_times: list[float | None] = []
    for _ in range(40):
        with pytest.raises(Full) as full:
            door.enter(6_000)
        retry_times.append(full.value.retry_after)
    # Each retry time is a second later than the one before, up to half a minute.
    assert retry_times[:20] == [4, 4, 4, *range(5, 22)]
    assert retry_times[-1] == 30
    inside[0](429)  # A later refusal has no usable time, nor has a starting judge.
    inside[1](503)
    inside[:2] = [door.enter(6_000), door.enter(6_000)]
    now[0] = 11.0
    for leave in inside:
        leave(200)
    alone = door.enter(4_000_000)  # A request to an idle judge is always accepted.
    with pytest.raises(Full):
        door.enter(0)
    alone(200)
    with pytest.raises(Full):
        door.enter(0, waited=5.1)  # It waited more than half of ten seconds before the gate.
    door.enter(0, waited=4.9)


def test_a_client_uses_no_more_than_it_leaves_free_for_others() -> None:
    now = [0.0]
    door = LatencyGate(RequestLimits(seconds=20, waiting=100), sharing=True, clock=lambda: now[0])
    first = door.enter(6_000)
    now[0] = 1.0
    first(200)  # 10,000 bytes a second: ten such requests may be in progress.
    for _ in range(5):
        door.enter(6_000, client="greedy")
    with pytest.raises(Full):
        door.enter(6_000, client="greedy")
    for _ in range(3):
        door.enter(6_000, client="modest")
    with pytest.raises(Full):
        door.enter(6_000, client="modest")
    door.enter(6_000, client="newcomer")
    alone = LatencyGate(RequestLimits(seconds=20), clock=lambda: now[0])
    for _ in range(MAX_UNTIMED_REQUESTS):
        alone.enter(6_000, client="greedy")  # A single client may use everything.
    with pytest.raises(Full):
        alone.enter(6_000, client="greedy")  # But the time of a request is unknown yet.


def test_the_oldest_body_of_the_client_with_most_makes_room_for_another() -> None:
    async def everything() -> None:
        arrivals = Arrivals(seconds=60, count=4, size=1000)
        queues = [asyncio.Queue[dict[str, Any]]() for _ in range(5)]

        def arriving(n: int, client: str) -> asyncio.Task[bytes | None]:
            return asyncio.create_task(arrivals.read(client, queues[n].get, 800))

        many = [arriving(n, "many") for n in range(3)]
        few = [arriving(n, "few") for n in (3, 4)]  # the fifth body
        await asyncio.wait(many, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        assert [task.done() for task in many] == [True, False, False]
        assert isinstance(many[0].exception(), TimeoutError)
        queues[1].put_nowait({"type": "http.request", "body": b"x" * 700, "more_body": True})
        queues[3].put_nowait({"type": "http.request", "body": b"y" * 600, "more_body": True})
        await asyncio.wait([many[1], few[0]], timeout=5, return_when=asyncio.FIRST_COMPLETED)
        assert (many[1].done(), few[0].done()) == (True, False)  # too many bytes together
        queues[4].put_nowait({"type": "http.request", "body": b"z"})
        assert await few[1] == b"z"
        queues[2].put_nowait({"type": "http.disconnect"})
        with pytest.raises(ClientDisconnect):
            await many[2]
        few[0].cancel()
        assert isinstance(many[1].exception(), TimeoutError)

    asyncio.run(everything())


@pytest.mark.parametrize(("header", "seconds"), [
    ("t=1700000000.5", 1.5), ("1700000000500", 1.5), ("t=1700000000500000", 1.5), ("", 0),
    ("t=x", 0), ("nan", 0), ("1600000000", 0), ("1700000009", 0), ("-1", 0), ("1e999", 0),
])  # fmt: skip
def test_the_wait_before_the_judge_is_read_from_the_proxy_header(
    header: str, seconds: float
) -> None:
    assert waited_seconds(header, now=1_700_000_002.0) == pytest.approx(seconds)


def test_a_starting_judge_is_not_healthy_before_it_has_scored() -> None:
    """Its address answers while its model is loading."""
    engine = Slow()
    engine.prepare = numbered  # type: ignore[method-assign]
    judge = Judge(engine, Record(threshold=0.5, identity=Slow.identity, dev="d"))

    async def everything() -> None:
        backend = LocalBackend(judge, "slow")
        app = create_app(backend, Keys.read(KEY), RequestLimits(seconds=0.1))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://judge") as client:
            early = await client.post("/v1/equivalence", json={"items": [CAR]}, headers=BEARER)
            health = await client.get("/health")
            for reply in (early, health):
                assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
                assert "starting" in reply.json()["error"]["message"]
            engine.go.set()
            while (await client.get("/health")).status_code != 200:
                await asyncio.sleep(0.001)
            scored = await client.post("/v1/equivalence", json={"items": [CAR]}, headers=BEARER)
            assert scored.status_code == 200
        assert engine.batches == [2, 2, 1]  # a trial and its timing for any number of checks
        await backend.drain()

    asyncio.run(everything())
