"""The judge's batches: who gets which score, and who is turned away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from actors.judge.lexical import Lexical
from mustsee.judge.judge import Judge, JudgeConfig, Prepared, Reading, Record
from serve.judge_batch import Batcher, Full
from serve.judge_guard import Keys, Limits
from serve.judge_http import create_app
from serve.judge_local import LocalBackend
from tests.support.judge_app import BEARER, CAR, KEY


class Slow:
    """Reads the number in a candidate; holds every batch until it is let go."""

    identity = JudgeConfig(engine=Lexical(), uncalibrated=True).open().engine.identity
    limit = 1000

    def __init__(self) -> None:
        self.go, self.batches = threading.Event(), list[int]()

    def prepare(self, triple: Any) -> Prepared:
        return Prepared(triple, 10)

    def score(self, prepared: Sequence[Prepared]) -> list[Reading]:
        self.go.wait(10)
        self.batches.append(len(prepared))
        if any(p.triple == "poison" for p in prepared):
            raise RuntimeError("this one cannot be scored")
        return [Reading(float(p.triple)) for p in prepared]


def test_every_caller_gets_its_own_scores_and_the_queue_has_an_end() -> None:
    async def everything() -> None:
        engine = Slow()
        batcher = Batcher(engine, budget=2000)
        made = [[Prepared(str(100 * i + k), 10) for k in range(1 + i % 3)] for i in range(300)]
        tasks = [asyncio.ensure_future(batcher.score(m)) for m in made]
        await asyncio.sleep(0)
        engine.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        taken = [i for i, f in enumerate(found) if not isinstance(f, BaseException)]
        for i in taken:
            assert [r.logit_diff for r in found[i]] == [float(p.triple) for p in made[i]]
        assert 90 <= len(taken) < 300
        refused = [f for f in found if isinstance(f, BaseException)]
        assert all(isinstance(f, Full) and (f.retry_after or 0) >= 1 for f in refused)
        assert 100 < max(engine.batches) <= 200
        assert batcher.held == 0
        await batcher.drain()

    asyncio.run(everything())


def test_what_would_be_answered_too_late_is_turned_away_by_the_measured_rate() -> None:
    """The engine reads 100 tokens a second, by a clock that it moves itself."""

    async def everything() -> None:
        now, engine = [0.0], Slow()
        read = engine.score

        def score(prepared: Sequence[Prepared]) -> list[Reading]:
            now[0] += sum(p.length for p in prepared) / 100
            return read(prepared)

        engine.score = score  # type: ignore[method-assign]
        engine.go.set()
        batcher = Batcher(engine, patience=5, clock=lambda: now[0])
        await batcher.score([Prepared("1", 10)])
        await batcher.score([Prepared("2", 5000)])  # alone, so taken
        engine.go.clear()
        tasks = [asyncio.ensure_future(batcher.score([Prepared("3", 10)])) for _ in range(80)]
        await asyncio.sleep(0)
        assert batcher.held == 500  # five seconds' worth
        with pytest.raises(Full) as full:
            batcher.admit(10)
        assert full.value.retry_after == 3  # until half of it has gone
        engine.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(f, Full) for f in found) == 30
        assert max(engine.batches) == 5  # a tenth of the patience
        await batcher.drain()

    asyncio.run(everything())


def test_work_whose_caller_has_gone_is_still_in_the_way() -> None:
    async def everything() -> None:
        engine, begun = Slow(), threading.Event()
        read = engine.score

        def score(prepared: Sequence[Prepared]) -> list[Reading]:
            begun.set()
            return read(prepared)

        engine.score = score  # type: ignore[method-assign]
        batcher = Batcher(engine, budget=100, patience=5)
        asked = asyncio.ensure_future(batcher.score([Prepared("1", 5000)]))
        await asyncio.to_thread(begun.wait)
        asked.cancel()
        await asyncio.wait([asked])
        with pytest.raises(Full):
            batcher.admit(10)
        engine.go.set()
        await batcher.drain()
        assert batcher.held == 0

    asyncio.run(everything())


def test_a_request_that_breaks_the_engine_fails_alone() -> None:
    async def everything() -> None:
        engine = Slow()
        engine.go.set()
        batcher = Batcher(engine)
        jobs = ["1", "poison", "2"]
        found = await asyncio.gather(
            *(batcher.score([Prepared(j, 10)]) for j in jobs), return_exceptions=True
        )
        assert [f[0].logit_diff for f in found[::2]] == [1.0, 2.0]
        assert isinstance(found[1], RuntimeError)
        await batcher.drain()

    asyncio.run(everything())


def test_an_overloaded_judge_says_when_to_come_back() -> None:
    """Both guards: the tokens that wait at the engine, and the requests that wait at the door."""
    engine = Slow()
    engine.prepare = lambda triple: Prepared("1", 10)  # type: ignore[method-assign]
    judge = Judge(engine, Record(threshold=0.5, identity=Slow.identity, dev="d"))

    async def flood(budget: int, waiting: int) -> list[httpx2.Response]:
        engine.go.clear()
        backend = LocalBackend(judge, "slow", budget=budget)
        app = create_app(backend, Keys.read(KEY), Limits(waiting=waiting))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://judge") as client:
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

    for budget, waiting in ((20, 100), (10_000, 2)):
        replies = asyncio.run(flood(budget, waiting))
        assert sorted(r.status_code for r in replies) == [200] * 2 + [429] * 6
        refused = [r for r in replies if r.status_code == 429]
        assert all(int(r.headers["retry-after"]) >= 1 for r in refused)
        assert all(r.json()["error"]["code"] == "overloaded" for r in refused)
