"""Gradual transitions: dissolves, fades through black or through any other plain picture, sweeps.

A dissolve is a stretch whose pictures are blends of its first and its last one, which do not look
alike. Nothing else in a video is: where a camera or things move, what lies between is no blend.
A sweep is a short commotion between two pictures that stand and do not look alike: one picture
pushes the other away. Where only things move, much of the picture stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mustsee.media.changes import blend, change, coarse, unlike
from mustsee.media.pictures import Thumbnail

# seconds of the stretches that are tried, the ends included
DISSOLVE_SECONDS = (0.5, 1.0, 1.7, 2.7)
MAX_UNEXPLAINED_SHARE = 0.3  # share of the change that may be no blend: things move meanwhile
MAX_END_SHARE = 0.25  # of the way at most in the first and the last sixth: the ends stand
MAX_SWEEP_S = 1.0  # seconds that a sweep takes at most
MAX_CALM_SHARE = 0.25  # of its greatest change, before and after it
MIN_SWEPT_LOSS = 0.5  # what most of the picture must have lost at its end, see `unlike`
PLAIN_BORDER_S = 0.5  # seconds from a plain passage within which a cut is its border
MAX_PLAIN_STD = 3.0  # standard deviation of brightness below which a picture is plain
MAX_DARK_STD = 10.0  # the same of one that is dark on the whole: nothing in it is lit
MIN_STRAIGHT_SHARE = 1 / 3  # of all that changes on the way: a blend goes straight from end to end
MIN_DISSOLVE_LOSS = 0.35  # what most of the picture must have lost at the other end, see `unlike`


@dataclass(frozen=True)
class FrameBrightness:
    """A picture at a time; mean and standard deviation of its brightness; `way`: the sum of all
    changes from picture to picture up to it.
    """

    time: float
    thumbnail: Thumbnail
    mean: float
    spread: float
    way: float

    @cached_property
    def pixels(self) -> NDArray[np.float32]:
        """For `blend`."""
        return coarse(self.thumbnail)

    def plain(self, black: float) -> bool:
        """Is the picture black, or all of one brightness?"""
        dark = self.mean < 16 + black * 219 / 255
        return self.spread < (MAX_DARK_STD if dark else MAX_PLAIN_STD)


def measure_brightness(time: float, thumbnail: Thumbnail, way: float) -> FrameBrightness:
    """A picture, measured."""
    import cv2

    mean, spread = cv2.meanStdDev(thumbnail.luma)
    return FrameBrightness(time, thumbnail, mean.item(), spread.item(), way)


class GradualFinder:
    """Finds gradual transitions while thumbnails go by, some six of them a second, up to
    `LENGTHS[-1]` seconds late. `black`: mean brightness (0 to 255) that counts as black, null for
    no fades. `least`: the change from end to end, null for no dissolves. Told are those whose
    middle, and fades whose beginning, is from `since` on and before `until`.
    """

    def __init__(
        self,
        black: float | None,
        least: float | None,
        since: float = float("-inf"),
        until: float = float("inf"),
    ) -> None:
        self._black, self._least = black, least
        self._since, self._until = since, until
        self._seen: deque[FrameBrightness] = deque()
        self._begun = False  # whether there was a picture that is not plain
        self._plain: list[float] = []  # times of the plain pictures since the last other one
        self._after: float | None = None  # time of the first other one after them
        self._cut_at = float("-inf")
        self._way = 0.0

    def see(
        self, time: float, thumbnail: Thumbnail, moved: float, cuts: Sequence[float] = ()
    ) -> list[float]:
        """Look at the next picture, its change from the one before, and the hard cuts found by now:
        no transition goes over one. Returns the times of transitions, in their middle.
        """
        for cut in cuts:
            self._cut(cut)
        self._way += moved
        now = measure_brightness(time, thumbnail, self._way)
        found = self._fade(now, self._black) if self._black is not None else []
        self._seen.append(now)
        while self._seen[0].time < time - DISSOLVE_SECONDS[-1] - 0.5:
            self._seen.popleft()
        middle = None if self._least is None else self._between(now, self._least)
        if middle is not None:
            found += [middle] if self._since <= middle < self._until else []
            while len(self._seen) > 1:
                self._seen.popleft()
        return found

    @property
    def due(self) -> bool:
        """Whether a fade goes on that is to be told."""
        return bool(self._plain)

    def rest(self) -> list[float]:
        """The fade that was still waited with."""
        passed, after = self._plain, self._after
        self._plain, self._after = [], None
        # the cut into or out of the black is enough
        lone = bool(passed) and self._cut_at < passed[0] - PLAIN_BORDER_S
        return [passed[len(passed) // 2]] if lone and after is not None else []

    def _cut(self, cut: float) -> None:
        self._cut_at = cut
        while self._seen and self._seen[0].time < cut:
            self._seen.popleft()

    def _fade(self, now: FrameBrightness, black: float) -> list[float]:
        """The middle of a passage of plain pictures, when no cut into or out of it was found."""
        if now.plain(black):
            if self._begun and (self._plain or self._since <= now.time < self._until):
                self._plain.append(now.time)
            self._begun = self._begun and bool(self._plain)  # what began before is another's
            self._after = None
            return []
        self._begun = True
        if self._plain:
            self._after = self._after or now.time
            if now.time >= self._after + PLAIN_BORDER_S:
                return self.rest()
        return []

    def _between(self, now: FrameBrightness, least: float) -> float | None:
        middle = self._dissolve(now, least)
        return self._sweep(now, least) if middle is None else middle

    def _sweep(self, now: FrameBrightness, least: float) -> float | None:
        """The middle of a sweep that has ended with the picture before this one, or None."""
        if len(self._seen) < 5 or now.way - self._seen[0].way < least:
            return None
        seen = list(self._seen)
        calm, greatest, end = now.way - seen[-2].way, 0.0, len(seen) - 2
        if seen[-2].way - seen[-3].way <= calm or seen[end].spread < MAX_DARK_STD:
            return None
        for n in range(end - 1, 0, -1):
            if seen[end].time - seen[n].time > MAX_SWEEP_S:
                return None
            moved, before = seen[n + 1].way - seen[n].way, seen[n].way - seen[n - 1].way
            greatest = max(greatest, moved)
            stood = max(calm, before)
            if end - n >= 2 and stood < moved and stood <= MAX_CALM_SHARE * greatest:
                if seen[n].spread < MAX_DARK_STD:
                    return None  # as in `_dissolve`
                if change(seen[n].thumbnail, seen[end].thumbnail) < least:
                    return None
                swept = unlike(seen[n].thumbnail, seen[end].thumbnail, 1 / 3) >= MIN_SWEPT_LOSS
                return seen[(n + end) // 2].time if swept else None
        return None

    def _dissolve(self, now: FrameBrightness, least: float) -> float | None:
        seen = self._seen
        if now.spread < MAX_DARK_STD or now.way - seen[0].way < least:
            return None  # what fades is no dissolve
        held = list(seen)
        first = len(held) - 1
        for length in DISSOLVE_SECONDS:
            while first and held[first - 1].time >= now.time - length - 0.05:
                first -= 1
            if len(held) - first < 4 or now.time - held[first].time < length - 0.25:
                return None
            if (middle := dissolve_middle(held[first:], least)) is not None:
                return middle
        return None


def dissolve_middle(stretch: Sequence[FrameBrightness], least: float) -> float | None:
    """The middle of a dissolve from the stretch's first picture to its last, or None."""
    start, end = stretch[0], stretch[-1]
    way = end.way - start.way
    # no change is greater than the sum of those on the way to it
    if way < least or start.spread < MAX_DARK_STD:
        return None
    if change(start.thumbnail, end.thumbnail) < max(least, MIN_STRAIGHT_SHARE * way):
        return None
    ways = [0.0] * len(stretch)
    middle = len(stretch) // 2
    for n in (middle, *range(1, middle), *range(middle + 1, len(stretch) - 1)):
        ways[n], rest = blend(start.pixels, stretch[n].pixels, end.pixels)
        if rest > MAX_UNEXPLAINED_SHARE:
            return None  # as nearly always, and at the first one
    ways, slack = ways[1:-1], max(MAX_END_SHARE, 1.5 / len(stretch))
    if ways[0] > slack or ways[-1] < 1 - slack:
        return None
    if sum(0.1 < way < 0.9 for way in ways) < 2:
        return None  # a cut
    if any(y < x - 0.1 for x, y in pairwise(ways)):
        return None
    if unlike(start.thumbnail, end.thumbnail, 1 / 3) < MIN_DISSOLVE_LOSS:
        return None
    half = min(range(len(ways)), key=lambda n: abs(ways[n] - 0.5))
    return stretch[half + 1].time
