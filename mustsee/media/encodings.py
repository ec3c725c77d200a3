"""The text of a file, in whatever encoding."""

from __future__ import annotations

import contextlib
import re
import string

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
