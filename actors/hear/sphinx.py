"""hear=sphinx: pocketsphinx with the English model in its wheel, without a download or a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import need
from mustsee.media import transcript
from mustsee.media.speech import SAMPLE_RATE, SpeechWindow, VoiceDetection, speech_windows
from mustsee.records import Line, Video, Word

if TYPE_CHECKING:
    from pocketsphinx import Decoder

FRAMES_A_SECOND = 100  # pocketsphinx's own frame rate


@dataclass(frozen=True)
class SphinxTranscript:
    """The transcript of a window."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Sphinx:
    """One line per utterance, with word times to 10 ms, for English only. It gives no scores, so
    its lines are not evidence that English is spoken, and the row's language stays null.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("lines", "language", "transcribed_by")
    result: ClassVar[type] = SphinxTranscript

    voice: VoiceDetection = field(default_factory=VoiceDetection)
    window: float = 300.0
    """Seconds of sound held in memory."""

    def open(self, run: RunContext) -> Opened:
        each = run.pieces(self)

        def hear(video: Video) -> Video:
            windows = speech_windows(video, seconds=self.window, voice=self.voice)
            lines = transcript.order_lines(
                line for result in each(windows) for line in result.lines
            )
            return transcript.with_transcript(video, lines, by="sphinx", language=None)

        return hear

    def open_chunked(self) -> Callable[[SpeechWindow], SphinxTranscript]:
        """Load the model. Raises UserError if it is not installed."""
        need("hear=sphinx", "mustsee[offline]", "pocketsphinx")
        from pocketsphinx import Decoder

        decoder = Decoder(samprate=SAMPLE_RATE, loglevel="ERROR")
        return lambda window: SphinxTranscript(tuple(_lines(decoder, window)))


def _lines(decoder: Decoder, window: SpeechWindow) -> Iterator[Line]:
    for span in window.speech:
        samples = (window.cut(span) * 32767).astype("<i2").tobytes()
        decoder.reinit_feat()  # otherwise noise before the utterance changes its transcript
        decoder.start_utt()
        decoder.process_raw(samples, full_utt=True)
        decoder.end_utt()
        words = tuple(_words(decoder, span.start, span.end))
        if words:
            text = " ".join(w.word for w in words)
            yield Line(start=words[0].start, end=words[-1].end, text=text, words=words)


def _words(decoder: Decoder, start: float, end: float) -> Iterator[Word]:
    """The recognised words, without silences, noises and the numbers of pronunciations. Their score
    is 0, because the decoder's own is 1.0 even for wrong words.
    """
    for segment in decoder.seg() or ():
        if segment.word[0] in "<[+":
            continue
        yield Word(
            start + segment.start_frame / FRAMES_A_SECOND,
            min(end, start + (segment.end_frame + 1) / FRAMES_A_SECOND),
            re.sub(r"\(\d+\)$", "", segment.word),
            0.0,
        )
