"""hear=subtitles: what the file's own subtitles say, in seconds of the video; no listening."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.media import subtitles, transcript
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class SubtitleTranscript:
    """The `subtitles` column, else a file beside the video, else a text stream inside it.

    `prefer`: the language taken where there are several; `sounds`: keep lines that only describe a
    sound; `sentences`: join lines that continue a sentence.
    """

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("digest", "subtitles_digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "subtitles")
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")

    prefer: str = "en"
    sounds: bool = False
    sentences: bool = True

    def open(self, run: RunContext) -> Opened:
        return self.hear

    def hear(self, video: Video) -> Video:
        """The row with its transcript, empty where there are no subtitles. Raises BadRow when the
        `subtitles` column names a file that cannot be read.
        """
        found, source = self._find(video)
        lines = found.lines if found else ()
        if self.sentences:
            lines = transcript.join_lines(lines)
        return transcript.with_transcript(
            video,
            transcript.lines_between(lines, video.start, video.end),
            by=f"subtitles ({source})",
            language=found.language if found else None,
        )

    def _find(self, video: Video) -> tuple[subtitles.Subtitles | None, str]:
        if video.subtitles:
            named = video.subtitles
            if "://" not in named and not named.startswith("/"):
                named = posixpath.join(posixpath.dirname(video.uri), named)
            return subtitles.read(named, sounds=self.sounds), "file"
        beside = subtitles.find_subtitles(video.uri, prefer=self.prefer)
        if beside:
            return subtitles.read(beside, sounds=self.sounds), "file"
        return subtitles.embedded_subtitles(
            video.uri, prefer=self.prefer, sounds=self.sounds
        ), "embedded"
