"""How much two small pictures differ: in brightness and colour, and in what is on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.pictures import Image, Thumbnail

BLOCKS = (4, 3)  # across, down
REACH_PIXELS = (8, 6)  # pixels that a block may have moved across and down, on a thumbnail 64 wide
FLAT_LUMA_STD = 1.5  # standard deviation of brightness below which a block shows nothing
MIN_PLAIN_CHANGE = 30.0  # change between two plain pictures that makes them two
MAX_BLACK_LUMA = 24  # luma of video range up to which a line counts as a black bar


def change(before: Thumbnail, now: Thumbnail) -> float:
    """Mean absolute difference of brightness plus that of both colour planes, in 8-bit levels."""
    import cv2

    luma = now.luma
    rows, size = len(luma), luma.size
    return (
        cv2.norm(before.luma, luma, cv2.NORM_L1)
        + 4 * cv2.norm(before.yuv[rows:], now.yuv[rows:], cv2.NORM_L1)
    ) / size


def unlike(before: Thumbnail, now: Thumbnail, rank: float) -> float:
    """0 (still there, if moved a little, lighter or darker) to 1 (gone): of the blocks that show
    something, 1 - correlation with the best place in the other picture, such that the share `rank`
    of them has less. At 1/3 most of the picture must have gone: what passes or appears before a
    background does not count. At 2/3 a third of it must. Bars that are black in both are left out.
    """
    import cv2

    one, two = _unbarred(before.luma, now.luma)
    (across, down), (far, deep) = BLOCKS, REACH_PIXELS
    height, width = two.shape[0] // down, two.shape[1] // across
    if min(height, width) < 2:
        return 0.0
    wide: Any = cv2.copyMakeBorder(one, deep, deep, far, far, cv2.BORDER_REPLICATE)
    lost: list[float] = []
    for top in range(0, height * down, height):
        for left in range(0, width * across, width):
            block = two[top : top + height, left : left + width]
            was = one[top : top + height, left : left + width]
            if block.std() >= FLAT_LUMA_STD:
                place = wide[top : top + height + 2 * deep, left : left + width + 2 * far]
                found: Any = cv2.matchTemplate(place, block, cv2.TM_CCOEFF_NORMED)
                lost.append(1 - max(0.0, float(found.max())))
            elif was.std() >= FLAT_LUMA_STD:
                lost.append(1.0)
    return (
        sorted(lost)[int(len(lost) * rank)]
        if lost
        else float(change(before, now) > MIN_PLAIN_CHANGE)
    )


def _unbarred(one: Image, two: Image) -> tuple[Image, Image]:
    """Both pictures without the lines at their borders that are black in both."""
    high = np.maximum(one, two)
    rows, columns = (np.flatnonzero(high.max(axis=axis) > MAX_BLACK_LUMA) for axis in (1, 0))
    if not len(rows):
        return one, two
    inside = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return one[inside], two[inside]


def blend(
    start: NDArray[np.float32], middle: NDArray[np.float32], end: NDArray[np.float32]
) -> tuple[float, float]:
    """How far `middle` is on the way from `start` to `end` (0 to 1) if it is a blend of the two,
    and what remains unexplained, as a share of what lies between the two. See `coarse`.
    """
    way, gone = end - start, middle - start
    length = float(way @ way)
    if not length:
        return 0.0, 1.0
    share = float(gone @ way) / length
    return share, float(np.abs(gone - share * way).sum() / np.abs(way).sum())


def coarse(thumbnail: Thumbnail) -> NDArray[np.float32]:
    """The thumbnail's pixels at half its size, as one vector."""
    import cv2

    height, width = thumbnail.yuv.shape
    half: Any = cv2.resize(thumbnail.yuv, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    return half.astype(np.float32).ravel()
