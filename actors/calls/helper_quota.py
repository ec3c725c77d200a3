"""How many helpers each of a stage's long videos may have (`actors.engine.chunks`), so that they
and the workers that have such videos are never more than `workers.max`.
"""

from __future__ import annotations


class HelperQuotas:
    """For each stage the videos that are processed in chunks now, each with its helpers."""

    def __init__(self) -> None:
        self._helpers: dict[str, dict[str, int]] = {}

    def acquire(self, stage: str, video: str, wanted: int, most: int) -> int:
        """Helpers that a video may have, of those that it wants in all. It is asked again for each
        piece: where others have come since, they are fewer, and the video is to let some go.
        """
        videos = self._helpers.setdefault(stage, {})
        others = sum(1 + n for name, n in videos.items() if name != video)
        videos[video] = max(0, min(wanted, most - 1 - others))
        return videos[video]

    def release(self, stage: str, video: str) -> None:
        """A video is done, and has no helpers any more."""
        self._helpers.get(stage, {}).pop(video, None)
