"""Subtitles to transcript lines: `.srt .vtt .ass .ssa` files, and text streams inside a video.

This module finds and opens them, in whatever encoding; `mustsee.media.cues` parses their text.
"""

from __future__ import annotations

import contextlib
import posixpath
from dataclasses import dataclass
from typing import Any

from mustsee.errors import BadRow, UserError
from mustsee.folders import is_text, names_starting
from mustsee.media.cues import DRAWING, Cue, lines, lines_of_cues, read_cue
from mustsee.media.languages import language_code
from mustsee.records import Line
from mustsee.store import address_of, resolve

MAX_FILE_BYTES = 16_000_000  # bytes of a subtitle file; three hours of talk have 300,000
FORMATS = ("srt", "vtt", "ass", "ssa")
_KINDS = frozenset({"cc", "sdh", "captions", "subtitles", "subs", "auto"})


@dataclass(frozen=True)
class Subtitles:
    """Lines, and the language that the file name or the stream names (`en`, `pt`)."""

    lines: tuple[Line, ...]
    language: str | None


def language_of(name: str) -> str | None:
    """Return the language in a file name: `video.en.vtt`, `video.pt-BR.srt`, `video.eng.cc.srt`."""
    for token in reversed(posixpath.basename(name).split(".")[1:-1]):
        code = language_code(token)
        if code:
            return code
    return None


def find_subtitles(uri: str, *, prefer: str = "en") -> str | None:
    """Return the subtitle file beside a video: `NAME.srt`, else `NAME.LANG.srt`, the language
    `prefer` first. None when there is none.
    """
    filesystem, path = resolve(uri)
    folder, name = posixpath.split(path)
    stem = name.rsplit(".", 1)[0]
    candidates: list[tuple[bool, bool, int, str]] = []
    for file_name in filter(is_text, names_starting(filesystem, folder, stem + ".")):
        suffix = file_name[len(stem) + 1 :].lower().split(".")
        if suffix[-1] not in FORMATS:
            continue
        tags = suffix[:-1]
        if all(tag in _KINDS or language_code(tag) for tag in tags):
            language = language_of("x." + ".".join(suffix))
            has_language, not_preferred = (
                language is not None,
                language not in (None, language_code(prefer)),
            )
            candidates.append((not_preferred, has_language, FORMATS.index(suffix[-1]), file_name))
    return address_of(f"{folder}/{min(candidates)[-1]}", uri) if candidates else None


def read(uri: str, *, sounds: bool = False) -> Subtitles:
    """Return the lines of a subtitle file. `sounds`: keep lines that only describe a sound,
    `[Music]`.

    Raises BadRow when there is no such file, or it is not a subtitle file.
    """
    try:
        filesystem, path = resolve(uri)
        with filesystem.open_input_stream(path) as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, UserError) as error:
        raise BadRow(f"cannot read the subtitles {uri!r}: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise BadRow(
            f"the subtitles {uri!r} have more than {MAX_FILE_BYTES:,} bytes: too many for one video"
        )
    kind = path.rsplit(".", 1)[-1].lower()
    language = language_of(path)
    return Subtitles(lines(decode_text(data, language), kind, sounds=sounds), language)


# Usual encodings of subtitle files other than UTF-8. Without this list charset-normalizer takes
# French for Baltic and Polish for Maltese.
_USUAL = (
    "cp1252",
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1256",
    "gb18030",
    "shift_jis",
    "euc_kr",
    "big5",
)
_OF_LANGUAGE = {
    **dict.fromkeys(("bs", "cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq"), "cp1250"),
    **dict.fromkeys(("be", "bg", "mk", "ru", "sr", "uk"), "cp1251"),
    **dict.fromkeys(("da", "de", "en", "es", "fi", "fr", "it", "nl", "no", "pt", "sv"), "cp1252"),
    **dict.fromkeys(("et", "lt", "lv"), "cp1257"),
    **{"el": "cp1253", "tr": "cp1254", "he": "cp1255", "ar": "cp1256", "vi": "cp1258"},
    **{"ja": "shift_jis", "ko": "euc_kr", "th": "cp874"},
}


def decode_text(data: bytes, language: str | None = None) -> str:
    """Return the text of a file, in whatever encoding.

    The encoding is that of its byte-order mark; UTF-8 (a few broken bytes allowed); that of the
    language, if it is known and fits; else what charset-normalizer detects.
    """
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    if sum(c > "\x7f" for c in text) > 20 * broken:
        return text.replace("\ufffd", "")
    if language in _OF_LANGUAGE:
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(_OF_LANGUAGE[language])
    from charset_normalizer import from_bytes

    matches = list(from_bytes(data, cp_isolation=list(_USUAL)))
    if not matches:
        return data.decode("cp1252", errors="replace")
    best = matches[0]
    equal = (m for m in matches if (m.chaos, m.coherence) == (best.chaos, best.coherence))
    return str(next((m for m in equal if m.encoding == "cp1252"), best))


def embedded_subtitles(uri: str, *, prefer: str = "en", sounds: bool = False) -> Subtitles | None:
    """Return the text subtitles inside a video, the language `prefer` first; None when there are
    none.

    Bitmap subtitles (DVD, Blu-ray) do not count. Times are seconds from the start of the video
    stream. Raises BadRow and Transient as `mustsee.media.files.open_container` does.
    """
    from mustsee.media.files import find_video_stream, open_container, start_time

    with open_container(uri) as container:
        decodable = (s for s in container.streams.subtitles if getattr(s, "codec_context", None))
        streams = [s for s in decodable if s.name in _TEXT_CODECS]
        if not streams:
            return None
        preferred = language_code(prefer)
        stream = min(
            streams,
            key=lambda s: (language_code(s.language) != preferred, _is_forced(s), s.index),
        )
        video_stream = find_video_stream(container)
        zero = start_time(video_stream) if video_stream is not None else 0.0
        cues = _stream_cues(container, stream, zero)
        language = language_code(stream.language)
    return Subtitles(lines_of_cues(sorted(cues, key=lambda c: c.start), sounds=sounds), language)


_TEXT_CODECS = frozenset({"ass", "ssa", "subrip", "srt", "mov_text", "webvtt", "text", "microdvd"})


def _is_forced(stream: Any) -> bool:
    from av.stream import Disposition

    return bool(stream.disposition & Disposition.forced)


def _stream_cues(container: Any, stream: Any, zero: float) -> list[Cue]:
    from av.error import FFmpegError

    from mustsee.media.files import packets

    cues: list[Cue] = []
    for packet in packets(container, stream):
        if packet.pts is None:
            continue
        start = float(packet.pts * stream.time_base) - zero
        end = start + float((packet.duration or 0) * stream.time_base)
        try:
            events = packet.decode()
        except FFmpegError:
            continue
        for event in events:
            dialogue = getattr(event, "ass", b"").decode("utf-8", errors="replace")
            # The fields are ReadOrder, Layer, Style, Name, three margins, Effect and Text.
            fields = dialogue.split(",", 8)
            if len(fields) == 9 and not DRAWING.search(fields[8]):
                cues.append(read_cue(start, end, fields[8], fields[3]))
    return cues
