"""Which transcript lines are rejected, why a video has none, and which lines and on-screen texts
may be quoted or need a warning.

Whisper writes text for any sound: "Thank you." for noise, one repeated phrase for a language that
it does not know. The thresholds of loops and silence are those of Whisper's own decoder (Radford et
al. 2022, section 4.5); the others were measured on speech, noise and ten languages
(docs/hearing.md). A line without word scores comes from subtitles and counts as sure.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mustsee.media.sound import Sound
from mustsee.records import Line, ScreenText

# Log-probability that a loop counts with in its neighbourhood: the model's own is high, and wrong.
LOOP_LOG_PROB = -2.0


@dataclass(frozen=True, kw_only=True)
class RecognisedSpeech:
    """The lines recognised in one span of speech.

    `log_prob` is the mean log-probability of their tokens, `no_speech` the model's probability that
    the span has no speech.
    """

    lines: tuple[Line, ...]
    log_prob: float
    no_speech: float

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    @property
    def start(self) -> float:
        return self.lines[0].start

    @property
    def seconds(self) -> float:
        return max(0.1, self.lines[-1].end - self.start)


@dataclass(frozen=True, kw_only=True)
class DoubtThresholds:
    """The thresholds below or above which recognised speech is rejected.

    A span above `clear` is accepted even there.
    """

    compression: float = 2.4
    """Zlib compression ratio above which a text counts as a repeated phrase."""
    unsure: float = -1.0
    """Mean log-probability below which a line is dropped."""
    no_speech: float = 0.6
    """Probability of silence above which a line is dropped, unless it is surer than quiet."""
    quiet: float = -0.6
    """Mean log-probability above which a line is kept in spite of no_speech."""
    strange: float = -0.8
    """Mean log-probability of the surroundings below which the speech is not English (English-
    only models)."""
    clear: float = -0.6
    """Mean log-probability above which a line is kept in spite of strange."""
    around: float = 30.0
    """Span over which strange is averaged, seconds."""

    def reason(self, span: RecognisedSpeech) -> str | None:
        """Return "loop", "no speech", "unsure", or None: why a span is rejected by itself."""
        if compression_ratio(span.text) > self.compression:
            return "loop"
        if span.no_speech > self.no_speech and span.log_prob < self.quiet:
            return "no speech"
        return "unsure" if span.log_prob < self.unsure else None

    def is_clear(self, accepted: Sequence[RecognisedSpeech]) -> bool:
        """Whether the mean log-probability of the accepted spans, weighted by duration, is above
        `clear`.
        """
        seconds = sum(span.seconds for span in accepted)
        total = sum(span.seconds * span.log_prob for span in accepted)
        return seconds > 0 and total / seconds > self.clear

    def reasons(self, spans: Sequence[RecognisedSpeech], *, one_language: bool) -> list[str | None]:
        """Return for each span why it is rejected, or None; with `one_language` also "strange"."""
        own_reasons = [self.reason(span) for span in spans]
        if not one_language:
            return own_reasons
        log_probs = [
            LOOP_LOG_PROB if reason == "loop" else span.log_prob
            for span, reason in zip(spans, own_reasons, strict=True)
        ]
        reasons: list[str | None] = []
        for span, reason in zip(spans, own_reasons, strict=True):
            doubtful = reason is None and span.log_prob < self.clear
            strange = doubtful and self._mean_around(span, spans, log_probs) < self.strange
            reasons.append("strange" if strange else reason)
        return reasons

    def _mean_around(
        self, span: RecognisedSpeech, spans: Sequence[RecognisedSpeech], log_probs: Sequence[float]
    ) -> float:
        """The mean of `log_probs` over the spans around `span`, weighted by duration."""
        low, high = span.start - self.around, span.start + span.seconds + self.around
        neighbours = [
            (other.seconds, value)
            for other, value in zip(spans, log_probs, strict=True)
            if low < other.start + other.seconds and other.start < high
        ]
        return sum(s * value for s, value in neighbours) / sum(s for s, _ in neighbours)


def compression_ratio(text: str) -> float:
    """Return the ratio by which zlib shortens a text: about 1.5 for 20 s of speech, above 2.4 for
    loops.
    """
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0


SILENT_PEAK = 0.001  # loudest sample, 0 to 1, up to which sound counts as silence: -60 dB
EVENT_PROBABILITY = 0.5  # probability from which a frame has an event
MUSIC_SHARE = 0.5  # share of frames with music from which sound without lines is music
VOICE_SHARE = 0.1  # share of frames with speech or singing from which it is not only music
SILENT = "no speech: silent"
MUSIC = "no speech: music"
SURE = (SILENT, MUSIC)
UNRECOGNISED = "sound without recognised speech (music or noise)"

Detect = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def doubtful_reason(lines: int) -> str:
    """Return why no line is left where all `lines` were doubtful."""
    number = "1 line is" if lines == 1 else f"{lines} lines are"
    return f"speech was heard, but {number} doubtful and left out"


def unheard_reason(sounds: Iterable[Sound], detect: Detect | None) -> str | None:
    """Return why sound gave no lines: `SILENT`, `MUSIC` or `UNRECOGNISED`; null without sound.

    `detect`: returns the probabilities of speech, singing and music for each 10 ms
    (`mustsee.nn.sound_events`); null: music is not told from noise.
    """
    peaks, events = list[float](), list[NDArray[np.float32]]()
    for sound in sounds:
        peaks.append(float(np.abs(sound.samples).max()))
        if detect:
            events.append(detect(sound.samples))
    if not peaks:
        return None
    if max(peaks) <= SILENT_PEAK:
        return SILENT
    found = np.concatenate(events) if events else np.zeros((0, 3), np.float32)
    speech, singing, music = (found >= EVENT_PROBABILITY).sum(axis=0) / max(1, len(found))
    is_music = music >= MUSIC_SHARE and speech + singing < VOICE_SHARE
    return MUSIC if is_music else UNRECOGNISED


SURE_TEXT_SCORE = (
    0.95  # score of the text recogniser, 0-1; letters that form no words score 0.6 to 0.9
)
SURE_LINE_SCORE = 0.9  # mean word score of a line, 0-1
# word score, 0-1: the least in a quoted line; a line with a lower mean is doubtful
MIN_WORD_SCORE = 0.5


def is_surely_read(text: ScreenText) -> bool:
    """Whether an on-screen text is sure enough to be quoted without a warning."""
    return text.score >= SURE_TEXT_SCORE


def is_surely_heard(line: Line) -> bool:
    """Whether a line is sure enough to be quoted; a line from subtitles always is."""
    scores = [w.score for w in line.words]
    return _mean(line) >= SURE_LINE_SCORE and min(scores, default=1.0) >= MIN_WORD_SCORE


def is_doubtful(line: Line) -> bool:
    """Whether a line needs a warning; all lines of a recogniser without scores (0) do."""
    return _mean(line) < MIN_WORD_SCORE


def _mean(line: Line) -> float:
    return sum(w.score for w in line.words) / len(line.words) if line.words else 1.0
