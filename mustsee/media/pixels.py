"""Sentences from the measurements of a frame: light, colours, motion, faces, on-screen text.

This is the embedded captioner. It recognises no objects and states only what was measured.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow
from mustsee.media.colours import bands, bars, clear_shares, crop_bars, half_of
from mustsee.media.frames import Image, decode
from mustsee.records import Face, Frame, Keyframe, ScreenText, SeenObject, Span
from mustsee.text import with_article

# Name of a saturated colour, and the hue (0-360 degrees) up to which it has this name.
HUES = ((15, "red"), (45, "orange"), (70, "yellow"), (165, "green"), (200, "turquoise"),
        (255, "blue"), (290, "purple"), (335, "pink"), (360, "red"))  # fmt: skip
# Word for a picture, and the mean brightness (0 to 1) below which it is used.
DARK = ((0.1, "very dark"), (0.25, "dark"), (0.42, "dim"))

_MEASURED = re.compile(r"(?:.+ can be seen\. )?The picture is (?:[a-z ]+, )?mostly [a-z]")


def are_measured(texts: Iterable[str]) -> bool:
    """Whether captions are sentences of `describe`, by rules: most of them begin as these do."""
    begins = [_MEASURED.match(text) is not None for text in texts]
    return 2 * sum(begins) > len(begins)


def colour_shares(image: NDArray[np.uint8]) -> dict[str, float]:
    """Return the share of the image (uint8 RGB, height x width x 3) by colour name, the largest
    first.
    """
    pixels = image.reshape(-1, 3).astype(np.float32) / 255
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
    found_names, counts = np.unique(names, return_counts=True)
    order = sorted(
        zip(found_names.tolist(), counts.tolist(), strict=True), key=lambda p: (-p[1], p[0])
    )
    return {name: count / len(names) for name, count in order}


def describe(
    image: NDArray[np.uint8],
    frame: Frame | None,
    texts: Sequence[ScreenText],
    more: Sequence[str] = (),
    things: Sequence[SeenObject] = (),
) -> str:
    """Return what an image shows: people and `things`, in a sentence of their own, and the
    measurements of the frame nearest to it, the statements `more`, and its on-screen texts.
    """
    light = float(image.mean()) / 255 if frame is None else frame.brightness
    light_word = next((word for most, word in DARK if light < most), "bright" * (light > 0.7))
    shares = colour_shares(image)
    main_colours = [name for name, share in list(shares.items())[:3] if share > 0.15]
    tone = f"{light_word}, mostly" if light_word else "mostly"
    statements = [f"The picture is {tone} {_join_names(main_colours or ['mixed'])}"]
    if frame is not None:
        if frame.motion > 0.08:
            statements.append("with much motion")
        elif frame.motion > 0.02:
            statements.append("with some motion")
        if frame.faces and not any(thing.name == "person" for thing in things):
            statements.append(_faces(frame.faces))
    statements += more
    text_on_screen = " / ".join(text.text for text in texts if text.text.strip())
    if text_on_screen:
        statements.append(f"the text on screen reads '{text_on_screen}'")
    seen = f"{_things(things)} can be seen. " if things else ""
    return seen + "; ".join(statements) + "."


def layout(image: NDArray[np.uint8]) -> list[str]:
    """Return what is certain about the bars and colours of an image.

    Black bars; the colour of its upper and of its lower third; colours of a quarter of it or more
    ("much clear blue") and of a thirtieth or more ("some clear red"). A colour without a mention
    may still occur in a shade between two names.
    """
    inside = crop_bars(image)
    shares = clear_shares(inside)
    statements = [f"black bars {where}"] if (where := bar_sides(image)) else []
    for name, band in zip(("top", "bottom"), bands(inside), strict=True):
        statements += [f"{c} at the {name}" for c, s in clear_shares(band).items() if s >= 0.6]
    for word, low, high in (("much", 0.25, 1.01), ("some", 0.03, 0.25)):
        if colours := [c for c, s in shares.items() if low <= s < high]:
            statements.append(f"{word} clear {_join_names(colours)}")
    for colour in shares:
        if half := half_of(inside, colour):
            statements.append(f"all that is clearly {colour} in the {half} half")
    return statements


SIDES = {
    (True, True, False, False): "above and below",
    (False, False, True, True): "on the left and the right",
    (True, True, True, True): "on all four sides",
}


def bar_sides(image: NDArray[np.uint8]) -> str:
    """Return where there are black bars of some width; empty for none or another arrangement."""
    height, width = image.shape[:2]
    top, bottom, left, right = bars(image)
    shares = [top / height, bottom / height, left / width, right / width]
    return SIDES.get((shares[0] > 0.04, shares[1] > 0.04, shares[2] > 0.04, shares[3] > 0.04), "")


def small_rgb(image: Image) -> Image:
    """Return a BGR image as RGB, 160 pixels wide: colours of areas, without grain."""
    import cv2

    height, width = image.shape[:2]
    size = (160, max(3, round(160 * height / width)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2RGB), np.uint8)


def captions(
    keyframes: Sequence[Keyframe],
    frames: Sequence[Frame],
    texts: Sequence[ScreenText],
    shots: Sequence[Span] = (),
    objects: Sequence[SeenObject] = (),
) -> list[tuple[float, str]]:
    """Return time and caption for each keyframe.

    The sentence uses the measured frame nearest to the keyframe. Where the `shots` are known it
    must be of the same shot, because the next one shows other faces in another light.
    """
    import cv2

    captions: list[tuple[float, str]] = []
    for keyframe in keyframes:
        image = decode(keyframe.jpeg)
        if image is None:
            raise BadRow(f"the keyframe at {keyframe.time:.2f} s is not a readable JPEG")
        tone = np.asarray(cv2.cvtColor(cv2.resize(image, (64, 36)), cv2.COLOR_BGR2RGB), np.uint8)
        within = shots[keyframe.shot] if keyframe.shot < len(shots) else None
        frames_of_shot = [
            f for f in frames if within is None or within.start <= f.time < within.end
        ]
        nearest = min(frames_of_shot, key=lambda f, t=keyframe.time: abs(f.time - t), default=None)
        texts_here = [text for text in texts if text.at(keyframe.time)]
        things = [
            thing
            for thing in objects
            if thing.start <= keyframe.time <= thing.end
            and (within is None or any(within.start <= b.time < within.end for b in thing.boxes))
        ]
        statements = layout(small_rgb(image))
        captions.append((keyframe.time, describe(tone, nearest, texts_here, statements, things)))
    return captions


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _faces(faces: Sequence[Face]) -> str:
    if len(faces) > 1:
        return f"{len(faces)} faces"
    face = faces[0]
    size = "large " if face.height > 0.4 else "small " if face.height < 0.15 else ""
    middle = face.x + face.width / 2
    side = "on the left" if middle < 0.4 else "on the right" if middle > 0.6 else "in the middle"
    return f"one {size}face {side}"


def _things(things: Sequence[SeenObject]) -> str:
    """Return the things by name, people first: "At least two people, a dog and a chair"."""
    seen = Counter(box.time for thing in things if thing.name == "person" for box in thing.boxes)
    people = max(seen.values(), default=0)  # at one time: a person may have several tracks
    others = sorted({thing.name for thing in things} - {"person"})
    names = ["a person" if people == 1 else "at least two people"] if people else []
    names += map(with_article, others)
    listed = _join_names(names)
    return listed[0].upper() + listed[1:]
