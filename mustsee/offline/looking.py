"""Measurements of the offline verifier on the frames that it is shown: texts, colours, light and
bars; and the times of words in the transcript lines. It uses no measurements of the questions'
writer. Each different frame is read once, and several frames are read at the same time.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mustsee.calls.llm import Request
from mustsee.errors import BadRow, NotInstalled
from mustsee.media.colours import bars, clear, clear_shares_of, wide
from mustsee.media.frames import decode, shrunk
from mustsee.media.ocr import Image, RapidReader, Reader, crop_line
from mustsee.media.pixels import small_rgb
from mustsee.media.text_search import (
    SEARCH_PIXELS,
    Box,
    boxes_of,
    letter_density,
    letter_mask,
    lines_in,
)
from mustsee.questions.checks import normal, words
from mustsee.records import Line, Span

MIN_LEGIBLE_PIXELS = 960  # pixels of the longer side; smaller frames are enlarged first
SEARCHED_PIXELS = 512  # pixels of the frame in which lines are searched
MIN_READING = 0.6  # score of a reading that is used, at least
MAX_CACHED_FRAMES = 512  # frames whose readings are kept
MIN_CHANGE = 12.0  # mean difference in a square, of 255; noise is less, letters have some 60


@dataclass(frozen=True, kw_only=True)
class ReadText:
    """A line of text; `top`: its upper edge as a share of the frame's height. `ratio`: of its width
    to its height where its letters could not be read, so that `text` may be anything; else null.
    """

    text: str
    top: float
    ratio: float | None = None


Readings = tuple[ReadText, ...]  # lines of a frame, from the top down


@dataclass(frozen=True)
class GreyFrame:
    """A grey frame, and the mean of each square of 8 pixels, the size of a letter."""

    pixels: NDArray[np.float32]
    squares: NDArray[np.float32]

    @classmethod
    def of(cls, pixels: NDArray[np.float32]) -> GreyFrame:
        return cls(pixels, _square_means(pixels))

    def equals(self, other: GreyFrame) -> bool:
        """Whether two frames differ by noise alone: in no square by more than a fraction of a
        letter's contrast.
        """
        if self.pixels.shape != other.pixels.shape:
            return False
        # No square differs by less than its mean does, and the means are at hand.
        if np.max(np.abs(self.squares - other.squares)) >= MIN_CHANGE:
            return False
        return float(np.max(_square_means(np.abs(self.pixels - other.pixels)))) < MIN_CHANGE


def _square_means(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    import cv2

    height, width = pixels.shape
    size = (max(1, width // 8), max(1, height // 8))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.float32)


def read(jpegs: Sequence[bytes]) -> list[Readings]:
    """Return the lines of text of each frame. Reading is expensive, so a frame that equals a recent
    one has its lines. The frames to read are decided in order; they are read in any order.
    """
    import cv2

    for jpeg in jpegs:
        if jpeg in _cached:
            _cached.move_to_end(jpeg)
            continue
        image = _decode_frame(jpeg)
        grey = GreyFrame.of(np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.float32))
        earlier = (reading for other, reading in _recent if grey.equals(other))
        reading = next(earlier, None)
        if reading is None:
            reading = threads().submit(_readings, image)
            _recent.appendleft((grey, reading))
        _cached[jpeg] = reading
    try:
        readings = [_cached[jpeg].result() for jpeg in jpegs]
    except BaseException:  # The next call retries a failed reading, for example without memory.
        _cached.clear()
        _recent.clear()
        raise
    while len(_cached) > MAX_CACHED_FRAMES:
        _cached.popitem(last=False)
    return readings


def _decode_frame(jpeg: bytes) -> Image:
    """Return BGR pixels. Raises BadRow for an unreadable JPEG."""
    image = decode(jpeg)
    if image is None:
        raise BadRow(f"a frame of {len(jpeg)} bytes is not a readable JPEG")
    return image


class _Readers(threading.local):
    """A reader for each thread, because a reader is not safe for several."""

    @cached_property
    def reader(self) -> Reader | None:
        try:
            return RapidReader()
        except NotInstalled:  # Without mustsee[offline] frames have no readings.
            return None


@cache
def threads() -> ThreadPoolExecutor:
    """Return threads for all cores; networks release the interpreter's lock."""
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="looking")


