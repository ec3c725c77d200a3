"""How much two thumbnails differ: in brightness and colour, and in content."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.colours import is_black
from mustsee.media.frames import Image, Thumbnail

BLOCKS = (4, 3)  # blocks of a thumbnail, across and down
REACH_PIXELS = (8, 6)  # pixels, across and down, that a block may have moved on a thumbnail 64 wide
FLAT_LUMA_STD = 1.5  # standard deviation of brightness below which a block shows nothing
MIN_PLAIN_CHANGE = 30.0  # change (see `change`) between two plain frames that makes them different
MAX_ALIKE_LOSS = 0.45  # loss (see `unlike`) at which half of the frame may be another's
MAX_ALIKE_CHANGE = 60.0  # change (see `change`) above which frames are not alike
MAX_BLACK_LUMA = 24  # luma, of video range, up to which a row or a column belongs to a black bar


def change(before: Thumbnail, after: Thumbnail) -> float:
    """Return the mean absolute difference of brightness plus that of both colour planes, in 8-bit
    levels.
    """
    import cv2

    rows = len(after.yuv) * 2 // 3
    return (
        cv2.norm(before.yuv, after.yuv, cv2.NORM_L1)
        + 3 * cv2.norm(before.yuv[rows:], after.yuv[rows:], cv2.NORM_L1)
    ) / (rows * after.yuv.shape[1])


def unlike(before: Thumbnail, after: Thumbnail, rank: float) -> float:
    """Return how much of `before` is gone from `after`: 0 (all still there) to 1 (all gone).

    The thumbnail is divided into blocks. A block with content loses 1 - its correlation with the
    best place nearby in the other thumbnail, so a small move or another brightness costs little.
    The result is the loss below which the share `rank` of the blocks lies. At rank 1/3, two thirds
    of the frame must be gone, so objects that pass before a background do not count; at 2/3, one
    third must be gone. Bars that are black in both thumbnails are left out.
    """
    import cv2

    old, new = _unbarred(before.luma, after.luma)
    (across, down), (far, deep) = BLOCKS, REACH_PIXELS
    height, width = new.shape[0] // down, new.shape[1] // across
    if min(height, width) < 2:
        return 0.0
    padded: Any = cv2.copyMakeBorder(old, deep, deep, far, far, cv2.BORDER_REPLICATE)
    losses: list[float] = []
    for top in range(0, height * down, height):
        for left in range(0, width * across, width):
            block = new[top : top + height, left : left + width]
            old_block = old[top : top + height, left : left + width]
            if block.std() >= FLAT_LUMA_STD:
                searched = padded[top : top + height + 2 * deep, left : left + width + 2 * far]
                correlation: Any = cv2.matchTemplate(searched, block, cv2.TM_CCOEFF_NORMED)
                losses.append(1 - max(0.0, float(correlation.max())))
            elif old_block.std() >= FLAT_LUMA_STD:
                losses.append(1.0)
    return (
        sorted(losses)[int(len(losses) * rank)]
        if losses
        else float(change(before, after) > MIN_PLAIN_CHANGE)
    )


def looks_alike(before: Thumbnail, after: Thumbnail) -> bool:
    """Whether two frames show the same things from the same side, if moved a little.

    Frames of other sizes are not alike, nor is one that is black.
    """
    if before.yuv.shape != after.yuv.shape or any(is_black(x.image()) for x in (before, after)):
        return False
    little = change(before, after) <= MAX_ALIKE_CHANGE
    return little and unlike(before, after, 1 / 2) <= MAX_ALIKE_LOSS


def _unbarred(one: Image, two: Image) -> tuple[Image, Image]:
    """Both images without the borders that are black in both."""
    brightest = np.maximum(one, two)
    rows, columns = (np.flatnonzero(brightest.max(axis=axis) > MAX_BLACK_LUMA) for axis in (1, 0))
    if not len(rows):
        return one, two
    inside = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return one[inside], two[inside]


def blend(
    start: NDArray[np.float32], middle: NDArray[np.float32], end: NDArray[np.float32]
) -> tuple[float, float]:
    """Return (share, residue): how far `middle` lies on the way from `start` to `end` (0 to 1), and
    the part of its difference that a blend of the two does not explain, as a share of the whole
    change. The vectors are `coarse` ones.
    """
    change, moved = end - start, middle - start
    length = float(change @ change)
    if not length:
        return 0.0, 1.0
    share = float(moved @ change) / length
    return share, float(np.abs(moved - share * change).sum() / np.abs(change).sum())


def coarse(thumbnail: Thumbnail) -> NDArray[np.float32]:
    """The pixels of a thumbnail at half its size, as one vector."""
    import cv2

    height, width = thumbnail.yuv.shape
    half: Any = cv2.resize(thumbnail.yuv, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    return half.astype(np.float32).ravel()
