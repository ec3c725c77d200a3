"""Measurements of frames at even steps."""

from __future__ import annotations

import math

from mustsee.media.descriptors import brightness, describe, motion
from mustsee.media.faces import FaceFollower
from mustsee.media.frames import Thumbnail, Thumbnails, TimedFrame
from mustsee.records import Frame


class SampleSteps:
    """Picks, of the frames that go by, the first one at or after every `every` seconds, counted
    from the time `first` (null: the first frame's).
    """

    def __init__(self, every: float, first: float | None = None) -> None:
        self._every, self._first = every, first
        self._next: float | None = None

    def due(self, time: float) -> bool:
        """Whether the next frame, at `time`, is picked."""
        if self._next is None:
            first = time if self._first is None else self._first
            self._next = first + self._every * math.ceil((time - 1e-4 - first) / self._every)
        if time < self._next - 1e-4:
            return False
        self._next += self._every * max(1, math.ceil((time + 1e-4 - self._next) / self._every))
        return True


class FrameSampler:
    """Measures frames at even `steps`. A frame before `since` is only compared with the
    next one.
    """

    def __init__(
        self,
        steps: SampleSteps,
        faces: FaceFollower | None = None,
        small: Thumbnails | None = None,
        since: float = float("-inf"),
    ) -> None:
        self._steps, self._faces, self._since = steps, faces, since
        self._small = small or Thumbnails()
        self._before: Thumbnail | None = None
        self.frames: list[Frame] = []

    def see(self, frame: TimedFrame) -> None:
        """Take the next frame."""
        if not self._steps.due(frame.time):
            return
        previous, self._before = self._before, self._small(frame.decoded)
        if frame.time >= self._since:
            self.frames.append(self._measure(frame, previous, self._before))

    def _measure(self, frame: TimedFrame, before: Thumbnail | None, now: Thumbnail) -> Frame:
        return Frame(
            time=frame.time,
            brightness=brightness(now),
            motion=motion(before, now),
            descriptor=describe(now, frame.turn),
            faces=self._faces.see(frame) if self._faces else None,
        )
