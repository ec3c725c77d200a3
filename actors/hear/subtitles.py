"""hear=subtitles: the lines of the file's own subtitles, in seconds of the video."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.media import subtitles, transcript
from mustsee.records import Video
from mustsee.store import address_of, resolve


@dataclass(frozen=True, kw_only=True)
class SubtitleTranscript:
    """Reads the `subtitles` column, else a file beside the video, else a text stream inside it.

    `prefer`: the language to take if there are several. `sounds`: keep lines that only describe a
    sound. `sentences`: join lines that continue a sentence.
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
        """Return the row with its transcript, empty without subtitles. Raises BadRow if the
        `subtitles` column names a file that cannot be read.
        """
        track, source = self._find(video)
        lines = track.lines if track else ()
        if self.sentences:
            lines = transcript.join_lines(lines)
        return transcript.with_transcript(
            video,
            transcript.lines_between(lines, video.start, video.end),
            by=f"subtitles ({source})",
            language=track.language if track else None,
        )

    def _find(self, video: Video) -> tuple[subtitles.Subtitles | None, str]:
        if video.subtitles:
            address = video.subtitles
            if "://" not in address and not address.startswith("/"):
                folder = posixpath.dirname(resolve(video.uri)[1])
                address = address_of(posixpath.join(folder, address), video.uri)
            return subtitles.read(address, sounds=self.sounds), "file"
        beside = subtitles.find_subtitles(video.uri, prefer=self.prefer)
        if beside:
            return subtitles.read(beside, sounds=self.sounds), "file"
        return subtitles.embedded_subtitles(
            video.uri, prefer=self.prefer, sounds=self.sounds
        ), "embedded"
