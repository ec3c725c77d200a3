"""Sentences from what was measured on a picture: light, colours, motion, faces, text on screen.

The embedded captioner. It knows no objects and says nothing that was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow
from mustsee.media.colours import bands, bars, clear_shares, crop_bars, half_of
from mustsee.records import Face, Frame, Keyframe, ScreenText, Span

# Hue (0-360 degrees) up to which a saturated colour has this name.
HUES = ((15, "red"), (45, "orange"), (70, "yellow"), (165, "green"), (200, "turquoise"),
        (255, "blue"), (290, "purple"), (335, "pink"), (360, "red"))  # fmt: skip


def colour_shares(picture: NDArray[np.uint8]) -> dict[str, float]:
    """Share of the picture (uint8 RGB, height x width x 3) by colour name, the largest first."""
    pixels = picture.reshape(-1, 3).astype(np.float32) / 255
    high, low = pixels.max(axis=1), pixels.min(axis=1)
    span = high - low
    saturation = np.where(high > 0, span / np.maximum(high, 1e-6), 0)
    red, green, blue = pixels.T
    safe = np.maximum(span, 1e-6)
    hue = np.select(
        [high == red, high == green],
        [((green - blue) / safe) % 6, (blue - red) / safe + 2],
        (red - green) / safe + 4,
    )
    names = np.array([name for _, name in HUES])[
        np.clip(np.searchsorted([h for h, _ in HUES], hue * 60), 0, len(HUES) - 1)
    ].astype("U9")
    names[(names == "orange") & (high < 0.65)] = "brown"
    grey = saturation < 0.18
    names[grey] = "grey"
    names[grey & (high > 0.85)] = "white"
    names[high < 0.18] = "black"
    found, counts = np.unique(names, return_counts=True)
    order = sorted(zip(found.tolist(), counts.tolist(), strict=True), key=lambda p: (-p[1], p[0]))
    return {name: count / len(names) for name, count in order}


def describe(
    picture: NDArray[np.uint8],
    frame: Frame | None,
    texts: Sequence[ScreenText],
    more: Sequence[str] = (),
) -> str:
    """One sentence on a picture, the measurements of the second around it, what `more` there is to
    say, and its texts.
    """
    light = float(picture.mean()) / 255 if frame is None else frame.brightness
    words = (
        "very dark"
        if light < 0.1
        else "dark"
        if light < 0.25
        else "dim"
        if light < 0.42
        else "bright"
        if light > 0.7
        else ""
    )
    shares = colour_shares(picture)
    main = [name for name, share in list(shares.items())[:3] if share > 0.15]
    parts = [f"The picture is {words + ', ' if words else ''}mostly {_listed(main or ['mixed'])}"]
    if frame is not None:
        if frame.motion > 0.08:
            parts.append("with much motion")
        elif frame.motion > 0.02:
            parts.append("with some motion")
        if frame.faces:
            parts.append(_faces(frame.faces))
    parts += more
    read = " / ".join(text.text for text in texts if text.text.strip())
    if read:
        parts.append(f"the text on screen reads '{read}'")
    return "; ".join(parts) + "."


def layout(picture: NDArray[np.uint8]) -> list[str]:
    """What is sure of bars and colours in a picture: black bars; the colour of its upper and of its
    lower third; colours of a quarter of it or more ("much clear blue") and of a thirtieth or more
    ("some clear red"). A colour that is not named may be in it as a tone between.
    """
    inside = crop_bars(picture)
    shares = clear_shares(inside)
    parts = [f"black bars {where}"] if (where := bar_sides(picture)) else []
    for name, band in zip(("top", "bottom"), bands(inside), strict=True):
        parts += [f"{c} at the {name}" for c, s in clear_shares(band).items() if s >= 0.6]
    for word, low, high in (("much", 0.25, 1.01), ("some", 0.03, 0.25)):
        if colours := [c for c, s in shares.items() if low <= s < high]:
            parts.append(f"{word} clear {_listed(colours)}")
    for colour in shares:
        if half := half_of(inside, colour):
            parts.append(f"all that is clearly {colour} in the {half} half")
    return parts


SIDES = {
    (True, True, False, False): "above and below",
    (False, False, True, True): "on the left and the right",
    (True, True, True, True): "on all four sides",
}


def bar_sides(picture: NDArray[np.uint8]) -> str:
    """Where black bars of some width are; empty where there are none, or other ones."""
    height, width = picture.shape[:2]
    top, bottom, left, right = bars(picture)
    wide = [top / height, bottom / height, left / width, right / width]
    return SIDES.get((wide[0] > 0.04, wide[1] > 0.04, wide[2] > 0.04, wide[3] > 0.04), "")


def _shrunk(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """160 pixels wide: colours of areas, without grain."""
    import cv2

    height, width = picture.shape[:2]
    size = (160, max(3, round(160 * height / width)))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)


def captions(
    keyframes: Sequence[Keyframe],
    frames: Sequence[Frame],
    texts: Sequence[ScreenText],
    shots: Sequence[Span] = (),
) -> list[tuple[float, str]]:
    """Time and sentence for each keyframe. The measured frame nearest to it counts, of its own shot
    alone where the `shots` are known: the next one shows other faces, in another light.
    """
    import cv2

    found: list[tuple[float, str]] = []
    for keyframe in keyframes:
        picture = cv2.imdecode(np.frombuffer(keyframe.jpeg, np.uint8), cv2.IMREAD_COLOR)
        if picture is None:
            raise BadRow(f"the keyframe at {keyframe.time:.2f} s is not a readable JPEG")
        small = np.asarray(
            cv2.cvtColor(_shrunk(np.asarray(picture, np.uint8)), cv2.COLOR_BGR2RGB), np.uint8
        )
        picture = cv2.cvtColor(cv2.resize(picture, (64, 36)), cv2.COLOR_BGR2RGB)
        within = shots[keyframe.shot] if keyframe.shot < len(shots) else None
        near = [f for f in frames if within is None or within.start <= f.time < within.end]
        nearest = min(near, key=lambda f, t=keyframe.time: abs(f.time - t), default=None)
        here = [text for text in texts if text.at(keyframe.time)]
        tone = np.asarray(picture, np.uint8)
        found.append((keyframe.time, describe(tone, nearest, here, layout(small))))
    return found


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _faces(faces: Sequence[Face]) -> str:
    if len(faces) > 1:
        return f"{len(faces)} faces"
    face = faces[0]
    size = "large " if face.height > 0.4 else "small " if face.height < 0.15 else ""
    middle = face.x + face.width / 2
    side = "on the left" if middle < 0.4 else "on the right" if middle > 0.6 else "in the middle"
    return f"one {size}face {side}"
