"""Transcripts of the videos whose questions brought none."""

from __future__ import annotations

import functools
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import ClassVar

from actors.hear.auto import Auto
from actors.part import Opened, Part, RunContext
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class HearMissing:
    """Transcribes by `hear` a video whose `lines` are null. A transcript that came with the
    questions stays, such as CinePile's dialogue, also one without any line.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = (*Auto.reads, "lines", "has_audio")
    needs: ClassVar[tuple[str, ...]] = Auto.needs
    writes: ClassVar[tuple[str, ...]] = Auto.writes

    hear: Part

    def open(self, run: RunContext) -> Opened:
        transcribe = functools.cache(lambda: self.hear.open(run))

        def hear(video: Video) -> Video | Awaitable[Video]:
            return transcribe()(video) if video.lines is None else video

        return hear
