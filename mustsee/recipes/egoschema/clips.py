"""Clips of long videos with dense narrations (EgoSchema, 3.1.1 and 7).

A window is viable if it lies within the video, begins on the grid and has at least `least`
narrations. Of all sets of viable windows without overlap, those with the most windows are best;
among these those with the most narrations; among these the earliest one is chosen.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mustsee.evaluate.drawing import new_figure
from mustsee.files.store import digest
from mustsee.records import UNSEEN, Line, Span, Video

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class ClipGrid:
    """`seconds`: length of a clip; `grid`: seconds between possible starts; `least`: narrations
    that a clip must have.
    """

    seconds: float = 180.0
    grid: float = 30.0
    least: int = 30

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.grid <= 0 or self.least < 0:
            raise ValueError(f"clips need a length and a grid above 0 s, and least >= 0: {self!r}")


def per_minute(density: float, seconds: float) -> int:
    """Return the narrations of a clip of `seconds` at `density` narrations a minute, rounded up."""
    return math.ceil(density * seconds / 60 - 1e-9)


def viable_windows(times: Sequence[float], duration: float, cut: ClipGrid) -> list[tuple[int, int]]:
    """Return viable windows as (number on the grid, narrations within), earliest first.

    `times`: starts of the narrations, ascending. A window is [start, start + seconds).
    """
    windows: list[tuple[int, int]] = []
    last = math.floor((duration - cut.seconds) / cut.grid + 1e-9)
    for step in range(last + 1):
        start = step * cut.grid
        count = bisect_left(times, start + cut.seconds) - bisect_left(times, start)
        if count >= cut.least:
            windows.append((step, count))
    return windows


def choose(times: Sequence[float], duration: float, cut: ClipGrid) -> list[Span]:
    """Return the best set of windows by the rule of this module, earliest first.

    This is weighted interval scheduling from the back: `best[i]` is the best (windows, narrations)
    of the windows from number i on. Time is linear in the video's length, except for a bisection.
    """
    windows = viable_windows(times, duration, cut)
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
    """Return the video's length in seconds; if unknown, the end of the last narration."""
    return duration if duration is not None else max((line.end for line in lines), default=0.0)


def clip_rows(video: Video, lines: Sequence[Line], cut: ClipGrid) -> list[Video]:
    """Return a row for each chosen clip of a video, with its narrations as `lines`, in the video's
    time. A clip's id is the hash of its video's id and its window; `source` names the video.
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
    """Return the clips of all narrated videos for each length in turn. Clips of different lengths
    (a multi-scale set) overlap.
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
    """Number of clips by length (seconds, rows) and narration density (per minute, columns), as in
    EgoSchema, Fig. 8.
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
    """Count the clips that `choose` returns at each length and density. All clips of a count have
    the same length, so taking the earliest end each time gives the largest number.
    """
    counts: list[tuple[int, ...]] = []
    timed = [
        (sorted(line.start for line in lines), length_of(lines, durations.get(name)))
        for name, lines in narrations.items()
    ]
    for length in lengths:
        windows_of_videos = [
            viable_windows(times, seconds, ClipGrid(seconds=length, grid=grid, least=0))
            for times, seconds in timed
        ]
        reach = math.ceil(length / grid - 1e-9)
        counts.append(
            tuple(
                sum(
                    _most(windows, per_minute(density, length), reach)
                    for windows in windows_of_videos
                )
                for density in densities
            )
        )
    return HeatMap(lengths=tuple(lengths), densities=tuple(densities), counts=tuple(counts))


def _most(windows: Sequence[tuple[int, int]], least: int, reach: int) -> int:
    """Return the largest number of windows without overlap."""
    count, next_free = 0, 0
    for step, narrations in windows:
        if step >= next_free and narrations >= least:
            count, next_free = count + 1, step + reach
    return count


def draw(heat: HeatMap) -> Figure:
    """Draw the heat map."""
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
