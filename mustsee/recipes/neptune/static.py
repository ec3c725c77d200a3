"""Videos in which nothing changes: a still picture, a slide (Neptune, C.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mustsee.media.descriptors import clusters
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class Static:
    """Similar frames are clustered, and only a video with more than one cluster is kept.

    `apart`: how much frames of two clusters differ (see `mustsee.media.descriptors.clusters`). When
    the largest cluster holds at least `share` of the frames, the rest are a fade or a title, and
    the video is static (1.0: only where there is no other cluster). Not judged where no frames were
    looked at.
    """

    after: str = "look"
    apart: float = 0.025
    share: float = 0.95

    def __call__(self, video: Video) -> str | None:
        """A reason to drop the video, or null."""
        if not video.frames:
            return None
        largest = int(np.bincount(clusters(video.frames, self.apart)).max())
        if largest < self.share * len(video.frames):
            return None
        return f"static: {largest} of {len(video.frames)} frames look the same"
