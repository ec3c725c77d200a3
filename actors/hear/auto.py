"""hear=auto: subtitles if there are any, else speech recognition."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import ClassVar

from actors.hear.subtitles import SubtitleTranscript
from actors.part import Checkable, Opened, Part, RunContext
from mustsee.errors import NotInstalled
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Takes `subtitles`; transcribes a video without any subtitle line with `engine`."""

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("digest", "subtitles_digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "subtitles")
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")

    engine: Part
    subtitles: SubtitleTranscript = field(default_factory=SubtitleTranscript)

    def open(self, run: RunContext) -> Opened:
        transcribe = self.engine.open(run)

        def hear(video: Video) -> Video | Awaitable[Video]:
            from_subtitles = self.subtitles.hear(video)
            return from_subtitles if from_subtitles.lines else transcribe(video)

        return hear


def auto(*, engine: Part, otherwise: Part, subtitles: SubtitleTranscript) -> Auto:
    """`Auto` with `engine`, or with `otherwise` if the package of the engine's model is missing.
    This is decided once, where the job starts.
    """
    try:
        if isinstance(engine, Checkable):
            engine.check(None)
    except NotInstalled:
        engine = otherwise
    return Auto(engine=engine, subtitles=subtitles)
