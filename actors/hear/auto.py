"""hear=auto: subtitles if there are any, else speech recognition; and speakers by their voices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar

from actors.hear.speakers import Speakers
from actors.hear.subtitles import SubtitleTranscript
from actors.part import Checkable, Opened, Part, RunContext
from mustsee.errors import NotInstalled
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Takes `subtitles`; transcribes a video without any subtitle line with `engine`. `speakers`
    names who speaks the lines that have no speaker; null: nobody does.
    """

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("digest", "subtitles_digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "subtitles")
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")

    engine: Part
    subtitles: SubtitleTranscript = field(default_factory=SubtitleTranscript)
    speakers: Speakers | None = None

    def open(self, run: RunContext) -> Opened:
        transcribe = self.engine.open(run)
        name = self.speakers.load() if self.speakers else None

        def hear(video: Video) -> Video | Awaitable[Video]:
            from_subtitles = self.subtitles.hear(video)
            heard = from_subtitles if from_subtitles.lines else transcribe(video)
            if name is None:
                return heard
            return name(heard) if isinstance(heard, Video) else _name_later(heard, name)

        return hear


async def _name_later(heard: Awaitable[Video], name: Callable[[Video], Video]) -> Video:
    """Name the speakers once an endpoint has answered, beside the event loop."""
    return await asyncio.to_thread(name, await heard)


def auto(
    *, engine: Part, otherwise: Part, subtitles: SubtitleTranscript, speakers: Speakers | None
) -> Auto:
    """`Auto` with `engine`, or with `otherwise` if the package of the engine's model is missing;
    without `speakers` if the package of their model is. This is decided once, where the job starts.
    """
    try:
        if isinstance(engine, Checkable):
            engine.check(None)
    except NotInstalled:
        engine = otherwise
    if speakers and not speakers.is_installed():
        speakers = None
    return Auto(engine=engine, subtitles=subtitles, speakers=speakers)
