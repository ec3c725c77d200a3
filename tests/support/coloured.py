"""A video whose colour tells the second, so that its pixels tell what was cut out of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mustsee.records import Video
from tests.support.sample_videos import FPS, write

SECONDS = 12
PALETTE = tuple(
    (r, g, b) for r in (40, 130, 220) for g in (60, 200) for b in (60, 200)
)  # one for each second


def coloured(path: Path, *, tone: bool = True, **more: object) -> Path:
    """Twelve seconds; a keyframe every two of them."""
    images = (
        np.full((120, 160, 3), PALETTE[second], np.uint8)
        for second in range(SECONDS)
        for _ in range(FPS)
    )
    options = {"preset": "veryfast", "crf": "18", "g": "48", "keyint_min": "48", "bf": "2",
               "sc_threshold": "0"}  # fmt: skip
    given = {"options": options, "tone": float(SECONDS) if tone else None, **more}
    return write(path, images, **given)  # type: ignore[arg-type]


def row(path: Path, **more: object) -> Video:
    return Video(video_id="v", uri=str(path), duration=float(SECONDS), **more)  # type: ignore[arg-type]


def seconds_in(colours: Iterable[tuple[float, float, float]]) -> list[int]:
    """Which seconds of the video the mean colours are of, in order, each once a stretch."""
    found: list[int] = []
    for colour in colours:
        second = int(np.abs(np.array(PALETTE) - colour).sum(axis=1).argmin())
        if not found or found[-1] != second:
            found.append(second)
    return found
