"""Media files on any filesystem that `pyarrow.fs` knows: opening, digest, streams, packets."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mustsee.errors import BadRow, MustseeError, Transient
from mustsee.store import resolve

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.stream import Stream
    from av.video.stream import VideoStream

SUFFIXES = frozenset(
    {"mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "mpeg", "ts", "m2ts", "mts", "wmv", "flv"}
    | {"3gp", "ogv", "vob", "mxf"}
)
REMOTE_BUFFER = 1 << 20  # bytes asked of an object store at once
READ_ERRORS = 32  # read errors in a row after which a file counts as ended


@contextmanager
def open_container(uri: str) -> Generator[InputContainer]:
    """The container at a local path or an address that `pyarrow.fs` knows.

    Raises BadRow when there is no such file or it is no media file, Transient when the filesystem
    fails otherwise.
    """
    import av
    from av import logging
    from av.error import EOFError as NothingThere
    from av.error import FFmpegError, InvalidDataError

    # What matters is raised or counted. At any other level FFmpeg's threads wait for the GIL to log
    # while whoever frees their decoder holds it and waits for them: videos left early hung.
    logging.set_level(None)
    try:
        filesystem, path = resolve(uri)
        if "://" in uri:
            file: Any = filesystem.open_input_file(path)
            container: Any = av.open(file, buffer_size=REMOTE_BUFFER, metadata_errors="replace")
        else:
            container = av.open(path, metadata_errors="replace")
    except FileNotFoundError as error:
        raise BadRow(f"no such file: {uri!r}") from error
    except MustseeError as error:
        raise BadRow(str(error)) from error
    except (InvalidDataError, NothingThere) as error:
        raise BadRow(f"unreadable: {uri!r} is no media file, or is damaged") from error
    except FFmpegError as error:
        raise BadRow(f"unreadable: {uri!r}: {error.strerror}") from error
    except OSError as error:
        raise Transient(f"cannot read {uri!r}: {error}") from error
    with container:
        yield container


def content_digest(uri: str) -> str:
    """SHA-256 (hex) of a file's bytes, read as a stream. Raises BadRow and Transient."""
    found = hashlib.sha256()
    try:
        filesystem, path = resolve(uri)
        with filesystem.open_input_stream(path) as stream:
            while block := stream.read(REMOTE_BUFFER):
                found.update(block)
    except FileNotFoundError as error:
        raise BadRow(f"no such file: {uri!r}") from error
    except MustseeError as error:
        raise BadRow(str(error)) from error
    except OSError as error:
        raise Transient(f"cannot read {uri!r}: {error}") from error
    return found.hexdigest()


def picture_stream(container: InputContainer) -> VideoStream | None:
    """The stream to watch: the largest picture among real video streams (cover art is none), of
    equals the first.
    """
    from av.stream import Disposition

    art = Disposition.attached_pic | Disposition.still_image | Disposition.timed_thumbnails
    real = [
        s
        for s in container.streams.video
        if not s.disposition & art
        and getattr(s, "codec_context", None)  # none where FFmpeg has no decoder
    ]
    return max(real, key=lambda s: (s.width * s.height, -s.index), default=None)


def start_time(stream: Stream) -> float:
    """When a stream begins, in seconds of the container's clock."""
    if stream.start_time is None or stream.time_base is None:
        return 0.0
    return float(stream.start_time * stream.time_base)


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
