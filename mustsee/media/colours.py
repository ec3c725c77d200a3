"""Colours that people would agree on, and a picture without the black bars around it.

Hues between two names, pale and murky tones have no name here: what is said of colours is then
right or not said. (`mustsee.media.pixels.colour_shares` names every pixel, for a rough account.)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]
Image = NDArray[np.uint8]  # RGB, height x width x 3

# Hue from and to (degrees), least saturation, value from and to (0-1); of two that fit, the later.
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

# Colours that someone might mean when seeing another one; never options beside each other.
NEAR: Mapping[str, frozenset[str]] = {
    "green": frozenset({"yellow"}),
    "blue": frozenset({"purple"}),
    "purple": frozenset({"blue", "pink", "red"}),
    "pink": frozenset({"red", "purple", "orange", "white"}),
    "red": frozenset({"pink", "orange", "brown", "purple"}),
    "brown": frozenset({"orange", "red", "black", "yellow"}),
    "orange": frozenset({"yellow", "brown", "red", "pink"}),
    "yellow": frozenset({"orange", "brown", "green", "white"}),
    "white": frozenset({"pink", "yellow"}),
    "black": frozenset({"brown"}),
}
_DARK = 28  # of 255: brighter pixels are not of a bar
_WIDEST = 0.2  # of the picture's side: a wider dark border is a dark picture


def clear_shares(picture: Image) -> dict[str, float]:
    """Share of the picture that is clearly of each of `NAMES`."""
    names = clear(picture)
    counts = np.bincount(names[names >= 0], minlength=len(NAMES))
    return {name: float(n) / names.size for name, n in zip(NAMES, counts, strict=True)}


def clear(picture: Image) -> NDArray[np.int64]:
    """For each pixel, (height, width), the place in `NAMES` of what it clearly is; else -1."""
    hue, saturation, value = _hsv(picture)
    names = np.full(len(hue), -1)
    for number, (low, high, least, dark, bright) in enumerate(_NAMED.values()):
        turned = np.where(hue + 360 <= high, hue + 360, hue)
        fits = (turned >= low) & (turned <= high) & (saturation >= least)
        names[fits & (value >= dark) & (value <= bright)] = number
    names[(saturation < 0.08) & (value > 0.88)] = NAMES.index("white")
    names[value < 0.14] = NAMES.index("black")
    return names.reshape(picture.shape[:2])


# Hue from and to (degrees) and least saturation of what might be taken for a colour.
_WIDE: Mapping[str, tuple[float, float, float]] = {
    "green": (62, 170, 0.20),
    "blue": (185, 262, 0.18),
    "purple": (250, 305, 0.18),
    "pink": (300, 356, 0.18),
    "red": (342, 372, 0.45),
    "brown": (5, 45, 0.30),
    "orange": (10, 45, 0.50),
    "yellow": (42, 72, 0.30),
}


def wide_shares(picture: Image) -> dict[str, float]:
    """Share of the picture that someone might call by each of `NAMES`: more than `clear_shares`,
    and a pixel may count for several.
    """
    hue, saturation, value = _hsv(picture)
    shares: dict[str, float] = {}
    for name, (low, high, least) in _WIDE.items():
        turned = np.where(hue + 360 <= high, hue + 360, hue)
        fits = (turned >= low) & (turned <= high) & (saturation >= least) & (value >= 0.15)
        shares[name] = float(fits.mean())
    shares["white"] = float(((saturation < 0.2) & (value > 0.7)).mean())
    return shares | {"black": float((value < 0.25).mean())}


def _hsv(picture: Image) -> tuple[Values, Values, Values]:
    import cv2

    pixels = cv2.cvtColor(picture, cv2.COLOR_RGB2HSV).reshape(-1, 3).astype(np.float32)
    return pixels[:, 0] * 2, pixels[:, 1] / np.float32(255), pixels[:, 2] / np.float32(255)


def bars(picture: Image) -> tuple[int, int, int, int]:
    """Height or width in pixels of the black bars at the top, bottom, left and right: all 0 where
    what is dark is too wide to be a bar.
    """
    light = picture.max(axis=2) > _DARK
    height, width = light.shape
    rows = np.flatnonzero(light.mean(axis=1) > 0.02)
    columns = np.flatnonzero(light.mean(axis=0) > 0.02)
    if not len(rows) or not len(columns):
        return (0, 0, 0, 0)
    top, bottom = int(rows[0]), height - 1 - int(rows[-1])
    left, right = int(columns[0]), width - 1 - int(columns[-1])
    if max(top, bottom) > _WIDEST * height or max(left, right) > _WIDEST * width:
        return (0, 0, 0, 0)
    return (top, bottom, left, right)


def crop_bars(picture: Image) -> Image:
    """The picture within its black bars."""
    top, bottom, left, right = bars(picture)
    height, width = picture.shape[:2]
    return picture[top : height - bottom, left : width - right]


HALVES = ("upper", "lower", "left", "right")


def half_of(picture: Image, colour: str) -> str:
    """The one of `HALVES` that holds nearly all that is clearly of a colour, where that is at least
    a twentieth of the picture and lies on both sides of the other middle line; else empty.
    """
    named = clear(picture) == NAMES.index(colour)
    height, width = named.shape
    total = float(named.sum())
    if total < named.size / 20:
        return ""
    above, before = named[: height // 2].sum() / total, named[:, : width // 2].sum() / total
    for share, other, names in ((above, before, HALVES[:2]), (before, above, HALVES[2:])):
        if 0.25 <= other <= 0.75 and not 0.1 < share < 0.9:
            return names[0] if share > 0.5 else names[1]
    return ""


def bands(picture: Image) -> tuple[Image, Image]:
    """The upper and the lower third."""
    third = max(1, len(picture) // 3)
    return picture[:third], picture[-third:]
