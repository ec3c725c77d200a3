"""Sound of a synthetic video: spans of several files joined, sample by sample on one clock.

The sound of each clip lasts as long as its frames, to the sample, so that they stay in time with
each other. Where two clips meet, the first fades out under the beginning of the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.files import find_video_stream, open_container, packets, start_time
from mustsee.media.sound import decode_packets

Samples = NDArray[np.float32]
# seconds by which a file's times may differ from the sample count and are ignored
MAX_DRIFT_S = 0.05
CHANNELS = 2  # stereo
AAC_FRAME_SAMPLES = 1024  # samples of one AAC frame
ROUNDING_SAMPLES = 2  # samples by which a clip may start late when its file continues after a probe


@dataclass(frozen=True, kw_only=True)
class SoundSpan:
    """The sound of `uri` from `start` on (seconds of its video's clock), for the samples `first` to
    before `after` of the whole video. Silence where the file has none.
    """

    uri: str
    start: Fraction
    first: int
    after: int


class SoundSource:
    """The sound of one file, stereo at one rate, read forwards. It is open until `close`."""

    def __init__(self, uri: str, rate: int, start: Fraction) -> None:
        self._rate = rate
        self._buffer: list[Samples] = []
        self._buffer_start = max(0, round(start * rate))  # number of the first sample in the buffer
        self._count = 0
        self._blocks = _blocks(uri, rate, float(start))
        self._ended = False

    def read(self, first: int, count: int) -> Samples:
        """Return `count` samples from number `first` (of the file) on, (count, 2); zeros where
        there are none.

        Samples before `first` are dropped from the buffer.
        """
        while not self._ended and self._buffer_start + self._count < first + count:
            self._fill()
        data = np.concatenate(self._buffer) if self._buffer else np.zeros((0, CHANNELS), np.float32)
        out = np.zeros((count, CHANNELS), np.float32)
        skip = first - self._buffer_start
        wanted = data[max(0, skip) : max(0, skip + count)]
        out[max(0, -skip) : max(0, -skip) + len(wanted)] = wanted[: count - max(0, -skip)]
        if skip > 0:
            rest = data[skip:]
            self._buffer, self._count = ([rest], len(rest)) if len(rest) else ([], 0)
            self._buffer_start = first
        return out

    def _fill(self) -> None:
        block = next(self._blocks, None)
        if block is None:
            self._ended = True
            return
        number, samples = block
        next_sample = self._buffer_start + self._count
        if abs(number - next_sample) > MAX_DRIFT_S * self._rate or not self._count:
            if number < next_sample:
                samples = samples[next_sample - number :]
            elif number > next_sample:
                silence = np.zeros((number - next_sample, CHANNELS), np.float32)
                self._buffer.append(silence)
                self._count += len(silence)
        self._buffer.append(samples)
        self._count += len(samples)

    @property
    def position(self) -> int:
        """The number of the earliest sample that can still be read."""
        return self._buffer_start

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()


def _blocks(uri: str, rate: int, start: float) -> Any:
    """Yield (number of the first sample, samples) in order, from about `start` on."""
    import av

    with open_container(uri) as container:
        if not container.streams.audio:
            return
        stream: Any = container.streams.audio[0]
        video_stream = find_video_stream(container)
        zero = start_time(stream if video_stream is None else video_stream)
        if start > 1:
            container.seek(int((zero + start - 1) / stream.time_base), stream=stream)
        shape, resampler, count, offset = None, None, 0, None
        for frame in decode_packets(packets(container, stream)):
            frame_shape = (frame.format.name, frame.layout.name, frame.sample_rate)
            if shape != frame_shape:
                shape, offset, count = frame_shape, None, 0
                resampler = av.AudioResampler(format="flt", layout="stereo", rate=rate)
            if frame.pts is not None:
                time = round((float(frame.pts * frame.time_base) - zero) * rate)
                if offset is None or abs(time - offset - count) > MAX_DRIFT_S * rate:
                    offset, count = time, 0
            frame.pts = None
            assert resampler is not None
            for block in resampler.resample(frame):
                samples = block.to_ndarray().reshape(-1, CHANNELS)
                yield (offset or 0) + count, samples
                count += len(samples)


def samples(spans: Sequence[SoundSpan], rate: int, fade: int) -> Iterator[Samples]:
    """Yield the sound of the whole video in blocks of `AAC_FRAME_SAMPLES` samples (the last one
    shorter), (n, 2) each.

    `fade`: samples at the beginning of a span that are mixed with the continuation of the span
    before. Holds one block, and the sources that are still needed.
    """
    sources: dict[str, SoundSource] = {}
    uses = [span.uri for span in spans]
    tail = np.zeros((0, CHANNELS), np.float32)
    block = np.zeros((0, CHANNELS), np.float32)
    try:
        for number, span in enumerate(spans):
            source = sources.get(span.uri)
            offset = round(span.start * rate)
            if source is not None and offset < source.position <= offset + ROUNDING_SAMPLES:
                offset = source.position
            if source is None or source.position > offset:
                source = sources[span.uri] = SoundSource(span.uri, rate, span.start)
            length = span.after - span.first
            for at in range(0, length, rate):
                count = min(rate, length - at)
                chunk = source.read(offset + at, count)
                if at == 0 and len(tail):
                    chunk = _cross_fade(tail[:count], chunk)
                block = np.concatenate([block, chunk])
                complete = len(block) // AAC_FRAME_SAMPLES * AAC_FRAME_SAMPLES
                yield from (
                    np.split(block[:complete], complete // AAC_FRAME_SAMPLES) if complete else ()
                )
                block = block[complete:]
            tail = source.read(offset + length, fade) if fade else tail
            if span.uri not in uses[number + 1 :]:
                sources.pop(span.uri).close()
        if len(block):
            yield block
    finally:
        for source in sources.values():
            source.close()


def _cross_fade(before: Samples, after: Samples) -> Samples:
    """`after`, fading in over the length of `before`, which fades out (equal power)."""
    count = min(len(before), len(after))
    angle = (np.arange(count, dtype=np.float32)[:, None] + 0.5) / max(count, 1) * (np.pi / 2)
    faded = before[:count] * np.cos(angle) + after[:count] * np.sin(angle)
    return np.concatenate([np.clip(faded, -1, 1).astype(np.float32), after[count:]])
