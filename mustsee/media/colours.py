"""Colours that people would agree on, and frames without their black bars.

Hues between two names and pale or murky tones have no name here, so that a stated colour is right.
(`mustsee.media.pixels.colour_shares` names every pixel, for a rough account.)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]
Image = NDArray[np.uint8]  # RGB, height x width x 3

# Hue from and to (degrees), least saturation, value from and to (0-1); the last match wins.
_NAMED: Mapping[str, tuple[float, float, float, float, float]] = {
    "green": (70, 155, 0.30, 0.20, 1.0),
    "blue": (203, 250, 0.22, 0.25, 1.0),
    "purple": (265, 290, 0.25, 0.25, 1.0),
    "pink": (312, 346, 0.25, 0.60, 1.0),
    "red": (352, 368, 0.60, 0.35, 1.0),
    "brown": (14, 38, 0.40, 0.20, 0.5),
    "orange": (20, 36, 0.65, 0.75, 1.0),
    "yellow": (48, 58, 0.50, 0.75, 1.0),
}
NAMES = (*_NAMED, "white", "black")

_MAX_BAR_VALUE = 28  # pixel value, 0-255, up to which a pixel may belong to a black bar
_MAX_BAR_SHARE = 0.2  # share of the image's side; a wider dark border is a dark image, not a bar

_MAX_BLACK_VALUE = 40  # pixel value, 0-255, up to which a pixel counts as unlit
_MIN_LIT_SHARE = 0.01  # share of lit pixels below which a frame is black
_MIN_CUT_SHARE = 0.02  # share of the image's side; a narrower bar is left
_MAX_CUT_SHARE = 0.42  # share of the image's side; an upright clip of 9:20 has bars of 0.37
_MIN_LIT_EDGE = 0.5  # share of the content's edge that is lit beside a bar


def clear_shares(image: Image) -> dict[str, float]:
    """Return the share of the image that is clearly of each of `NAMES`."""
    return clear_shares_of(clear(image))


def clear_shares_of(names: NDArray[np.int64]) -> dict[str, float]:
    """Return the share of each of `NAMES` among pixels as `clear` returns them."""
    counts = np.bincount(names[names >= 0], minlength=len(NAMES))
    return {name: float(n) / names.size for name, n in zip(NAMES, counts, strict=True)}


def clear(image: Image) -> NDArray[np.int64]:
    """Return for each pixel, (height, width), the index in `NAMES` of its clear colour; -1 without
    one.
    """
    hue, saturation, value = _hsv(image)
    names = np.full(len(hue), -1)
    for number, (low, high, least, dark, bright) in enumerate(_NAMED.values()):
        wrapped_hue = np.where(hue + 360 <= high, hue + 360, hue)
        fits = (wrapped_hue >= low) & (wrapped_hue <= high) & (saturation >= least)
        names[fits & (value >= dark) & (value <= bright)] = number
    names[(saturation < 0.08) & (value > 0.88)] = NAMES.index("white")
    names[value < 0.14] = NAMES.index("black")
    return names.reshape(image.shape[:2])


# Hue from and to (degrees) and least saturation of pixels that may be taken for a colour: mint and
# turquoise may be taken for green and for blue.
_WIDE: Mapping[str, tuple[float, float, float]] = {
    "green": (56, 190, 0.08),
    "blue": (170, 265, 0.08),
    "purple": (245, 310, 0.08),
    "pink": (295, 356, 0.08),
    "red": (342, 372, 0.45),
    "brown": (350, 405, 0.30),
    "orange": (10, 45, 0.50),
    "yellow": (42, 72, 0.30),
}


def wide(image: Image) -> dict[str, NDArray[np.bool_]]:
    """Return for each of `NAMES` the pixels, (height, width), that someone might call so.

    More pixels than those of `clear`, and one may count for several names.
    """
    hue, saturation, value = _hsv(image)
    masks: dict[str, NDArray[np.bool_]] = {}
    for name, (low, high, least) in _WIDE.items():
        wrapped_hue = np.where(hue + 360 <= high, hue + 360, hue)
        masks[name] = (
            (wrapped_hue >= low) & (wrapped_hue <= high) & (saturation >= least) & (value >= 0.15)
        )
    masks |= {"white": (saturation < 0.2) & (value > 0.7), "black": value < 0.25}
    return {name: mask.reshape(image.shape[:2]) for name, mask in masks.items()}


def _hsv(image: Image) -> tuple[Values, Values, Values]:
    import cv2

    pixels = cv2.cvtColor(image, cv2.COLOR_RGB2HSV).reshape(-1, 3).astype(np.float32)
    return pixels[:, 0] * 2, pixels[:, 1] / np.float32(255), pixels[:, 2] / np.float32(255)


def bars(image: Image) -> tuple[int, int, int, int]:
    """Return the height or width in pixels of the black bars at the top, bottom, left and right.

    All are 0 where a dark border is too wide to be a bar.
    """
    light = _lightest(image) > _MAX_BAR_VALUE
    height, width = light.shape
    rows = np.flatnonzero(light.mean(axis=1) > 0.02)
    columns = np.flatnonzero(light.mean(axis=0) > 0.02)
    if not len(rows) or not len(columns):
        return (0, 0, 0, 0)
    top, bottom = int(rows[0]), height - 1 - int(rows[-1])
    left, right = int(columns[0]), width - 1 - int(columns[-1])
    if max(top, bottom) > _MAX_BAR_SHARE * height or max(left, right) > _MAX_BAR_SHARE * width:
        return (0, 0, 0, 0)
    return (top, bottom, left, right)


def crop_bars(image: Image) -> Image:
    """Return the image within its black bars."""
    top, bottom, left, right = bars(image)
    height, width = image.shape[:2]
    return image[top : height - bottom, left : width - right]


def is_black(image: Image) -> bool:
    """Whether nearly nothing of an image, RGB or BGR, is lit."""
    return float((_lightest(image) > _MAX_BLACK_VALUE).mean()) < _MIN_LIT_SHARE


def _lightest(image: Image) -> Image:
    """The greatest value of each pixel, (height, width)."""
    import cv2

    one, two, three = cv2.split(image)
    return np.asarray(cv2.max(cv2.max(one, two), three), np.uint8)


def bar_shares(image: Image) -> tuple[float, float]:
    """Return the share of the height that a black bar takes above and as much below, and that of
    the width on either side; 0 where the frame may only be dark.

    A bar may be wider than one of `bars`, as beside an upright clip. The content must therefore
    begin at once along much of its edge, and the same is cut from opposite sides, so that what is
    in the middle, on the left or at the top stays there. `image`: RGB or BGR.
    """
    import cv2

    light = _lightest(image) > _MAX_BAR_VALUE
    rows, columns = (
        np.flatnonzero(
            cv2.reduce(light.view(np.uint8), axis, cv2.REDUCE_AVG, dtype=cv2.CV_32F) > 0.02
        )
        for axis in (1, 0)
    )
    if not len(rows) or not len(columns):
        return 0.0, 0.0
    inside = light[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return _bar_share(inside, rows, len(light)), _bar_share(inside.T, columns, light.shape[1])


def _bar_share(inside: NDArray[np.bool_], lines: NDArray[np.int64], count: int) -> float:
    """The share of `count` lines in the narrower of the bars before and behind the lit `lines`.

    `inside`: the lit pixels of the content, line by line.
    """
    before, behind = int(lines[0]), count - 1 - int(lines[-1])
    share = min(before, behind) / count
    if not _MIN_CUT_SHARE <= share <= _MAX_CUT_SHARE:
        return 0.0
    near = max(2, count // 100)
    edge = inside[:near] if before <= behind else inside[-near:]
    return share if edge.any(axis=0).mean() >= _MIN_LIT_EDGE else 0.0


HALVES = ("upper", "lower", "left", "right")


def half_of(image: Image, colour: str) -> str:
    """Return the one of `HALVES` that holds nearly all pixels clearly of a colour, or an empty
    string.

    These must cover at least a twentieth of the image and lie on both sides of the other middle
    line.
    """
    is_colour = clear(image) == NAMES.index(colour)
    height, width = is_colour.shape
    total = float(is_colour.sum())
    if total < is_colour.size / 20:
        return ""
    upper_share, left_share = (
        is_colour[: height // 2].sum() / total,
        is_colour[:, : width // 2].sum() / total,
    )
    for share, other, names in (
        (upper_share, left_share, HALVES[:2]),
        (left_share, upper_share, HALVES[2:]),
    ):
        if 0.25 <= other <= 0.75 and not 0.1 < share < 0.9:
            return names[0] if share > 0.5 else names[1]
    return ""


def bands(image: Image) -> tuple[Image, Image]:
    """Return the upper and the lower third of the image."""
    third = max(1, len(image) // 3)
    return image[:third], image[-third:]
