"""Windows of sound of bounded length, cut in the pauses of speech, or where it is quiet.

The voice activity detector is silero's, run by onnxruntime from the file in the faster-whisper
wheel (0.003 of real time on one core).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError, need
from mustsee.media.sound import MAX_DRIFT_S, Sound, audio_chunks
from mustsee.records import Span, Video

SAMPLE_RATE = 16_000
_EDGE_S = 0.6  # seconds before a window's end in which ending speech may continue after it
_MAX_GAP_S = 0.05  # seconds between two chunks that still count as one


@dataclass(frozen=True, kw_only=True)
class VoiceDetection:
    """Settings of the voice activity detector (silero VAD)."""

    threshold: float = 0.5
    """Probability above which sound counts as speech."""
    silence: float = 0.4
    """Seconds of silence that end an utterance."""
    pad: float = 0.2
    """Seconds kept around an utterance."""
    longest: float = 28.0
    """Longest utterance, seconds; longer ones are split."""


@dataclass(frozen=True)
class SpeechWindow:
    """A window of sound, with its spans of speech in seconds of the video."""

    start: float
    samples: NDArray[np.float32]
    speech: tuple[Span, ...]

    @property
    def end(self) -> float:
        return self.start + len(self.samples) / SAMPLE_RATE

    @property
    def identity(self) -> object:
        """The window's identity in store keys."""
        samples_digest = hashlib.sha256(np.ascontiguousarray(self.samples).data).hexdigest()
        return [self.start, samples_digest, *((span.start, span.end) for span in self.speech)]

    def cut(self, span: Span) -> NDArray[np.float32]:
        """Return the samples of a span of this window."""
        first = round((span.start - self.start) * SAMPLE_RATE)
        return self.samples[first : round((span.end - self.start) * SAMPLE_RATE)]


def speech_windows(
    video: Video, *, seconds: float, voice: VoiceDetection | None = None
) -> Iterator[SpeechWindow]:
    """Return the windows with speech of a video, or of its span `start` to `end`. Raises BadRow for
    a file that cannot be read.
    """
    sounds = audio_chunks(video.uri, SAMPLE_RATE, 30.0, start=video.start or 0.0, end=video.end)
    return (w for w in windows(sounds, seconds=seconds, voice=voice) if w.speech)


def windows(
    sounds: Iterable[Sound], *, seconds: float = 300.0, voice: VoiceDetection | None = None
) -> Iterator[SpeechWindow]:
    """Yield sound at 16 kHz in windows of at most `seconds`, each with its spans of speech.

    A window ends at a gap in the sound, and never within an utterance, unless the utterance fills
    the window. Holds one window and two chunks of sound in memory, none of them twice.
    """
    voice = voice or VoiceDetection()
    if seconds <= 0:
        raise UserError(f"hear: window={seconds!r}: must be more than 0 seconds")
    size = max(1, round(seconds * SAMPLE_RATE))
    room, count, start = np.empty(size, np.float32), 0, 0.0
    for sound in sounds:
        if count and sound.start - (start + count / SAMPLE_RATE) > _MAX_GAP_S:
            yield _window(start, room[:count], _speech(room[:count], voice))
            room, count = np.empty(size, np.float32), 0
        if not count:
            start = sound.start
        rest = sound.samples
        while len(rest):
            new, rest = rest[: size - count], rest[size - count :]
            room[count : count + len(new)] = new
            count += len(new)
            if count == size:
                speech, cut = _speech(room, voice), size
                if speech and speech[-1][1] > size - _EDGE_S * SAMPLE_RATE and speech[-1][0] > 0:
                    cut = speech.pop()[0]
                after = room[cut:].copy()
                yield _window(start, room[:cut], speech)
                del room  # before the next one is made
                room, count = np.empty(size, np.float32), size - cut
                room[:count], start = after, start + cut / SAMPLE_RATE
    if count:
        yield _window(start, room[:count], _speech(room[:count], voice))


