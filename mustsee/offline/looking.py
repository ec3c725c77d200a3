"""Measurements of the offline verifier on the frames that it is shown: texts, colours, light and
bars; and the times of words in the transcript lines. It uses no measurements of the questions'
writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mustsee.media.colours import bars, clear, clear_shares_of, wide
from mustsee.offline.reading import MAX_CACHED_FRAMES, Readings, decode_jpeg, read
from mustsee.offline.wording import likeness
from mustsee.questions.checks import normal, words
from mustsee.records import Line, Span


@dataclass(frozen=True, kw_only=True)
class PixelMeasures:
    """`light`: mean brightness of a frame within its bars, 0 to 1. `half_lights`: that of each of
    `HALVES`. `bar_sides`: whether there is a black bar at the top, the bottom, the left and the
    right. `area_shares`: for each of `AREAS` the shares that are clearly of each colour, and those
    that may be.
    """

    light: float
    half_lights: Mapping[str, float]
    bar_sides: tuple[bool, ...]
    area_shares: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]]


@dataclass(frozen=True, kw_only=True)
class ShownFrame:
    """A frame that the verifier is shown: its time in seconds, and its JPEG."""

    time: float
    jpeg: bytes

    @property
    def pixels(self) -> PixelMeasures:
        return measure_pixels(self.jpeg)

    @property
    def _readings(self) -> Readings:
        return read([self.jpeg])[0]

    @property
    def lines(self) -> tuple[str, ...]:
        """The on-screen texts, from the top down."""
        return tuple(line.text for line in self._readings if line.ratio is None)

    def may_hide(self, text: str) -> bool:
        """Whether a line of about a text's length, by its pixels and its letters, could not be
        read.
        """
        low, high = (len(text) * width for width in LETTER_WIDTHS)
        return any(
            low <= line.ratio <= high and 2 * len(line.text) >= len(text)
            for line in self._readings
            if line.ratio is not None
        )

    def shows(self, text: str) -> bool:
        """Whether a text is visible, in one line or over several."""
        letters = _letters(text)
        if any(likeness(text, line) >= 0.85 for line in self.lines):
            return True
        return len(letters) >= 4 and letters in _letters(" ".join(self.lines))


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that the verifier is shown: frames in the order of time, and transcript lines.

    `extent`: the span of the whole video; null if it is unknown.
    """

    frames: tuple[ShownFrame, ...]
    lines: tuple[Line, ...]
    extent: Span | None = None

    @property
    def start(self) -> float:
        return self.frames[0].time

    @property
    def end(self) -> float:
        return self.frames[-1].time

    def covers(self, start: float, end: float) -> bool:
        """Whether there are frames from one time to another, and no wide gap between them."""
        inside = [p.time for p in self.frames if start <= p.time <= end]
        return all(b - a <= MAX_GAP_S for a, b in pairwise((start, *inside, end)))

    def read(self, text: str) -> list[float]:
        """Return the times of the frames in which a text is visible."""
        return [p.time for p in read_all(self.frames) if p.shows(text)]

    def spans_spoken(self, text: str) -> list[Span]:
        """Return the spans of the lines over which a sequence of words is said."""
        spoken = [(word, line) for line in self.lines for word in words(line.text)]
        sequence = list(words(text))
        spoken_words = [word for word, _ in spoken]
        size = len(sequence)
        return [
            Span(spoken[i][1].start, spoken[i + size - 1][1].end)
            for i in range(len(spoken_words) - size + 1)
            if spoken_words[i : i + size] == sequence
        ]


LETTER_WIDTHS = (0.3, 1.2)  # width of a letter, as a share of the height of its line
MAX_GAP_S = 4.0  # seconds between frames in which nothing that is asked about is missed
# Areas of a frame of a height and a width.
AREAS: Mapping[str, Callable[[int, int], tuple[slice, slice]]] = {
    "": lambda height, width: (slice(height), slice(width)),
    "upper third": lambda height, width: (slice(max(1, height // 3)), slice(width)),
    "lower third": lambda height, width: (slice(-max(1, height // 3), None), slice(width)),
    "left half": lambda height, width: (slice(height), slice(max(1, width // 2))),
    "right half": lambda height, width: (slice(height), slice(-max(1, width // 2), None)),
}
HALVES: Mapping[str, Callable[[int, int], tuple[slice, slice]]] = {
    "upper half": lambda height, width: (slice(max(1, height // 2)), slice(width)),
    "lower half": lambda height, width: (slice(-max(1, height // 2), None), slice(width)),
    "left half": AREAS["left half"],
    "right half": AREAS["right half"],
}


@lru_cache(maxsize=MAX_CACHED_FRAMES)  # A video's frames are shown many times.
def measure_pixels(jpeg: bytes) -> PixelMeasures:
    """Measure a frame, 160 pixels wide."""
    import cv2

    image = decode_jpeg(jpeg)
    height, width = image.shape[:2]
    height, width = max(3, round(160 * height / width)), 160
    small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    rgb = np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2RGB), np.uint8)
    top, bottom, left, right = bars(rgb)
    inside = rgb[top : height - bottom, left : width - right]
    names, masks = clear(inside), wide(inside)
    areas = {name: area(*names.shape) for name, area in AREAS.items()}
    return PixelMeasures(
        light=float(inside.mean()) / 255,
        half_lights={
            half: float(inside[area(*names.shape)].mean()) / 255 for half, area in HALVES.items()
        },
        bar_sides=(
            top > height / 30, bottom > height / 30, left > width / 30, right > width / 30,
        ),
        area_shares={
            name: (
                clear_shares_of(names[area]),
                {colour: float(mask[area].mean()) for colour, mask in masks.items()},
            )
            for name, area in areas.items()
        },
    )  # fmt: skip


def read_all(frames: Sequence[ShownFrame]) -> Sequence[ShownFrame]:
    """Read the on-screen texts of all frames at the same time, and return the frames."""
    read([frame.jpeg for frame in frames])
    return frames


def _letters(text: str) -> str:
    return normal(text).replace(" ", "")


def sort_frames(times: Sequence[float], jpegs: Sequence[bytes]) -> tuple[ShownFrame, ...]:
    """Return the frames in the order of time."""
    frames = [ShownFrame(time=t, jpeg=j) for t, j in zip(times, jpegs, strict=True)]
    return tuple(sorted(frames, key=lambda p: p.time))
