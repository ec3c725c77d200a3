"""What a looker that is no model can measure on the pictures that it is shown: words, colours,
light, bars; and where something is said in the lines that it is given.

Nothing here knows what was measured when the questions were written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow
from mustsee.media.colours import bands, bars, clear_shares, unframed, wide_shares
from mustsee.media.lettering import RapidReader, Reader, cut_out
from mustsee.media.onscreen import Box, lines_in, places
from mustsee.offline.moments import likeness
from mustsee.questions.checks import normal, words
from mustsee.records import Line

Image = NDArray[np.uint8]
LEGIBLE = 960  # pixels: smaller pictures are enlarged before they are read
SEARCHED = 512  # pixels: of the pictures that lines are searched for in
SURE = 0.6  # what is read worse than this is no reading
CHANGED = 12.0  # of 255, mean over a square: less is noise, letters have some 60


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A line that was read; `top`: of its upper edge, in shares of the picture's height."""

    text: str
    top: float


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One frame as it was shown: its time in seconds, and its JPEG."""

    time: float
    jpeg: bytes

    @cached_property
    def image(self) -> Image:
        """RGB, 160 pixels wide."""
        return _decoded(self.jpeg)

    @property
    def inside(self) -> Image:
        return unframed(self.image)

    @property
    def light(self) -> float:
        """Mean brightness within bars, 0 to 1."""
        return float(self.inside.mean()) / 255

    @property
    def colours(self) -> dict[str, float]:
        return clear_shares(self.inside)

    @property
    def traces(self) -> dict[str, float]:
        """Share of what might be taken for each colour."""
        return wide_shares(self.inside)

    @property
    def upper(self) -> dict[str, float]:
        return clear_shares(bands(self.inside)[0])

    @property
    def lower(self) -> dict[str, float]:
        return clear_shares(bands(self.inside)[1])

    @property
    def bar_sides(self) -> tuple[bool, bool, bool, bool]:
        """Whether there is a black bar at the top, the bottom, the left, the right."""
        height, width = self.image.shape[:2]
        top, bottom, left, right = bars(self.image)
        return (top > height / 30, bottom > height / 30, left > width / 30, right > width / 30)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines that can be read, from the top down."""
        return tuple(line.text for line in _read(self.jpeg))

    def shows(self, text: str) -> bool:
        """Whether words can be read, in one line or over several."""
        wanted = _letters(text)
        if any(likeness(text, line) >= 0.85 for line in self.lines):
            return True
        return len(wanted) >= 4 and wanted in _letters(" ".join(self.lines))

    def top(self, text: str) -> float | None:
        """How far down a line of these words begins, in shares of the height."""
        near = [line for line in _read(self.jpeg) if likeness(text, line.text) >= 0.85]
        return near[0].top if len(near) == 1 else None


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Everything that was shown: pictures in the order of time, and what is said."""

    pictures: tuple[Picture, ...]
    lines: tuple[Line, ...]

    @property
    def start(self) -> float:
        return self.pictures[0].time

    @property
    def end(self) -> float:
        return self.pictures[-1].time

    @property
    def early(self) -> tuple[Picture, ...]:
        """The pictures of the first seconds."""
        return tuple(p for p in self.pictures if p.time <= self.start + NEAR)

    @property
    def late(self) -> tuple[Picture, ...]:
        return tuple(p for p in self.pictures if p.time >= self.end - NEAR)

    @property
    def halfway(self) -> tuple[Picture, ...]:
        """The pictures nearest to the middle between the first and the last; without both ends."""
        rest = [p for p in self.pictures if p not in self.early and p not in self.late]
        middle = (self.start + self.end) / 2
        nearest = min((abs(p.time - middle) for p in rest), default=0.0)
        return tuple(p for p in rest if abs(p.time - middle) <= nearest + NEAR)

    def read(self, text: str) -> list[float]:
        """The times at which words can be read."""
        return [p.time for p in self.pictures if p.shows(text)]

    def said(self, text: str) -> list[float]:
        """The times of the lines in which words begin that are said in this order."""
        spoken = [(word, line.start) for line in self.lines for word in words(line.text)]
        wanted = list(words(text))
        found = [word for word, _ in spoken]
        size = len(wanted)
        return [spoken[i][1] for i in range(len(found) - size + 1) if found[i : i + size] == wanted]


NEAR = 2.5  # seconds: pictures no further from an end of the film belong to it


def _opened(jpeg: bytes) -> Image:
    import cv2

    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise BadRow(f"a picture of {len(jpeg)} bytes is not a readable JPEG")
    return np.asarray(image, np.uint8)


@lru_cache(maxsize=256)
def _decoded(jpeg: bytes) -> Image:
    import cv2

    image = _opened(jpeg)
    height, width = image.shape[:2]
    size = (160, max(3, round(160 * height / width)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2RGB), np.uint8)


@cache
def _reader() -> Reader | None:
    try:
        return RapidReader()
    except ImportError:  # without mustsee[offline] nothing can be read, and nothing is claimed
        return None


@lru_cache(maxsize=512)
def _read(jpeg: bytes) -> tuple[Reading, ...]:
    """The lines that can be read in a picture, from the top down. Reading is dear: a picture in
    which nothing has changed since one that was read lately says the same.
    """
    import cv2

    reader = _reader()
    if reader is None:
        return ()
    image = _opened(jpeg)
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY).astype(np.float32)
    for earlier, readings in _lately:
        if earlier.shape == grey.shape and _same(earlier, grey):
            return readings
    readings = tuple(_readings(reader, _enlarged(image)))
    _lately.appendleft((np.asarray(grey, np.float32), readings))
    return readings


def _enlarged(image: Image) -> Image:
    import cv2

    height, width = image.shape[:2]
    larger = LEGIBLE / max(height, width)
    if larger <= 1:
        return image
    size = (round(width * larger), round(height * larger))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), np.uint8)


def _readings(reader: Reader, image: Image) -> list[Reading]:
    import cv2

    where, plain = places(np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8))
    pieces: list[tuple[Box, str]] = []
    for corners in lines_in(reader, image, where, plain, SEARCHED):
        text, score = reader.text(cut_out(image, corners))
        if score >= SURE:
            (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
            pieces.append(((float(left), float(top), float(right), float(bottom)), text))
    readings = [Reading(text=text, top=box[1] / len(image)) for box, text in _whole(pieces)]
    return sorted(readings, key=lambda reading: reading.top)


def _whole(pieces: Sequence[tuple[Box, str]]) -> list[tuple[Box, str]]:
    """A line that was found in pieces, a letter's width apart, as one."""
    whole: list[tuple[Box, str]] = []
    for box, text in sorted(pieces):
        for place, (begun, start) in enumerate(whole):
            if _goes_on(begun, box):
                joined = (begun[0], min(begun[1], box[1]), box[2], max(begun[3], box[3]))
                whole[place] = (joined, f"{start} {text}")
                break
        else:
            whole.append((box, text))
    return whole


def _goes_on(one: Box, other: Box) -> bool:
    """Whether a box continues the line of one to its left."""
    heights = one[3] - one[1], other[3] - other[1]
    level = min(one[3], other[3]) - max(one[1], other[1]) > 0.7 * max(heights)
    return level and abs(other[0] - one[2]) < 0.4 * min(heights)


_lately: deque[tuple[NDArray[np.float32], tuple[Reading, ...]]] = deque(maxlen=48)


def _same(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Whether two grey pictures differ nowhere by more than noise: in no square of 8 pixels, the
    size of a letter, by more than a fraction of a letter's contrast.
    """
    import cv2

    height, width = one.shape
    squares = (max(1, width // 8), max(1, height // 8))
    apart = cv2.resize(np.abs(one - other), squares, interpolation=cv2.INTER_AREA)
    return float(np.max(apart)) < CHANGED


def _letters(text: str) -> str:
    return normal(text).replace(" ", "")


def pictures(times: Sequence[float], jpegs: Sequence[bytes]) -> tuple[Picture, ...]:
    """The frames in the order of time."""
    shown = [Picture(time=t, jpeg=j) for t, j in zip(times, jpegs, strict=True)]
    return tuple(sorted(shown, key=lambda p: p.time))
