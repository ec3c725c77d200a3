"""What a frame looks like in 96 numbers, and how many different looks a video has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.frames import Image, Thumbnail, upright
from mustsee.records import Frame

SIZE = 96  # values: 8x8 brightness, then 4x4 blue-yellow, then 4x4 red-cyan

# Equal values share one float object, so that hours of descriptors stay small in memory.
_LUMA = tuple(float(np.float32(min(max(v - 16, 0) / 219, 1.0))) for v in range(256))
_CHROMA = tuple(float(np.float32(min(max(v - 16, 0) / 224, 1.0))) for v in range(256))


def describe(thumbnail: Thumbnail, turn: int = 0) -> tuple[float, ...]:
    """Return the mean brightness of 8 x 8 blocks and the mean colour differences (Cb, Cr) of 4 x 4
    blocks, each from 0 to 1, row by row from the top left of the upright frame.
    """
    luma = _blocks(upright(thumbnail.luma, turn), 8)
    chroma = [_blocks(upright(plane, turn), 4) for plane in thumbnail.chroma]
    return (
        *(_LUMA[v] for v in luma),
        *(_CHROMA[v] for plane in chroma for v in plane),
    )


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
