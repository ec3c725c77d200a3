"""Contact sheets: keyframes in order of time, in grids, each below its time in seconds.

A writer of questions sees by them what captions leave out, at the price of a few images.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from mustsee.errors import UserError
from mustsee.media.colours import is_black
from mustsee.media.frames import Image, decode, encode, without_bars
from mustsee.records import Keyframe, Span

T = TypeVar("T")
STRIP_SHARE = 0.02  # height of the strip with the time, as a share of the sheet's longer side
MIN_STRIP_PIXELS = 20
GAP_PIXELS = 4  # pixels between two frames of a row
LETTER_PIXELS = 21  # height of a digit of OpenCV's plain font at scale 1
QUALITY = 85  # JPEG quality, 0 to 100


@dataclass(frozen=True, kw_only=True)
class SheetRules:
    """How contact sheets are made."""

    most: int = 4
    """Sheets before each prompt of questions or decoys; 0: none."""
    cells: int = 12
    """Frames of a sheet."""
    longest: int = 1536
    """Longer side of a sheet, pixels."""

    def __post_init__(self) -> None:
        for name, least in (("most", 0), ("cells", 1), ("longest", 64)):
            if getattr(self, name) < least:
                raise UserError(f"sheets.{name}={getattr(self, name)!r}: at least {least}")


@dataclass(frozen=True, kw_only=True)
class ContactSheet:
    """A sheet, and the times of its frames in seconds, row by row."""

    jpeg: bytes
    times: tuple[float, ...]


def contact_sheets(
    keyframes: Sequence[Keyframe], span: Span, rules: SheetRules
) -> tuple[ContactSheet, ...]:
    """Return the sheets of a span's keyframes, in order of time, without black bars and black
    frames; none if no keyframe is left.
    """
    within = [k for k in keyframes if span.start <= k.time <= span.end]
    chosen = choose_frames(within, rules.most * rules.cells)
    decoded = ((k.time, image) for k in chosen if (image := decode(k.jpeg)) is not None)
    images = [(time, without_bars(image)) for time, image in decoded if not is_black(image)]
    count = -(-len(images) // rules.cells)
    borders = (len(images) * n // count for n in range(count + 1)) if count else ()
    return tuple(_draw(images[first:end], rules.longest) for first, end in pairwise(borders))


def choose_frames(keyframes: Sequence[Keyframe], count: int) -> list[Keyframe]:
    """Return at most `count` keyframes in order of time, spread evenly: one of each shot before a
    second one of any.
    """
    shots: dict[int, list[Keyframe]] = defaultdict(list)
    for keyframe in keyframes:
        shots[keyframe.shot].append(keyframe)
    chosen: list[Keyframe] = []
    left = [[shot.pop(len(shot) // 2), *shot] for shot in shots.values()]
    while left and len(chosen) < count:
        chosen += spread_evenly([shot.pop(0) for shot in left], count - len(chosen))
        left = [shot for shot in left if shot]
    return sorted(chosen, key=lambda k: k.time)


def spread_evenly(items: Sequence[T], count: int) -> list[T]:
    """Return at most `count` of the items, from the middles of as many equal spans of them."""
    if len(items) <= count:
        return list(items)
    return [items[(2 * n + 1) * len(items) // (2 * count)] for n in range(count)]


def _draw(frames: Sequence[tuple[float, Image]], longest: int) -> ContactSheet:
    strip = max(MIN_STRIP_PIXELS, round(STRIP_SHARE * longest))
    shapes = [image.shape[1] / image.shape[0] for _, image in frames]
    columns, width, height = _cell(len(frames), float(np.median(shapes)), longest, strip)
    rows = -(-len(frames) // columns)
    sheet = np.zeros((rows * (strip + height), columns * (width + GAP_PIXELS), 3), np.uint8)
    for number, (time, image) in enumerate(frames):
        row, column = divmod(number, columns)
        top, left = row * (strip + height), column * (width + GAP_PIXELS)
        _write(sheet[top : top + strip, left : left + width], f"{time:.1f} s")
        _place(sheet[top + strip : top + strip + height, left : left + width], image)
    return ContactSheet(jpeg=encode(sheet, QUALITY), times=tuple(time for time, _ in frames))


def _cell(count: int, shape: float, longest: int, strip: int) -> tuple[int, int, int]:
    """The number of columns that makes frames of the shape (width over height) largest, and the
    width and height of a frame in pixels.
    """

    def width(columns: int) -> float:
        high = longest / -(-count // columns) - strip
        return min(longest / columns - GAP_PIXELS, shape * high)

    columns = max(range(1, count + 1), key=width)
    wide = max(16.0, width(columns))
    return columns, int(wide), max(16, int(wide / shape))


def _write(strip: Image, text: str) -> None:
    """Write a text in white into a strip, as large as it fits."""
    import cv2

    height, width = strip.shape[:2]
    scale, thickness = 0.65 * height / LETTER_PIXELS, max(1, round(height / 14))
    (length, _), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, scale, thickness)
    scale *= min(1.0, (width - 4) / length)
    place, white = (2, round(0.82 * height)), (255, 255, 255)
    cv2.putText(strip, text, place, cv2.FONT_HERSHEY_SIMPLEX, scale, white, thickness, cv2.LINE_AA)


def _place(cell: Image, image: Image) -> None:
    """Put an image, resized to fit, into the middle of a cell."""
    import cv2

    height, width = cell.shape[:2]
    scale = min(width / image.shape[1], height / image.shape[0])
    size = max(1, round(scale * image.shape[1])), max(1, round(scale * image.shape[0]))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    small = cv2.resize(image, size, interpolation=how)
    top, left = (height - size[1]) // 2, (width - size[0]) // 2
    cell[top : top + size[1], left : left + size[0]] = small
