"""The estimate of a dry run: extrapolated from a few rows, printed, written to `estimate.json`, and
compared with the run afterwards.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyarrow import fs
from rich.console import Console
from rich.text import Text

from actors.calls.endpoint import Endpoint
from actors.engine.stage import Stage
from mustsee.calls.usage import UsageTotals
from mustsee.files.store import resolve
from mustsee.run.estimate import (
    FIGURES,
    Cost,
    ExpectedRange,
    Forecast,
    StageCapacity,
    StageEstimate,
    TriedRow,
    compare_with_actual,
    duration,
    extrapolate,
    pace,
)
from mustsee.run.pace import EndpointLimits
from mustsee.text import money
from ray_jobs.runtime.asked_models import AskedModels, asked_endpoints
from ray_jobs.runtime.dry_run import DryRun, RehearsedRows, RemainingWork
from ray_jobs.runtime.outcome import plain_table
from ray_jobs.runtime.rehearse import FIRST_TOKEN_S, TOKENS_PER_SECOND
from ray_jobs.runtime.trials import walk_parts

FILE = "estimate.json"
NO_WORK = TriedRow()
VALUES: dict[str, Callable[[TriedRow], float]] = {
    **{name: lambda t, name=name: getattr(t.cost, name) for name in FIGURES},
    "seconds": lambda t: t.work + t.waited,
}
# Factors by which a model's figures may differ from the scripted one's (docs/costs.md); the spread
# over the rows comes on top. Filters stop at the first failure, so a verifier that passes what the
# scripted one drops is sent far more frames.
PLAIN = {"calls": (0.8, 1.25), "tokens_in": (0.8, 1.25), "tokens_out": (0.5, 2.0),
         "usd": (0.7, 1.6), "seconds": (0.6, 1.8)}  # fmt: skip
FILTERED = {"calls": (0.5, 3.0), "tokens_in": (0.3, 10.0), "tokens_out": (0.3, 3.0),
            "usd": (0.3, 8.0), "seconds": (0.4, 5.0)}  # fmt: skip


def forecast(
    todo: RemainingWork,
    tried: RehearsedRows,
    settings: DryRun,
    phases: Sequence[Sequence[str]],
    startup_s: float,
    cores: float,
) -> Forecast:
    """Extrapolate the rehearsed rows to the remaining work.

    `phases`: names of stages that run at the same time. `startup_s`: seconds until the first row.
    `cores`: CPUs of the run.
    """
    spans: dict[str, list[ExpectedRange]] = defaultdict(list)
    stages: list[StageEstimate] = []
    row_seconds: dict[str, float] = {}
    usd_images = usd_clips = 0.0
    for number, stage in enumerate(todo.stages):
        stage_rows = _StageRows(number, todo, tried)
        factors = stage_rows.model_range if settings.free else {}
        for name, value in VALUES.items():
            spans[name].append(_wider(stage_rows.span(value), *factors.get(name, (1.0, 1.0))))
        prompts = {
            name: stage_rows.cost(lambda t, name=name: t.prompts.get(name, Cost()))
            for name in stage_rows.prompts
        }
        work, waited = stage_rows.span(lambda t: t.work), stage_rows.span(lambda t: t.waited)
        usd_images += stage_rows.span(lambda t: t.usd_images).expected
        usd_clips += stage_rows.span(lambda t: t.usd_clips).expected
        total = stage_rows.cost(lambda t: t.cost)
        estimate = StageEstimate(
            stage=stage.name, rows=stage_rows.rows, prompts=prompts, work=work.expected,
            seconds=pace(
                stage_rows.rows, work.expected, waited.expected, total, _capacity(stage),
                settings.dry_run_call_seconds or _call_seconds(total),
            ),
        )  # fmt: skip
        stages.append(estimate)
        row_seconds[stage.name] = (work.expected + waited.expected) / max(stage_rows.rows, 1e-9)
    totals = {name: _sum(each) for name, each in spans.items()}
    duration_s = startup_s + tried.opening / cores
    for names in phases:
        in_phase = [s for s in stages if s.stage in names]
        duration_s += _phase_seconds(in_phase, row_seconds, todo.stages, cores)
    totals["seconds"] = _scaled(totals["seconds"], duration_s)
    return Forecast(
        stages=[s for s in stages if s.rows >= 0.05], totals=totals,
        rows=len(todo.sizes), stored=len(todo.sizes) - len(todo.since), tried=len(tried.names),
        asked=not settings.free, spent=tried.spent, usd_images=usd_images, usd_clips=usd_clips,
        unknown=list(_unknown(todo, tried, settings)),
    )  # fmt: skip


def of_calls(name: str, prompts: Mapping[str, Cost], seconds: float) -> Forecast:
    """The estimate of a job without rows. Rules replied to all of its calls."""
    stage = StageEstimate(stage=name, rows=1, prompts=prompts, seconds=seconds, work=0.0)
    exact = {f: getattr(stage.cost, f) for f in FIGURES} | {"seconds": seconds}
    totals = {
        f: _wider(ExpectedRange(expected=v, low=v, high=v), *PLAIN[f]) for f, v in exact.items()
    }
    return Forecast(stages=[stage], totals=totals, rows=1, stored=0, tried=1)


class _StageRows:
    """The rehearsed rows of one stage, and their extrapolation to its other rows."""

    def __init__(self, number: int, todo: RemainingWork, tried: RehearsedRows) -> None:
        remaining = [n for n, first in todo.since.items() if first <= number]
        names = [n for n in tried.names if n in set(remaining)]
        self._rest = [todo.sizes[n] for n in remaining if n not in set(names)]
        self._sizes = [todo.sizes[n] for n in names]
        self._tried = [tried.did[number].get(n, NO_WORK) for n in names]
        self._kept = tried.kept[number]
        self._share = todo.share if number >= todo.sampled else 1.0
        self.prompts = sorted({p for row in self._tried for p in row.prompts})
        worked = [float(n in tried.did[number]) for n in names]
        even = [1.0] * len(self._rest)
        rows = extrapolate(worked, [1.0] * len(names), even, kept=self._kept)
        self.rows = rows.expected * self._share

    @property
    def model_range(self) -> Mapping[str, tuple[float, float]]:
        """By figure, the factors by which a model may differ from the scripted one."""
        if self._kept:
            return {}
        return FILTERED if any(p.startswith("filters/") for p in self.prompts) else PLAIN

    def span(self, value: Callable[[TriedRow], float]) -> ExpectedRange:
        estimate = extrapolate(
            [value(row) for row in self._tried], self._sizes, self._rest, kept=self._kept
        )
        return estimate.times(self._share)

    def cost(self, of: Callable[[TriedRow], Cost]) -> Cost:
        """The expected cost of the stage's rows. `of`: of one rehearsed row."""
        names = vars(Cost())
        return Cost(**{n: self.span(lambda t, n=n: getattr(of(t), n)).expected for n in names})


