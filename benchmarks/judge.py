"""The served judge at its capacity, at ten times its capacity, and with a replica killed.

    python -m benchmarks.bench what=judge [what.judge=lexical what.seconds=20 what.replicas=2]

Ray, Serve, the judge and the clients all run on this machine. Every item's score is compared with
the score that the same engine gives when called directly.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from benchmarks.figures import BenchTable, Cell
from mustsee.judge.judge import JudgeItem
from ray_jobs.runtime.cluster import connect_ray

PLACES = ("kitchen", "garden", "street", "river", "market", "station", "library", "harbour")
DEEDS = ("opens the door", "reads a letter", "feeds the dog", "sings", "mends a chair", "waits")
LOST = 0  # status that is counted for a broken connection
MEASURES = (
    "requests", "answered (200)", "rejected (429)", "timed out (503)", "other statuses",
    "connections lost", "rejected without Retry-After", "items/s", "of the engine called directly",
    "p50 ms", "p99 ms", "p99 limit ms", "items scored and checked", "wrong scores",
    "replica MB before", "replica MB after", "in flight at the kill", "s to the next answer",
    "s until the loss is detected", "s until all replicas serve",
)  # fmt: skip


@dataclass
class LoadResult:
    """The replies and times that the clients of one phase got."""

    latencies_s: list[float] = field(default_factory=list[float])
    status: Counter[int] = field(default_factory=Counter[int])
    items: int = 0
    wrong: int = 0
    without_retry_after: int = 0  # rejections
    in_flight: int = 0
    seconds: float = 0.0
    mb_before: float = 0.0
    mb_after: float = 0.0
    kill: Kill | None = None

    def column(self, direct: float, limit: float) -> tuple[Cell, ...]:
        latencies, kill = sorted(self.latencies_s), self.kill
        rate, statuses = self.items / self.seconds, (200, 429, 503, LOST)

        def quantile(q: float) -> float | None:
            return round(1000 * latencies[int(q * (len(latencies) - 1))]) if latencies else None

        return (
            self.status.total(), *(self.status[s] for s in statuses[:3]),
            sum(n for s, n in self.status.items() if s not in statuses), self.status[LOST],
            self.without_retry_after, round(rate, 1), rate / direct,
            quantile(0.5), quantile(0.99), 1000 * limit, self.items, self.wrong,
            round(self.mb_before), round(self.mb_after),
            *((kill.in_flight, kill.answered, kill.noticed, kill.whole) if kill else (None,) * 4),
        )  # fmt: skip


@dataclass
class Kill:
    """A killed replica; `answered`, `noticed`, `whole`: seconds until each event."""

    in_flight: int
    at: float
    answers: int
    answered: float | None = None
    noticed: float | None = None
    whole: float | None = None


@dataclass(frozen=True, kw_only=True)
class JudgeLoad:
    """At capacity `clients` keep `items` items each in flight, for `seconds`; then requests come at
    random at ten times the measured rate. `limit`: timeout of a request in seconds.
    """

    judge: str = "mini"
    replicas: int = 2
    clients: int = 4
    items: int = 16
    seconds: float = 8.0
    limit: float = 10.0

    def __call__(self) -> BenchTable:
        from serve.judge import JudgeServeSettings, app, configure_judge

        settings = JudgeServeSettings(
            judge=self.judge, no_auth="loopback", seconds=self.limit, replicas=self.replicas,
            cpus=1 / self.replicas,
        )  # fmt: skip
        items = questions(600)
        judge = configure_judge(settings).open()
        judge.score(items[:64])
        began = time.perf_counter()
        expected = [s.score or 0.0 for s in judge.score(items)]
        direct = len(items) / (time.perf_counter() - began)
        with serve_application(app(settings)) as url:
            caller = JudgeCaller(url, items, expected, self.items)
            loads = [asyncio.run(self._phase(caller, self._closed))]
            tenfold = 10 * loads[0].items / loads[0].seconds / self.items
            loads.append(asyncio.run(self._phase(caller, self._open(tenfold))))
            loads.append(asyncio.run(self._phase(caller, self._closed, kill=True)))
        columns = [load.column(direct, self.limit) for load in loads]
        return BenchTable(
            title=f"judge={self.judge}, {self.replicas} replicas on Serve; "
            f"the engine called directly: {direct:.0f} items/s",
            columns=("", "at capacity", "ten times", "replica killed"),
            rows=tuple(zip(MEASURES, *columns, strict=True)),
            notes=(
                f"{self.clients} clients with {self.items} items a request; {tenfold:.1f} requests "
                f"a second at ten times; {self.seconds:g} s each, twice that with the kill.",
                "p50, p99: of answered requests. MB: resident, all replicas. A request is rejected "
                "when it is expected to take more than half of its timeout.",
                "Clients, proxy and judge share this machine's cores.",
            ),
        )

    async def _phase(
        self, caller: JudgeCaller, arrive: Callable[..., Any], *, kill: bool = False
    ) -> LoadResult:
        import aiohttp

        load = LoadResult(mb_before=replica_memory())
        began = time.perf_counter()
        end = began + self.seconds * (2 if kill else 1)
        timeout, open_ends = aiohttp.ClientTimeout(total=120), aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(timeout=timeout, connector=open_ends) as session:
            watched = asyncio.create_task(self._kill(load)) if kill else None
            await arrive(caller, session, load, end)
            if watched is not None:
                await watched
        load.seconds = time.perf_counter() - began
        load.mb_after = replica_memory()
        return load

    async def _closed(
        self, caller: JudgeCaller, session: Any, load: LoadResult, end: float
    ) -> None:
        """Send from each client the next request when the last one is answered."""

        async def client(number: int) -> None:
            rng = random.Random(f"{number}/bench/judge")
            while time.perf_counter() < end:
                await asyncio.sleep(await caller.call(session, load, rng))

        await asyncio.gather(*(client(i) for i in range(self.clients)))

    def _open(self, rate: float) -> Callable[..., Any]:
        async def arrive(caller: JudgeCaller, session: Any, load: LoadResult, end: float) -> None:
            """Send requests at random times, whatever the replies."""
            rng, tasks = random.Random("open/bench/judge"), list[asyncio.Task[float]]()
            due = time.perf_counter()
            while due < end:
                await asyncio.sleep(due - time.perf_counter())
                tasks.append(asyncio.create_task(caller.call(session, load, rng)))
                due += rng.expovariate(rate)
            await asyncio.gather(*tasks)

        return arrive

    async def _kill(self, load: LoadResult) -> None:
        """Kill a replica without warning, and wait until there are as many as before."""
        await asyncio.sleep(self.seconds / 3)
        killed = await asyncio.to_thread(kill_replica)
        kill = load.kill = Kill(load.in_flight, time.perf_counter(), load.status[200])
        while kill.whole is None and time.perf_counter() < kill.at + 300:
            await asyncio.sleep(0.05)
            since = time.perf_counter() - kill.at
            if kill.answered is None and load.status[200] > kill.answers:
                kill.answered = since
            now = await asyncio.to_thread(replicas)
            if kill.noticed is None and len(now - {killed}) == self.replicas:
                kill.noticed = since
            if kill.noticed and await asyncio.to_thread(replica_count) == self.replicas:
                kill.whole = since


@dataclass(frozen=True)
class JudgeCaller:
    """A client of the judge that knows the right score of each item."""

    url: str
    pool: Sequence[JudgeItem]
    expected: Sequence[float]
    items: int

    async def call(self, session: Any, load: LoadResult, rng: random.Random) -> float:
        """Send one request, check its reply, and return the seconds to wait before the next."""
        import aiohttp

        picked = [rng.randrange(len(self.pool)) for _ in range(self.items)]
        chosen = [self.pool[k] for k in picked]
        items = [{"question": i.question, "candidate": i.candidate, "reference": i.references[0]}
                 for i in chosen]  # fmt: skip
        sent = time.perf_counter()
        load.in_flight += 1
        try:
            async with session.post(
                f"{self.url}/v1/equivalence", json={"items": items},
                headers={"X-Request-Start": f"t={time.time()}"},
            ) as reply:  # fmt: skip
                load.status[reply.status] += 1
                if reply.status != 200:
                    load.without_retry_after += "Retry-After" not in reply.headers
                    return float(reply.headers.get("Retry-After", 1))
                rows = (await reply.json())["data"]
        except aiohttp.ClientError:
            load.status[LOST] += 1
            return 1.0
        finally:
            load.in_flight -= 1
        load.latencies_s.append(time.perf_counter() - sent)
        load.items += len(rows)
        load.wrong += sum(
            abs(row["score"] - self.expected[k]) > 1e-4 for row, k in zip(rows, picked, strict=True)
        )
        return 0.0


@contextlib.contextmanager
def serve_application(application: Any) -> Generator[str]:
    """Serve the application and yield its address."""
    # On a busy machine a proxy takes longer to start than Serve's default of five seconds.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    from ray import serve

    with connect_ray(), socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        try:
            serve.start(http_options={"host": "127.0.0.1", "port": port})
            serve.run(application, name="judge", route_prefix="/")
            yield f"http://127.0.0.1:{port}"
        finally:
            serve.shutdown()


def questions(count: int) -> list[JudgeItem]:
    """Return distinct items of several lengths, right and wrong ones."""
    rng = random.Random("bench/judge")
    items: list[JudgeItem] = []
    for i in range(count):
        place, deed = rng.choice(PLACES), rng.choice(DEEDS)
        named = place if rng.random() < 0.5 else rng.choice(PLACES)
        more = " ".join(rng.choices(PLACES + DEEDS, k=rng.randrange(0, 30)))
        items.append(
            JudgeItem(
                question=f"Where is person {i} when she {deed}?",
                candidate=f"She {deed} in the {named}. {more}",
                references=(f"In the {place}, in scene {i % 97}.",),
            )
        )
    return items


def replicas() -> set[str]:
    """Return the names of the judge's replicas, starting ones included."""
    from ray.util import list_named_actors

    named: list[Any] = list_named_actors(all_namespaces=True)
    names: set[str] = {actor["name"] for actor in named}
    return {n for n in names if n.startswith("SERVE_REPLICA::judge#Judge#")}


def replica_count() -> int:
    """Return the number of replicas that serve."""
    from ray import serve

    deployment = serve.status().applications["judge"].deployments["Judge"]
    states = cast(Mapping[str, int], deployment.replica_states)
    return states.get("RUNNING", 0)


def kill_replica() -> str:
    """Kill the process of one replica of the judge without warning; return its name."""
    import ray

    name = min(replicas())
    ray.kill(ray.get_actor(name, namespace="serve"))
    return name


def replica_memory() -> float:
    """Return the resident memory of the judge's replicas in MB."""
    import psutil

    mine = psutil.Process(os.getpid()).children(recursive=True)
    named = [p for p in mine if "ServeReplica:judge:Judge" in "".join(p.cmdline()[:1])]
    return sum(p.memory_info().rss for p in named) / 1e6
