"""hear=auto: subtitles if there are any, else speech recognition. Voices tell the speakers apart;
where no line was recognised, the sound tells why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from actors.hear.speakers import Speakers
from actors.hear.subtitles import SubtitleTranscript
from actors.part import Checkable, Opened, Part, RunContext
from mustsee.errors import NotInstalled
from mustsee.media.sound import audio_chunks, decode_once
from mustsee.media.unheard import SURE, Detect, unheard_reason
from mustsee.nn import weights
from mustsee.nn.sound_events import FOLDER, load_detector
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class MusicDetector:
    """Tells music in videos without lines."""

    model: str = FOLDER
    """Folder of the detector's weights."""


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Takes `subtitles`; transcribes a video without any subtitle line with `engine`. `speakers`
    names who speaks the lines that have no speaker; null: they stay without. `music` tells whether
    sound without lines is music; null: music and noise have one reason.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("digest", "subtitles_digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri", "subtitles")
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by", "unheard")

    engine: Part
    subtitles: SubtitleTranscript = field(default_factory=SubtitleTranscript)
    speakers: Speakers | None = None
    music: MusicDetector | None = None

    def open(self, run: RunContext) -> Opened:
        transcribe = self.engine.open(run)
        name = self.speakers.load() if self.speakers else None
        detect = load_detector(weights.find(self.music.model)) if self.music else None

        def finish(video: Video) -> Video:
            if not video.lines:
                return _with_reason(video, detect)
            return name(video) if name else video

        def hear(video: Video) -> Video | Awaitable[Video]:
            from_subtitles = self.subtitles.hear(video)
            with decode_once():
                heard = from_subtitles if from_subtitles.lines else transcribe(video)
                return finish(heard) if isinstance(heard, Video) else _finish_later(heard, finish)

        return hear


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


def auto(
    *,
    engine: Part,
    otherwise: Part,
    subtitles: SubtitleTranscript,
    speakers: Speakers | None,
    music: MusicDetector | None,
) -> Auto:
    """`Auto` with `engine`, or with `otherwise` if the package of the engine's model is missing;
    without `speakers` or `music` if the package of theirs is. This is decided once, where the job
    starts.
    """
    try:
        if isinstance(engine, Checkable):
            engine.check(None)
    except NotInstalled:
        engine = otherwise
    return Auto(
        engine=engine,
        subtitles=subtitles,
        speakers=speakers if speakers and weights.is_installed(speakers.model) else None,
        music=music if music and weights.is_installed(music.model) else None,
    )
