"""What a video looks like in a few numbers, so that it is known again in another size and code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mustsee.audit.repeats import COMPARED_FRAMES
from mustsee.errors import BadRow, Transient
from mustsee.media.descriptors import describe
from mustsee.media.pictures import Thumbnails
from mustsee.media.video import facts, frames_at
from mustsee.records import Span
from mustsee.verify.conditions.seen import spread


def looks(uri: str) -> NDArray[np.float32] | None:
    """Descriptors of `LOOKS` pictures at equal distances, as one vector; null for a video that
    cannot be read.
    """
    small = Thumbnails()
    try:
        seconds = facts(uri).duration
        times = spread((Span(0.0, seconds),), COMPARED_FRAMES)
        found = [describe(small(p.decoded), p.turn) for p in frames_at(uri, times)]
    except (BadRow, Transient):
        return None
    return np.asarray(found, dtype=np.float32).reshape(-1)
