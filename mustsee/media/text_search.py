"""Where on-screen text is in a frame: search for lines, and comparison of their pixels.

`mustsee.media.onscreen` follows the lines through a video with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mustsee.media.frames import shrunk
from mustsee.media.ocr import Corners, Image, Reader

FOLLOW_PIXELS = 480  # pixels: longer side of the frame in which lines are followed
FINE_LINE_PIXELS = 14  # pixels: a line this low makes its rows be searched at full size as well
HIGH_LINE_PIXELS = 64  # pixels: height of a line to which the rows of a higher one are shrunk
MIN_STROKE_SOBEL = 60  # Sobel response of a letter's edge
# Share of a place's pixels that are rising edges, and that are falling ones, if it has letters.
MIN_PLAIN_EDGE_SHARE = 0.20
MIN_PEAK_EDGE_SHARE = 0.34  # the same somewhere in the place
MIN_CROWDED_EDGE_SHARE = 0.36  # the same in a frame that is full of edges
CROWDED_FRAME_SHARE = 0.15  # share of the frame that may have letters, above which it is crowded
SEARCH_PIXELS = 960  # pixels: longer side of the frame in which the smallest letters are looked for
MIN_SEARCH_PIXELS = 60  # pixels: width down to which it is halved, for ever larger letters
DENSITY_PIXELS = 240  # pixels: width of the map of letters
MIN_RISE = 32  # levels of 255: rise of the density in a second that new letters make
LINE_MARGIN = 0.08  # share of the frame's height searched above and below a place
MAX_SEARCHED_SHARE = 0.6  # share of the frame from which on the whole frame is searched
MIN_STIR_CHANGE = 16.0  # levels of 255, mean over 5 x 5 pixels: above noise, below another letter
MIN_LINE_CORRELATION = 0.6  # correlation of a line's pixels with those now in its place
MAX_WIDTH_CHANGE = 0.1  # share by which the width of a line's box may change between samples
MAX_HEIGHT_CHANGE = 0.2  # the same of its height, which is found less exactly
RESIZED_REACH_PIXELS = 3  # pixels by which a box may be found beside the line that it had
MOVE_REACH = 0.5  # share of a line's height by which it may have moved between samples

Box = tuple[float, float, float, float]  # left, top, right, bottom, as shares of the frame


def letter_density(luma: Image) -> Image:
    """Return how densely edges rise and fall about each point, 0 to 255, as they do in letters of
    any size: the least of both shares of pixels. The map is `DENSITY_PIXELS` wide.
    """
    import cv2

    compare: Any = cv2.compare  # whose types know no number as the second argument
    height, width = luma.shape
    size = (DENSITY_PIXELS, max(4, round(height * DENSITY_PIXELS / width)))
    density = np.zeros(size[::-1], np.uint8)
    while min(luma.shape) >= 8 and luma.shape[1] >= MIN_SEARCH_PIXELS:
        half = luma.shape[1] // 2, luma.shape[0] // 2
        slope = cv2.Sobel(luma, cv2.CV_16S, 1, 0)
        edges = (
            cv2.resize(compare(slope, level, how), half, interpolation=cv2.INTER_AREA)
            for level, how in ((MIN_STROKE_SOBEL, cv2.CMP_GT), (-MIN_STROKE_SOBEL, cv2.CMP_LT))
        )
        rises, falls = (cv2.blur(mask, (12, 3)) for mask in edges)  # at half the size, for less
        density = np.maximum(density, cv2.resize(np.minimum(rises, falls), size))
        luma = np.asarray(cv2.resize(luma, half), np.uint8)
    return density


def letter_mask(density: Image) -> Image:
    """Return 1 where edges are as dense as in letters, else 0.

    Leaves can be as dense as letters: in a frame full of edges only the densest places count.
    """
    import cv2

    mask = np.asarray(density >= MIN_PLAIN_EDGE_SHARE * 255, np.uint8)
    places = with_margin(mask)
    if float(places.mean()) <= CROWDED_FRAME_SHARE:
        components: Any = cv2.connectedComponents(places)
        count, labels = components
        has_peak = np.zeros(count, np.uint8)
        has_peak[labels[density >= MIN_PEAK_EDGE_SHARE * 255]] = 1
        return mask * has_peak[labels]
    return np.asarray(density >= MIN_CROWDED_EDGE_SHARE * 255, np.uint8)


def with_margin(mask: Image) -> Image:
    """Return a mask of a frame with a margin of the height of a letter."""
    import cv2

    return np.asarray(cv2.dilate(mask, np.ones((12, 24), np.uint8)), np.uint8)


def find_risen(before: Image, density: Image) -> Image:
    """Return 1 where the density is higher than it was anywhere near by, else 0."""
    return np.asarray(
        density > np.minimum(with_margin(before), 255 - MIN_RISE) + MIN_RISE, np.uint8
    )


def changed_mask(one: Image, other: Image, shape: tuple[int, ...]) -> Image:
    """Return 1 where two grey frames differ by more than noise, as a mask of a `shape`."""
    import cv2

    changes = cv2.blur(cv2.absdiff(one, other), (5, 5)) > MIN_STIR_CHANGE
    return np.asarray(cv2.resize(changes.astype(np.uint8), shape[::-1]), np.uint8)


def boxes_of(mask: Image) -> list[Box]:
    """Return boxes around the places of a mask, with the margin that a search for lines needs,
    joined where they meet; the whole frame where they fill much of it.
    """
    import cv2

    if not mask.any():
        return []
    height, width = mask.shape
    boxes: list[Box] = []
    for x, y, w, h, _ in cv2.connectedComponentsWithStats(with_margin(mask))[2][1:].tolist():
        box = (
            max(0.0, x / width - LINE_MARGIN / 2),
            max(0.0, y / height - LINE_MARGIN),
            min(1.0, (x + w) / width + LINE_MARGIN / 2),
            min(1.0, (y + h) / height + LINE_MARGIN),
        )
        while near := next((other for other in boxes if overlap(box, other) > 0), None):
            boxes.remove(near)
            box = _joined(box, near)
        boxes.append(box)
    is_most = sum((b[2] - b[0]) * (b[3] - b[1]) for b in boxes) > MAX_SEARCHED_SHARE
    return [(0.0, 0.0, 1.0, 1.0)] if is_most else boxes


def lines_in(reader: Reader, image: Image, where: list[Box], longest: int) -> list[Corners]:
    """Return the corners of the text lines in a frame whose possible places are `where`.

    The search takes the frame scaled to at most `longest` pixels, and its full size where the lines
    are low. A line may be longer than the place that shows it: then whole rows are searched.
    """
    small = shrunk(image, longest)
    scale = len(image) / len(small)
    lines = list[Corners]()
    for box in where:
        corners_in_box = _lines_in_box(reader, small, box)
        if cut := [bounding_box(c, small) for c in corners_in_box if _is_cut(c, box, small)]:
            height = max(bottom - top for _, top, _, bottom in cut)
            top, bottom = min(b[1] for b in cut) - height, max(b[3] for b in cut) + height
            rows = (0.0, max(0.0, top), 1.0, min(1.0, bottom))
            whole = [c for c in corners_in_box if not _is_within(bounding_box(c, small), rows)]
            # A high line is seen as well in a smaller frame, which costs less.
            high = shrunk(small, round(longest * min(1, HIGH_LINE_PIXELS / (height * len(small)))))
            larger = np.float32(len(small) / len(high))
            corners_in_box = whole + [c * larger for c in _lines_in_box(reader, high, rows)]
            box = _joined(box, rows)
        if scale > 1 and any(float(np.ptp(c[:, 1])) <= FINE_LINE_PIXELS for c in corners_in_box):
            lines += _lines_in_box(reader, image, box, low=True)
        else:
            lines += [corners * np.float32(scale) for corners in corners_in_box]
    return lines


def _lines_in_box(reader: Reader, image: Image, box: Box, *, low: bool = False) -> list[Corners]:
    """The lines in a box of a frame, in pixels of the frame."""
    origin = np.array([int(box[0] * image.shape[1]), int(box[1] * len(image))], np.float32)
    return [corners + origin for corners in reader.lines(crop_box(image, box), low=low)]


def _is_cut(corners: Corners, box: Box, image: Image) -> bool:
    """Whether a line may go on to the left or right of the box in which it was found."""
    left, top, right, bottom = bounding_box(corners, image)
    near = (bottom - top) / 4 * len(image) / image.shape[1]  # a quarter of its height
    return (box[0] > 0 and left < box[0] + near) or (box[2] < 1 and right > box[2] - near)


def has_changed(one: Image, other: Image) -> bool:
    """Whether two grey frames differ somewhere by more than noise."""
    import cv2

    if one.shape != other.shape:
        return True
    sums = cv2.boxFilter(cv2.absdiff(one, other), cv2.CV_16U, (5, 5), normalize=False)
    return int(np.max(sums)) > 25 * MIN_STIR_CHANGE


def is_redrawn(one: Image, other: Image) -> bool:
    """Whether a grey image shows something else than the one before, not the same in more light, as
    where a line fades in.
    """
    import cv2

    if not has_changed(one, other):
        return False
    if one.shape != other.shape:
        return True
    (mean, spread), (mean_now, spread_now) = (
        [value.item() for value in cv2.meanStdDev(pixels)] for pixels in (one, other)
    )
    gain = spread_now / max(spread, 1.0)
    relit = cv2.convertScaleAbs(one, alpha=gain, beta=mean_now - gain * mean)
    return gain < 1 or has_changed(np.asarray(relit, np.uint8), other)


def likeness(pixels: Image, luma: Image, box: Box) -> float:
    """Return the correlation of a line's pixels with those now in its place, whatever moves behind
    them: 1 for the same ones, `MIN_LINE_CORRELATION` and more for the same line.
    """
    import cv2

    pixels_now = crop_box(luma, box)
    if pixels_now.shape != pixels.shape:
        return 0.0
    correlation: Any = cv2.matchTemplate(pixels_now, pixels, cv2.TM_CCOEFF_NORMED)
    return float(correlation[0, 0]) if np.isfinite(correlation[0, 0]) else 0.0


def resized_likeness(pixels: Image, others: Image) -> float:
    """Return the correlation of a line's pixels with those of a box of about the same size; 0 for
    another size.
    """
    import cv2

    (rows, columns), (height, width) = pixels.shape, others.shape
    if abs(width / columns - 1) > MAX_WIDTH_CHANGE or abs(height - rows) > MAX_HEIGHT_CHANGE * rows:
        return 0.0
    resized = cv2.resize(pixels, (width, height))
    edge = RESIZED_REACH_PIXELS
    around = cv2.copyMakeBorder(others, edge, edge, edge, edge, cv2.BORDER_REPLICATE)
    correlation = float(np.max(cv2.matchTemplate(around, resized, cv2.TM_CCOEFF_NORMED)))
    return correlation if np.isfinite(correlation) else 0.0


def find_moved(pixels: Image, luma: Image, box: Box) -> tuple[Box, float]:
    """Return the most similar place to a line's pixels near the box where it was, and their
    correlation (see `likeness`).
    """
    import cv2

    (height, width), (rows, columns) = luma.shape, pixels.shape
    reach = max(2, round(MOVE_REACH * rows))
    left, top = max(0, int(box[0] * width) - reach), max(0, int(box[1] * height) - reach)
    around = luma[top : top + rows + 2 * reach, left : left + columns + 2 * reach]
    if around.shape[0] < rows or around.shape[1] < columns:
        return box, 0.0
    correlations: Any = cv2.matchTemplate(around, pixels, cv2.TM_CCOEFF_NORMED)
    _, best, _, (across, down) = cv2.minMaxLoc(correlations)
    x, y = (left + across) / width, (top + down) / height
    moved = (x, y, x + columns / width, y + rows / height)
    return moved, best if np.isfinite(best) else 0.0


def crop_box(image: Image, box: Box) -> Image:
    """Return the pixels of a box, at least 2 x 2."""
    height, width = image.shape[:2]
    left, top = int(box[0] * width), int(box[1] * height)
    right, bottom = (max(left + 2, round(box[2] * width)), max(top + 2, round(box[3] * height)))
    return image[top:bottom, left:right]


def _joined(one: Box, other: Box) -> Box:
    """The box around two boxes."""
    left, top = min(one[0], other[0]), min(one[1], other[1])
    return (left, top, max(one[2], other[2]), max(one[3], other[3]))


def _is_within(box: Box, rows: Box) -> bool:
    """Whether a box lies in the rows of another."""
    return box[1] >= rows[1] and box[3] <= rows[3]


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
