"""Sentences from what was measured on a picture: light, colours, motion, faces, text on screen.

The embedded captioner. It knows no objects and says nothing that was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow
from mustsee.records import Face, Frame, Keyframe, ScreenText

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


def describe(picture: NDArray[np.uint8], frame: Frame | None, texts: Sequence[ScreenText]) -> str:
    """One sentence on a picture, the measurements of the second around it, and its texts."""
    light = float(picture.mean()) / 255 if frame is None else frame.brightness
    words = "dark" if light < 0.25 else "dim" if light < 0.42 else "bright" if light > 0.7 else ""
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
    read = " / ".join(text.text for text in texts if text.text.strip())
    if read:
        parts.append(f"the text on screen reads '{read}'")
    return "; ".join(parts) + "."


def captions(
    keyframes: Sequence[Keyframe], frames: Sequence[Frame], texts: Sequence[ScreenText]
) -> list[tuple[float, str]]:
    """Time and sentence for each keyframe."""
    import cv2

    times = np.array([frame.time for frame in frames])
    found: list[tuple[float, str]] = []
    for keyframe in keyframes:
        picture = cv2.imdecode(np.frombuffer(keyframe.jpeg, np.uint8), cv2.IMREAD_COLOR)
        if picture is None:
            raise BadRow(f"the keyframe at {keyframe.time:.2f} s is not a readable JPEG")
        picture = cv2.cvtColor(cv2.resize(picture, (64, 36)), cv2.COLOR_BGR2RGB)
        nearest = frames[int(np.abs(times - keyframe.time).argmin())] if len(times) else None
        here = [text for text in texts if abs(text.time - keyframe.time) < 0.05]
        found.append((keyframe.time, describe(np.asarray(picture, np.uint8), nearest, here)))
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
