"""Drops videos of a person talking into the camera (Neptune, C.1)."""

from __future__ import annotations

from dataclasses import dataclass

from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class TalkingHead:
    """A talking-head frame has a frontal face that is higher than `height` of the frame. A video is
    dropped if more than `share` of its frames are such. A video without face detection is kept.
    """

    after: str = "look"
    height: float = 0.2
    share: float = 0.3

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or null."""
        searched = [f.faces for f in video.frames or () if f.faces is not None]
        heads = sum(any(face.height > self.height for face in faces) for faces in searched)
        if heads <= self.share * len(searched):
            return None
        return f"talking head: {heads} of {len(searched)} frames"
