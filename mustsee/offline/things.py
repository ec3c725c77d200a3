"""Phrases on things and people that two detectors see (`mustsee.media.objects`), such as "a dog can
be seen" and "exactly two people can be seen". What only one detector sees is left open.
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
    REPEAT_OVERLAP,
    SSD_FOLDER,
    AgreeingDetectors,
    Detection,
    ObjectRules,
    load_detectors,
    overlap,
)
from mustsee.nn import weights
from mustsee.records import SeenObject

PERSON = "person"
MIN_SAMPLES = 2  # frames in which both detectors see what is listed as a fact
COUNTED = {1: "one person", 2: "two people", 3: "three people", 4: "four people"}
PEOPLE = {f"exactly {words}": count for count, words in COUNTED.items()}
THINGS = {
    f"{'an' if name[0] in 'aeiou' else 'a'} {name}": name
    for name in NAMES.values()
    if name not in ("", PERSON)
}
_SEEN = re.compile(r"(.+?)(?: can be seen)?")


def phrases_of(objects: Sequence[SeenObject]) -> dict[str, list[float]]:
    """Return for each phrase the times at which it is so, at least `MIN_SAMPLES`, in order."""
    boxes = [(box.time, thing.name) for thing in objects for box in thing.boxes]
    times: dict[str, list[float]] = {}
    people = Counter(time for time, name in boxes if name == PERSON)
    for time, count in sorted(people.items()):
        if count in COUNTED:
            times.setdefault(f"exactly {COUNTED[count]} can be seen", []).append(time)
    named = {name: phrase for phrase, name in THINGS.items()}
    for time, name in sorted(set(boxes)):
        if name != PERSON:
            times.setdefault(f"{named[name]} can be seen", []).append(time)
    return {phrase: seen for phrase, seen in times.items() if len(seen) >= MIN_SAMPLES}


def bare_phrase(phrase: str) -> str | None:
    """Return a phrase on things or people without "can be seen"; null for another phrase."""
    match = _SEEN.fullmatch(phrase)
    bare = match[1] if match else phrase
    return bare if bare in PEOPLE or bare in THINGS else None


def shows_thing(bare: str, jpeg: bytes) -> bool | None:
    """Whether a frame shows what `bare_phrase` returned; null where the detectors differ, or are
    not installed.
    """
    compared = _compare(jpeg)
    if compared is None:
        return None
    name = THINGS.get(bare, PERSON)
    kept, doubtful = ([d for d in found if d.name == name] for found in compared)
    if bare in THINGS:
        return True if kept else None if doubtful else False
    if len(kept) > PEOPLE[bare]:
        return False
    if any(all(overlap(d, k) < REPEAT_OVERLAP for k in kept) for d in doubtful):
        return None  # There may be another person.
    return len(kept) == PEOPLE[bare]


@lru_cache(maxsize=256)
def _compare(jpeg: bytes) -> tuple[Sequence[Detection], Sequence[Detection]] | None:
    image, detect = decode(jpeg), _detectors()
    return None if image is None or detect is None else detect.compare(image)


@cache
def _detectors() -> AgreeingDetectors | None:
    try:
        folders = weights.find(EFFICIENTDET_FOLDER), weights.find(SSD_FOLDER)
    except NotInstalled:
        return None
    return load_detectors(*folders, ObjectRules())
