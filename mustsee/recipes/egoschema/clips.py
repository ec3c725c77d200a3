"""Clips of long videos that are narrated densely enough to ask about (EgoSchema, 3.1.1 and 7).

A window is viable when it lies within the video, begins on the grid and holds at least `least`
narrations. The rule of choice: of all sets of viable windows that do not overlap, one with the most
windows; among those the one with the most narrations; among those the earliest.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mustsee.evaluate.drawing import new_figure
from mustsee.records import UNSEEN, Line, Span, Video
from mustsee.store import digest

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class ClipGrid:
    """How clips are cut: their length and the grid of their starts in seconds, and the fewest
    narrations that one must hold.
    """

    seconds: float = 180.0
    grid: float = 30.0
    least: int = 30

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.grid <= 0 or self.least < 0:
            raise ValueError(f"clips need a length and a grid above 0 s, and least >= 0: {self!r}")


def per_minute(density: float, seconds: float) -> int:
    """The fewest narrations of a clip of `seconds` at `density` narrations a minute."""
    return math.ceil(density * seconds / 60 - 1e-9)


def viable(times: Sequence[float], duration: float, cut: ClipGrid) -> list[tuple[int, int]]:
    """Viable windows as (number on the grid, narrations within), earliest first.

    `times`: starts of the narrations, ascending. A narration lies in [start, start + seconds).
    """
    found: list[tuple[int, int]] = []
    last = math.floor((duration - cut.seconds) / cut.grid + 1e-9)
    for step in range(last + 1):
        start = step * cut.grid
        held = bisect_left(times, start + cut.seconds) - bisect_left(times, start)
        if held >= cut.least:
            found.append((step, held))
    return found


def choose(times: Sequence[float], duration: float, cut: ClipGrid) -> list[Span]:
    """The chosen windows, earliest first, by the rule of this module.

    Weighted interval scheduling from the back: `best[i]` is the best (windows, narrations) with the
    windows from number i on. Linear in the length of the video but for a bisection.
    """
    windows = viable(times, duration, cut)
    steps = [step for step, _ in windows]
    reach = math.ceil(cut.seconds / cut.grid - 1e-9)
    best = [(0, 0)] * (len(windows) + 1)
    taken = [len(windows)] * len(windows)
    for i in range(len(windows) - 1, -1, -1):
        after = bisect_left(steps, steps[i] + reach)
        with_it = (best[after][0] + 1, best[after][1] + windows[i][1])
        if with_it >= best[i + 1]:
            best[i], taken[i] = with_it, after
        else:
            best[i], taken[i] = best[i + 1], -1
    chosen: list[Span] = []
    i = 0
    while i < len(windows):
        if taken[i] < 0:
            i += 1
            continue
        start = steps[i] * cut.grid
        chosen.append(Span(start, start + cut.seconds))
        i = taken[i]
    return chosen


def length_of(lines: Sequence[Line], duration: float | None) -> float:
    """The video's length; where it is not known, what the narrations prove: up to the last one."""
    return duration if duration is not None else max((line.end for line in lines), default=0.0)


def clip_rows(video: Video, lines: Sequence[Line], cut: ClipGrid) -> list[Video]:
    """One row for each chosen clip of a video, with its narrations as `lines`, in the video's time.

    A clip's id is the hash of its video's id and its window; `source` names the video.
    """
    lines = sorted(lines, key=lambda line: (line.start, line.end))
    times = [line.start for line in lines]
    rows: list[Video] = []
    for window in choose(times, length_of(lines, video.duration), cut):
        first, after = bisect_left(times, window.start), bisect_left(times, window.end)
        rows.append(
            replace(
                video,
                video_id=digest([video.video_id, window.start, window.end])[:32],
                source=video.video_id,
                start=window.start,
                end=window.end,
                duration=window.seconds,
                lines=tuple(
                    replace(line, end=min(line.end, window.end)) for line in lines[first:after]
                ),
            )
        )
    return rows


def clips(
    narrations: Mapping[str, Sequence[Line]],
    durations: Mapping[str, float],
    cuts: Sequence[ClipGrid],
    uris: Mapping[str, str] | None = None,
) -> list[Video]:
    """The clips of every narrated video, for each length in turn (several: a multi-scale set, whose
    lengths overlap each other).
    """
    uris = uris or {}
    rows: list[Video] = []
    for cut in cuts:
        for name, lines in narrations.items():
            uri = uris.get(name, f"{UNSEEN}{name}")
            video = Video(video_id=name, uri=uri, duration=durations.get(name))
            rows.extend(clip_rows(video, lines, cut))
    return rows


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """How many clips there are at each length (seconds, rows) and narration density (per minute,
    columns); EgoSchema, Fig. 8.
    """

    lengths: tuple[float, ...]
    densities: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


def heat_map(
    narrations: Mapping[str, Sequence[Line]],
    durations: Mapping[str, float],
    *,
    lengths: Sequence[float] = (60, 120, 180, 240, 300, 420, 600),
    densities: Sequence[float] = (1, 2, 5, 10, 15, 20, 25, 30),
    grid: float = 30.0,
) -> HeatMap:
    """The number of clips that `choose` finds at each length and density.

    All clips of one count have one length, so the earliest-ending viable window is always among the
    most: counting needs no choice.
    """
    counts: list[tuple[int, ...]] = []
    timed = [
        (sorted(line.start for line in lines), length_of(lines, durations.get(name)))
        for name, lines in narrations.items()
    ]
    for length in lengths:
        held = [
            viable(times, total, ClipGrid(seconds=length, grid=grid, least=0))
            for times, total in timed
        ]
        reach = math.ceil(length / grid - 1e-9)
        counts.append(
            tuple(
                sum(_most(windows, per_minute(density, length), reach) for windows in held)
                for density in densities
            )
        )
    return HeatMap(lengths=tuple(lengths), densities=tuple(densities), counts=tuple(counts))


def _most(windows: Sequence[tuple[int, int]], least: int, reach: int) -> int:
    """The largest number of windows that do not overlap, by taking the earliest end each time."""
    count, free = 0, 0
    for step, held in windows:
        if step >= free and held >= least:
            count, free = count + 1, step + reach
    return count


def draw(heat: HeatMap) -> Figure:
    """The heat map as a picture."""
    figure = new_figure(1.6 + 0.75 * len(heat.densities), 1.4 + 0.5 * len(heat.lengths))
    axes = figure.subplots()
    top = max((n for row in heat.counts for n in row), default=1) or 1
    shades = [[math.log1p(n) for n in row] for row in heat.counts]
    axes.imshow(shades, cmap="viridis", aspect="auto", origin="lower")
    for y, row in enumerate(heat.counts):
        for x, n in enumerate(row):
            colour = "white" if math.log1p(n) < 0.6 * math.log1p(top) else "black"
            axes.text(x, y, f"{n:,}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(heat.densities)), [f"{d:g}" for d in heat.densities])
    axes.set_yticks(range(len(heat.lengths)), [f"{s:g}" for s in heat.lengths])
    axes.set_xlabel("narrations a minute, at least")
    axes.set_ylabel("clip length, seconds")
    axes.set_title("Viable clips")
    return figure
