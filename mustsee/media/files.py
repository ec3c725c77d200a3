"""Media files on any filesystem that `pyarrow.fs` supports: opening, digest, streams, packets."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mustsee.errors import BadRow, MustseeError, Transient
from mustsee.files.store import file_digest, resolve

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.stream import Stream
    from av.video.stream import VideoStream

REMOTE_BUFFER = 1 << 20  # bytes per request to an object store
READ_ERRORS = 32  # consecutive read errors after which a file counts as ended


@contextmanager
def open_container(uri: str) -> Generator[InputContainer]:
    """Open the container at a local path or an address that `pyarrow.fs` supports.

    Raises BadRow when there is no such file or it is not a media file, Transient for any other
    failure of the filesystem.
    """
    import av
    from av import logging
    from av.error import EOFError as NothingThere
    from av.error import FFmpegError, InvalidDataError

    # FFmpeg's log is off because it deadlocks: its threads wait for the GIL to log while the thread
    # that frees their decoder holds the GIL and waits for them. Errors are raised or counted.
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
        raise BadRow(f"cannot read {uri!r}: not a media file, or damaged") from error
    except FFmpegError as error:
        raise BadRow(f"cannot read {uri!r}: {error.strerror}") from error
    except OSError as error:
        raise Transient(f"cannot read {uri!r}: {error}") from error
    with container:
        yield container


def content_digest(uri: str) -> str:
    """Return the SHA-256 (hex) of a file's bytes. Raises BadRow and Transient."""
    try:
        return file_digest(*resolve(uri))
    except FileNotFoundError as error:
        raise BadRow(f"no such file: {uri!r}") from error
    except MustseeError as error:
        raise BadRow(str(error)) from error
    except OSError as error:
        raise Transient(f"cannot read {uri!r}: {error}") from error


def find_video_stream(container: InputContainer) -> VideoStream | None:
    """Return the video stream to decode: the one with the largest frames, of equals the first.
    Cover art does not count.
    """
    from av.stream import Disposition

    art = Disposition.attached_pic | Disposition.still_image | Disposition.timed_thumbnails
    real = [
        s
        for s in container.streams.video
        if not s.disposition & art
        and getattr(s, "codec_context", None)  # None where FFmpeg has no decoder.
    ]
    return max(real, key=lambda s: (s.width * s.height, -s.index), default=None)


def start_time(stream: Stream) -> float:
    """Return the time at which a stream begins, in seconds of the container's clock."""
    if stream.start_time is None or stream.time_base is None:
        return 0.0
    return float(stream.start_time * stream.time_base)


def packets(container: InputContainer, stream: Any) -> Iterator[Any]:
    """Yield the packets of a stream; the last one is empty and drains the decoder.

    A read error is skipped. After `READ_ERRORS` in a row the file counts as ended.
    """
    from av.error import FFmpegError

    errors = 0
    while errors < READ_ERRORS:
        try:
            for packet in container.demux(stream):
                errors = 0
                yield packet
            return
        except FFmpegError:
            errors += 1


# ISO 639-1 codes, and the three-letter codes that media containers use.
_TWO = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy "
    "da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu "
    "hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb "
    "lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om "
    "or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw "
    "ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
_THREE = {
    "ara": "ar", "bul": "bg", "ces": "cs", "chi": "zh", "cze": "cs", "dan": "da", "deu": "de",
    "dut": "nl", "ell": "el", "eng": "en", "fin": "fi", "fra": "fr", "fre": "fr", "ger": "de",
    "gre": "el", "heb": "he", "hin": "hi", "hun": "hu", "ind": "id", "ita": "it", "jpn": "ja",
    "kor": "ko", "nld": "nl", "nor": "no", "per": "fa", "pol": "pl", "por": "pt", "ron": "ro",
    "rum": "ro", "rus": "ru", "spa": "es", "swe": "sv", "tha": "th", "tur": "tr", "ukr": "uk",
    "vie": "vi", "zho": "zh",
}  # fmt: skip
_CODES = {**{code: code for code in _TWO.split()}, **_THREE}


def language_code(tag: str | None) -> str | None:
    """Return the two-letter code of a tag: `pt` for `pt-BR` and `por`; None for any other
    string.
    """
    return _CODES.get(re.split("[-_]", (tag or "").lower())[0])
