"""Gradual transitions: dissolves, fades through black or another plain frame, sweeps.

In a dissolve every frame is a blend of the first and the last one, which do not look alike. This
holds for nothing else in a video: where the camera or objects move, the frames between are not
blends. A sweep is a short burst of change between two still frames that do not look alike: one
pushes the other away. Where only objects move, much of the frame remains.
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
from mustsee.media.frames import Thumbnail

DISSOLVE_SECONDS = (0.5, 1.0, 1.7, 2.7)  # seconds of the dissolves that are tried, ends included
MAX_UNEXPLAINED_SHARE = 0.3  # share of the change that may be motion, not blend
MAX_END_SHARE = 0.25  # share of the change within the first and the last sixth: the ends are still
MAX_SWEEP_S = 1.0  # seconds of a sweep
MAX_CALM_SHARE = 0.35  # share of a sweep's greatest change that is allowed before and after it
MIN_SWEPT_LOSS = 0.5  # loss (see `unlike`) of most of the frame from a sweep's start to its end
PLAIN_BORDER_S = 0.5  # seconds from a plain passage within which a cut counts as its border
MIN_PLAIN_SHOT_S = 0.5  # seconds of a plain passage, after a cut, that is a shot of its own
MAX_PLAIN_STD = 3.0  # standard deviation of brightness up to which a frame is plain
MAX_DARK_STD = 10.0  # the same for a frame that is dark on average, in which nothing is lit
# net change as a share of the path's: a blend goes straight from end to end
MIN_STRAIGHT_SHARE = 1 / 3
# loss (see `unlike`) of most of the frame from a dissolve's start to its end
MIN_DISSOLVE_LOSS = 0.35


@dataclass(frozen=True)
class FrameBrightness:
    """A thumbnail at a time, with the mean and standard deviation of its brightness.

    `path`: the sum of all changes between consecutive thumbnails up to it.
    """

    time: float
    thumbnail: Thumbnail
    mean: float
    spread: float
    path: float

    @cached_property
    def pixels(self) -> NDArray[np.float32]:
        """The vector that `blend` compares."""
        return coarse(self.thumbnail)

    def plain(self, black: float) -> bool:
        """Whether the frame is black or of one brightness."""
        dark = self.mean < 16 + black * 219 / 255
        return self.spread < (MAX_DARK_STD if dark else MAX_PLAIN_STD)


def measure_brightness(time: float, thumbnail: Thumbnail, path: float) -> FrameBrightness:
    """Return a thumbnail with its measurements."""
    import cv2

    mean, spread = cv2.meanStdDev(thumbnail.luma)
    return FrameBrightness(time, thumbnail, mean.item(), spread.item(), path)


class GradualFinder:
    """Finds gradual transitions while thumbnails go by, some six per second.

    A transition is returned up to `DISSOLVE_SECONDS[-1]` seconds late. `black`: mean brightness (0
    to 255) up to which a frame counts as black; null finds no fades. `min_change`: least change
    from end to end; null finds no dissolves. Dissolves and sweeps are returned if their middle lies
    at `since` or later and before `until`, fades if their beginning does.
    """

    def __init__(
        self,
        black: float | None,
        min_change: float | None,
        since: float = float("-inf"),
        until: float = float("inf"),
    ) -> None:
        self._black, self._min_change = black, min_change
        self._since, self._until = since, until
        self._seen: deque[FrameBrightness] = deque()
        self._begun = True  # whether a plain passage that goes on began in the span
        self._opens = True  # whether all frames have been plain
        self._plain: list[float] = []  # times of the plain frames since the last other frame
        self._after: float | None = None  # time of the first other frame after them
        self._cut_at = float("-inf")
        self._path = 0.0

    def see(
        self, time: float, thumbnail: Thumbnail, moved: float, cuts: Sequence[float] = ()
    ) -> list[float]:
        """Take the next thumbnail, its change from the one before, and the hard cuts found since.

        Returns the times of transitions, in their middle. No transition extends over a cut.
        """
        for cut in cuts:
            self._cut(cut)
        self._path += moved
        now = measure_brightness(time, thumbnail, self._path)
        transitions = self._fade(now, self._black) if self._black is not None else []
        self._seen.append(now)
        while self._seen[0].time < time - DISSOLVE_SECONDS[-1] - 0.5:
            self._seen.popleft()
        middle = (
            None if self._min_change is None else self._dissolve_or_sweep(now, self._min_change)
        )
        if middle is not None:
            transitions += [middle] if self._since <= middle < self._until else []
            while len(self._seen) > 1:
                self._seen.popleft()
        return transitions

    @property
    def due(self) -> bool:
        """Whether a fade that will be returned is still going on."""
        return bool(self._plain)

    def rest(self) -> list[float]:
        """Return the last fade if its decision was pending: its middle, or its end where it lasts
        after a cut, or from the video's beginning on.
        """
        plain_times, after, opens = self._plain, self._after, self._opens
        self._plain, self._after, self._opens = [], None, False
        if not plain_times or after is None:
            return []
        if self._cut_at < plain_times[0] - PLAIN_BORDER_S and not opens:
            return [plain_times[len(plain_times) // 2]]
        # A fade with a cut into or out of the black is already found as that cut.
        lasted = plain_times[-1] - max(plain_times[0], self._cut_at)
        return [after] if lasted >= MIN_PLAIN_SHOT_S and self._cut_at <= plain_times[-1] else []

    def _cut(self, cut: float) -> None:
        self._cut_at = cut
        while self._seen and self._seen[0].time < cut:
            self._seen.popleft()

    def _fade(self, now: FrameBrightness, black: float) -> list[float]:
        """The transition through a passage of plain frames that has ended (see `rest`)."""
        if now.plain(black):
            if self._begun and (self._plain or self._since <= now.time < self._until):
                self._plain.append(now.time)
            # A fade that began before `since` is not returned.
            self._begun = self._begun and bool(self._plain)
            self._after = None
            return []
        self._begun = True
        if not self._plain:
            self._opens = False
            return []
        self._after = self._after or now.time
        return self.rest() if now.time >= self._after + PLAIN_BORDER_S else []

    def _dissolve_or_sweep(self, now: FrameBrightness, min_change: float) -> float | None:
        middle = self._dissolve(now, min_change)
        return self._sweep(now, min_change) if middle is None else middle

    def _sweep(self, now: FrameBrightness, min_change: float) -> float | None:
        """The middle of a sweep that ended with the frame before this one, or None."""
        if len(self._seen) < 5 or now.path - self._seen[0].path < min_change:
            return None
        seen = list(self._seen)
        calm, greatest, end = now.path - seen[-2].path, 0.0, len(seen) - 2
        if seen[-2].path - seen[-3].path <= calm or seen[end].spread < MAX_DARK_STD:
            return None
        for n in range(end - 1, 0, -1):
            if seen[end].time - seen[n].time > MAX_SWEEP_S:
                return None
            moved, before = seen[n + 1].path - seen[n].path, seen[n].path - seen[n - 1].path
            greatest = max(greatest, moved)
            calm_around = max(calm, before)
            if end - n >= 2 and calm_around < moved and calm_around <= MAX_CALM_SHARE * greatest:
                if seen[n].spread < MAX_DARK_STD:
                    return None  # A dark frame: this is a fade.
                if change(seen[n].thumbnail, seen[end].thumbnail) < min_change:
                    return None
                swept = unlike(seen[n].thumbnail, seen[end].thumbnail, 1 / 3) >= MIN_SWEPT_LOSS
                return seen[(n + end) // 2].time if swept else None
        return None

    def _dissolve(self, now: FrameBrightness, min_change: float) -> float | None:
        seen = self._seen
        if now.spread < MAX_DARK_STD or now.path - seen[0].path < min_change:
            return None  # A dark frame: this is a fade.
        recent = list(seen)
        first = len(recent) - 1
        for length in DISSOLVE_SECONDS:
            while first and recent[first - 1].time >= now.time - length - 0.05:
                first -= 1
            if len(recent) - first < 4 or now.time - recent[first].time < length - 0.25:
                return None
            if (middle := dissolve_middle(recent[first:], min_change)) is not None:
                return middle
        return None


def dissolve_middle(frames: Sequence[FrameBrightness], min_change: float) -> float | None:
    """Return the middle of a dissolve from the first frame to the last one, or None."""
    start, end = frames[0], frames[-1]
    path_length = end.path - start.path
    # The change from end to end is never greater than the sum of the changes between.
    if path_length < min_change or start.spread < MAX_DARK_STD:
        return None
    if change(start.thumbnail, end.thumbnail) < max(min_change, MIN_STRAIGHT_SHARE * path_length):
        return None
    shares = [0.0] * len(frames)
    middle = len(frames) // 2
    for n in (middle, *range(1, middle), *range(middle + 1, len(frames) - 1)):
        shares[n], residue = blend(start.pixels, frames[n].pixels, end.pixels)
        if residue > MAX_UNEXPLAINED_SHARE:
            return None  # The middle frame rules out nearly every span, so it is tried first.
    shares, slack = shares[1:-1], max(MAX_END_SHARE, 1.5 / len(frames))
    if shares[0] > slack or shares[-1] < 1 - slack:
        return None
    if sum(0.1 < share < 0.9 for share in shares) < 2:
        return None  # Fewer than two frames between the ends: a cut.
    if any(y < x - 0.1 for x, y in pairwise(shares)):
        return None
    if unlike(start.thumbnail, end.thumbnail, 1 / 3) < MIN_DISSOLVE_LOSS:
        return None
    half = min(range(len(shares)), key=lambda n: abs(shares[n] - 0.5))
    return frames[half + 1].time
