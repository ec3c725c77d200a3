"""hear=subtitles: the lines of the file's own subtitles, in seconds of the video."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import BadRow
from mustsee.files.store import address_of, resolve
from mustsee.media import subtitles, transcript
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class SubtitleTranscript:
    """Reads the `subtitles` column, else a file beside the video, else a text stream inside it.
    Lines that begin after the end of the video are left out, and `transcribed_by` counts them.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("digest", "subtitles_digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "subtitles")
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")

    prefer: str = "en"
    """Language preferred where there are several."""
    sounds: bool = False
    """Keep lines that only describe a sound, such as [Music]."""
    sentences: bool = True
    """Join subtitle lines that continue a sentence."""

    def open(self, run: RunContext) -> Opened:
        return self.hear

    def hear(self, video: Video) -> Video:
        """Return the row with its transcript, empty without subtitles, or where nothing is said in
        them. Raises BadRow for a file that cannot be read, or that belongs to another video: most
        lines begin after the end.
        """
        address, clock = self._address(video), subtitles.clock_of(video.uri)
        if address:
            track, source = subtitles.read(address, sounds=self.sounds), "file"
            lines = transcript.order_lines(transcript.shift(track.lines, -clock.delay))
        else:
            track = subtitles.embedded_subtitles(video.uri, prefer=self.prefer, sounds=self.sounds)
            source, lines = "embedded", track.lines if track else ()
        inside = [x for x in lines if clock.end is None or x.start < clock.end]
        if 2 * len(inside) < len(lines):
            raise BadRow(
                f"the subtitles {address or 'in the file'!r}: {len(lines) - len(inside)} of "
                f"{len(lines)} lines begin after the end of the video ({clock.end} s): they belong "
                "to another video or cut; name the right file in `subtitles`, or move them away"
            )
        if late := len(lines) - len(inside):
            source += f", {late} line{'s' * (late > 1)} after the end left out"
        if self.sentences:
            inside = transcript.join_lines(inside)
        return transcript.with_transcript(
            video,
            transcript.lines_between(inside, video.start, video.end),
            by=f"subtitles ({source})",
            language=track.language if track else None,
        )

    def _address(self, video: Video) -> str | None:
        """The address of the row's subtitle file."""
        if not video.subtitles:
            return subtitles.find_subtitles(video.uri, prefer=self.prefer)
        address = video.subtitles
        if "://" in address or address.startswith("/"):
            return address
        folder = posixpath.dirname(resolve(video.uri)[1])
        return address_of(posixpath.join(folder, address), video.uri)
