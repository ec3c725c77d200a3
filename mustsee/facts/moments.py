"""Moments of a video, the scenes that they belong to, the windows shown to a writer, and the
moments at which a fact may hold besides those at which it is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.facts.table import find_touched
from mustsee.nn.vectors import Index, unit
from mustsee.records import Caption, Fact, Frame, ImageVector, Span, Video
from mustsee.verify.conditions.seen import video_span

# Moments of a short video, about: among fewer, few options are known to be false.
LEAST_MOMENTS = 14
SHORTEST_S = 1.5  # seconds of a moment of a short video, about
MAX_DISTANCE = 0.1  # root mean square between mean descriptors of moments that look alike
Encode = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True)
class MomentRules:
    """How a video is cut.

    A shot of more than one and a half times that is divided, and shots of less than half of it
    are joined.
    """

    seconds: float = 6
    """Length of a moment, about, or a fourteenth of a short video; its borders are cuts where
    shots allow it."""
    window: int = 5
    """Moments that the writer is shown at once."""
    windows: int = 60
    """Windows of a video, at most; of a longer one those where people and places come again,
    the picture or the words change, and some of every stretch."""
    overview_seconds: float = 600
    """Length of a part of such a longer video, seconds, about; each part gets an overview of
    its own."""

    def __post_init__(self) -> None:
        for name in ("seconds", "window", "windows", "overview_seconds"):
            if getattr(self, name) <= 0:
                raise UserError(f"ask.settings.moments.{name}={getattr(self, name)!r}: above 0")


def moments_of(video: Video, rules: MomentRules) -> tuple[Span, ...]:
    """Return the moments of a video, in order and without gaps. Their borders are cuts, wherever
    shots are neither much longer nor much shorter than a moment.
    """
    whole = video_span(video)
    seconds = min(rules.seconds, max(SHORTEST_S, whole.seconds / LEAST_MOMENTS))
    cuts = [s.start for s in video.shots or () if whole.start < s.start < whole.end]
    borders = [whole.start]
    for cut in (*sorted(cuts), whole.end):
        length = cut - borders[-1]
        if length < seconds / 2 and cut < whole.end:
            continue
        if length < seconds / 2 and len(borders) > 1:
            borders[-1] = cut  # A short rest joins the moment before it.
            continue
        pieces = max(1, math.ceil(length / (1.5 * seconds)))
        start = borders[-1]
        borders += [start + length * n / pieces for n in range(1, pieces + 1)]
    return tuple(Span(a, b) for a, b in pairwise(borders) if b > a)


def scenes_of(
    moments: Sequence[Span], frames: Sequence[Frame], facts: Sequence[Fact]
) -> tuple[int, ...]:
    """Return the scene of each moment, numbered in order of first appearance. Moments are of one
    scene if they follow each other and look alike, or if a fact says that they share a place.
    """
    scene = list(range(len(moments)))

    def join(one: int, other: int) -> None:
        old, new = max(scene[one], scene[other]), min(scene[one], scene[other])
        scene[:] = [new if number == old else number for number in scene]

    looks = [_look(moment, frames) for moment in moments]
    for n, (before, after) in enumerate(pairwise(looks)):
        if _look_alike(before, after):
            join(n, n + 1)
    for fact in facts:
        if fact.kind == "place":
            first, *others = find_touched(fact.spans, moments) or [0]
            for other in others:
                join(first, other)
    numbers = {old: new for new, old in enumerate(dict.fromkeys(scene))}
    return tuple(numbers[number] for number in scene)


def _look(moment: Span, frames: Sequence[Frame]) -> NDArray[np.float32] | None:
    inside = [f.descriptor for f in frames if moment.start <= f.time < moment.end]
    return np.asarray(inside, np.float32).mean(axis=0) if inside else None


def _look_alike(one: NDArray[np.float32] | None, other: NDArray[np.float32] | None) -> bool:
    if one is None or other is None:
        return False
    return float(np.sqrt(np.mean((one - other) ** 2))) < MAX_DISTANCE


def find_alike(
    moments: Sequence[Span], frames: Sequence[Frame], scenes: Sequence[int]
) -> NDArray[np.bool_]:
    """Return for each two moments whether they look alike, or are of one scene (`[n, n]`)."""
    looks = [_look(moment, frames) for moment in moments]
    numbered = list(zip(scenes, looks, strict=True))
    return np.array(
        [[a == b or _look_alike(one, two) for b, two in numbered] for a, one in numbered], bool
    )


def looks_of(moments: Sequence[Span], frames: Sequence[Frame]) -> NDArray[np.float32]:
    """Return the mean descriptor of each moment, less the mean of all (`[n, 96]`); zeros for one
    without frames.
    """
    looks = [_look(moment, frames) for moment in moments]
    size = next((len(look) for look in looks if look is not None), 1)
    rows = np.zeros((len(moments), size), np.float32)
    known = [n for n, look in enumerate(looks) if look is not None]
    for n in known:
        rows[n] = looks[n]
    if known:
        rows[known] -= rows[known].mean(axis=0)
    return rows


def image_looks_of(moments: Sequence[Span], vectors: Sequence[ImageVector]) -> NDArray[np.float32]:
    """Return the mean vector of the keyframes of each moment (`[n, d]`); for one without any, that
    of the keyframe nearest its middle. Less their mean, as `looks_of`, they found fewer recurrences
    (docs/measured.md).
    """
    rows = np.zeros((len(moments), len(vectors[0].values)), np.float32)
    for row, moment in zip(rows, moments, strict=True):
        middle = (moment.start + moment.end) / 2
        inside = [v for v in vectors if moment.start <= v.time < moment.end]
        shown = inside or [min(vectors, key=lambda v: abs(v.time - middle))]
        row[:] = np.asarray([v.values for v in shown], np.float32).mean(axis=0)
    return rows


def windows_of(moments: Sequence[Span], rules: MomentRules) -> tuple[tuple[int, int], ...]:
    """Return all windows as numbers of their first moment and of the one behind their last. Each
    overlaps the one before it by a moment.
    """
    step = max(1, rules.window - 1)
    starts = range(0, max(1, len(moments) - 1), step)
    return tuple((start, min(len(moments), start + rules.window)) for start in starts)


def search_moments(
    facts: Sequence[Fact],
    moments: Sequence[Span],
    *,
    frames: Sequence[Frame],
    vectors: Sequence[ImageVector],
    captions: Sequence[Caption],
    encode: Encode,
    most: int,
) -> Mapping[str, tuple[int, ...]]:
    """Return for each fact the numbers of at most `most` moments that it does not claim: those that
    are nearest by the words of other facts and captions there, and by the looks of its own. Looks
    are the `vectors` of keyframes, or without any the descriptors of frames.
    """
    if not facts or most < 1:
        return {}
    own = {fact.fact_id: set(find_touched(fact.spans, moments)) for fact in facts}
    texts = [(f.phrase, n) for f in facts for n in own[f.fact_id]]
    texts += [
        (c.text, n) for c in captions for n, m in enumerate(moments) if m.start <= c.time < m.end
    ]
    index = Index(encode([text for text, _ in texts]))
    _, rows = index.search(encode([fact.phrase for fact in facts]), len(texts))
    looks = unit(image_looks_of(moments, vectors) if vectors else looks_of(moments, frames))
    look_index = Index(looks)
    found: dict[str, tuple[int, ...]] = {}
    for number, fact in enumerate(facts):
        claimed = own[fact.fact_id]
        by_words = [texts[row][1] for row in rows[number] if row >= 0]
        mean = looks[sorted(claimed)].mean(axis=0, keepdims=True)
        _, near = look_index.search(mean, len(moments))
        by_looks = [int(row) for row in near[0] if row >= 0]
        turns = _in_turns(*([m for m in by if m not in claimed] for by in (by_words, by_looks)))
        found[fact.fact_id] = tuple(sorted(turns[:most]))
    return found


def _in_turns(some: Sequence[int], others: Sequence[int]) -> list[int]:
    """Return the distinct numbers of both in turns, the first of `some` first."""
    firsts, seconds = list(dict.fromkeys(some)), list(dict.fromkeys(others))
    length = max(len(firsts), len(seconds))
    turns = (part[n] for n in range(length) for part in (firsts, seconds) if n < len(part))
    return list(dict.fromkeys(turns))
