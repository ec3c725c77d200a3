"""Drops videos in which nothing changes: a photo, a slide (Neptune, C.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mustsee.media.descriptors import clusters
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class Static:
    """Similar frames form a cluster. A video is static if its largest cluster holds at least
    `share` of the frames: the rest are a fade or a title. At 1.0 it must be the only cluster. A
    video without frames is kept.
    """

    after: str = "look"
    apart: float = 0.025
    """Distance of frame descriptors (root mean square, 0-1) that separates clusters."""
    share: float = 0.95
    """Share of the frames in the largest cluster from which a video is dropped as static."""

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or null."""
        largest, count = self._largest(video)
        if not count or largest < self.share * count:
            return None
        return f"static: {largest} of {count} frames look the same"

    def measure(self, video: Video) -> float | None:
        """Return the share that is compared with `share`; null without measurements."""
        largest, count = self._largest(video)
        return largest / count if count else None

    def _largest(self, video: Video) -> tuple[int, int]:
        """Return the number of frames in the largest cluster, and of all frames."""
        if not video.frames:
            return 0, 0
        sizes = np.bincount(clusters(video.frames, self.apart))
        return int(sizes.max()), len(video.frames)
