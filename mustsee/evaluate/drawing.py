"""Draws pictures with matplotlib. A picture shows figures that are in a file already, so that a
picture that fails costs a line and no results.
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
    """Return an empty figure of `width` x `height` inches, drawn without a screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure and its only axes, without the upper and the right line."""
    figure = new_figure(width, height)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_picture(path: Path, draw: Callable[[], Figure]) -> str | None:
    """Draw a picture and save it at `path`. Returns None, or one line that says why there is no
    picture, whatever the reason is: all that it would show has been written by the caller before.
    """
    try:
        figure = draw()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=DPI)
    except Exception as error:  # results must outlast a picture
        with suppress(OSError):
            path.unlink()
        if isinstance(error, ImportError):
            return f"no picture {path.name}: {error}; `pip install -e .` in the project installs it"
        return f"no picture {path.name}: {type(error).__name__}: {error}; the figures are complete"
    return None
