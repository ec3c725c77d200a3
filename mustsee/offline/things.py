"""Phrases on things and people that two detectors see (`mustsee.media.objects`), such as "a dog",
"at least two people" and "a car left of the middle". What only one detector sees is left open, and
so is a thing where a frame shows one that is easily taken for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from mustsee.errors import NotInstalled
from mustsee.media.frames import decode
from mustsee.media.objects import (
    EFFICIENTDET_FOLDER,
    NAMES,
    PERSON,
    SSD_FOLDER,
    AgreeingDetectors,
    Detect,
    Detection,
    ObjectRules,
    find_shared,
    load_detectors,
)
from mustsee.nn import weights
from mustsee.offline.looking import threads
from mustsee.records import ObjectBox, SeenObject
from mustsee.text import with_article

KEPT = ObjectRules()  # the rules that say which detections are of both
MIN_SAMPLES = 2  # frames in which both detectors see what is listed as a fact
# Share of the smaller of two boxes up to which both are of different people. Of 62 labelled frames
# with two people it leaves out 7, of 4 with one person that got two boxes all but one.
MAX_COVERED = 0.6
CAN_BE_SEEN = " can be seen"
BESIDE_MIDDLE = "{} {} of the middle"
TALL = "{} as tall as the picture"
# Place of a box's middle, from the left, 0 to 1, up to which the box may be taken for one in the
# left half; one that stands in the middle is in neither half.
MAX_LEFT = 0.45
# Heights of a box, as shares of the picture's: from the first on it is as tall, and not below the
# second.
TALL_HEIGHT, NOT_TALL_HEIGHT = 0.93, 0.75
# Things that a detector takes for each other: where one is named, the others are left open.
ALIKE = (
    {"car", "truck", "bus", "train"},
    {"bicycle", "motorcycle"},
    {"cat", "dog", "sheep", "cow", "horse", "bear", "teddy bear"},
    {"chair", "couch", "bed", "bench"},
    {"bowl", "cup", "wine glass", "vase", "bottle"},
    {"backpack", "handbag", "suitcase"},
    {"skateboard", "surfboard", "snowboard", "skis"},
    {"airplane", "bird", "kite"},
)


@dataclass(frozen=True, kw_only=True)
class ShownThing:
    """At least `least` things of a name; with a `half`, "left" or "right", within that half of the
    picture; `is_tall`: from its top to its bottom.
    """

    name: str
    least: int = 1
    half: str = ""
    is_tall: bool = False


Box = Detection | ObjectBox


def _all_things() -> Mapping[str, ShownThing]:
    """Return all things by phrase, without "can be seen"."""
    things = {
        "at least two people": ShownThing(name=PERSON, least=2),
        TALL.format("a person"): ShownThing(name=PERSON, is_tall=True),
    }
    for name in filter(None, NAMES.values()):
        phrase = with_article(name)
        things[phrase] = ShownThing(name=name)
        for half in ("left", "right"):
            things[BESIDE_MIDDLE.format(phrase, half)] = ShownThing(name=name, half=half)
    return things


THINGS = _all_things()


def seen_phrases(objects: Sequence[SeenObject]) -> dict[str, list[float]]:
    """Return for each phrase the times at which it is so, at least `MIN_SAMPLES`, in order."""
    boxes: dict[float, dict[str, list[ObjectBox]]] = {}
    for thing in objects:
        for box in thing.boxes:
            boxes.setdefault(box.time, {}).setdefault(thing.name, []).append(box)
    times: dict[str, list[float]] = {}
    for phrase, thing in THINGS.items():
        shown = [t for t in sorted(boxes) if _shows(thing, boxes[t].get(thing.name, ()))]
        if len(shown) >= MIN_SAMPLES:
            times[phrase] = shown
    return times


def find_thing(phrase: str) -> ShownThing | None:
    """Return what a phrase, with or without "can be seen", is on; null for another phrase."""
    return THINGS.get(phrase.removesuffix(CAN_BE_SEEN))


class DetectedFrame:
    """What two detectors see in a frame. Each runs when it is first needed, the second only where
    the first leaves it to it, since it takes three times as long.
    """

    def __init__(self, jpeg: bytes) -> None:
        self._jpeg = jpeg

    @cached_property
    def _firsts(self) -> Sequence[Detection] | None:
        return self._detect(lambda detectors: detectors.first)

    @cached_property
    def _seconds(self) -> Sequence[Detection] | None:
        return self._detect(lambda detectors: detectors.second)

    def may_show(self, thing: ShownThing) -> bool | None:
        """Whether both detectors may see a thing, by what the first sees; null where it leaves open
        what the frame shows, whatever the second sees.
        """
        if self._firsts is None:
            return None
        own = [d for d in self._firsts if d.name == thing.name and KEPT.admits(d)]
        if sum(_is_inside(thing, d) for d in own) >= thing.least:
            return True
        return None if _may_be(thing, self._firsts) else False

    def shows(self, thing: ShownThing) -> bool | None:
        """Whether it shows a thing: both detectors see it, or neither sees anything that it may be,
        however doubtful; else null, also where they are not installed. People hide each other, so
        one person leaves open whether there are two.
        """
        if self.may_show(thing) is None:
            return None
        firsts, seconds = self._firsts or (), self._seconds or ()
        kept = find_shared(firsts, seconds, KEPT)
        if _shows(thing, [d for d in kept if d.name == thing.name]):
            return True
        return None if _may_be(thing, (*firsts, *seconds)) else False

    def _detect(self, of: Callable[[AgreeingDetectors], Detect]) -> Sequence[Detection] | None:
        image, detectors = decode(self._jpeg), _own.detectors
        return None if image is None or detectors is None else of(detectors)(image)


def shown_in(thing: ShownThing, jpegs: Sequence[bytes]) -> list[bool | None]:
    """Return for each frame whether it shows a thing (`DetectedFrame.shows`); several are looked at
    at the same time.
    """
    return list(threads().map(lambda jpeg: frame_of(jpeg).shows(thing), jpegs))


def is_shown(thing: ShownThing, jpegs: Sequence[bytes]) -> bool | None:
    """Whether frames show a thing: one is enough, and none may leave it open. The frames that may
    show it come first, one by one.
    """
    may = list(threads().map(lambda jpeg: frame_of(jpeg).may_show(thing), jpegs))
    is_open = not jpegs or None in may
    for jpeg in (jpeg for jpeg, one in zip(jpegs, may, strict=True) if one):
        (verdict,) = shown_in(thing, [jpeg])
        if verdict:
            return True
        is_open = is_open or verdict is None
    return None if is_open or None in shown_in(thing, jpegs) else False


def _shows(thing: ShownThing, boxes: Sequence[Box]) -> bool:
    """Whether boxes that are of a thing's name show it."""
    apart: list[Box] = []
    for box in boxes:
        if _is_inside(thing, box) and all(_covered(box, b) <= MAX_COVERED for b in apart):
            apart.append(box)
    return len(apart) >= thing.least


