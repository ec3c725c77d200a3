"""From what a few rows took to what the run will take: put together, printed, kept, and in the end
held against what it came to.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ray
from pyarrow import fs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from actors.calls.endpoint import Endpoint
from actors.calls.gateway import MeteredModel
from actors.engine.stage import Stage
from mustsee.calls.usage import UsageTotals, price
from mustsee.run.estimate import (
    FIGURES,
    Cost,
    ExpectedRange,
    Forecast,
    StageCapacity,
    StageEstimate,
    TriedRow,
    against,
    duration,
    extrapolate,
    money,
    pace,
)
from mustsee.run.pace import EndpointLimits
from mustsee.store import resolve
from ray_jobs.runtime.dry_run_rows import DryRun, RehearsedRows, RemainingWork
from ray_jobs.runtime.rehearse import FIRST, SPEED
from ray_jobs.runtime.trials import walk_parts

FILE = "estimate.json"
NOTHING = TriedRow()
VALUES: dict[str, Callable[[TriedRow], float]] = {
    **{name: lambda t, name=name: getattr(t.cost, name) for name in FIGURES},
    "seconds": lambda t: t.work + t.waited,
}
# How far a model may be from the rules, beside the spread over the rows (docs/costs.md). Filters
# end where a question falls: a verifier that passes what the rules drop is shown far more pictures.
PLAIN = {"calls": (0.8, 1.25), "tokens_in": (0.8, 1.25), "tokens_out": (0.5, 2.0),
         "usd": (0.7, 1.6), "seconds": (0.6, 1.8)}  # fmt: skip
FILTERED = {"calls": (0.5, 3.0), "tokens_in": (0.3, 10.0), "tokens_out": (0.3, 3.0),
            "usd": (0.3, 8.0), "seconds": (0.4, 5.0)}  # fmt: skip


def forecast(
    todo: RemainingWork,
    tried: RehearsedRows,
    how: DryRun,
    phases: Sequence[Sequence[str]],
    began: float,
) -> Forecast:
    """`phases`: the names of the stages that work at the same time. `began`: seconds until Ray was
    up.
    """
    spans: dict[str, list[ExpectedRange]] = defaultdict(list)
    stages: list[StageEstimate] = []
    row_seconds: dict[str, float] = {}
    for number, stage in enumerate(todo.stages):
        told = _Told(number, todo, tried)
        apart = told.model_range if how.free else {}
        for name, value in VALUES.items():
            spans[name].append(_wider(told.span(value), *apart.get(name, (1.0, 1.0))))
        prompts = {name: told.cost(name) for name in told.prompts}
        work, waited = told.span(lambda t: t.work), told.span(lambda t: t.waited)
        estimate = StageEstimate(
            stage=stage.name, rows=told.rows, prompts=prompts, work=work.expected,
            seconds=pace(
                told.rows, work.expected, waited.expected, told.total, _lanes(stage),
                how.dry_run_call_seconds or _typical(told.total),
            ),
        )  # fmt: skip
        stages.append(estimate)
        row_seconds[stage.name] = (work.expected + waited.expected) / max(told.rows, 1e-9)
    totals = {name: _sum(each) for name, each in spans.items()}
    lasts = began + tried.opening / _cores()
    for names in phases:
        lasts += _phase([s for s in stages if s.stage in names], row_seconds, todo.stages)
    totals["seconds"] = _scaled(totals["seconds"], lasts)
    return Forecast(
        stages=[s for s in stages if s.rows >= 0.05], totals=totals,
        rows=len(todo.sizes), stored=len(todo.sizes) - len(todo.since), tried=len(tried.names),
        asked=not how.free, spent=tried.spent, unknown=list(_unknown(todo, tried, how)),
    )  # fmt: skip


def of_calls(name: str, prompts: Mapping[str, Cost], seconds: float) -> Forecast:
    """Of a job without rows, all of whose calls were made, by rules in the place of its model."""
    stage = StageEstimate(stage=name, rows=1, prompts=prompts, seconds=seconds, work=0.0)
    exact = {f: getattr(stage.cost, f) for f in FIGURES} | {"seconds": seconds}
    totals = {
        f: _wider(ExpectedRange(expected=v, low=v, high=v), *PLAIN[f]) for f, v in exact.items()
    }
    return Forecast(stages=[stage], totals=totals, rows=1, stored=0, tried=1)


class _Told:
    """What the rows that were tried tell of one stage."""

    def __init__(self, number: int, todo: RemainingWork, tried: RehearsedRows) -> None:
        have_to = [n for n, first in todo.since.items() if first <= number]
        names = [n for n in tried.names if n in set(have_to)]
        self._rest = [todo.sizes[n] for n in have_to if n not in set(names)]
        self._sizes = [todo.sizes[n] for n in names]
        self._did = [tried.did[number].get(n, NOTHING) for n in names]
        self._kept = tried.kept[number]
        self._share = todo.share if number >= todo.sampled else 1.0
        self.prompts = sorted({p for did in self._did for p in did.prompts})
        worked = [float(n in tried.did[number]) for n in names]
        even = [1.0] * len(self._rest)
        found = extrapolate(worked, [1.0] * len(names), even, kept=self._kept)
        self.rows = found.expected * self._share

    @property
    def model_range(self) -> Mapping[str, tuple[float, float]]:
        """How far a model may be from the rules that stood in for it, if any did."""
        if self._kept:
            return {}
        return FILTERED if any(p.startswith("filters/") for p in self.prompts) else PLAIN

    def span(self, value: Callable[[TriedRow], float]) -> ExpectedRange:
        found = extrapolate(
            [value(did) for did in self._did], self._sizes, self._rest, kept=self._kept
        )
        return found.times(self._share)

    def cost(self, prompt: str) -> Cost:
        def value(name: str) -> float:
            return self.span(lambda t: getattr(t.prompts.get(prompt, Cost()), name)).expected

        return Cost(**{name: value(name) for name in vars(Cost())})

    @property
    def total(self) -> Cost:
        return Cost(**{
            name: self.span(lambda t, name=name: getattr(t.cost, name)).expected
            for name in vars(Cost())
        })  # fmt: skip


def _sum(spans: Sequence[ExpectedRange]) -> ExpectedRange:
    """Ends are added, not squares: a row that is dear in one stage is dear in the next."""
    return ExpectedRange(
        expected=sum(s.expected for s in spans),
        low=sum(s.low for s in spans),
        high=sum(s.high for s in spans),
    )


def _scaled(span: ExpectedRange, expected: float) -> ExpectedRange:
    return span.times(expected / span.expected) if span.expected else ExpectedRange(
        expected=expected, low=expected, high=expected
    )  # fmt: skip


def _wider(span: ExpectedRange, low: float, high: float) -> ExpectedRange:
    return ExpectedRange(expected=span.expected, low=span.low * low, high=span.high * high)


def _typical(cost: Cost) -> float:
    return FIRST + cost.tokens_out / max(cost.calls, 1.0) / SPEED


def _endpoints(stage: Stage) -> list[Endpoint]:
    return [part for part in walk_parts(stage.part) if isinstance(part, Endpoint)]


def endpoint_limits(stage: Stage) -> EndpointLimits:
    """What the endpoint that a stage asks lets through; of several, the first."""
    for endpoint in _endpoints(stage):
        limits = endpoint.limits
        return EndpointLimits(calls=limits.requests_per_minute, tokens=limits.tokens_per_minute)
    return EndpointLimits()


def _lanes(stage: Stage) -> StageCapacity:
    hard = stage.hardware
    most = min((e.max_connections for e in _endpoints(stage)), default=256)
    return StageCapacity(workers=hard.max_workers, rows=hard.concurrency, in_flight=most)


def _cores() -> float:
    return max(1.0, ray.cluster_resources().get("CPU", 1.0))


def _phase(
    stages: Sequence[StageEstimate], row: Mapping[str, float], queued: Sequence[Stage]
) -> float:
    """Stages that stream into each other take as long as the slowest, and the others with one row;
    they share the cores, and accounts their endpoints' limits.
    """
    if not any(s.rows for s in stages):
        return 0.0
    working = [s for s in stages if s.rows]
    slowest = max(working, key=lambda s: s.seconds)
    bounds = [
        slowest.seconds + sum(min(row[s.stage], s.seconds) for s in working if s is not slowest)
    ]
    bounds.append(sum(s.work for s in working) / _cores())
    by_name = {stage.name: stage for stage in queued}
    accounts: dict[str, tuple[Endpoint, Cost]] = {}
    for each in working:
        for endpoint in _endpoints(by_name[each.stage])[:1]:
            _, cost = accounts.get(endpoint.account, (endpoint, Cost()))
            accounts[endpoint.account] = endpoint, cost.plus(each.cost)
    for endpoint, cost in accounts.values():
        if calls := endpoint.limits.requests_per_minute:
            bounds.append(60 * cost.calls / calls)
        if tokens := endpoint.limits.tokens_per_minute:
            bounds.append(60 * (cost.tokens_in + cost.tokens_out) / tokens)
    return max(bounds)


def _unknown(todo: RemainingWork, tried: RehearsedRows, how: DryRun) -> Iterator[str]:
    """What the figures cannot know."""
    models = {
        part.endpoint.account: part.endpoint
        for stage in todo.stages
        for part in walk_parts(stage.part)
        if isinstance(part, MeteredModel)
    }
    if how.free and models:
        yield (
            "rules stood in for " + ", ".join(models) + ": verdicts, the length of replies and "
            "what is asked again are theirs, and filters cost more the more they pass; "
            "dry_run_usd=1 asks the models about these rows, for at most 1 USD, and keeps what "
            "they say for the run"
        )
        if how.dry_run_call_seconds is None:
            yield (
                f"a call is taken to last {FIRST:g} s and 1 s for {SPEED:g} tokens "
                "(dry_run_call_seconds= sets it)"
            )
    for endpoint in models.values():
        if price(endpoint.prices, endpoint.model) is None:
            yield f"the price of {endpoint.model!r} is not known: its calls are counted as 0 USD"
        if most := getattr(endpoint, "thought_tokens", 0):
            yield f"the thoughts of {endpoint.model!r} are not counted: up to {most} tokens a call"
    for name in todo.undecided:
        yield f"{name} decides over all rows: what it drops is not known yet"
    if failed := tried.failed:
        yield f"{len(failed)} of the rows tried failed: {failed[0]}"


def show(told: Forecast) -> None:
    """Print it: by stage and prompt, then the sums with their intervals."""
    console = Console()
    table = Table(title="what is still to do", title_justify="left", title_style="bold", box=None)
    for name in ("stage", "prompt", "rows", "calls", "tokens in", "out", "USD", "time"):
        left = name in ("stage", "prompt")
        table.add_column(name, justify="left" if left else "right")
    for each in told.stages:
        table.add_row(each.stage, "", f"{each.rows:.0f}", "", "", "", "", duration(each.seconds))
        for name, cost in each.prompts.items():
            table.add_row(
                "", Text(name), "", f"{cost.calls:,.0f}", f"{cost.tokens_in:,.0f}",
                f"{cost.tokens_out:,.0f}", money(cost.usd), "",
            )  # fmt: skip
    console.print(table)
    for line in lines(told):
        console.print(Text(line), soft_wrap=True)


def lines(told: Forecast) -> Iterator[str]:
    """The sums, and what they are from."""
    brackets = "90 % intervals" if told.asked else "the range if a model differs from the rules"
    yield (
        f"{told.rows} rows, {told.stored} already done. Estimated from {told.tried} of {told.rows} "
        f"rows; in brackets {brackets}."
    )
    if told.spent:
        yield f"asking about these rows cost {money(told.spent)} USD; their replies are kept"
    shown = {"calls": "{:,.0f}", "tokens_in": "{:,.0f}", "tokens_out": "{:,.0f}"}
    for name, span in told.totals.items():
        form = shown.get(name, "").format if name in shown else money if name == "usd" else duration
        said = f"{form(span.expected)} [{form(span.low)}, {form(span.high)}]"
        yield f"  {name.replace('_', ' '):<11} {said}"
    yield from (f"not known: {each}" for each in told.unknown)


def keep(told: Forecast, out: str, config: Mapping[str, Any]) -> None:
    """Write `estimate.json` into the output folder, where the run will find it."""
    filesystem, folder = resolve(out)
    filesystem.create_dir(folder, recursive=True)
    with filesystem.open_output_stream(f"{folder}/{FILE}") as stream:
        stream.write((json.dumps(told.plain(config), indent=2) + "\n").encode())


def compare_estimate(
    out: str, config: Mapping[str, Any], usage: UsageTotals, seconds: float
) -> dict[str, Any] | None:
    """A kept estimate against what the run came to; None where there is none of this run."""
    filesystem, folder = resolve(out)
    if filesystem.get_file_info(f"{folder}/{FILE}").type != fs.FileType.File:
        return None
    with filesystem.open_input_file(f"{folder}/{FILE}") as file:
        return against(json.loads(file.read()), config, usage, seconds)


def forget(out: str) -> None:
    """The estimate is in run.json now."""
    filesystem, folder = resolve(out)
    if filesystem.get_file_info(f"{folder}/{FILE}").type == fs.FileType.File:
        filesystem.delete_file(f"{folder}/{FILE}")
