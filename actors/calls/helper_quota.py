"""Quotas of helpers for a stage's long videos (`actors.engine.chunks`): helpers, and workers with
such videos, are together at most `workers.max`.
"""

from __future__ import annotations


class HelperQuotas:
    """The videos of each stage that are processed in chunks now, with their numbers of helpers."""

    def __init__(self) -> None:
        self._helpers: dict[str, dict[str, int]] = {}

    def acquire(self, stage: str, video: str, wanted: int, most: int) -> int:
        """Return how many of the `wanted` helpers a video may have. It is asked for each chunk:
        when other videos have begun since, the quota shrinks and the video dismisses helpers.
        """
        videos = self._helpers.setdefault(stage, {})
        others = sum(1 + n for name, n in videos.items() if name != video)
        videos[video] = max(0, min(wanted, most - 1 - others))
        return videos[video]

    def release(self, stage: str, video: str) -> None:
        """Record that a video is done and has no helpers."""
        self._helpers.get(stage, {}).pop(video, None)
