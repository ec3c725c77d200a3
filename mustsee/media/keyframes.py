"""Keyframes: which frames of each shot are kept as small JPEGs, chosen while frames go by.

The end of a shot is known only after it has passed. A few candidate frames of the current segment
are therefore held by reference, thinned out when it is long, and the best of them is encoded when
it ends. No other frame is held. A black or blurred frame is the best only where the segment has no
other, and a black one is left out where its shot has another keyframe.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mustsee.media.changes import change
from mustsee.media.colours import is_black
from mustsee.media.frames import Image, Thumbnail, Thumbnails, TimedFrame, small_luma
from mustsee.records import Keyframe, Span

CANDIDATE_SPACING_S = 0.25  # seconds between candidate frames
RECENT_S = 2.0  # seconds for which every candidate is held, because cuts are found that late
MAX_OLDER_CANDIDATES = 6  # older candidates held, spread over the segment
MIN_SHARPNESS = 0.5  # least sharpness of a keyframe, as a share of that of a candidate like it
NEAR_S = 0.5  # seconds between candidates whose sharpness is compared, whatever they show
MAX_SAME_CHANGE = 10.0  # change (`changes.change`) up to which two candidates show about the same
SHARPNESS_PIXELS = 384  # longer side in pixels of the image whose sharpness is measured, at most
LIT_LUMA = 56  # brightness of a pixel, in either range of YUV, that is lit whatever its colour
LIT_SHARE = 0.02  # share of such pixels in a frame that is not black
MIN_VIEW_S = 1.0  # seconds that a view must last to be a segment of its own within a shot


@dataclass(frozen=True, kw_only=True)
class KeyframeRules:
    """How many keyframes are kept, from where, and how they are encoded.

    A segment is a shot, `every` seconds of a longer one, or less where the frame has changed by
    `change` within it (mean difference of brightness and colour, in 8-bit levels; null: a
    change begins no segment). Each segment gives `per_stretch` keyframes. If the video has more
    than `most`, that many are kept, spread over it.
    """

    per_stretch: int = 1
    """Keyframes of each shot, or of each span of a long one."""
    every: float = 4.0
    """Length of such a span, seconds."""
    change: float | None = 25.0
    """Change of the image that begins a new span, 0-255; null: none does."""
    most: int = 240
    """Keyframes of one video at most, spread evenly."""
    longest: int = 512
    """Longer side of a keyframe without its black bars, pixels."""
    quality: int = 80
    """JPEG quality, 1-100."""


@dataclass(frozen=True)
class EncodedCandidate:
    """A candidate frame as a JPEG, with its time in seconds. `black`: nothing of it is lit."""

    time: float
    jpeg: bytes
    black: bool = False


K = TypeVar("K", EncodedCandidate, Keyframe)


class KeyframePicker:
    """Picks keyframes while frames go by. `fresh`: the first frame begins a shot."""

    def __init__(
        self, rules: KeyframeRules, small: Thumbnails | None = None, *, fresh: bool = True
    ) -> None:
        self._rules = rules
        self._candidates: list[TimedFrame] = []
        self._next = float("-inf")
        self._begin: float | None = None
        self._fresh = fresh  # whether the segment begins a shot
        self._small = small or Thumbnails()
        self._first_view: Thumbnail | None = None  # the segment's first thumbnail
        self.kept: list[EncodedCandidate] = []

    def see(self, frame: TimedFrame, cuts: Sequence[float]) -> None:
        """Take the next frame, and the cuts just found."""
        time = frame.time
        if self._begin is None:
            self._begin = time
        if cuts:
            self._cut(cuts)
        while time - self._begin >= self._rules.every:
            self._close(self._begin + self._rules.every, fresh=False)
        if time < self._next:
            return
        if self._changed(frame):
            self._close(time, fresh=False)
        self._candidates.append(frame)
        self._next = time + CANDIDATE_SPACING_S
        older = [p.time for p in self._candidates if p.time < time - RECENT_S]
        if len(older) > MAX_OLDER_CANDIDATES:
            del self._candidates[most_crowded(older)]

    def _close(self, end: float, *, fresh: bool) -> None:
        """Keep the best candidates of the segment that ends, and begin the next one."""
        begin, rules = self._begin or 0.0, self._rules
        candidates = [p for p in self._candidates if p.time < end]
        if candidates and (self._fresh or end - begin >= min(MIN_VIEW_S, rules.every / 4)):
            seconds = (end - begin) / rules.per_stretch
            targets = [begin + (k + 0.5) * seconds for k in range(rules.per_stretch)]
            clear, black = self._clear(candidates)
            best = {min(clear, key=lambda p, t=t: abs(p.time - t)).time: None for t in targets}
            for frame in (p for p in clear if p.time in best):
                self._keep(frame, black)
        self._candidates = self._candidates[len(candidates) :]
        self._begin, self._fresh, self._first_view = end, fresh, None
        self._next = (
            self._candidates[-1].time + CANDIDATE_SPACING_S if self._candidates else float("-inf")
        )

    def _clear(self, frames: Sequence[TimedFrame]) -> tuple[Sequence[TimedFrame], bool]:
        """Return the frames that are neither black nor blurred, and whether all are black; without
        such a frame, all are returned.
        """
        views = [(frame, small_luma(frame.decoded, SHARPNESS_PIXELS)) for frame in frames]
        lit = [(f, sharpness(luma)) for f, luma in views if _is_lit(f, luma)]
        clear = [f for f, sharp in lit if not self._blurred(f, sharp, lit)]
        return clear or [f for f, _ in lit] or frames, not lit

    def _blurred(
        self, frame: TimedFrame, sharp: float, others: Sequence[tuple[TimedFrame, float]]
    ) -> bool:
        """Whether another frame is much sharper that is near in time or shows about the same."""
        sharper = (other for other, much in others if sharp < MIN_SHARPNESS * much)
        return any(
            abs(other.time - frame.time) <= NEAR_S
            or change(self._small(other.decoded), self._small(frame.decoded)) <= MAX_SAME_CHANGE
            for other in sharper
        )

    def _changed(self, frame: TimedFrame) -> bool:
        """Whether the frame differs from the segment's first one, after `MIN_VIEW_S`."""
        if self._rules.change is None:
            return False
        view = self._small(frame.decoded)
        self._first_view = self._first_view or view
        lasted = frame.time - (self._begin or 0.0) >= MIN_VIEW_S
        return lasted and change(self._first_view, view) >= self._rules.change

    def _keep(self, frame: TimedFrame, black: bool) -> None:
        jpeg = frame.barred_jpeg(self._rules.longest, self._rules.quality)
        keep(self.kept, EncodedCandidate(frame.time, jpeg, black), self._rules.most)

    def _cut(self, cuts: Sequence[float]) -> None:
        for cut in sorted(cuts):
            if self._begin is not None and cut > self._begin:
                self._close(cut, fresh=True)
            else:  # The cut was found late: the segment that has begun belongs to the new shot.
                self._fresh = True

    def finish(self, end: float, cuts: Sequence[float] = ()) -> None:
        """End the last segment at `end`; `cuts` are the last ones found."""
        self._cut(cuts)
        if self._begin is not None:
            self._close(max(end, self._begin), fresh=True)


