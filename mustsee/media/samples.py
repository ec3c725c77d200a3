"""Frames measured at even steps."""

from __future__ import annotations

import math

from mustsee.media.descriptors import brightness, describe, motion
from mustsee.media.faces import FaceFollower
from mustsee.media.pictures import Thumbnail, Thumbnails, TimedFrame
from mustsee.records import Frame


class SampleSteps:
    """Of frames that go by, the first one at or after every `every` seconds, counted from the time
    `first` (null: the first frame's).
    """

    def __init__(self, every: float, first: float | None = None) -> None:
        self._every, self._first = every, first
        self._next: float | None = None

    def due(self, time: float) -> bool:
        """Whether the next frame is one of them."""
        if self._next is None:
            first = time if self._first is None else self._first
            self._next = first + self._every * math.ceil((time - 1e-4 - first) / self._every)
        if time < self._next - 1e-4:
            return False
        self._next += self._every * max(1, math.ceil((time + 1e-4 - self._next) / self._every))
        return True


class FrameSampler:
    """Measures frames at even `steps`. Those before `since` are but compared with what follows."""

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

    def see(self, picture: TimedFrame) -> None:
        """Look at the next frame."""
        if not self._steps.due(picture.time):
            return
        before, self._before = self._before, self._small(picture.frame)
        if picture.time >= self._since:
            self.frames.append(self._measured(picture, before, self._before))

    def _measured(self, picture: TimedFrame, before: Thumbnail | None, now: Thumbnail) -> Frame:
        return Frame(
            time=picture.time,
            brightness=brightness(now),
            motion=motion(before, now),
            descriptor=describe(now, picture.turn),
            faces=self._faces.see(picture) if self._faces else None,
        )
