"""What frames at even steps look like: brightness, motion, faces, and the look in 96 numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.faces import FaceFollower
from mustsee.media.frames import Image, Thumbnail, Thumbnails, TimedFrame, upright
from mustsee.records import Frame

SIZE = 96  # values: 8x8 brightness, then 4x4 blue-yellow, then 4x4 red-cyan

# Equal values share one float object, so that hours of descriptors stay small in memory.
_LUMA = tuple(float(np.float32(min(max(v - 16, 0) / 219, 1.0))) for v in range(256))
_CHROMA = tuple(float(np.float32(min(max(v - 16, 0) / 224, 1.0))) for v in range(256))


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


def describe(thumbnail: Thumbnail, turn: int = 0) -> tuple[float, ...]:
    """Return the mean brightness of 8 x 8 blocks and the mean colour differences (Cb, Cr) of 4 x 4
    blocks, each from 0 to 1, row by row from the top left of the upright frame.
    """
    luma = _blocks(upright(thumbnail.luma, turn), 8)
    chroma = [_blocks(upright(plane, turn), 4) for plane in thumbnail.chroma]
    return (*(_LUMA[v] for v in luma), *(_CHROMA[v] for plane in chroma for v in plane))


def _blocks(plane: Image, side: int) -> list[int]:
    import cv2

    small: Any = cv2.resize(plane, (side, side), interpolation=cv2.INTER_AREA)
    return small.reshape(-1).tolist()


def brightness(thumbnail: Thumbnail) -> float:
    """Return the mean brightness, 0 to 1."""
    return min(max((float(thumbnail.luma.mean()) - 16) / 219, 0.0), 1.0)


def motion(before: Thumbnail | None, after: Thumbnail) -> float:
    """Return the mean absolute difference of brightness, 0 to 1; 0 without a thumbnail before."""
    if before is None:
        return 0.0
    import cv2

    return min(cv2.norm(before.luma, after.luma, cv2.NORM_L1) / after.luma.size / 219, 1.0)


def clusters(frames: Sequence[Frame], max_distance: float) -> NDArray[np.int64]:
    """Return a cluster number for each frame, counted from 0 in order of first appearance.

    A frame joins the nearest cluster whose first frame is less than `max_distance` away (root mean
    square of the differences of their descriptors). Without one it begins a new cluster.
    """
    labels = np.zeros(len(frames), np.int64)
    leaders = np.empty((0, SIZE), np.float32)
    for index, frame in enumerate(frames):
        descriptor = np.asarray(frame.descriptor, np.float32)
        distances = np.sqrt(np.mean((leaders - descriptor) ** 2, axis=1))
        nearest = int(distances.argmin()) if len(leaders) else -1
        if nearest < 0 or distances[nearest] >= max_distance:
            nearest = len(leaders)
            leaders = np.vstack([leaders, descriptor])
        labels[index] = nearest
    return labels