_readers = _Readers()
_cached: OrderedDict[bytes, Future[Readings]] = OrderedDict()
_recent: deque[tuple[GreyFrame, Future[Readings]]] = deque(maxlen=48)


def _readings(image: Image) -> Readings:
    import cv2

    reader = _readers.reader
    if reader is None:
        return ()
    image = _enlarged(image)
    luma = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
    where = boxes_of(letter_mask(letter_density(shrunk(luma, SEARCH_PIXELS))))
    parts: list[tuple[Box, str]] = []
    unread: list[ReadText] = []
    for corners in lines_in(reader, image, where, SEARCHED_PIXELS):
        text, score = reader.text(crop_line(image, corners))
        (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
        if score >= MIN_READING:
            parts.append(((float(left), float(top), float(right), float(bottom)), text))
        else:
            ratio = float((right - left) / max(1.0, bottom - top))
            unread.append(ReadText(text=text, top=float(top) / len(image), ratio=ratio))
    lines = [ReadText(text=text, top=box[1] / len(image)) for box, text in _join_parts(parts)]
    return tuple(sorted([*lines, *unread], key=lambda reading: reading.top))


def _enlarged(image: Image) -> Image:
    import cv2

    height, width = image.shape[:2]
    larger = MIN_LEGIBLE_PIXELS / max(height, width)
    if larger <= 1:
        return image
    size = (round(width * larger), round(height * larger))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), np.uint8)


def _join_parts(parts: Sequence[tuple[Box, str]]) -> list[tuple[Box, str]]:
    """Join parts of a line with gaps of less than a letter's width."""
    lines: list[tuple[Box, str]] = []
    for box, text in sorted(parts):
        for index, (line_box, line_text) in enumerate(lines):
            if _continues(line_box, box):
                joined = (line_box[0], min(line_box[1], box[1]), box[2], max(line_box[3], box[3]))
                lines[index] = (joined, f"{line_text} {text}")
                break
        else:
            lines.append((box, text))
    return lines


def _continues(one: Box, other: Box) -> bool:
    """Whether `other` continues the line of `one` to the right."""
    heights = one[3] - one[1], other[3] - other[1]
    level = min(one[3], other[3]) - max(one[1], other[1]) > 0.7 * max(heights)
    return level and abs(other[0] - one[2]) < 0.4 * min(heights)


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, in small letters."""
    return "".join(normal(text).split())


def likeness(one: str, other: str) -> float:
    """Return the share of letters that two readings have in common, in order (0 to 1)."""
    return SequenceMatcher(None, letters_of(one), letters_of(other), autojunk=False).ratio()


def sentence(text: str) -> str:
    """Return `text` with a capital at the start, and with "I" for a single "i"."""
    text = re.sub(r"\bi\b(?=$|[ '’])", "I", text)
    return text[:1].upper() + text[1:]


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
        letters = letters_of(text)
        if any(likeness(text, line) >= 0.85 for line in self.lines):
            return True
        return len(letters) >= 4 and letters in letters_of(" ".join(self.lines))


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
    rgb = small_rgb(_decode_frame(jpeg))
    height, width = rgb.shape[:2]
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


def sort_frames(times: Sequence[float], jpegs: Sequence[bytes]) -> tuple[ShownFrame, ...]:
    """Return the frames in the order of time."""
    frames = [ShownFrame(time=t, jpeg=j) for t, j in zip(times, jpegs, strict=True)]
    return tuple(sorted(frames, key=lambda p: p.time))


def images_of(request: Request) -> list[bytes]:
    """Return the JPEGs of all messages of a request."""
    return [jpeg for message in request.messages for jpeg in message.images]