def _is_inside(thing: ShownThing, box: Box) -> bool:
    """Whether a box lies where a thing is."""
    if thing.is_tall:
        return box.height >= TALL_HEIGHT
    if not thing.half:
        return True
    return box.x + box.width <= 0.5 if thing.half == "left" else box.x >= 0.5


def _reaches(thing: ShownThing, box: Box) -> bool:
    """Whether a box may be taken for one that lies there."""
    if thing.is_tall:
        return box.height >= NOT_TALL_HEIGHT
    if not thing.half or _is_inside(thing, box):
        return True
    middle = box.x + box.width / 2
    return middle <= MAX_LEFT if thing.half == "left" else middle >= 1 - MAX_LEFT


def _may_be(thing: ShownThing, detections: Sequence[Detection]) -> bool:
    """Whether one of the detections may be a thing, or one that is easily taken for it."""
    names = {thing.name}.union(*(group for group in ALIKE if thing.name in group))
    return any(d.name in names and _reaches(thing, d) for d in detections)


def _covered(one: Box, other: Box) -> float:
    """Return the share of the smaller of two boxes that the other covers, 0 to 1."""
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    smaller = min(one.width * one.height, other.width * other.height)
    return max(0.0, width) * max(0.0, height) / max(1e-9, smaller)


@lru_cache(maxsize=256)
def frame_of(jpeg: bytes) -> DetectedFrame:
    """Return what the detectors see in a frame, which is asked about many things."""
    return DetectedFrame(jpeg)


class _Detectors(threading.local):
    """Detectors for each thread, because a network is not safe for several."""

    @cached_property
    def detectors(self) -> AgreeingDetectors | None:
        import cv2

        cv2.setNumThreads(1)  # The frames are spread over threads; more take a tenth more CPU time.
        try:
            folders = weights.find(EFFICIENTDET_FOLDER), weights.find(SSD_FOLDER)
            return load_detectors(*folders, KEPT)
        except NotInstalled:
            return None


_own = _Detectors()
