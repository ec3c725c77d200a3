"""The curve of scores over the number of frames that a model was shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mustsee.evaluate.compare import RUBRIC, ComparisonTable
from mustsee.evaluate.drawing import new_axes
from mustsee.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The part of a model's name that says its frames.
_FRAMES = re.compile(r" (?:\d+ frames(?: \+ )?|blind$)")

FramePoints = Mapping[str, Sequence[tuple[int, Estimate]]]


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
