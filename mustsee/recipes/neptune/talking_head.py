"""Drops videos of a person talking into the camera (Neptune, C.1)."""

from __future__ import annotations

from dataclasses import dataclass

from mustsee.records import Frame, Video


@dataclass(frozen=True, kw_only=True)
class TalkingHead:
    """A talking-head frame has a frontal face that is higher than `height` of the frame, while
    something is said. A video is dropped if more than `share` of its frames are such. A video
    without face detection or transcript is kept.
    """

    after: str = "hear"
    height: float = 0.2
    """Height of a frontal face, as a share of the frame, above which the frame counts as a
    talking head while something is said."""
    share: float = 0.3
    """Share of such frames above which a video is dropped."""

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or null."""
        searched = [frame for frame in video.frames or () if frame.faces is not None]
        heads = sum(self._is_head(frame) and _is_speaking(video, frame) for frame in searched)
        if heads <= self.share * len(searched):
            return None
        return f"talking head: {heads} of {len(searched)} frames"

    def _is_head(self, frame: Frame) -> bool:
        return any(face.frontal and face.height > self.height for face in frame.faces or ())


def _is_speaking(video: Video, frame: Frame) -> bool:
    return any(line.start <= frame.time < line.end for line in video.lines or ())