def _window(
    start: float, samples: NDArray[np.float32], speech: list[tuple[int, int]]
) -> SpeechWindow:
    spans = tuple(Span(start + a / SAMPLE_RATE, start + b / SAMPLE_RATE) for a, b in speech)
    return SpeechWindow(start, samples, spans)


class DetectorInBlocks:
    """The detector's network on at most `BLOCK` frames of 32 ms at once, each with the end of the
    frame before it. It finds what faster-whisper's `SileroVADModel` finds, to the last bit; that
    one runs 10,000 frames at once, and takes 156 MB for ten minutes in place of 30.
    """

    BLOCK: ClassVar[int] = 1000
    FRAME: ClassVar[int] = 512
    BEFORE: ClassVar[int] = 64

    def __init__(self, session: Any) -> None:
        self._session = session

    def __call__(self, audio: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of speech in each frame. The last `BEFORE` samples become 0, as
        faster-whisper has them.
        """
        audio[-self.BEFORE :] = 0
        frames = audio.reshape(-1, self.FRAME)
        h = c = np.zeros((1, 1, 128), np.float32)
        end, found = np.zeros((1, self.BEFORE), np.float32), list[NDArray[np.float32]]()
        for first in range(0, len(frames), self.BLOCK):
            block = frames[first : first + self.BLOCK]
            before = np.concatenate([end, block[:-1, -self.BEFORE :]])
            inputs = {"input": np.concatenate([before, block], axis=1), "h": h, "c": c}
            new, h, c = self._session.run(None, inputs)
            end = block[-1:, -self.BEFORE :]
            found.append(new)
        return np.concatenate(found)


def _speech(samples: NDArray[np.float32], voice: VoiceDetection) -> list[tuple[int, int]]:
    """The first and last sample of each utterance."""
    need("speech detection", "mustsee[offline]", "faster_whisper")
    from faster_whisper import vad

    known: Any = vad.get_vad_model()
    if not isinstance(known, DetectorInBlocks):
        detector: Any = DetectorInBlocks(known.session)
        vad.get_vad_model = lambda: detector
    utterances = vad.get_speech_timestamps(
        samples,
        vad.VadOptions(
            threshold=voice.threshold,
            min_silence_duration_ms=round(voice.silence * 1000),
            speech_pad_ms=round(voice.pad * 1000),
            max_speech_duration_s=voice.longest,
            min_speech_duration_ms=100,
        ),
    )
    return [
        (int(utterance["start"]), min(int(utterance["end"]), len(samples)))
        for utterance in utterances
    ]


LOUDNESS_WINDOW_S = 0.2  # seconds over which loudness is measured
SEARCHED_SHARE = 1 / 3  # share of a chunk, at its end, that is searched for the quietest place


def quiet_cuts(sounds: Iterable[Sound], rate: int, longest: float) -> Iterator[Sound]:
    """Yield the same sound in chunks of at most `longest` seconds.

    A chunk is cut at the quietest place of its last third, and at a gap in the times. Holds one
    chunk and one element of `sounds` in memory.
    """
    max_samples = max(1, round(longest * rate))
    samples, start = np.zeros(0, np.float32), 0.0
    for sound in sounds:
        if len(samples) and sound.start - (start + len(samples) / rate) > MAX_DRIFT_S:
            yield Sound(start, samples)
            samples = samples[:0]
        start = start if len(samples) else sound.start
        samples = np.concatenate([samples, sound.samples])
        while len(samples) > max_samples:
            cut = quietest(samples[:max_samples], rate)
            yield Sound(start, samples[:cut])
            samples, start = samples[cut:], start + cut / rate
    if len(samples):
        yield Sound(start, samples)


def quietest(samples: NDArray[np.float32], rate: int) -> int:
    """Return the sample in the middle of the quietest `LOUDNESS_WINDOW_S` of the last third."""
    first = len(samples) - int(len(samples) * SEARCHED_SHARE)
    width = max(1, min(round(LOUDNESS_WINDOW_S * rate), len(samples) - first))
    power = np.concatenate([[0.0], np.cumsum(np.square(samples[first:], dtype=np.float64))])
    sums = power[width:] - power[:-width]
    return max(1, first + int(sums.argmin()) + width // 2)
