"""On-screen texts of the frames that the offline verifier is shown. Each different frame is read
once, and several frames are read at the same time.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow, NotInstalled
from mustsee.media.frames import shrunk
from mustsee.media.ocr import Image, RapidReader, Reader, crop_line
from mustsee.media.text_search import (
    SEARCH_PIXELS,
    Box,
    boxes_of,
    letter_density,
    letter_mask,
    lines_in,
)

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
        image = decode_jpeg(jpeg)
        grey = GreyFrame.of(np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.float32))
        earlier = (reading for other, reading in _recent if grey.equals(other))
        reading = next(earlier, None)
        if reading is None:
            reading = _threads().submit(_readings, image)
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


def decode_jpeg(jpeg: bytes) -> Image:
    """Return BGR pixels. Raises BadRow for an unreadable JPEG."""
    import cv2

    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise BadRow(f"a frame of {len(jpeg)} bytes is not a readable JPEG")
    return np.asarray(image, np.uint8)


class _Readers(threading.local):
    """A reader for each thread, because a reader is not safe for several."""

    @cached_property
    def reader(self) -> Reader | None:
        try:
            return RapidReader()
        except NotInstalled:  # Without mustsee[offline] frames have no readings.
            return None


@cache
def _threads() -> ThreadPoolExecutor:
    """Return threads for all cores; a reading releases the interpreter's lock."""
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="reading")


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