def _sum(spans: Sequence[ExpectedRange]) -> ExpectedRange:
    """The sum of the ranges. Their ends are added, not their squares, because a row that is
    expensive in one stage is expensive in the next.
    """
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


def _call_seconds(cost: Cost) -> float:
    """The assumed duration of a call with the mean number of reply tokens."""
    return FIRST_TOKEN_S + cost.tokens_out / max(cost.calls, 1.0) / TOKENS_PER_SECOND


def _endpoints(stage: Stage) -> list[Endpoint]:
    return [part for part in walk_parts(stage.part) if isinstance(part, Endpoint)]


def endpoint_limits(stage: Stage) -> EndpointLimits:
    """The limits of the stage's endpoint; of several endpoints, the first."""
    for endpoint in _endpoints(stage):
        limits = endpoint.limits
        return EndpointLimits(calls=limits.requests_per_minute, tokens=limits.tokens_per_minute)
    return EndpointLimits()


def _capacity(stage: Stage) -> StageCapacity:
    connections = min((e.max_connections for e in _endpoints(stage)), default=256)
    return StageCapacity(
        workers=stage.hardware.max_workers, rows=stage.hardware.concurrency, in_flight=connections
    )


def _phase_seconds(
    stages: Sequence[StageEstimate],
    row_seconds: Mapping[str, float],
    queued: Sequence[Stage],
    cores: float,
) -> float:
    """The duration of stages that stream into each other.

    It is the longest of three bounds: the slowest stage and one row of each other stage, all work
    over the cores, and each account's calls and tokens at its limits. `row_seconds`: by stage.
    """
    if not any(s.rows for s in stages):
        return 0.0
    working = [s for s in stages if s.rows]
    slowest = max(working, key=lambda s: s.seconds)
    others = [s for s in working if s is not slowest]
    bounds = [slowest.seconds + sum(min(row_seconds[s.stage], s.seconds) for s in others)]
    bounds.append(sum(s.work for s in working) / cores)
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


