"""Voice activity: sound in windows of bounded length, cut in the pauses of speech.

The voice activity detector is silero's, run by onnxruntime from the file in the faster-whisper
wheel (0.003 of real time on one core).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError, need
from mustsee.media.sound import Sound, audio_chunks
from mustsee.records import Span, Video

SAMPLE_RATE = 16_000
_EDGE = 0.6  # seconds: speech that ends this near the window's end may go on behind it
_CONTIGUOUS = 0.05  # seconds between two stretches that still count as one


@dataclass(frozen=True, kw_only=True)
class VoiceDetection:
    """How speech is told from silence (silero VAD).

    `threshold`: probability above which a moment is speech; `silence`: seconds of silence that end
    an utterance; `pad`: seconds kept around one; `longest`: seconds after which one is cut, in its
    last short pause if it has one.
    """

    threshold: float = 0.5
    silence: float = 0.4
    pad: float = 0.2
    longest: float = 28.0


@dataclass(frozen=True)
class SpeechWindow:
    """A stretch of sound, and where in it somebody speaks: spans in seconds of the video."""

    start: float
    samples: NDArray[np.float32]
    speech: tuple[Span, ...]

    @property
    def end(self) -> float:
        return self.start + len(self.samples) / SAMPLE_RATE

    @property
    def identity(self) -> object:
        """What the store knows it by."""
        heard = hashlib.sha256(self.samples.tobytes()).hexdigest()
        return [self.start, heard, *((span.start, span.end) for span in self.speech)]

    def cut(self, span: Span) -> NDArray[np.float32]:
        """The samples of a span of this window."""
        first = round((span.start - self.start) * SAMPLE_RATE)
        return self.samples[first : round((span.end - self.start) * SAMPLE_RATE)]


def speech_windows(
    video: Video, *, seconds: float, voice: VoiceDetection | None = None
) -> Iterator[SpeechWindow]:
    """The windows of a video, or of its stretch `start` to `end`, in which somebody speaks. Raises
    BadRow for a file that cannot be read.
    """
    sounds = audio_chunks(video.uri, SAMPLE_RATE, 30.0, start=video.start or 0.0, end=video.end)
    return (w for w in windows(sounds, seconds=seconds, voice=voice) if w.speech)


def windows(
    sounds: Iterable[Sound], *, seconds: float = 300.0, voice: VoiceDetection | None = None
) -> Iterator[SpeechWindow]:
    """Sound at 16 kHz in windows of at most `seconds`, none of which ends within an utterance
    (unless an utterance fills the window).

    Holds one window and one stretch of sound at a time. Where the sound has a gap, a window ends.
    """
    voice = voice or VoiceDetection()
    if seconds <= 0:
        raise UserError(f"hear: window={seconds!r}: more than 0 seconds")
    size = round(seconds * SAMPLE_RATE)
    held, start = np.empty(0, np.float32), 0.0
    for sound in sounds:
        if len(held) and sound.start - (start + len(held) / SAMPLE_RATE) > _CONTIGUOUS:
            yield from _whole(start, held, size, voice)
            held = np.empty(0, np.float32)
        if not len(held):
            start = sound.start
        held = np.concatenate([held, sound.samples])
        while len(held) >= size:
            speech = _speech(held[:size], voice)
            cut = size
            if speech and speech[-1][1] > size - _EDGE * SAMPLE_RATE and speech[-1][0] > 0:
                cut = speech.pop()[0]
            yield _window(start, held[:cut], speech)
            held, start = held[cut:], start + cut / SAMPLE_RATE
    if len(held):
        yield from _whole(start, held, size, voice)


def _whole(
    start: float, samples: NDArray[np.float32], size: int, voice: VoiceDetection
) -> Iterator[SpeechWindow]:
    for first in range(0, len(samples), size):
        part = samples[first : first + size]
        yield _window(start + first / SAMPLE_RATE, part, _speech(part, voice))


def _window(
    start: float, samples: NDArray[np.float32], speech: list[tuple[int, int]]
) -> SpeechWindow:
    spans = tuple(Span(start + a / SAMPLE_RATE, start + b / SAMPLE_RATE) for a, b in speech)
    return SpeechWindow(start, samples, spans)


def _speech(samples: NDArray[np.float32], voice: VoiceDetection) -> list[tuple[int, int]]:
    """First and last sample of each utterance."""
    need("speech detection", "mustsee[offline]", "faster_whisper")
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    found = get_speech_timestamps(
        samples,
        VadOptions(
            threshold=voice.threshold,
            min_silence_duration_ms=round(voice.silence * 1000),
            speech_pad_ms=round(voice.pad * 1000),
            max_speech_duration_s=voice.longest,
            min_speech_duration_ms=100,
        ),
    )
    return [(int(s["start"]), min(int(s["end"]), len(samples))) for s in found]
