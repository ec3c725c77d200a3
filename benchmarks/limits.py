"""How soon and how well an undeclared limit of an endpoint is found, over real HTTP.

    python -m benchmarks.bench what=limits what.picture=limits.svg

The loopback server refuses calls beyond a hidden limit: of calls per second (a bucket that holds a
second's worth, with Retry-After) or of calls in flight (without). The limit is fixed, or halves
after 20 s and doubles again after 40 s. Our side is the gateway with its coordinator, with more
callers than the limit could serve.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.llm.openai import OpenAI
from benchmarks.figures import BenchTable
from loopback.endpoint import Loopback
from loopback.refusals import HiddenLimit, Kind
from mustsee.calls.limits import Limits
from mustsee.calls.llm import Message, Request, Sampling
from mustsee.files.store import Store

SETTLED_S = 60.0  # time after which the limit should have been found


def fixed_limit(limit: float) -> Callable[[float], float]:
    return lambda now: limit


def moving_limit(limit: float) -> Callable[[float], float]:
    """Return a limit that is halved from 20 s to 40 s."""
    return lambda now: limit / 2 if 20 <= now < 40 else limit


@dataclass(frozen=True, kw_only=True)
class FindLimits:
    """`rate`: calls per second. `window`: calls in flight. `latency`: seconds until a reply."""

    seconds: float = 90.0
    rate: float = 20.0
    window: float = 48.0
    latency: float = 2.0
    callers: int = 160
    picture: str | None = None

    def __call__(self) -> BenchTable:
        return asyncio.run(self._table())

    async def _table(self) -> BenchTable:
        kinds: tuple[tuple[Kind, float, str], ...] = (
            ("rate", self.rate, "calls per second"),
            ("window", self.window, "calls in flight"),
        )
        names = {
            f"{limit:g} {unit}, {how}": HiddenLimit(kind=kind, limit=law(limit))
            for kind, limit, unit in kinds
            for how, law in (("fixed", fixed_limit), ("halves, doubles", moving_limit))
        }
        for hidden in names.values():
            await self._measure(hidden)
        if self.picture is not None:
            draw(names, self.seconds, self.latency, Path(self.picture))
        return BenchTable(
            title=f"Hidden limits over HTTP, {self.latency:g} s latency, {self.callers} callers",
            columns=("limit", "calls", "refused", "wasted", f"share after {SETTLED_S:g} s",
                     "share of all", "first 95 % after s", "longest gap s"),
            rows=tuple((name, *self._row(hidden)) for name, hidden in names.items()),
            notes=(
                "Share: replies over those that the limit allows. Wasted: refused over all calls.",
                *([f"Curves: {self.picture}"] if self.picture else []),
            ),
        )  # fmt: skip

    async def _measure(self, hidden: HiddenLimit) -> None:
        with (
            Loopback(latency=self.latency, hidden=hidden) as server,
            tempfile.TemporaryDirectory(prefix="mustsee-bench-") as folder,
        ):
            model = OpenAI(
                model="loopback", base_url=server.url, key_env=None, limits=Limits(),
                timeout=60 + 10 * self.latency,
            )  # fmt: skip
            coordinator = Coordinator()
            coordinator.register_account(model.account, model.limits)
            gateway = Gateway(model.open(), Store(folder), coordinator, model)
            numbers = itertools.count()

            async def caller() -> None:
                while True:
                    message = Message("user", f"call {next(numbers)}")
                    await gateway.complete(
                        Request(prompt="bench", digest="", messages=(message,),
                                sampling=Sampling(max_tokens=20))
                    )  # fmt: skip

            callers = [asyncio.create_task(caller()) for _ in range(self.callers)]
            while hidden.now < self.seconds:
                await asyncio.sleep(0.1)
            for task in callers:
                task.cancel()
            await asyncio.gather(*callers, return_exceptions=True)

    def _allowed(self, hidden: HiddenLimit, start: float, end: float) -> float:
        """Return the number of replies that the limit allows between two times."""
        per_second = 1.0 if hidden.kind == "rate" else 1 / self.latency
        steps = round((end - start) / 0.1)
        return sum(hidden.limit(start + 0.1 * i) * 0.1 for i in range(steps)) * per_second

    def _row(self, hidden: HiddenLimit) -> tuple[int | float | None, ...]:
        end, answered = self.seconds, [t for t in hidden.answered if t < self.seconds]
        calls = len(answered) + len(hidden.refused)
        late = [t for t in answered if t >= min(SETTLED_S, end / 2)]
        start = min(SETTLED_S, end / 2)
        first_full_s = next(
            (
                second
                for second in range(5, int(end), 1)
                if sum(second - 5 <= t < second for t in answered)
                >= 0.95 * self._allowed(hidden, second - 5, second)
            ),
            None,
        )
        times = [0.0, *answered, end]
        return (
            calls,
            len(hidden.refused),
            len(hidden.refused) / max(1, calls),
            len(late) / self._allowed(hidden, start, end),
            len(answered) / self._allowed(hidden, 0, end),
            first_full_s,
            max(b - a for a, b in itertools.pairwise(times)),
        )


def draw(names: dict[str, HiddenLimit], seconds: float, latency: float, path: Path) -> None:
    """Draw the replies and refusals of each second, with the limit."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(names), 1, figsize=(9, 2.4 * len(names)), sharex=True)
    for axis, (name, hidden) in zip(axes, names.items(), strict=True):
        times = range(int(seconds))
        unit = 1.0 if hidden.kind == "rate" else 1 / latency
        allowed = [hidden.limit(t) * unit for t in times]
        axis.step(times, allowed, where="post", color="0.5", label="allowed by the limit")
        axis.plot(times, per_second(hidden.answered, seconds), label="answered")
        axis.bar(times, per_second(hidden.refused, seconds), color="tab:red", label="refused")
        axis.axhline(0, color="0.8", linewidth=0.5)
        axis.set_ylim(0, 1.6 * max(allowed))
        axis.set_ylabel("calls per second")
        axis.set_title(name, loc="left", fontsize=10)
    axes[0].legend(loc="upper right", ncol=3, fontsize=8)
    axes[-1].set_xlabel("seconds")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def per_second(times: Sequence[float], seconds: float) -> list[float]:
    """Return the number of times in each second, as a mean of three seconds."""
    counts = [0] * int(seconds)
    for t in times:
        if 0 <= t < int(seconds):
            counts[int(t)] += 1
    around = [counts[max(0, i - 1) : i + 2] for i in range(len(counts))]
    return [sum(three) / len(three) for three in around]