def _unknown(todo: RemainingWork, tried: RehearsedRows, settings: DryRun) -> Iterator[str]:
    """A sentence for each thing that the estimate cannot know."""
    models = asked_endpoints([stage.part for stage in todo.stages])
    if settings.free and models:
        yield (
            "a scripted model stood in for " + ", ".join(models) + ": it lists as many facts, "
            "claims and questions as strong readers did, and a model's verdicts, lengths of "
            "replies and repeated calls differ; filters cost more, the more questions pass. "
            "dry_run_usd=1 calls the models on these rows for at most 1 USD and keeps their "
            "replies for the run"
        )
        if settings.dry_run_call_seconds is None:
            yield (
                f"the duration of a call: assumed {FIRST_TOKEN_S:g} s and 1 s per "
                f"{TOKENS_PER_SECOND:g} tokens (dry_run_call_seconds= sets it)"
            )
    for endpoint in models.values():
        if tokens := getattr(endpoint, "room_for_thoughts", 0):
            usd = money(endpoint.price.usd(0, tokens))
            yield (
                f"the thinking tokens of {endpoint.model!r}, which are not counted: up to {tokens} "
                f"a call ({usd} USD)"
            )
    for name in todo.undecided:
        yield f"the rows that {name} drops: it decides over all rows"
    if failed := tried.failed:
        yield f"the cost of rows like the {len(failed)} that failed here: {failed[0]}"


def show(estimate: Forecast, models: AskedModels) -> None:
    """Print the models of unknown price, the estimate by stage and prompt, then the totals with
    their intervals, and what is known of the models.
    """
    console = Console()
    for line in models.unpriced:
        console.print(Text(line, style="bold red"), soft_wrap=True)
    figures = ("rows", "calls", "tokens in", "out", "USD", "time")
    table = plain_table("remaining work", ("stage", "prompt", *figures), figures)
    for each in estimate.stages:
        table.add_row(each.stage, "", f"{each.rows:.0f}", "", "", "", "", duration(each.seconds))
        for name, cost in each.prompts.items():
            table.add_row(
                "", Text(name), "", f"{cost.calls:,.0f}", f"{cost.tokens_in:,.0f}",
                f"{cost.tokens_out:,.0f}", money(cost.usd), "",
            )  # fmt: skip
    console.print(table)
    for line in (*lines(estimate), *models.notes, models.prices):
        if line:
            console.print(Text(line), soft_wrap=True)


def lines(estimate: Forecast) -> Iterator[str]:
    """The totals, the rows that they are estimated from, and what is not known."""
    brackets = (
        "90 % intervals" if estimate.asked else "the range if a model differs from the scripted one"
    )
    yield (
        f"{estimate.rows} rows, {estimate.stored} already done. Estimated from {estimate.tried} of "
        f"{estimate.rows} rows; in brackets {brackets}."
    )
    if estimate.spent:
        yield f"the calls on these rows cost {money(estimate.spent)} USD; their replies are kept"
    formats = {"calls": "{:,.0f}", "tokens_in": "{:,.0f}", "tokens_out": "{:,.0f}"}
    for name, span in estimate.totals.items():
        form = formats[name].format if name in formats else money if name == "usd" else duration
        figures = f"{form(span.expected)} [{form(span.low)}, {form(span.high)}]"
        yield f"  {name.replace('_', ' '):<11} {figures}"
    if estimate.usd_images:
        yield (
            f"the frames cost {money(estimate.usd_images)} USD as images, "
            f"{money(estimate.usd_clips)} USD as clips of a frame a second (frames_as=clip of a "
            "model; whether it sees as much was not verified)"
        )
    yield from (f"not known: {each}" for each in estimate.unknown)


def keep(estimate: Forecast, models: AskedModels, out: str, config: Mapping[str, Any]) -> None:
    """Write `estimate.json` into the output folder, where the run reads it."""
    filesystem, folder = resolve(out)
    filesystem.create_dir(folder, recursive=True)
    with filesystem.open_output_stream(f"{folder}/{FILE}") as stream:
        content = {**estimate.plain(config), "models": models.plain()}
        stream.write((json.dumps(content, indent=2) + "\n").encode())


def compare_estimate(
    out: str, config: Mapping[str, Any], usage: UsageTotals, seconds: float
) -> dict[str, Any] | None:
    """The stored estimate beside the run's own figures; None without an estimate of this run."""
    filesystem, folder = resolve(out)
    if filesystem.get_file_info(f"{folder}/{FILE}").type != fs.FileType.File:
        return None
    with filesystem.open_input_file(f"{folder}/{FILE}") as file:
        return compare_with_actual(json.loads(file.read()), config, usage, seconds)


def forget(out: str) -> None:
    """Remove `estimate.json`; the run has copied it into run.json."""
    filesystem, folder = resolve(out)
    if filesystem.get_file_info(f"{folder}/{FILE}").type == fs.FileType.File:
        filesystem.delete_file(f"{folder}/{FILE}")
