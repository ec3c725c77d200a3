"""A video with another colour each second, so that pixels show which seconds a clip holds."""

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
    """Write twelve seconds with a keyframe every two seconds."""
    images = (
        np.full((120, 160, 3), PALETTE[second], np.uint8)
        for second in range(SECONDS)
        for _ in range(FPS)
    )
    options = {"preset": "veryfast", "crf": "18", "g": "48", "keyint_min": "48", "bf": "2",
               "sc_threshold": "0"}  # fmt: skip
    settings = {"options": options, "tone": float(SECONDS) if tone else None, **more}
    return write(path, images, **settings)  # type: ignore[arg-type]


def row(path: Path, **more: object) -> Video:
    return Video(video_id="v", uri=str(path), duration=float(SECONDS), **more)  # type: ignore[arg-type]


def seconds_in(colours: Iterable[tuple[float, float, float]]) -> list[int]:
    """Return the seconds of the video that mean colours belong to, without repetitions in a row."""
    seconds: list[int] = []
    for colour in colours:
        second = int(np.abs(np.array(PALETTE) - colour).sum(axis=1).argmin())
        if not seconds or seconds[-1] != second:
            seconds.append(second)
    return seconds
