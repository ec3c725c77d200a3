"""Drops videos of a person talking into the camera (Neptune, C.1)."""

from __future__ import annotations

from dataclasses import dataclass

from mustsee.records import Frame, Video


@dataclass(frozen=True, kw_only=True)
class TalkingHead:
    """A talking-head frame has a frontal face that is higher than `height` of the frame, and with
    `speaking` something is said. A video is dropped if more than `share` of its frames are such. A
    video without face detection is kept, and with `speaking` one without transcript.
    """

    after: str = "hear"
    height: float = 0.2
    """Height of a frontal face, as a share of the frame, above which the frame counts as a
    talking head."""
    share: float = 0.3
    """Share of such frames above which a video is dropped."""
    speaking: bool = True
    """Count a frame only while something is said; the paper does not ask for it."""

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or null."""
        heads, searched = self._count(video)
        if heads <= self.share * searched:
            return None
        return f"talking head: {heads} of {searched} frames"

    def measure(self, video: Video) -> float | None:
        """Return the share that is compared with `share`; null without measurements."""
        heads, searched = self._count(video)
        unheard = self.speaking and video.lines is None
        return None if unheard or not searched else heads / searched

    def _count(self, video: Video) -> tuple[int, int]:
        """Return the number of talking-head frames, and of frames searched for faces."""
        searched = [frame for frame in video.frames or () if frame.faces is not None]
        return sum(self._is_head(video, frame) for frame in searched), len(searched)

    def _is_head(self, video: Video, frame: Frame) -> bool:
        if self.speaking and not _is_speaking(video, frame):
            return False
        return any(face.frontal and face.height > self.height for face in frame.faces or ())


def _is_speaking(video: Video, frame: Frame) -> bool:
    return any(line.start <= frame.time < line.end for line in video.lines or ())
