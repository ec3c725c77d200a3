"""Draws charts with matplotlib. A chart shows only numbers that are in a file already, so that a
chart that fails costs one line and no results.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 120


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of `width` x `height` inches, which needs no screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure and its only axes, without the top and the right spine."""
    figure = new_figure(width, height)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_chart(path: Path, draw: Callable[[], Figure]) -> str | None:
    """Draw a chart and save it at `path`. Returns None, or one line with the reason of any failure:
    the caller has already written all numbers that the chart would show.
    """
    try:
        figure = draw()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=DPI)
    except Exception as error:  # a chart must not cost the results
        with suppress(OSError):
            path.unlink()
        if isinstance(error, ImportError):
            return f"no chart {path.name}: {error}; `pip install matplotlib` installs it"
        return f"no chart {path.name}: {type(error).__name__}: {error}; the figures are complete"
    return None
