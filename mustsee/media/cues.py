"""The text of a subtitle file to transcript lines: markup, notes, speaker tags, cues that say the
same at once, and the rolling repeats of automatic captions.

pysubs2 parses the formats; what it would misread is mended before.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mustsee.errors import BadRow
from mustsee.media.transcript import order_lines
from mustsee.records import Line, Word

_TIMING = re.compile(r"^\s*[\d:.,]+\s*-->\s*[\d:.,]+")
_INLINE = re.compile(r"<((?:\d+:)?\d\d:\d\d\.\d{2,3})>")
_MARK = re.compile(r"<@(\d+)>")
_VOICE = re.compile(r"<v(?:\.[^ >]*)?\s+([^>]+)>")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")
DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
_NAME = re.compile(r"^([A-Z][A-Z0-9 .'\-]{1,30}):\s+(?=\S)")
_TURN = re.compile(r"^(?:>>+|[-–—](?![-–—]))\s*")
_ROW = re.compile(r"\\N|\\n|\n|<br\s*/?>|(?=<v[. ])", re.IGNORECASE)
# A second speaker in the same row, "- Ready? - Not yet.": after the end of a sentence, or with a
# capital that is no "I" of the same speaker.
_INNER = re.compile(
    r"(?:(?<=[.?!…\"”’)])\s+[-–—]\s*(?=[^\s\-–—])|\s+[-–—]\s*(?=[A-ZÀ-ÖØ-ÞА-Я][^\W_]))"
)
_SOUND = re.compile(r"^(?:\[[^\[\]]*\]|\([^()]*\)|[♪♫#\s*]+|♪.*♪)$")
# Of a file; a day of rolling captions has 350,000 line breaks, and 140,000 rows of text.
MAX_LINE_BREAKS, MAX_ROWS = 500_000, 150_000
MAX_ROLLED_ROWS = 16  # rows of a cue at most that roll; in a cue of 100,000, all of them take hours
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\xad]")


def lines(text: str, kind: str, *, sounds: bool = False) -> tuple[Line, ...]:
    """The transcript lines of a subtitle file's text. Raises BadRow when it cannot be read."""
    import pysubs2

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (breaks := len(_ROW.findall(text))) > MAX_LINE_BREAKS:
        raise BadRow(f"unreadable subtitles: {breaks:,} line breaks, more than {MAX_LINE_BREAKS:,}")
    if kind in ("ass", "ssa") or "[Script Info]" in text[:2000]:
        options: dict[str, Any] = {"format_": "ssa" if "[V4 Styles]" in text else "ass"}
    else:
        vtt = text.lstrip("\ufeff \n").startswith("WEBVTT")
        text = _tidy(text)
        options = {"format_": "vtt" if vtt else "srt", "keep_html_tags": True}
    if not text.strip():
        return ()
    try:
        events = pysubs2.SSAFile.from_string(text, **options)
    except (pysubs2.exceptions.Pysubs2Error, ValueError) as error:
        raise BadRow(f"unreadable subtitles ({options['format_']}): {error}") from error
    cues = [
        read_cue(event.start / 1000, event.end / 1000, event.text, event.name)
        for event in sorted(events, key=lambda e: e.start)
        if not event.is_comment and not DRAWING.search(event.text)
    ]
    if (rows := sum(len(cue.rows) for cue in cues)) > MAX_ROWS:
        raise BadRow(f"unreadable subtitles: {rows:,} rows of text, more than {MAX_ROWS:,}")
    return lines_of_cues(cues, sounds=sounds)


def _tidy(text: str) -> str:
    """Without what pysubs2 takes for words: notes, styles and the names of cues. A row of digits
    within a cue is marked, for pysubs2 takes it for the next cue's number; times within a cue
    become `<@milliseconds>`, for it takes them for a new cue.
    """
    kept: list[str] = []
    rows = text.split("\n")
    skipping, blank = False, True
    for row, after in zip(rows, [*rows[1:], ""], strict=True):
        if blank and re.match(r"(NOTE|STYLE|REGION)\b", row):
            skipping = True
        if not row.strip():
            skipping, blank = False, True
            kept.append("")
            continue
        is_name = blank and not _TIMING.match(row) and _TIMING.match(after)
        is_number = row.strip().isdigit() and _TIMING.match(after)
        blank = False
        if skipping or is_name or is_number:
            continue
        if _TIMING.match(row):
            kept.append(row.replace(",", "."))  # pysubs2 wants a point in VTT, takes it in SRT
        else:
            row = _INLINE.sub(lambda m: f"<@{_milliseconds(m.group(1))}>", row)
            kept.append(row + "\u2060" if row.strip().isdigit() else row)
    return "\n".join(kept)


def _milliseconds(stamp: str) -> int:
    clock, fraction = stamp.split(".")
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds * 1000 + int(fraction.ljust(3, "0"))


@dataclass(frozen=True)
class CueRow:
    """One row of a cue: its words, who says them, and when each begins, where that is marked."""

    text: str
    speaker: str | None
    turn: bool
    marks: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True)
class Cue:
    start: float
    end: float
    rows: tuple[CueRow, ...]


