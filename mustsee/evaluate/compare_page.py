"""`report/index.html` of a comparison: a leaderboard for each benchmark and measure, with the curve
of scores over the number of frames. It needs no script and fetches nothing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from mustsee.evaluate import compare_show as show
from mustsee.evaluate.compare import RUBRIC, ComparisonTable
from mustsee.evaluate.drawing import new_axes
from mustsee.stats import MAX_P, Estimate

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

MAX_IDS = 50  # ids of questions that the page lists for one model and reason
GROUPS = {"": "", "average": "averages", "split": "splits", "type": "types", "skill": "skills"}
# The part of a model's name that says its frames.
_FRAMES = re.compile(r" (?:\d+ frames(?: \+ )?|blind$)")
FramePoints = Mapping[str, Sequence[tuple[int, Estimate]]]


@dataclass(frozen=True, kw_only=True)
class PageCell:
    """A score as text. `best`: whether no model has a higher one in its column."""

    value: str
    interval: str = ""
    n: int | None = None
    best: bool = False


@dataclass(frozen=True, kw_only=True)
class PageRow:
    """A row of a leaderboard. `bar`: score, low and high of all questions, as percent of the
    scale; null without an interval.
    """

    rank: str
    open_ranks: str
    apart: bool
    name: str
    tags: Sequence[str]
    folder: str
    bar: tuple[float, float, float] | None
    cells: Sequence[PageCell]
    kind: str


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A leaderboard. `groups`: names above the columns, with their number of columns. `missing`:
    model, reason, number and ids of questions. `chart`: data URL of the curve over frames.
    """

    table: ComparisonTable
    title: str
    counts: str
    verdict: str
    groups: Sequence[tuple[str, int]]
    rows: Sequence[PageRow]
    chance: float | None
    pairs: Sequence[tuple[str, str, str, str, int, str, bool]]
    missing: Sequence[tuple[str, str, int, str]]
    chart: str | None


def render(
    tables: Sequence[ComparisonTable],
    charts: Mapping[int, bytes],
    unread: Mapping[str, str],
    templates: Environment,
    *,
    title: str = "",
) -> str:
    """Return the page. `charts`: number of a table -> PNG. `unread`: folder -> why it is not in any
    table. `templates`: `mustsee.run.report.environment()`. `title`: of the page; empty: how many
    models there are.
    """
    pages = [_page_table(table, charts.get(n)) for n, table in enumerate(tables)]
    by_benchmark = [
        (name, list(group)) for name, group in groupby(pages, lambda page: page.table.dataset)
    ]
    return templates.get_template("compare.html.j2").render(
        benchmarks=by_benchmark,
        models=len({(row.name, row.folder) for table in tables for row in table.rows}),
        unread=unread,
        title=title,
        max_p=MAX_P,
    )


def _page_table(table: ComparisonTable, chart: bytes | None) -> PageTable:
    names = [GROUPS[column.group] for column in table.columns]
    return PageTable(
        table=table,
        title=show.measure_text(table),
        counts=show.counts(table),
        verdict=show.verdict(table),
        groups=[(name, len(list(group))) for name, group in groupby(names)],
        rows=list(_rows(table)),
        chance=_scaled(table.columns[0].chance, table),
        pairs=[
            (
                pair.a, pair.b, f"{show.number(pair.difference.value, table.measure)}",
                show.interval(pair.difference, table.measure), pair.difference.n,
                pair.difference.p_text, pair.beyond_noise,
            )
            for pair in table.pairs
        ],
        missing=[
            (row.name, reason, len(ids), show.name_ids(ids, MAX_IDS))
            for row, reason, ids in show.missing_scores(table)
        ],
        chart=None if chart is None else _data_url(chart),
    )  # fmt: skip


def _rows(table: ComparisonTable) -> Iterator[PageRow]:
    tops = [_top([row.estimates[n] for row in table.rows]) for n in range(len(table.columns))]
    for row in show.shown_rows(table):
        model = row.model
        yield PageRow(
            rank=show.rank_text(model, table) if model else "",
            open_ranks=show.range_text(model) if model else "",
            apart=bool(model and model.apart), name=row.name, kind=row.kind,
            tags=show.tags(model) if model else [], folder=model.folder if model else "",
            bar=_bar(row.estimates[0], table) if row.kind != show.CHANCE else None,
            cells=_cells(row.estimates, table, tops if model else [None] * len(tops)),
        )  # fmt: skip


def _top(estimates: Sequence[Estimate | None]) -> float | None:
    """Return the highest score of a column; None if all are alike."""
    values = {one.value for one in estimates if one is not None}
    return max(values) if len(values) > 1 else None


def _cells(
    estimates: Sequence[Estimate | None], table: ComparisonTable, tops: Sequence[float | None]
) -> list[PageCell]:
    return [
        PageCell(
            value=show.number(None if one is None else one.value, table.measure),
            interval=show.interval(one, table.measure),
            n=None if one is None or one.n == len(column.questions) else one.n,
            best=one is not None and top is not None and one.value >= top,
        )
        for one, column, top in zip(estimates, table.columns, tops, strict=True)
    ]


def _bar(estimate: Estimate | None, table: ComparisonTable) -> tuple[float, float, float] | None:
    if estimate is None:
        return None
    ends = (estimate.value, estimate.low, estimate.high)
    value, low, high = (
        min(100.0, max(0.0, _scaled(estimate.value if end is None else end, table) or 0.0))
        for end in ends
    )
    return value, low, high


def _scaled(value: float | None, table: ComparisonTable) -> float | None:
    """Return a score as percent of the scale, which begins at 2 for rubrics."""
    if value is None:
        return None
    return 100 * (value - 2) / 8 if table.measure.kind == RUBRIC else 100 * value


def _data_url(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def frame_points(table: ComparisonTable) -> FramePoints:
    """Return model (its name without frames) -> (frames, score over all questions), by frames.
    Models with one number of frames are left out.
    """
    points: dict[str, dict[int, Estimate]] = {}
    for row in table.rows:
        if row.frames is not None and (estimate := row.estimates[0]) is not None:
            name = _FRAMES.sub(" ", row.name).strip()
            points.setdefault(name, {})[row.frames] = estimate
    return {name: sorted(p.items()) for name, p in points.items() if len(p) > 1}


def draw_frames(table: ComparisonTable, points: FramePoints) -> Figure:
    """Draw the score against the number of frames, with 95 % intervals."""
    unit = 1 if table.measure.kind == RUBRIC else 100
    figure, axes = new_axes(7, 4)
    for name, line in points.items():
        frames = [f for f, _ in line]
        axes.plot(frames, [unit * e.value for _, e in line], marker="o", label=name)
        low = [unit * (e.value if e.low is None else e.low) for _, e in line]
        high = [unit * (e.value if e.high is None else e.high) for _, e in line]
        axes.fill_between(frames, low, high, alpha=0.15)
    axes.set_xscale("symlog", base=2, linthresh=1)
    ticks = sorted({f for line in points.values() for f, _ in line})
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xlabel("frames")
    axes.set_ylabel("score" if unit == 1 else "score, %")
    axes.legend(fontsize=8, frameon=False)
    return figure
