"""The served judge under load, at ten times its load, and with its replica killed.

    python -m ray_jobs.bench what=judge [what.judge=lexical what.seconds=5]

Everything runs on this machine, on loopback: Ray, Serve, the judge, and the clients. Every item's
score is compared with the one that the same engine gives when called directly.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from longshot.gem import Item
from ray_jobs.benches.figures import Cell, Figures
from ray_jobs.cluster import connected

PLACES = ("kitchen", "garden", "street", "river", "market", "station", "library", "harbour")
DEEDS = ("opens the door", "reads a letter", "feeds the dog", "sings", "mends a chair", "waits")


@dataclass
class Load:
    """What the clients of one phase saw."""

    taken: list[float] = field(default_factory=list[float])  # seconds
    status: Counter[int] = field(default_factory=Counter[int])
    items: int = 0
    wrong: int = 0
    unnamed: int = 0  # refusals without Retry-After
    seconds: float = 0.0
    recovered: float | None = None

    def row(self, name: str, direct: float, memory: float) -> tuple[Cell, ...]:
        ordered = sorted(self.taken)

        def quantile(q: float) -> float | None:
            return 1000 * ordered[int(q * (len(ordered) - 1))] if ordered else None

        rate = self.items / self.seconds
        return (
            name, rate, rate / direct, sum(self.status.values()), self.status[200],
            self.status[429], self.status[503],
            sum(n for s, n in self.status.items() if s not in (200, 429, 503)),
            quantile(0.5), quantile(0.99), self.wrong, self.unnamed, memory, self.recovered,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class JudgeLoad:
    """`clients` keep `items` items each in flight, for `seconds`; then ten times as many clients.
    `queue`: tokens that a replica lets wait.
    """

    judge: str = "mini"
    clients: int = 4
    items: int = 16
    seconds: float = 8.0
    queue: int = 6000

    def __call__(self) -> Figures:
        # on a busy machine a proxy takes longer than Serve's five seconds to start
        os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
        from ray import serve

        from serve.judge import Settings, app, configured

        settings = Settings(
            judge=self.judge, no_auth="loopback", queue=self.queue, waiting=2 * self.clients
        )
        made = questions(2000)
        judge = configured(settings).open()
        judge.score(made[:64])
        began = time.perf_counter()
        expected = [s.score or 0.0 for s in judge.score(made)]
        direct = len(made) / (time.perf_counter() - began)
        rows: list[tuple[Cell, ...]] = []
        with connected(), socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            try:
                serve.start(http_options={"host": "127.0.0.1", "port": port})
                serve.run(app(settings), name="judge", route_prefix="/")
                url = f"http://127.0.0.1:{port}"
                for name, clients, kill in (
                    ("at capacity", self.clients, False),
                    ("ten times", 10 * self.clients, False),
                    ("replica killed", self.clients, True),
                ):
                    load = asyncio.run(self._phase(url, made, expected, clients, kill))
                    rows.append(load.row(name, direct, replica_memory()))
            finally:
                serve.shutdown()
        return Figures(
            title=f"judge={self.judge} on Serve; the engine called directly: {direct:.0f} items/s",
            columns=("phase", "items/s", "of direct", "requests", "200", "429", "503", "other",
                     "p50 ms", "p99 ms", "wrong scores", "refused without Retry-After",
                     "replica MB", "s to recover"),
            rows=tuple(rows),
            notes=(
                f"{self.clients} clients with {self.items} items a request, then "
                f"{10 * self.clients}; {self.seconds:g} s each; p50 and p99 of what was accepted.",
                "Clients, proxy and judge share this machine's cores.",
            ),
        )  # fmt: skip

    async def _phase(
        self, url: str, made: Sequence[Item], expected: Sequence[float], clients: int, kill: bool
    ) -> Load:
        import aiohttp

        load, began = Load(), time.perf_counter()
        end = began + self.seconds * (2 if kill else 1)
        killed: list[float] = []

        async def client(number: int, session: Any) -> None:
            rng = random.Random(f"{number}/bench/judge")
            while time.perf_counter() < end:
                picked = [rng.randrange(len(made)) for _ in range(self.items)]
                await self._ask(url, session, load, made, expected, picked)
                if killed and load.recovered is None and load.status[200] > killed[1]:
                    load.recovered = time.perf_counter() - killed[0]

        timeout = aiohttp.ClientTimeout(total=60)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            tasks = [asyncio.create_task(client(i, session)) for i in range(clients)]
            if kill:
                await asyncio.sleep(self.seconds / 3)
                await asyncio.to_thread(kill_replica)
                killed += [time.perf_counter(), load.status[200]]
            await asyncio.gather(*tasks)
        load.seconds = time.perf_counter() - began
        return load

    async def _ask(
        self, url: str, session: Any, load: Load, made: Sequence[Item],
        expected: Sequence[float], picked: Sequence[int],
    ) -> None:  # fmt: skip
        body = {
            "items": [
                {"question": i.question, "candidate": i.candidate, "reference": i.references[0]}
                for i in (made[k] for k in picked)
            ]
        }
        sent = time.perf_counter()
        async with session.post(f"{url}/v1/equivalence", json=body) as reply:
            load.status[reply.status] += 1
            if reply.status == 200:
                rows = (await reply.json())["data"]
                load.taken.append(time.perf_counter() - sent)
                load.items += len(rows)
                load.wrong += sum(
                    abs(row["score"] - expected[k]) > 1e-4
                    for row, k in zip(rows, picked, strict=True)
                )
                return
            load.unnamed += "Retry-After" not in reply.headers
        # a client that is refused comes back, though sooner than it was asked to
        await asyncio.sleep(0.2)


def questions(count: int) -> list[Item]:
    """Distinct items of several lengths, right and wrong ones."""
    rng = random.Random("bench/judge")
    made: list[Item] = []
    for i in range(count):
        place, deed = rng.choice(PLACES), rng.choice(DEEDS)
        said = place if rng.random() < 0.5 else rng.choice(PLACES)
        more = " ".join(rng.choices(PLACES + DEEDS, k=rng.randrange(0, 30)))
        made.append(
            Item(
                question=f"Where is person {i} when she {deed}?",
                candidate=f"She {deed} in the {said}. {more}",
                references=(f"In the {place}, in scene {i % 97}.",),
            )
        )
    return made


def _replicas() -> list[str]:
    from ray.util import list_named_actors

    names = (a["name"] for a in list_named_actors(all_namespaces=True))
    return [n for n in names if n.startswith("SERVE_REPLICA::judge#Judge#")]


def kill_replica() -> None:
    """End the process of one replica of the judge, without a warning."""
    import ray

    ray.kill(ray.get_actor(_replicas()[0], namespace="serve"))


def replica_memory() -> float:
    """MB of the judge's replicas (resident)."""
    import psutil

    mine = psutil.Process(os.getpid()).children(recursive=True)
    named = [p for p in mine if "ServeReplica:judge:Judge" in "".join(p.cmdline()[:1])]
    return sum(p.memory_info().rss for p in named) / 1e6
