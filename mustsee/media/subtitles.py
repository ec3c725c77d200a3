"""Subtitles to transcript lines: `.srt .vtt .sbv .ass .ssa` files, and text streams inside a video.

This module finds and opens them, in whatever encoding; `mustsee.media.subtitle_cues` parses their
text.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import string
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mustsee.errors import BadRow, UserError
from mustsee.files.folders import is_text, names_starting
from mustsee.files.store import address_of, resolve
from mustsee.media.files import language_code
from mustsee.media.rolling import Cue
from mustsee.media.subtitle_cues import (
    CONVERT,
    DRAWING,
    FORMATS,
    lines,
    lines_of_cues,
    read_ass_cue,
)
from mustsee.records import Line

_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WIDE = (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2))
_CYRILLIC = ("cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5")
# The most frequent letters of Cyrillic languages, together some 70 % of a text; read in another
# Cyrillic encoding, or of another script, 20 to 40 % of the letters are among them.
_FREQUENT = frozenset("оаеинтсрвлкмі")
_LEAST_FREQUENT_SHARE = 0.55
_MIXED = re.compile("[A-Za-z]|[а-яёіїєґ][А-ЯЁІЇЄҐ]")
# Usual encodings of subtitle files other than UTF-8. Without this list charset-normalizer takes
# French for Baltic and Polish for Maltese.
_USUAL = (
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1256", "gb18030", "shift_jis", "euc_kr", "big5",
)  # fmt: skip
_OF_LANGUAGE = {
    **dict.fromkeys(("bs", "cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq"), "cp1250"),
    **dict.fromkeys(("da", "de", "en", "es", "fi", "fr", "it", "nl", "no", "pt", "sv"), "cp1252"),
    **dict.fromkeys(("et", "lt", "lv"), "cp1257"),
    **{"el": "cp1253", "tr": "cp1254", "he": "cp1255", "ar": "cp1256", "vi": "cp1258"},
    **{"ja": "shift_jis", "ko": "euc_kr", "th": "cp874"},
}
_IN_CYRILLIC = frozenset(("be", "bg", "mk", "ru", "sr", "uk"))


def decode_text(data: bytes, language: str | None = None) -> str:
    """Return the text of a file, in whatever encoding.

    The encoding is that of its byte-order mark; UTF-16 or UTF-32 without one; UTF-8 (a few broken
    bytes allowed); one of the language (`ru`), if it is known and fits; else what the letters of
    Cyrillic or charset-normalizer tell.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\0" in data and (text := _decode_wide(data)):
        return text
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    if sum(c > "\x7f" for c in text) > 20 * broken:
        return text.replace("\ufffd", "")
    share, cyrillic = max((_cyrillic(data, name) for name in _CYRILLIC), key=lambda x: x[0])
    if language in _IN_CYRILLIC or (
        share >= _LEAST_FREQUENT_SHARE and language not in _OF_LANGUAGE
    ):
        return cyrillic
    if language in _OF_LANGUAGE:
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(_OF_LANGUAGE[language])
    return _detect(data, ("gb18030", "big5") if language == "zh" else _USUAL)