def sharpness(view: Image) -> float:
    """Return the variance of the Laplacian of an image's brightness, (height, width)."""
    import cv2

    return cv2.meanStdDev(cv2.Laplacian(view, cv2.CV_16S))[1].item() ** 2


def _is_lit(frame: TimedFrame, luma: Image) -> bool:
    """Whether a frame is not black. Its brightness decides for nearly all, without conversion."""
    import cv2

    bright = cv2.countNonZero(cv2.threshold(luma, LIT_LUMA, 1, cv2.THRESH_BINARY)[1])
    return bright >= LIT_SHARE * luma.size or not is_black(frame.image(SHARPNESS_PIXELS))


def keep(kept: list[K], candidate: K, max_count: int) -> None:
    """Add a candidate or a keyframe to `kept`; drop the most crowded one if there are more than
    `max_count`.
    """
    kept.append(candidate)
    if len(kept) > max_count:
        del kept[most_crowded([k.time for k in kept])]


def most_crowded(times: Sequence[float]) -> int:
    """Return the index of the time whose neighbours are nearest to each other: the one to drop.

    The first and the last one are never chosen, unless there are no others.
    """
    gaps = [later - earlier for earlier, later in zip(times, times[2:], strict=False)]
    return gaps.index(min(gaps)) + 1 if gaps else len(times) - 1


def number_shots(kept: Sequence[EncodedCandidate], shots: Sequence[Span]) -> tuple[Keyframe, ...]:
    """Return the keyframes with the numbers of their shots, counted from 0; no black one of a shot
    that has others.
    """
    starts = [shot.start for shot in shots]
    numbered = [(max(0, bisect_right(starts, one.time) - 1), one) for one in kept]
    lit_shots = {shot for shot, one in numbered if not one.black}
    return tuple(
        Keyframe(time=one.time, shot=shot, jpeg=one.jpeg)
        for shot, one in numbered
        if not one.black or shot not in lit_shots
    )
