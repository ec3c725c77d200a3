"""Videos of somebody talking into the camera (Neptune, C.1)."""

from __future__ import annotations

from dataclasses import dataclass

from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class TalkingHead:
    """A frame with a frontal face higher than `height` of the picture is a talking-head frame; a
    video is dropped when more than `share` of its frames are. Not judged where no faces were looked
    for.
    """

    after: str = "look"
    height: float = 0.2
    share: float = 0.3

    def __call__(self, video: Video) -> str | None:
        """A reason to drop the video, or null."""
        searched = [f.faces for f in video.frames or () if f.faces is not None]
        heads = sum(any(face.height > self.height for face in faces) for faces in searched)
        if heads <= self.share * len(searched):
            return None
        return f"talking head: {heads} of {len(searched)} frames"
