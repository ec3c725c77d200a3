"""What a looker that is no model can measure on the pictures that it is shown: words, colours,
light, bars; and where something is said in the lines that it is given.

Nothing here knows what was measured when the questions were written.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow
from mustsee.media.colours import bands, bars, clear_shares, unframed, wide_shares
from mustsee.media.lettering import Read, Reading, reader
from mustsee.offline.moments import likeness
from mustsee.questions.checks import normal, words
from mustsee.records import Line

Image = NDArray[np.uint8]
LEGIBLE = 736  # pixels: smaller pictures are enlarged before they are read
KNOWN = 512  # pictures whose lines are kept
CHANGED = 12.0  # of 255, mean over a square: less is noise, letters have some 60


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
        return [p.time for p in reading(self.pictures) if p.shows(text)]

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


class _Readers(threading.local):
    """A reader for each thread: one is not made for several."""

    @cached_property
    def read(self) -> Read | None:
        try:
            return reader(longest=LEGIBLE)
        except ImportError:  # without mustsee[offline] nothing can be read, and nothing is claimed
            return None


@cache
def _threads() -> ThreadPoolExecutor:
    """Reading lets other threads run: a film is read on all cores that are idle."""
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="reading")


def reading(some: Sequence[Picture]) -> Sequence[Picture]:
    """The pictures, all of which are being read from now on."""
    _readings([picture.jpeg for picture in some])
    return some


def _read(jpeg: bytes) -> tuple[Reading, ...]:
    """The lines that can be read in a picture, from the top down."""
    return _readings([jpeg])[0].result()


def _readings(jpegs: Sequence[bytes]) -> list[Future[tuple[Reading, ...]]]:
    """What pictures say. Reading is dear: a picture in which nothing has changed since one that was
    read lately says the same. Which are read is decided here, in their order; when is not.
    """
    import cv2

    for jpeg in jpegs:
        if jpeg in _known:
            _known.move_to_end(jpeg)
            continue
        image = _opened(jpeg)
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.float32)
        earlier = (lines for one, lines in _lately if one.shape == grey.shape and _same(one, grey))
        lines = next(earlier, None)
        if lines is None:
            lines = _threads().submit(_lines_in, image)
            _lately.appendleft((grey, lines))
        _known[jpeg] = lines
    found = [_known[jpeg] for jpeg in jpegs]
    while len(_known) > KNOWN:
        _known.popitem(last=False)
    return found


def _lines_in(image: Image) -> tuple[Reading, ...]:
    import cv2

    read = _readers.read
    if read is None:
        return ()
    height, width = image.shape[:2]
    larger = LEGIBLE / max(height, width)
    if larger > 1:
        size = (round(width * larger), round(height * larger))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), np.uint8)
    return tuple(line for line in read(image) if line.score >= 0.6)


_readers = _Readers()
_known: OrderedDict[bytes, Future[tuple[Reading, ...]]] = OrderedDict()
_lately: deque[tuple[NDArray[np.float32], Future[tuple[Reading, ...]]]] = deque(maxlen=48)


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