def read_cue(start: float, end: float, text: str, name: str) -> Cue:
    """Rows without markup; a speaker named in one row speaks the rows after it as well. What two
    speakers say in one row becomes two.
    """
    rows: list[CueRow] = []
    speaker = " ".join(name.split()) or None
    for raw in _ROW.split(text.replace(r"\h", " ")):
        voice = _VOICE.search(raw)
        if voice:
            speaker = " ".join(html.unescape(voice.group(1)).split()) or speaker
        row, marks = _plain(_MARK.sub("", raw)), _marks(raw)
        dashed = _TURN.match(row)
        for said in _INNER.split(row) if dashed and not marks else [row]:
            if dashed:
                said, speaker = _TURN.sub("", said), None
            named = _NAME.match(said)
            if named:
                speaker, said = named.group(1).strip(), said[named.end() :]
            if said:
                rows.append(CueRow(said, speaker, bool(dashed or voice or named), marks))
    return Cue(start, end, tuple(rows))


def _plain(text: str) -> str:
    text = html.unescape(_TAG.sub("", _OVERRIDE.sub("", text)))
    return " ".join(_INVISIBLE.sub("", text).split())


def _marks(raw: str) -> tuple[tuple[str, float | None], ...]:
    """(word, start) of a row with times inside; nothing for a row without."""
    pieces = _MARK.split(raw)
    if len(pieces) == 1:
        return ()
    times = [None, *(int(ms) / 1000 for ms in pieces[1::2])]
    return tuple(
        (word, when)
        for piece, when in zip(pieces[::2], times, strict=True)
        for word in _plain(piece).split()
    )


def lines_of_cues(cues: Sequence[Cue], *, sounds: bool) -> tuple[Line, ...]:
    """Transcript lines from cues in order of their start."""
    found: list[Line] = []
    cues = [cue for cue in cues if cue.rows]
    for cue in _unrolled(cues) if _rolls(cues) else _single(cues):
        speaking: list[list[CueRow]] = []
        for row in cue.rows:
            if not speaking or row.turn or row.speaker != speaking[-1][-1].speaker:
                speaking.append([])
            speaking[-1].append(row)
        for rows in speaking:
            text = " ".join(row.text for row in rows)
            if sounds or not _SOUND.match(text):
                words = _words(cue, rows)
                found.append(
                    Line(
                        start=cue.start,
                        end=cue.end,
                        text=text,
                        speaker=rows[0].speaker,
                        turn=rows[0].turn,
                        words=words,
                    )
                )
    return order_lines(found)


def _words(cue: Cue, rows: Iterable[CueRow]) -> tuple[Word, ...]:
    """Word times, where the cue marks them (automatic captions do): a word ends where the next one
    begins.
    """
    marked = [mark for row in rows for mark in row.marks]
    if not marked:
        return ()
    starts: list[float] = []
    for _, when in marked:
        earliest = starts[-1] if starts else cue.start
        starts.append(max(earliest, when if when is not None else earliest))
    ends = [*starts[1:], max(cue.end, starts[-1])]
    return tuple(
        Word(s, e, word, 1.0) for (word, _), s, e in zip(marked, starts, ends, strict=True)
    )


def _single(cues: Sequence[Cue]) -> list[Cue]:
    """Cues that say the same at the same time, as layered styles do, once."""
    kept: list[Cue] = []
    for cue in cues:
        last = kept[-1] if kept else None
        if last and _texts(last) == _texts(cue) and cue.start < last.end:
            kept[-1] = Cue(last.start, max(last.end, cue.end), last.rows)
        else:
            kept.append(cue)
    return kept


def _texts(cue: Cue) -> list[str]:
    return [row.text for row in cue.rows]


def _repeated(last: Cue, cue: Cue) -> int:
    """How many rows at the top of `cue` are still those at the bottom of `last`."""
    if cue.start - last.end > 0.5:
        return 0
    before, now = _texts(last), _texts(cue)
    shared = range(min(len(before), len(now), MAX_ROLLED_ROWS), 0, -1)
    return next((k for k in shared if before[-k:] == now[:k]), 0)


def _rolls(cues: Sequence[Cue]) -> bool:
    """Whether the file rolls: words timed inside its cues and rows that come again, or a third of
    its cues beginning with the rows of the one before.
    """
    pairs = list(pairwise(cues))
    rolling = sum(
        _repeated(a, b) > 0 and (len(a.rows) > 1 or len(b.rows) > 1 or b.end - b.start < 0.1)
        for a, b in pairs
    )
    timed = any(row.marks for cue in cues for row in cue.rows)
    return rolling > 0 and (timed or (len(pairs) >= 3 and rolling * 3 >= len(pairs)))


def _unrolled(cues: Sequence[Cue]) -> list[Cue]:
    """Each row once, from the cue in which it appears; a cue that brings nothing new prolongs the
    one before.
    """
    kept: list[Cue] = []
    for last, cue in zip([None, *cues[:-1]], cues, strict=True):
        again = _repeated(last, cue) if last else 0
        if again < len(cue.rows):
            kept.append(Cue(cue.start, cue.end, cue.rows[again:]))
        elif kept and cue.end - cue.start > 0.1:
            kept[-1] = Cue(kept[-1].start, max(kept[-1].end, cue.end), kept[-1].rows)
    return kept
