"""The sound of a video, in bounded stretches.

Times are seconds from the start of the picture (from the start of the sound, where there is no
picture).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mustsee.media.files import open_container, packets, picture_stream, start_time
from mustsee.media.languages import language_code

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.stream import Stream

# seconds by which sound times may wander from the sample count before they are believed
MAX_DRIFT_S = 0.1


@dataclass(frozen=True)
class Sound:
    """A stretch of sound: `samples` are mono float32 in -1 to 1, `start` is the first one's time.

    Stretches follow each other in time; where a file has a gap, the next one starts later than the
    last one ended.
    """

    start: float
    samples: NDArray[np.float32]


def audio_chunks(
    uri: str,
    rate: int = 16_000,
    seconds: float = 30.0,
    *,
    start: float = 0.0,
    end: float | None = None,
) -> Iterator[Sound]:
    """The sound between `start` and `end`, in stretches of at most `seconds`: mono, at `rate` Hz.

    Yields nothing when there is no sound. Packets that cannot be decoded are left out. Holds one
    stretch at a time. Raises BadRow and Transient as `opened` does.
    """
    size = max(1, round(seconds * rate))
    with open_container(uri) as container:
        if not container.streams.audio:
            return
        stream = max(container.streams.audio, key=_audio_rank)
        pieces: list[NDArray[np.float32]] = []
        held, begun = 0, 0.0
        for when, samples in _audio_pieces(container, stream, rate, start):
            if held and when - (begun + held / rate) > MAX_DRIFT_S:
                yield Sound(begun, np.concatenate(pieces))
                pieces, held = [], 0
            begun = when if not held else begun
            room = None if end is None else round((end - begun) * rate) - held
            pieces.append(samples if room is None else samples[: max(room, 0)])
            held += len(pieces[-1])
            while held >= size:
                joined = np.concatenate(pieces)
                yield Sound(begun, joined[:size])
                pieces, held, begun = [joined[size:]], held - size, begun + size / rate
            if room is not None and room <= len(samples):
                break
        if held:
            yield Sound(begun, np.concatenate(pieces))


def sound_language(uri: str) -> str | None:
    """The language that the container names for the sound that `audio_chunks` gives (`en`); None
    where it names none. Raises BadRow and Transient as `opened` does.
    """
    with open_container(uri) as container:
        if not container.streams.audio:
            return None
        return language_code(max(container.streams.audio, key=_audio_rank).language)


def _audio_rank(stream: Stream) -> tuple[bool, int]:
    from av.stream import Disposition

    return bool(stream.disposition & Disposition.default), -stream.index


def _audio_pieces(
    container: InputContainer, stream: Any, rate: int, start: float
) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """(time, samples) in order, nothing before `start`; times follow the sample count unless the
    file's own times run ahead by more than `MAX_DRIFT_S`.
    """
    import av
    from av.error import FFmpegError

    picture = picture_stream(container)
    zero = start_time(stream if picture is None else picture)
    if start > 1:
        container.seek(int((zero + start - 1) / stream.time_base), stream=stream)
    resampler, shape, expected = None, None, None
    for frame in _decoded(container, stream):
        if shape != (frame.format.name, frame.layout.name, frame.sample_rate) or resampler is None:
            shape = (frame.format.name, frame.layout.name, frame.sample_rate)
            resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
        if frame.pts is not None:
            when = float(frame.pts * frame.time_base) - zero
            if expected is None or when - expected > MAX_DRIFT_S:
                expected = when
        elif expected is None:
            expected = 0.0
        frame.pts = None
        try:
            parts = resampler.resample(frame)
        except FFmpegError:  # a frame of a rate or a layout that is none: left out, as others are
            resampler = None
            continue
        for part in parts:
            samples = np.clip(part.to_ndarray().reshape(-1), -1.0, 1.0).astype(np.float32)
            early = min(len(samples), max(0, round((start - expected) * rate)))
            if early < len(samples):
                yield expected + early / rate, samples[early:]
            expected += len(samples) / rate


def _decoded(container: InputContainer, stream: Any) -> Iterator[Any]:
    """The frames of a stream; what is broken is left out."""
    from av.error import FFmpegError

    for packet in packets(container, stream):
        try:
            frames = packet.decode()
        except FFmpegError:
            continue
        yield from frames
