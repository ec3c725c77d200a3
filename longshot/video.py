"""Video files: opened from any filesystem, and read in bounded memory.

Times are seconds from the start of the picture (the first picture stream's start time is taken off;
the sound's own, where there is no picture).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longshot.errors import BadRow, LongshotError, Transient
from longshot.store import resolve

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.stream import Stream
    from av.video.stream import VideoStream

REMOTE_BUFFER = 1 << 20  # bytes asked of an object store at once
GAP = 0.1  # seconds by which sound times may wander from the sample count before they are believed

READ_ERRORS = 32  # read errors in a row after which a file counts as ended


@contextmanager
def opened(uri: str) -> Generator[InputContainer]:
    """The container at a local path or an address that `pyarrow.fs` knows.

    Raises BadRow when there is no such file or it is no media file, Transient when the filesystem
    fails otherwise.
    """
    import av
    from av.error import EOFError as NothingThere
    from av.error import FFmpegError, InvalidDataError

    try:
        filesystem, path = resolve(uri)
        if "://" in uri:
            file: Any = filesystem.open_input_file(path)
            container: Any = av.open(file, buffer_size=REMOTE_BUFFER, metadata_errors="replace")
        else:
            container = av.open(path, metadata_errors="replace")
    except FileNotFoundError as error:
        raise BadRow(f"no such file: {uri!r}") from error
    except LongshotError as error:
        raise BadRow(str(error)) from error
    except (InvalidDataError, NothingThere) as error:
        raise BadRow(f"unreadable: {uri!r} is no media file, or is damaged") from error
    except FFmpegError as error:
        raise BadRow(f"unreadable: {uri!r}: {error.strerror}") from error
    except OSError as error:
        raise Transient(f"cannot read {uri!r}: {error}") from error
    with container:
        yield container


def picture_stream(container: InputContainer) -> VideoStream | None:
    """The stream to watch: the largest picture among real video streams (cover art is none), the
    first of equals; the default stream wins over larger ones only when marked so among several.
    """
    from av.stream import Disposition

    real = [
        s
        for s in container.streams.video
        if not s.disposition & (Disposition.attached_pic | Disposition.still_image)
        and getattr(s, "codec_context", None)  # none where FFmpeg has no decoder
    ]
    return max(real, key=lambda s: (s.width * s.height, -s.index), default=None)


def start_time(stream: Stream) -> float:
    """When a stream begins, in seconds of the container's clock."""
    if stream.start_time is None or stream.time_base is None:
        return 0.0
    return float(stream.start_time * stream.time_base)


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
    with opened(uri) as container:
        if not container.streams.audio:
            return
        stream = max(container.streams.audio, key=_audio_rank)
        pieces: list[NDArray[np.float32]] = []
        held, begun = 0, 0.0
        for when, samples in _audio_pieces(container, stream, rate, start):
            if held and when - (begun + held / rate) > GAP:
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


def _audio_rank(stream: Stream) -> tuple[bool, int]:
    from av.stream import Disposition

    return bool(stream.disposition & Disposition.default), -stream.index


def _audio_pieces(
    container: InputContainer, stream: Any, rate: int, start: float
) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """(time, samples) in order, nothing before `start`; times follow the sample count unless the
    file's own times run ahead by more than `GAP`.
    """
    import av

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
            if expected is None or when - expected > GAP:
                expected = when
        elif expected is None:
            expected = 0.0
        frame.pts = None
        for part in resampler.resample(frame):
            samples = np.clip(part.to_ndarray().reshape(-1), -1.0, 1.0).astype(np.float32)
            early = min(len(samples), max(0, round((start - expected) * rate)))
            if early < len(samples):
                yield expected + early / rate, samples[early:]
            expected += len(samples) / rate


def packets(container: InputContainer, stream: Any) -> Iterator[Any]:
    """The packets of a stream, the empty one that drains the decoder last. A read error is stepped
    over; the file is taken as ended after `READ_ERRORS` in a row.
    """
    from av.error import FFmpegError

    failed = 0
    while failed < READ_ERRORS:
        try:
            for packet in container.demux(stream):
                failed = 0
                yield packet
            return
        except FFmpegError:
            failed += 1


def _decoded(container: InputContainer, stream: Any) -> Iterator[Any]:
    """The frames of a stream; what is broken is left out."""
    from av.error import FFmpegError

    for packet in packets(container, stream):
        try:
            frames = packet.decode()
        except FFmpegError:
            continue
        yield from frames
