"""Measurements of the offline verifier on the frames that it is shown: texts, colours, light and
bars; and the times of words in the transcript lines. It uses no measurements of the questions'
writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mustsee.media.colours import bars, clear_shares, crop_bars, wide_shares
from mustsee.offline.reading import Readings, decode_jpeg, read
from mustsee.offline.wording import likeness
from mustsee.questions.checks import normal, words
from mustsee.records import Line, Span

Image = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class ShownFrame:
    """A frame that the verifier is shown: its time in seconds, and its JPEG."""

    time: float
    jpeg: bytes

    @cached_property
    def image(self) -> Image:
        """RGB pixels, 160 wide."""
        return _decoded(self.jpeg)

    @property
    def inside(self) -> Image:
        return crop_bars(self.image)

    @property
    def light(self) -> float:
        """Mean brightness within bars, 0 to 1."""
        return float(self.inside.mean()) / 255

    @cached_property
    def area_shares(self) -> Mapping[str, tuple[dict[str, float], dict[str, float]]]:
        """For each of `AREAS` the shares that are clearly of each colour, and those that may be."""
        areas = {name: area(self.inside) for name, area in AREAS.items()}
        return {name: (clear_shares(a), wide_shares(a)) for name, a in areas.items()}

    @property
    def bar_sides(self) -> tuple[bool, bool, bool, bool]:
        """Whether there is a black bar at the top, the bottom, the left and the right."""
        height, width = self.image.shape[:2]
        top, bottom, left, right = bars(self.image)
        return (top > height / 30, bottom > height / 30, left > width / 30, right > width / 30)

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
AREAS: Mapping[str, Callable[[Image], Image]] = {
    "": lambda image: image,
    "upper third": lambda image: image[: max(1, len(image) // 3)],
    "lower third": lambda image: image[-max(1, len(image) // 3) :],
    "left half": lambda image: image[:, : max(1, image.shape[1] // 2)],
    "right half": lambda image: image[:, -max(1, image.shape[1] // 2) :],
}


@lru_cache(maxsize=256)
def _decoded(jpeg: bytes) -> Image:
    import cv2

    image = decode_jpeg(jpeg)
    height, width = image.shape[:2]
    size = (160, max(3, round(160 * height / width)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2RGB), np.uint8)


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
