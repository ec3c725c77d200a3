"""What can be read in pictures that a verifier is shown: each that differs is read once, several at
the same time.
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
from mustsee.media.lettering import Image, RapidReader, Reader, crop_line
from mustsee.media.text_search import Box, lines_in, places

MIN_LEGIBLE_PIXELS = 960  # pixels: smaller pictures are enlarged before they are read
SEARCHED_PIXELS = 512  # pixels: of the pictures that lines are searched for in
MIN_READING = 0.6  # what is read worse than this is no reading
MAX_CACHED_FRAMES = 512  # pictures whose lines are kept
MIN_CHANGE = 12.0  # of 255, mean over a square: less is noise, letters have some 60


@dataclass(frozen=True, kw_only=True)
class ReadText:
    """A line that was read; `top`: of its upper edge, in shares of the picture's height."""

    text: str
    top: float


Readings = tuple[ReadText, ...]  # the lines of a picture, from the top down


def read(jpegs: Sequence[bytes]) -> list[Readings]:
    """What pictures say. Reading is dear: a picture in which nothing has changed since one that was
    read lately says the same. Which are read is decided here, in their order; when is not.
    """
    import cv2

    for jpeg in jpegs:
        if jpeg in _known:
            _known.move_to_end(jpeg)
            continue
        image = decode_jpeg(jpeg)
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.float32)
        earlier = (found for one, found in _lately if one.shape == grey.shape and _same(one, grey))
        found = next(earlier, None)
        if found is None:
            found = _threads().submit(_readings, image)
            _lately.appendleft((grey, found))
        _known[jpeg] = found
    try:
        told = [_known[jpeg].result() for jpeg in jpegs]
    except BaseException:  # what failed, as where memory ran out, is tried again by the next
        _known.clear()
        _lately.clear()
        raise
    while len(_known) > MAX_CACHED_FRAMES:
        _known.popitem(last=False)
    return told


def decode_jpeg(jpeg: bytes) -> Image:
    """BGR pixels. Raises BadRow."""
    import cv2

    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise BadRow(f"a picture of {len(jpeg)} bytes is not a readable JPEG")
    return np.asarray(image, np.uint8)


class _Readers(threading.local):
    """A reader for each thread: one is not made for several."""

    @cached_property
    def reader(self) -> Reader | None:
        try:
            return RapidReader()
        except NotInstalled:  # without mustsee[offline] nothing can be read, and nothing is claimed
            return None


@cache
def _threads() -> ThreadPoolExecutor:
    """Reading lets other threads run: a video is read on all cores that are idle."""
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="reading")


_readers = _Readers()
_known: OrderedDict[bytes, Future[Readings]] = OrderedDict()
_lately: deque[tuple[NDArray[np.float32], Future[Readings]]] = deque(maxlen=48)


def _readings(image: Image) -> Readings:
    import cv2

    reader = _readers.reader
    if reader is None:
        return ()
    image = _enlarged(image)
    where, plain = places(np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8))
    pieces: list[tuple[Box, str]] = []
    for corners in lines_in(reader, image, where, plain, SEARCHED_PIXELS):
        text, score = reader.text(crop_line(image, corners))
        if score >= MIN_READING:
            (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
            pieces.append(((float(left), float(top), float(right), float(bottom)), text))
    found = (ReadText(text=text, top=box[1] / len(image)) for box, text in _whole(pieces))
    return tuple(sorted(found, key=lambda reading: reading.top))


def _enlarged(image: Image) -> Image:
    import cv2

    height, width = image.shape[:2]
    larger = MIN_LEGIBLE_PIXELS / max(height, width)
    if larger <= 1:
        return image
    size = (round(width * larger), round(height * larger))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), np.uint8)


def _whole(pieces: Sequence[tuple[Box, str]]) -> list[tuple[Box, str]]:
    """A line that was found in pieces, less than a letter's width apart, as one."""
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


def _same(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Whether two grey pictures differ nowhere by more than noise: in no square of 8 pixels, the
    size of a letter, by more than a fraction of a letter's contrast.
    """
    import cv2

    height, width = one.shape
    squares = (max(1, width // 8), max(1, height // 8))
    apart = cv2.resize(np.abs(one - other), squares, interpolation=cv2.INTER_AREA)
    return float(np.max(apart)) < MIN_CHANGE