def _decode_wide(data: bytes) -> str | None:
    """The text of UTF-16 or UTF-32 without a mark; None for other data.

    In the wrong byte order the digits and blanks of a text become other letters.
    """
    texts: list[str] = []
    for encoding, width in _WIDE:
        whole = data[: len(data) // width * width]
        with contextlib.suppress(UnicodeDecodeError):
            texts.append(whole.decode(encoding))
    shares = [(sum(c in string.printable for c in t) / len(t), t) for t in texts if t]
    share, text = max(shares, default=(0.0, ""))
    return text if share > 0.2 and "\0" not in text else None


def _cyrillic(data: bytes, encoding: str) -> tuple[float, str]:
    """The text in an encoding of Cyrillic, and the share of its letters that are frequent ones; 0
    where words mix them with Latin letters, or small with capital ones, as those of other encodings
    do.
    """
    text = data.decode(encoding, errors="replace")
    other = [c for c in text if c > "\x7f" and not c.isspace()]
    frequent = sum(c in _FREQUENT for c in "".join(other).lower())
    words = [w for w in re.findall(r"[^\W\d_]+", text) if not w.isascii()]
    mixed = sum(bool(_MIXED.search(w)) for w in words)
    return (0.0 if 5 * mixed > len(words) else frequent / max(1, len(other))), text


def _detect(data: bytes, encodings: tuple[str, ...]) -> str:
    from charset_normalizer import from_bytes

    matches = list(from_bytes(data, cp_isolation=list(encodings)))
    if not matches:
        return data.decode("cp1252", errors="replace")
    best = matches[0]
    equal = (m for m in matches if (m.chaos, m.coherence) == (best.chaos, best.coherence))
    return str(next((m for m in equal if m.encoding == "cp1252"), best))


MAX_FILE_BYTES = 16_000_000  # bytes of a subtitle file; three hours of talk have 300,000
# Subtitle files that are not read: one that lies alone beside a video is refused.
UNREAD = frozenset(
    {"ttml", "dfxp", "smi", "sami", "lrc", "sub", "scc", "stl", "json3", "srv1", "srv2", "srv3"}
)
# Marks of captions by a recogniser in file names: `talk.en.auto.vtt`, yt-dlp's `talk.en-orig.vtt`.
_AUTOMATIC = frozenset({"auto", "automatic", "autogenerated", "generated", "asr", "orig", "a"})
_KINDS = frozenset({"cc", "sdh", "captions", "subtitles", "subs"}) | _AUTOMATIC


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
    `prefer` first, and captions by people before those by a recogniser. None when there is none.

    Raises BadRow when all that lie there have a format that is not read.
    """
    filesystem, path = resolve(uri)
    folder, name = posixpath.split(path)
    stem = name.rsplit(".", 1)[0]
    candidates: list[tuple[bool, bool, bool, int, str]] = []
    unread: list[str] = []
    names = list(filter(is_text, names_starting(filesystem, folder, stem + ".")))
    for file_name in names:
        *tags, suffix = file_name[len(stem) + 1 :].lower().split(".")
        if not all(tag in _KINDS or _is_automatic(tag) or language_code(tag) for tag in tags):
            continue
        if suffix in UNREAD and not _is_bitmap(file_name, names):
            unread.append(file_name)
        if suffix not in FORMATS:
            continue
        language = language_of(".".join(["x", *tags, suffix]))
        not_preferred = language not in (None, language_code(prefer))
        automatic = any(map(_is_automatic, tags))
        candidates.append(
            (not_preferred, automatic, language is not None, FORMATS.index(suffix), file_name)
        )
    if candidates:
        return address_of(f"{folder}/{min(candidates)[-1]}", uri)
    if unread:
        address = address_of(f"{folder}/{min(unread)}", uri)
        raise BadRow(f"the subtitles {address!r}: this format is not read: {CONVERT}")
    return None


def _is_automatic(tag: str) -> bool:
    """Whether a part of a file name marks captions by a recogniser: `auto`, `en-orig`."""
    return not _AUTOMATIC.isdisjoint(re.split("[-_]", tag))


def _is_bitmap(name: str, names: list[str]) -> bool:
    """Whether a file holds the pictures of DVD subtitles, which an .idx file describes."""
    return name.lower().endswith(".sub") and f"{name[:-4]}.idx" in names


def read(uri: str, *, sounds: bool = False) -> Subtitles:
    """Return the lines of a subtitle file. `sounds`: keep lines that only describe a sound,
    `[Music]`.

    Without lines only if nothing is said in it: an empty file, a header alone, sounds. Raises
    BadRow when there is no such file, or it cannot be read as subtitles.
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
    language = language_of(path)
    try:
        return Subtitles(lines(decode_text(data, language), sounds=sounds), language)
    except BadRow as error:
        raise BadRow(f"the subtitles {uri!r}: {error}") from error


@dataclass(frozen=True)
class Clock:
    """How times of a file beside a video become times of the video: `delay` seconds earlier,
    because the picture begins so long after its container. `end`: of the video, seconds.
    """

    delay: float = 0.0
    end: float | None = None


def clock_of(uri: str) -> Clock:
    """Return the clock of a video; of a file without a picture that can be read, the file's own.
    Raises Transient.
    """
    from mustsee.media.video import open_video

    with suppress(BadRow), open_video(uri) as video:
        if video.stream is not None:
            begin = (video.container.start_time or 0) / 1e6
            first = (video.zero or 0) * video.base
            return Clock(max(0.0, first - begin), video.duration() or None)
    return Clock()


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
            streams, key=lambda s: (language_code(s.language) != preferred, _is_forced(s), s.index)
        )
        video_stream = find_video_stream(container)
        zero = start_time(video_stream) if video_stream is not None else 0.0
        cues = _stream_cues(container, stream, zero)
        language = language_code(stream.language)
    return Subtitles(lines_of_cues(cues, sounds=sounds), language)


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
                cues.append(read_ass_cue(start, end, fields[8], fields[3]))
    return cues
