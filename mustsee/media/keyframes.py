"""Keyframes: which frames of each shot are kept as small JPEGs, chosen while frames go by.

A shot's end is known only when it has passed, so a few candidate frames of the current stretch are
held (by reference, the older ones thinned out when the stretch is long), and the best of them is
encoded when the stretch ends. Nothing else of the video is held.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.media.changes import change
from mustsee.media.pictures import Thumbnail, Thumbnails, TimedFrame
from mustsee.records import Keyframe, Span

CANDIDATE_SPACING_S = 0.25  # seconds between candidate frames
RECENT_S = 2.0  # seconds for which every candidate is held, since cuts are found that late
MAX_OLDER_CANDIDATES = 6  # older candidates held, spread over the stretch
MIN_PICTURE_S = 1.0  # seconds that a picture stays at least to be one of its own within a shot


@dataclass(frozen=True, kw_only=True)
class KeyframeRules:
    """`per_stretch` keyframes from each stretch: a shot, or `every` seconds of a longer one, or
    less where the picture has changed by `change` within it (mean difference of brightness and
    colour, in 8-bit levels; null: that begins no stretch). At most `most` in all, then spread over
    the video. `longest`: the JPEG's longer side in pixels.
    """

    per_stretch: int = 1
    every: float = 4.0
    change: float | None = 25.0
    most: int = 240
    longest: int = 512
    quality: int = 80


@dataclass(frozen=True)
class EncodedCandidate:
    """An encoded candidate, at a time in seconds."""

    time: float
    jpeg: bytes


class KeyframePicker:
    """Picks keyframes while frames go by. `fresh`: whether the first of them begins a shot."""

    def __init__(
        self, rules: KeyframeRules, small: Thumbnails | None = None, *, fresh: bool = True
    ) -> None:
        self._rules = rules
        self._held: list[TimedFrame] = []
        self._next = float("-inf")
        self._begin: float | None = None
        self._fresh = fresh  # whether the stretch begins a shot
        self._small = small or Thumbnails()
        self._look: Thumbnail | None = None  # what the stretch began with
        self.kept: list[EncodedCandidate] = []

    def see(self, picture: TimedFrame, cuts: Sequence[float]) -> None:
        """Look at the next frame, and at the cuts just found."""
        time = picture.time
        if self._begin is None:
            self._begin = time
        if cuts:
            self._cut(cuts)
        while time - self._begin >= self._rules.every:
            self._close(self._begin + self._rules.every, fresh=False)
        if time < self._next:
            return
        if self._changed(picture):
            self._close(time, fresh=False)
        self._held.append(picture)
        self._next = time + CANDIDATE_SPACING_S
        older = [p.time for p in self._held if p.time < time - RECENT_S]
        if len(older) > MAX_OLDER_CANDIDATES:
            del self._held[most_crowded(older)]

    def _close(self, end: float, *, fresh: bool) -> None:
        """Keep the best candidates of the stretch that ends, and begin the next one."""
        begin, rules = self._begin or 0.0, self._rules
        mine = [p for p in self._held if p.time < end]
        if mine and (self._fresh or end - begin >= min(MIN_PICTURE_S, rules.every / 4)):
            seconds = (end - begin) / rules.per_stretch
            targets = [begin + (k + 0.5) * seconds for k in range(rules.per_stretch)]
            best = {min(mine, key=lambda p, t=t: abs(p.time - t)).time: None for t in targets}
            for picture in (p for p in mine if p.time in best):
                self._keep(picture)
        self._held = self._held[len(mine) :]
        self._begin, self._fresh, self._look = end, fresh, None
        self._next = self._held[-1].time + CANDIDATE_SPACING_S if self._held else float("-inf")

    def _changed(self, picture: TimedFrame) -> bool:
        """Does the picture differ from what the stretch began with, after a while?"""
        if self._rules.change is None:
            return False
        now = self._small(picture.frame)
        self._look = self._look or now
        lasted = picture.time - (self._begin or 0.0) >= MIN_PICTURE_S
        return lasted and change(self._look, now) >= self._rules.change

    def _keep(self, picture: TimedFrame) -> None:
        rules = self._rules
        keep(
            self.kept,
            EncodedCandidate(picture.time, picture.jpeg(rules.longest, rules.quality)),
            rules.most,
        )

    def _cut(self, cuts: Sequence[float]) -> None:
        for cut in sorted(cuts):
            if self._begin is not None and cut > self._begin:
                self._close(cut, fresh=True)
            else:  # found late: the stretch that has just begun is part of the new shot
                self._fresh = True

    def finish(self, end: float, cuts: Sequence[float] = ()) -> None:
        """The video is over; `cuts` are the last ones found."""
        self._cut(cuts)
        if self._begin is not None:
            self._close(max(end, self._begin), fresh=True)


def keep(kept: list[EncodedCandidate], more: EncodedCandidate, most: int) -> None:
    """Adds one to those that are kept, and gives one up where they are more than `most`."""
    kept.append(more)
    if len(kept) > most:
        del kept[most_crowded([k.time for k in kept])]


def most_crowded(times: Sequence[float]) -> int:
    """The one to give up: whose neighbours are nearest to each other (never the first or the last,
    unless there are no others).
    """
    gaps = [later - earlier for earlier, later in zip(times, times[2:], strict=False)]
    return gaps.index(min(gaps)) + 1 if gaps else len(times) - 1


def number_shots(kept: Sequence[EncodedCandidate], shots: Sequence[Span]) -> tuple[Keyframe, ...]:
    """The keyframes with the numbers of their shots, counted from 0."""
    starts = [shot.start for shot in shots]
    return tuple(
        Keyframe(time=k.time, shot=max(0, bisect_right(starts, k.time) - 1), jpeg=k.jpeg)
        for k in kept
    )
