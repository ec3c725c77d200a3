"""Shots: where the picture cuts, or fades through black.

PySceneDetect's detectors (Castellano, BSD) are fed thumbnails instead of whole frames. On 21 clips
with 94 cuts of its own adaptive detector (threshold 3.0, frames shrunk with interpolation) a
picked thumbnail finds 92 within one frame and one more; picked pixels flicker more than averaged
ones, so that the same cut stands out a little less and the threshold is 2.9.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

from mustsee.errors import UserError
from mustsee.media.pictures import Image
from mustsee.records import Span

# Frames are given to the detectors together, so many or so many seconds of them: alternating with
# the decoder frame by frame, their code falls out of the processor's caches each time (measured on
# a busy machine, with 1, 8 and 48 at a time: 1.29, 1.17 and 1.10 of decoding alone).
TOGETHER = 48
DELAY = 1.0
USUAL_FPS = 25.0  # where a file does not say
USUAL_THRESHOLD = {"adaptive": 2.9, "content": 27.0}


@dataclass(frozen=True, kw_only=True)
class ShotRules:
    """How shots are told apart. `threshold`: for `adaptive` how many times a frame's change exceeds
    its neighbours' mean, for `content` the mean change of hue, saturation and value (0 to 255);
    null for 2.9 or 27.
    `fade_below`: mean brightness (0 to 255) that counts as black; null looks for no fades.
    `shortest` in seconds. `thumbnail`: longer side of the picture looked at, in pixels.
    """

    detector: Literal["adaptive", "content"] = "adaptive"
    threshold: float | None = None
    least_change: float = 15.0
    fade_below: float | None = 12.0
    shortest: float = 0.6
    thumbnail: int = 64

    def __post_init__(self) -> None:
        if self.detector not in ("adaptive", "content"):
            raise UserError(f"detector={self.detector!r}: use 'adaptive' or 'content'")

    def detectors(self, fps: float) -> tuple[Any, ...]:
        """PySceneDetect's detectors, set up."""
        from scenedetect.detectors import AdaptiveDetector, ContentDetector, ThresholdDetector

        shortest = max(1, round(self.shortest * fps))
        threshold = USUAL_THRESHOLD[self.detector] if self.threshold is None else self.threshold
        cuts: Any = (
            quick(AdaptiveDetector)(
                adaptive_threshold=threshold,
                min_content_val=self.least_change,
                min_scene_len=shortest,
            )
            if self.detector == "adaptive"
            else quick(ContentDetector)(threshold=threshold, min_scene_len=shortest)
        )
        if self.fade_below is None:
            return (cuts,)
        # PySceneDetect takes whole levels only
        return cuts, ThresholdDetector(threshold=round(self.fade_below), min_scene_len=shortest)


def quick(detector: Any) -> Any:
    """A content detector whose score, the mean change of hue, saturation and value, is the same but
    takes one OpenCV call instead of three passes in numpy: 8 against 26 us a frame, of the 60 that
    looking may cost.
    """
    import cv2

    class Quick(detector):
        _before: Any = None

        def _calculate_frame_score(self, timecode: Any, frame_img: Image) -> float:
            now: Any = cv2.cvtColor(frame_img, cv2.COLOR_BGR2HSV)
            before, self._before = self._before, now
            return 0.0 if before is None else cv2.norm(now, before, cv2.NORM_L1) / now.size

    return Quick


class ShotFinder:
    """Finds cuts while frames go by. `fps`: the nominal rate, in which the detectors count."""

    def __init__(self, rules: ShotRules, fps: float) -> None:
        from scenedetect.common import FrameTimecode

        self._rules, self._detectors = rules, rules.detectors(fps)
        self._rate = Fraction(fps).limit_denominator(100_000)
        self._count = FrameTimecode
        self._times = array("d")
        self._cuts: list[float] = []
        self._waiting: list[tuple[float, Image]] = []

    def see(self, time: float, image: Image) -> Sequence[float]:
        """Look at the next frame (BGR); returns the times of the cuts found by now, which lie up to
        `DELAY` seconds (and the detector's own delay of some frames) before it. A cut is the time
        of the first frame of the new shot.
        """
        self._waiting.append((time, image))
        full = len(self._waiting) >= TOGETHER or time - self._waiting[0][0] >= DELAY
        return self.rest() if full else ()

    def rest(self) -> Sequence[float]:
        """The cuts among the frames seen last, which have not been looked into yet."""
        found: list[float] = []
        for time, image in self._waiting:
            stamp = self._count(len(self._times), self._rate)
            self._times.append(time)
            for detector in self._detectors:
                for cut in detector.process_frame(stamp, image):
                    when = self._times[cut.frame_num]
                    if self._free(when):
                        self._cuts.append(when)
                        found.append(when)
        self._waiting.clear()
        return found

    def _free(self, when: float) -> bool:
        """No cut may make a shot shorter than the shortest."""
        others = (self._times[0], *self._cuts[-8:])
        return all(abs(when - other) >= self._rules.shortest - 1e-6 for other in others)

    def shots(self, end: float) -> tuple[Span, ...]:
        """The shots from the first frame to `end`, without gaps; a last one that is too short
        belongs to the one before.
        """
        self.rest()
        if not self._times:
            return ()
        cuts = sorted(c for c in self._cuts if end - c >= self._rules.shortest - 1e-6)
        edges = [self._times[0], *cuts, max(end, self._times[-1])]
        return tuple(Span(a, b) for a, b in pairwise(edges))


def shots_of(uri: str, rules: ShotRules | None = None) -> tuple[Span, ...]:
    """The shots of a file, all of it decoded. Raises BadRow and Transient."""
    from mustsee.media.pictures import Thumbnails
    from mustsee.media.video import film

    rules = rules or ShotRules()
    small = Thumbnails(rules.thumbnail)
    with film(uri) as watched:
        fps = watched.fps or USUAL_FPS
        finder, end = ShotFinder(rules, fps), 0.0
        for picture in watched.pictures():
            finder.see(picture.time, small(picture.frame).bgr)
            end = picture.end(fps)
    return finder.shots(end)
