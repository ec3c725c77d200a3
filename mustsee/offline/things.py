"""Phrases on things and people that two detectors see (`mustsee.media.objects`), such as "a dog can
be seen" and "at least two people can be seen". What only one detector sees is left open.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache

from mustsee.errors import NotInstalled
from mustsee.media.frames import decode
from mustsee.media.objects import (
    EFFICIENTDET_FOLDER,
    NAMES,
    PERSON,
    SSD_FOLDER,
    AgreeingDetectors,
    Detection,
    ObjectRules,
    load_detectors,
)
from mustsee.nn import weights
from mustsee.records import SeenObject

MIN_SAMPLES = 2  # frames in which both detectors see what is listed as a fact
PEOPLE = {"a person": 1, "at least two people": 2}  # the least number of people
THINGS = {
    f"{'an' if name[0] in 'aeiou' else 'a'} {name}": name
    for name in NAMES.values()
    if name not in ("", PERSON)
}
_PHRASES = {name: phrase for phrase, name in THINGS.items()}
_SEEN = re.compile(r"(.+?)(?: can be seen)?")


def phrases_of(objects: Sequence[SeenObject]) -> dict[str, list[float]]:
    """Return for each phrase the times at which it is so, at least `MIN_SAMPLES`, in order."""
    seen = Counter((box.time, thing.name) for thing in objects for box in thing.boxes)
    times: dict[str, list[float]] = {}
    for (time, name), count in sorted(seen.items()):
        people = [phrase for phrase, least in PEOPLE.items() if count >= least]
        for phrase in people if name == PERSON else (_PHRASES[name],):
            times.setdefault(f"{phrase} can be seen", []).append(time)
    return {phrase: own for phrase, own in times.items() if len(own) >= MIN_SAMPLES}


def bare_phrase(phrase: str) -> str | None:
    """Return a phrase on things or people without "can be seen"; null for another phrase."""
    match = _SEEN.fullmatch(phrase)
    bare = match[1] if match else phrase
    return bare if bare in PEOPLE or bare in THINGS else None


def shows_thing(bare: str, jpeg: bytes) -> bool | None:
    """Whether a frame shows what `bare_phrase` returned: both detectors see it, or neither sees
    anything of that name; else null, also where they are not installed. People hide each other, so
    one person leaves open whether there are two.
    """
    compared = _compare(jpeg)
    if compared is None:
        return None
    name = THINGS.get(bare, PERSON)
    kept, named = ([d for d in found if d.name == name] for found in compared)
    return True if len(kept) >= PEOPLE.get(bare, 1) else None if named else False


@lru_cache(maxsize=256)
def _compare(jpeg: bytes) -> tuple[Sequence[Detection], Sequence[Detection]] | None:
    image, detect = decode(jpeg), _detectors()
    return None if image is None or detect is None else detect.compare(image)


@cache
def _detectors() -> AgreeingDetectors | None:
    try:
        folders = weights.find(EFFICIENTDET_FOLDER), weights.find(SSD_FOLDER)
        return load_detectors(*folders, ObjectRules())
    except NotInstalled:
        return None
