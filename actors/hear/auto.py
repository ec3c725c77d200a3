"""hear=auto: subtitles if there are any, else speech recognition; where no line was recognised, the
sound tells why. hear=subtitles: the lines of the file's own subtitles, in seconds of the video.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from actors.part import Checkable, Opened, Part, RunContext
from mustsee.errors import BadRow, NotInstalled
from mustsee.files.store import address_of, resolve
from mustsee.media import subtitles, transcript
from mustsee.media.sound import audio_chunks, decode_once
from mustsee.media.transcript_quality import SURE, Detect, unheard_reason
from mustsee.nn import weights
from mustsee.nn.sound_events import FOLDER, load_detector
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


@dataclass(frozen=True, kw_only=True)
class MusicDetector:
    """Tells music in videos without lines."""

    model: str = FOLDER
    """Folder of the detector's weights."""


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Takes `subtitles`; transcribes a video without any subtitle line with `engine`; null: none is
    installed, and such a video is a problem that says `why`. `music` tells whether sound without
    lines is music; null: music and noise have one reason.
    """

    version: ClassVar[str] = "5"
    reads: ClassVar[tuple[str, ...]] = ("digest", "subtitles_digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "subtitles")
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by", "unheard")

    engine: Part | None
    subtitles: SubtitleTranscript = field(default_factory=SubtitleTranscript)
    music: MusicDetector | None = None
    why: str = ""

    def open(self, run: RunContext) -> Opened:
        transcribe = self.engine.open(run) if self.engine else self._refuse
        detect = load_detector(weights.find(self.music.model)) if self.music else None

        def finish(video: Video) -> Video:
            return video if video.lines else _with_reason(video, detect)

        def hear(video: Video) -> Video | Awaitable[Video]:
            from_subtitles = self.subtitles.hear(video)
            with decode_once():
                heard = from_subtitles if from_subtitles.lines else transcribe(video)
                return finish(heard) if isinstance(heard, Video) else _finish_later(heard, finish)

        return hear

    def _refuse(self, video: Video) -> Video:
        raise BadRow(
            f"it has no subtitles, and no speech recogniser is installed ({self.why}); "
            "hear=subtitles takes such a video as one without speech"
        )


def _with_reason(video: Video, detect: Detect | None) -> Video:
    """Return a row without lines with the reason. Its recogniser may have given one: doubtful
    lines, which it writes for music too, or a language that it does not know.
    """
    sounds = audio_chunks(video.uri, start=video.start or 0.0, end=video.end)
    reason = unheard_reason(sounds, detect)
    has_reason = video.unheard or video.language
    return replace(video, unheard=reason) if reason in SURE or not has_reason else video


async def _finish_later(heard: Awaitable[Video], finish: Callable[[Video], Video]) -> Video:
    """Finish a row once an endpoint has answered, beside the event loop."""
    return await asyncio.to_thread(finish, await heard)


def auto(*, engine: Part, subtitles: SubtitleTranscript, music: MusicDetector | None) -> Auto:
    """`Auto` with `engine`, or without one if the package of its model is missing; without `music`
    if the package of its detector is. This is decided once, where the job starts.
    """
    why = ""
    try:
        if isinstance(engine, Checkable):
            engine.check(None)
    except NotInstalled as error:
        why = str(error)
    return Auto(
        engine=None if why else engine,
        subtitles=subtitles,
        music=music if music and weights.is_installed(music.model) else None,
        why=why,
    )
