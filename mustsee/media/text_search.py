"""Where on-screen text is in a frame: search for lines, and comparison of their pixels.

`mustsee.media.onscreen` follows the lines through a video with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mustsee.media.frames import shrunk
from mustsee.media.lettering import Corners, Image, Reader

FOLLOW_PIXELS = 480  # pixels: longer side of the frame in which lines are followed
FINE_LINE_PIXELS = 14  # pixels: a line this low makes its rows be searched at full size as well
MIN_STROKE_SOBEL = 60  # Sobel response of a letter's edge
# Share of a place's pixels that are rising edges, and that are falling ones, if it has letters.
MIN_PLAIN_EDGE_SHARE = 0.20
MIN_CROWDED_EDGE_SHARE = 0.36  # the same in a frame that is full of edges
CROWDED_FRAME_SHARE = 0.15  # share of the frame that may have letters, above which it is crowded
SEARCH_WIDTHS_PIXELS = (960, 480, 240, 120, 60)  # pixels: widths of the frame searched for letters
LINE_MARGIN = 0.08  # share of the frame's height searched above and below a place
MAX_SEARCHED_PLACES = 3  # places from which on the whole frame is searched
MIN_STIR_CHANGE = 16.0  # levels of 255, mean over 5 x 5 pixels: above noise, below another letter
MIN_LINE_CORRELATION = 0.6  # correlation of a line's pixels with those now in its place

Box = tuple[float, float, float, float]  # left, top, right, bottom, as shares of the frame


def places(luma: Image) -> tuple[list[Box], bool]:
    """Return the boxes where edges rise and fall as densely as in letters, and whether the frame is
    plain.

    The boxes have a margin. Leaves can be as dense as letters: in a frame full of edges (one that
    is not plain) only the densest places are returned.
    """
    import cv2

    height, width = luma.shape
    base_size = (min(FOLLOW_PIXELS, width), max(8, round(height * min(1.0, FOLLOW_PIXELS / width))))
    dense = np.zeros(base_size[::-1], np.uint8)
    for search_width in (w for w in SEARCH_WIDTHS_PIXELS if w <= max(width, base_size[0])):
        size = (search_width, max(8, round(height * search_width / width)))
        slope = cv2.Sobel(cv2.resize(luma, size, interpolation=cv2.INTER_AREA), cv2.CV_16S, 1, 0)
        rises, falls = (
            cv2.blur(edges.astype(np.uint8) * 255, (24, 6))
            for edges in (slope > MIN_STROKE_SOBEL, slope < -MIN_STROKE_SOBEL)
        )
        dense = np.maximum(dense, cv2.resize(np.minimum(rises, falls), base_size))
    is_dense, plain = _dense_mask(dense, MIN_PLAIN_EDGE_SHARE), True
    if float(is_dense.mean()) > CROWDED_FRAME_SHARE:
        is_dense, plain = _dense_mask(dense, MIN_CROWDED_EDGE_SHARE), False
    count, _, stats, _ = cv2.connectedComponentsWithStats(is_dense)
    sides = [stats[n][:4].tolist() for n in range(1, count)]
    (across, down) = base_size
    boxes = [(x / across, y / down, (x + w) / across, (y + h) / down) for x, y, w, h in sides]
    return boxes, plain


def lines_in(
    reader: Reader, image: Image, where: list[Box], plain: bool, longest: int
) -> list[Corners]:
    """Return the corners of the text lines in a frame whose possible places are `where`.

    The search takes the frame scaled to at most `longest` pixels, and its full size where the lines
    are low. Whole rows are searched, because a line may be longer than the place that shows it. In
    a frame that is not `plain`, places without a line are dropped first.
    """
    small = shrunk(image, longest)
    scale = len(image) / len(small)
    lines = list[Corners]()
    if not plain:
        where = [box for box in where if reader.lines(crop_box(small, box))]
    for top, bottom in _rows(where):
        row_box, down = (0.0, top, 1.0, bottom), int(top * len(small))
        corners_in_rows = reader.lines(crop_box(small, row_box))
        if scale > 1 and any(
            float(np.ptp(corners[:, 1])) <= FINE_LINE_PIXELS for corners in corners_in_rows
        ):
            corners_in_rows, down = reader.lines(crop_box(image, row_box)), int(top * len(image))
        else:
            corners_in_rows, down = (
                [c * np.float32(scale) for c in corners_in_rows],
                round(down * scale),
            )
        lines += [corners + np.array([0, down], np.float32) for corners in corners_in_rows]
    return lines


def _dense_mask(dense: Image, min_share: float) -> Image:
    """A mask, 1 where the edges are dense, with a margin."""
    import cv2

    around = np.ones((24, 48), np.uint8)
    return np.asarray(cv2.dilate((dense >= min_share * 255).astype(np.uint8), around), np.uint8)


def has_changed(one: Image, other: Image) -> bool:
    """Whether two grey frames differ somewhere by more than noise."""
    import cv2

    if one.shape != other.shape:
        return True
    blurred = cv2.blur(cv2.absdiff(one, other).astype(np.float32), (5, 5))
    return float(np.max(blurred)) > MIN_STIR_CHANGE


def is_still_there(pixels: Image, luma: Image, box: Box) -> bool:
    """Whether a line's pixels are still in their place, whatever moves behind them."""
    import cv2

    pixels_now = crop_box(luma, box)
    if pixels_now.shape != pixels.shape:
        return False
    correlation: Any = cv2.matchTemplate(pixels_now, pixels, cv2.TM_CCOEFF_NORMED)
    return bool(np.isfinite(correlation[0, 0])) and float(correlation[0, 0]) >= MIN_LINE_CORRELATION


def crop_box(image: Image, box: Box) -> Image:
    """Return the pixels of a box, at least 2 x 2."""
    height, width = image.shape[:2]
    left, top = int(box[0] * width), int(box[1] * height)
    right, bottom = (max(left + 2, round(box[2] * width)), max(top + 2, round(box[3] * height)))
    return image[top:bottom, left:right]


def _rows(boxes: list[Box]) -> list[tuple[float, float]]:
    """Top and bottom of the rows around the boxes, joined where they touch; the whole frame for
    many boxes.
    """
    if len(boxes) >= MAX_SEARCHED_PLACES:
        return [(0.0, 1.0)]
    rows: list[tuple[float, float]] = []
    for top, bottom in sorted(
        (max(0.0, b[1] - LINE_MARGIN), min(1.0, b[3] + LINE_MARGIN)) for b in boxes
    ):
        if rows and top <= rows[-1][1]:
            rows[-1] = (rows[-1][0], max(bottom, rows[-1][1]))
        else:
            rows.append((top, bottom))
    return rows


def bounding_box(corners: Corners, image: Image) -> Box:
    """Return the box around the corners of a line."""
    height, width = image.shape[:2]
    left, top = np.clip(corners.min(axis=0) / (width, height), 0, 1).tolist()
    right, bottom = np.clip(corners.max(axis=0) / (width, height), 0, 1).tolist()
    return (left, top, right, bottom)


def overlap(one: Box, other: Box) -> float:
    """Return the intersection over union of two boxes."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    if across <= 0 or down <= 0:
        return 0.0
    areas = sum((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return across * down / (areas - across * down)


def mean_difference(one: Image, other: Image) -> float:
    """Return the mean difference of two grey frames in levels of 255, on every fourth pixel."""
    if one.shape != other.shape:
        return 255.0
    return float(np.abs(one[::4, ::4].astype(np.int16) - other[::4, ::4]).mean())
