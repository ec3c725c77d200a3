"""Sound of a synthesised video: stretches of several files as one, sample by sample on one clock.

Each piece lasts as long as its pictures, to the sample, so that sound and picture cannot drift
apart; where two pieces meet, the one before fades out under the one that begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.files import open_container, packets, picture_stream, start_time

Samples = NDArray[np.float32]
MAX_DRIFT_S = 0.05  # seconds by which a file's times may wander from the count of samples
CHANNELS = 2
AAC_FRAME_SAMPLES = 1024  # samples of one AAC frame
ROUNDING_SAMPLES = 2  # samples by which a file's clock and the whole's may differ where it goes on


@dataclass(frozen=True, kw_only=True)
class SoundSpan:
    """Sound of `uri` from `start` on (seconds of its pictures' clock), for the samples `first` to
    before `after` of the whole. Silence where the file has none.
    """

    uri: str
    start: Fraction
    first: int
    after: int


class SoundSource:
    """The sound of one file, stereo at one rate, read forwards. It stays open till `close`."""

    def __init__(self, uri: str, rate: int, start: Fraction) -> None:
        self._rate = rate
        self._held: list[Samples] = []
        self._pos = max(0, round(start * rate))  # number of the first sample held
        self._count = 0
        self._pieces = _pieces(uri, rate, float(start))
        self._ended = False

    def read(self, first: int, count: int) -> Samples:
        """`count` samples from number `first` (of the file) on, (count, 2); zeros where there are
        none. Samples before `first` are let go.
        """
        while not self._ended and self._pos + self._count < first + count:
            self._fill()
        data = np.concatenate(self._held) if self._held else np.zeros((0, CHANNELS), np.float32)
        out = np.zeros((count, CHANNELS), np.float32)
        skip = first - self._pos
        part = data[max(0, skip) : max(0, skip + count)]
        out[max(0, -skip) : max(0, -skip) + len(part)] = part[: count - max(0, -skip)]
        if skip > 0:
            rest = data[skip:]
            self._held, self._count = ([rest], len(rest)) if len(rest) else ([], 0)
            self._pos = first
        return out

    def _fill(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self._ended = True
            return
        at, samples = piece
        now = self._pos + self._count
        if abs(at - now) > MAX_DRIFT_S * self._rate or not self._count:
            if at < now:
                samples = samples[now - at :]
            elif at > now:
                silence = np.zeros((at - now, CHANNELS), np.float32)
                self._held.append(silence)
                self._count += len(silence)
        self._held.append(samples)
        self._count += len(samples)

    @property
    def position(self) -> int:
        """Number of the earliest sample that can still be read."""
        return self._pos

    def close(self) -> None:
        self._pieces.close()


def _pieces(uri: str, rate: int, start: float) -> Any:
    """(number of the first sample, samples) in order, from about `start` on."""
    import av
    from av.error import FFmpegError

    with open_container(uri) as container:
        if not container.streams.audio:
            return
        stream: Any = container.streams.audio[0]
        picture = picture_stream(container)
        zero = start_time(stream if picture is None else picture)
        if start > 1:
            container.seek(int((zero + start - 1) / stream.time_base), stream=stream)
        shape, resampler, done, offset = None, None, 0, None
        for packet in packets(container, stream):
            try:
                frames: list[Any] = packet.decode()
            except FFmpegError:
                continue
            for frame in frames:
                now = (frame.format.name, frame.layout.name, frame.sample_rate)
                if shape != now:
                    shape, offset, done = now, None, 0
                    resampler = av.AudioResampler(format="flt", layout="stereo", rate=rate)
                if frame.pts is not None:
                    time = round((float(frame.pts * frame.time_base) - zero) * rate)
                    if offset is None or abs(time - offset - done) > MAX_DRIFT_S * rate:
                        offset, done = time, 0
                frame.pts = None
                assert resampler is not None
                for part in resampler.resample(frame):
                    samples = part.to_ndarray().reshape(-1, CHANNELS)
                    yield (offset or 0) + done, samples
                    done += len(samples)


def has_sound(uri: str) -> bool:
    """Whether a file has a sound stream."""
    with open_container(uri) as container:
        return bool(container.streams.audio)


def samples(stretches: Sequence[SoundSpan], rate: int, fade: int) -> Iterator[Samples]:
    """The whole as blocks of `AAC_FRAME_SAMPLES` samples (the last one shorter), (n, 2) each.

    `fade`: how many samples at the beginning of a stretch are mixed with what the one before would
    have gone on with. Holds one block, and the sources that are still needed.
    """
    sources: dict[str, SoundSource] = {}
    uses = [stretch.uri for stretch in stretches]
    tail = np.zeros((0, CHANNELS), np.float32)
    block = np.zeros((0, CHANNELS), np.float32)
    try:
        for number, stretch in enumerate(stretches):
            source = sources.get(stretch.uri)
            offset = round(stretch.start * rate)
            if source is not None and offset < source.position <= offset + ROUNDING_SAMPLES:
                offset = source.position
            if source is None or source.position > offset:
                source = sources[stretch.uri] = SoundSource(stretch.uri, rate, stretch.start)
            length = stretch.after - stretch.first
            for at in range(0, length, rate):
                count = min(rate, length - at)
                part = source.read(offset + at, count)
                if at == 0 and len(tail):
                    part = _mixed(tail[:count], part)
                block = np.concatenate([block, part])
                whole = len(block) // AAC_FRAME_SAMPLES * AAC_FRAME_SAMPLES
                yield from np.split(block[:whole], whole // AAC_FRAME_SAMPLES) if whole else ()
                block = block[whole:]
            tail = source.read(offset + length, fade) if fade else tail
            if stretch.uri not in uses[number + 1 :]:
                sources.pop(stretch.uri).close()
        if len(block):
            yield block
    finally:
        for source in sources.values():
            source.close()


def _mixed(before: Samples, after: Samples) -> Samples:
    """`after`, fading in over the length of `before`, which fades out (equal power)."""
    count = min(len(before), len(after))
    angle = (np.arange(count, dtype=np.float32)[:, None] + 0.5) / max(count, 1) * (np.pi / 2)
    mixed = before[:count] * np.cos(angle) + after[:count] * np.sin(angle)
    return np.concatenate([np.clip(mixed, -1, 1).astype(np.float32), after[count:]])
