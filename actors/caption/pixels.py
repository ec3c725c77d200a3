"""caption=pixels: captions from measurements, without a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from actors.part import LlmConfig, Opened, RunContext
from mustsee.media.pixels import captions
from mustsee.media.transcript_quality import is_surely_read
from mustsee.records import Caption, Video


@dataclass(frozen=True, kw_only=True)
class Pixels:
    """Describes each keyframe by its people and things (with `look=objects`), light, colours and
    their places, motion, faces, and on-screen text that was read with certainty.
    """

    version: ClassVar[str] = "5"
    reads: ClassVar[tuple[str, ...]] = ("keyframes", "frames", "texts", "shots", "objects")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("captions",)
    roles: ClassVar[Mapping[str, LlmConfig]] = {}

    def open(self, run: RunContext) -> Opened:
        def caption(video: Video) -> Video:
            lines = [text for text in video.texts or () if is_surely_read(text)]
            timed = captions(
                video.keyframes or (),
                video.frames or (),
                lines,
                video.shots or (),
                video.objects or (),
            )
            return dataclasses.replace(
                video, captions=tuple(Caption(time, text) for time, text in timed)
            )

        return caption
