"""Descriptors by which a video is recognised in another size or encoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mustsee.audit.repeats import COMPARED_FRAMES
from mustsee.errors import BadRow, Transient
from mustsee.media.frames import Thumbnails
from mustsee.media.samples import describe
from mustsee.media.video import facts, frames_at
from mustsee.records import Span
from mustsee.verify.conditions.seen import spread


def fingerprint(uri: str) -> NDArray[np.float32] | None:
    """Return the descriptors of `COMPARED_FRAMES` evenly spread frames as one vector; None for a
    video that cannot be read.
    """
    thumbnail = Thumbnails()
    try:
        seconds = facts(uri).duration
        times = spread((Span(0.0, seconds),), COMPARED_FRAMES)
        descriptors = [describe(thumbnail(f.decoded), f.turn) for f in frames_at(uri, times)]
    except (BadRow, Transient):
        return None
    return np.asarray(descriptors, dtype=np.float32).reshape(-1)
