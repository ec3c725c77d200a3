"""The sound of a video in bounded chunks.

Times are seconds from the start of the video stream; without one, from the start of the sound.
Channels that cancel each other are put in phase: a wrongly wired microphone inverted one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.files import (
    find_video_stream,
    language_code,
    open_container,
    packets,
    start_time,
)
from mustsee.media.frame_times import frame_times, is_mpeg_stream

if TYPE_CHECKING:
    from av import AudioFrame
    from av.container import InputContainer
    from av.stream import Stream

PHASE_MEMORY_S = 0.2  # seconds of sound after which a measurement counts less than half
MAX_OPPOSED = -0.5  # correlation below which a channel is inverted
MAX_CHANNELS = 7  # channels whose samples PyAV can read; a damaged file may claim more


class PhaseMender:
    """Inverts, while frames of sound go by, each channel that would cancel those before it in a mix
    to mono. Sound of other channels passes unchanged.
    """

    def __init__(self) -> None:
        self._products: NDArray[np.float64] | None = None  # of the channels, each with each

    def __call__(self, frame: AudioFrame) -> AudioFrame:
        """Return the frame, or one with some channels inverted, without a time."""
        count = len(frame.layout.channels)
        is_readable = not frame.format.name.startswith("s64")  # PyAV has no such samples
        if not (2 <= count <= MAX_CHANNELS and frame.samples and is_readable):
            return frame
        samples = frame.to_ndarray()
        channels = samples if frame.format.is_planar else samples.reshape(-1, count).T
        opposed = self._opposed(
            channels, math.exp(-frame.samples / frame.sample_rate / PHASE_MEMORY_S)
        )
        if not opposed:
            return frame
        for number in opposed:
            # -x - 1 cannot overflow, and is right for unsigned samples, too.
            whole = np.issubdtype(channels.dtype, np.integer)
            channels[number] = ~channels[number] if whole else -channels[number]
        from av import AudioFrame

        mended = AudioFrame.from_ndarray(samples, frame.format.name, frame.layout.name)
        mended.sample_rate = frame.sample_rate
        return mended

    def _opposed(self, channels: NDArray[np.generic], memory: float) -> list[int]:
        """The channels to invert."""
        centred = channels - channels.mean(axis=1, dtype=np.float64, keepdims=True)
        products = centred @ centred.T
        if self._products is not None and self._products.shape == products.shape:
            products += memory * self._products
        self._products = products
        signs = np.zeros(len(products))
        for number, row in enumerate(products):
            # the product of a channel with the sum of those before, and of that sum with itself
            with_sum, of_sum = row @ signs, signs @ products @ signs
            opposed = with_sum < MAX_OPPOSED * math.sqrt(of_sum * row[number])
            signs[number] = -1 if opposed else 1
        return [number for number, sign in enumerate(signs) if sign < 0]


# seconds by which a file's times may run ahead of the sample count and are ignored
MAX_DRIFT_S = 0.1
KEPT_S = 600.0  # seconds of sound, at most, that `decode_once` keeps: 38 MB at 16 kHz


@dataclass(frozen=True)
class Sound:
    """A chunk of sound: `samples` are mono float32 in -1 to 1, `start` is the time of the first
    one.

    Chunks are in order of time. Where a file has a gap, the next chunk starts later than the last
    one ended.
    """

    start: float
    samples: NDArray[np.float32]


_kept: ContextVar[dict[tuple[object, ...], list[Sound]] | None] = ContextVar("kept", default=None)


@contextlib.contextmanager
def decode_once() -> Generator[None]:
    """Let equal calls of `audio_chunks` in the block, from its thread, decode the sound once. Sound
    of more than `KEPT_S` is decoded each time.
    """
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def audio_chunks(
    uri: str,
    rate: int = 16_000,
    seconds: float = 30.0,
    *,
    start: float = 0.0,
    end: float | None = None,
) -> Iterator[Sound]:
    """Yield the sound between `start` and `end` in chunks of at most `seconds`: mono, at `rate` Hz.

    Yields nothing when there is no sound. Channels that would cancel each other are brought in
    phase. Packets that cannot be decoded are left out. Holds one
    chunk in memory, outside `decode_once`. Raises BadRow and Transient as `open_container` does.
    """
    kept, key = _kept.get(), (uri, rate, seconds, start, end)
    if kept is not None and key in kept:
        yield from kept[key]
        return
    chunks, left = list[Sound](), KEPT_S * rate if kept is not None else 0.0
    for sound in _decode_chunks(uri, rate, seconds, start, end):
        left -= len(sound.samples)
        chunks = [*chunks, sound] if left >= 0 else []
        yield sound
    if kept is not None and left >= 0:
        kept[key] = chunks


def _decode_chunks(
    uri: str, rate: int, seconds: float, start: float, end: float | None
) -> Iterator[Sound]:
    """Decode what `audio_chunks` yields."""
    size = max(1, round(seconds * rate))
    with open_container(uri) as container:
        if not container.streams.audio:
            return
        stream = max(container.streams.audio, key=_audio_rank)
        blocks: list[NDArray[np.float32]] = []
        count, chunk_start = 0, 0.0
        for time, samples in _audio_blocks(uri, container, stream, rate, start):
            if count and time - (chunk_start + count / rate) > MAX_DRIFT_S:
                yield Sound(chunk_start, np.concatenate(blocks))
                blocks, count = [], 0
            chunk_start = time if not count else chunk_start
            room = None if end is None else round((end - chunk_start) * rate) - count
            blocks.append(samples if room is None else samples[: max(room, 0)])
            count += len(blocks[-1])
            while count >= size:
                joined = np.concatenate(blocks)
                yield Sound(chunk_start, joined[:size])
                blocks, count = [joined[size:]], count - size
                chunk_start += size / rate
            if room is not None and room <= len(samples):
                break
        if count:
            yield Sound(chunk_start, np.concatenate(blocks))


def has_sound(uri: str) -> bool:
    """Whether a file has a sound track. Raises BadRow and Transient as `open_container` does."""
    with open_container(uri) as container:
        return bool(container.streams.audio)


def sound_language(uri: str) -> str | None:
    """Return the language (`en`) that the container names for the sound of `audio_chunks`, or None.
    Raises BadRow and Transient as `open_container` does.
    """
    with open_container(uri) as container:
        if not container.streams.audio:
            return None
        return language_code(max(container.streams.audio, key=_audio_rank).language)


def _audio_rank(stream: Stream) -> tuple[bool, int]:
    from av.stream import Disposition

    return bool(stream.disposition & Disposition.default), -stream.index


def _audio_blocks(
    uri: str, container: InputContainer, stream: Any, rate: int, start: float
) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """Yield (time, samples) in order, nothing before `start`. Times follow the sample count unless
    the file's own times run ahead by more than `MAX_DRIFT_S`.
    """
    import av
    from av.error import FFmpegError

    video_stream = find_video_stream(container)
    zero = start_time(stream if video_stream is None else video_stream)
    near = int((zero + start - 1) / stream.time_base)
    read: Iterator[Any] = packets(container, stream)
    if video_stream is not None and is_mpeg_stream(container):
        index = frame_times(uri)
        if start > 1:
            index.seek_before(container, near)
        read = index.joins.read(container, stream)
    elif start > 1:
        container.seek(near, stream=stream)
    resampler, shape, expected, mend = None, None, None, PhaseMender()
    for frame in decode_packets(read):
        if shape != (frame.format.name, frame.layout.name, frame.sample_rate) or resampler is None:
            shape = (frame.format.name, frame.layout.name, frame.sample_rate)
            resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
        if frame.pts is not None:
            time = float(frame.pts * frame.time_base) - zero
            if expected is None or time - expected > MAX_DRIFT_S:
                expected = time
        elif expected is None:
            expected = 0.0
        frame.pts = None
        try:
            resampled = resampler.resample(mend(frame))
        except FFmpegError:  # An impossible rate or layout: the frame is left out.
            resampler = None
            continue
        for block in resampled:
            samples = np.clip(block.to_ndarray().reshape(-1), -1.0, 1.0).astype(np.float32)
            early = min(len(samples), max(0, round((start - expected) * rate)))
            if early < len(samples):
                yield expected + early / rate, samples[early:]
            expected += len(samples) / rate


def decode_packets(read: Iterator[Any]) -> Iterator[Any]:
    """Yield the frames of packets; those that cannot be decoded are left out."""
    from av.error import FFmpegError

    for packet in read:
        try:
            frames = packet.decode()
        except FFmpegError:
            continue
        yield from frames
