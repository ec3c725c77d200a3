"""Subtitle text to transcript lines.

Removes markup, notes and speaker tags, cues that repeat each other at the same time, and the
rolling repeats of automatic captions. pysubs2 parses the formats; `_tidy` repairs what it would
misread.
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
# A second speaker in the same row, "- Ready? - Not yet.", begins after the end of a sentence, or
# with a capitalised word of two letters or more (not the "I" of the same speaker).
_INNER = re.compile(
    r"(?:(?<=[.?!…\"”’)])\s+[-–—]\s*(?=[^\s\-–—])|\s+[-–—]\s*(?=[A-ZÀ-ÖØ-ÞА-Я][^\W_]))"
)
_SOUND = re.compile(r"^(?:\[[^\[\]]*\]|\([^()]*\)|[♪♫#\s*]+|♪.*♪)$")
# Limits of a file: a day of rolling captions has 350,000 line breaks and 140,000 rows of text.
MAX_LINE_BREAKS, MAX_ROWS = 500_000, 150_000
MAX_ROLLED_ROWS = 16  # rows of a cue that may repeat; to compare 100,000 would take hours
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\xad]")


def lines(text: str, kind: str, *, sounds: bool = False) -> tuple[Line, ...]:
    """Return the transcript lines of a subtitle file's text. Raises BadRow for unreadable text."""
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
    """The text without notes, styles and names of cues, which pysubs2 takes for words.

    A row of digits within a cue is marked, because pysubs2 takes it for the next cue's number.
    Times within a cue become `<@milliseconds>`, because it takes them for a new cue.
    """
    tidied: list[str] = []
    rows = text.split("\n")
    skipping, blank = False, True
    for row, following in zip(rows, [*rows[1:], ""], strict=True):
        if blank and re.match(r"(NOTE|STYLE|REGION)\b", row):
            skipping = True
        if not row.strip():
            skipping, blank = False, True
            tidied.append("")
            continue
        is_name = blank and not _TIMING.match(row) and _TIMING.match(following)
        is_number = row.strip().isdigit() and _TIMING.match(following)
        blank = False
        if skipping or is_name or is_number:
            continue
        if _TIMING.match(row):
            # pysubs2 needs a point in VTT and accepts it in SRT.
            tidied.append(row.replace(",", "."))
        else:
            row = _INLINE.sub(lambda m: f"<@{_milliseconds(m.group(1))}>", row)
            tidied.append(row + "\u2060" if row.strip().isdigit() else row)
    return "\n".join(tidied)


def _milliseconds(stamp: str) -> int:
    clock, fraction = stamp.split(".")
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds * 1000 + int(fraction.ljust(3, "0"))


@dataclass(frozen=True)
class CueRow:
    """One row of a cue: its text, its speaker, and (word, start) of its words where the file marks
    times.

    `turn`: a new speaker begins with this row.
    """

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
    """Return a cue's rows without markup.

    A speaker named in one row also speaks the rows after it. A row with two speakers becomes two
    rows.
    """
    rows: list[CueRow] = []
    speaker = " ".join(name.split()) or None
    for raw_row in _ROW.split(text.replace(r"\h", " ")):
        voice = _VOICE.search(raw_row)
        if voice:
            speaker = " ".join(html.unescape(voice.group(1)).split()) or speaker
        row, marks = _plain(_MARK.sub("", raw_row)), _marks(raw_row)
        dash = _TURN.match(row)
        for utterance in _INNER.split(row) if dash and not marks else [row]:
            if dash:
                utterance, speaker = _TURN.sub("", utterance), None
            name_match = _NAME.match(utterance)
            if name_match:
                speaker, utterance = (
                    name_match.group(1).strip(),
                    utterance[name_match.end() :],
                )
            if utterance:
                rows.append(CueRow(utterance, speaker, bool(dash or voice or name_match), marks))
    return Cue(start, end, tuple(rows))


def _plain(text: str) -> str:
    text = html.unescape(_TAG.sub("", _OVERRIDE.sub("", text)))
    return " ".join(_INVISIBLE.sub("", text).split())


def _marks(raw: str) -> tuple[tuple[str, float | None], ...]:
    """The (word, start) pairs of a row with times inside; empty for a row without."""
    texts_and_times = _MARK.split(raw)
    if len(texts_and_times) == 1:
        return ()
    times = [None, *(int(ms) / 1000 for ms in texts_and_times[1::2])]
    return tuple(
        (word, start)
        for words, start in zip(texts_and_times[::2], times, strict=True)
        for word in _plain(words).split()
    )


def lines_of_cues(cues: Sequence[Cue], *, sounds: bool) -> tuple[Line, ...]:
    """Return the transcript lines of cues that are sorted by start.

    `sounds`: keep the lines that only describe a sound, `[Music]`.
    """
    lines: list[Line] = []
    cues = [cue for cue in cues if cue.rows]
    for cue in _unroll(cues) if _rolls(cues) else _without_duplicates(cues):
        turns: list[list[CueRow]] = []
        for row in cue.rows:
            if not turns or row.turn or row.speaker != turns[-1][-1].speaker:
                turns.append([])
            turns[-1].append(row)
        for rows in turns:
            text = " ".join(row.text for row in rows)
            if sounds or not _SOUND.match(text):
                words = _words(cue, rows)
                lines.append(
                    Line(
                        start=cue.start,
                        end=cue.end,
                        text=text,
                        speaker=rows[0].speaker,
                        turn=rows[0].turn,
                        words=words,
                    )
                )
    return order_lines(lines)


def _words(cue: Cue, rows: Iterable[CueRow]) -> tuple[Word, ...]:
    """The words' times where the cue marks them, as automatic captions do. A word ends where the
    next one begins.
    """
    marks = [mark for row in rows for mark in row.marks]
    if not marks:
        return ()
    starts: list[float] = []
    for _, start in marks:
        earliest = starts[-1] if starts else cue.start
        starts.append(max(earliest, start if start is not None else earliest))
    ends = [*starts[1:], max(cue.end, starts[-1])]
    return tuple(Word(s, e, word, 1.0) for (word, _), s, e in zip(marks, starts, ends, strict=True))


def _without_duplicates(cues: Sequence[Cue]) -> list[Cue]:
    """The cues, with those that repeat a text at the same time (as layered styles do) joined to
    one.
    """
    merged: list[Cue] = []
    for cue in cues:
        last = merged[-1] if merged else None
        if last and _texts(last) == _texts(cue) and cue.start < last.end:
            merged[-1] = Cue(last.start, max(last.end, cue.end), last.rows)
        else:
            merged.append(cue)
    return merged


def _texts(cue: Cue) -> list[str]:
    return [row.text for row in cue.rows]


def _repeated_rows(last: Cue, cue: Cue) -> int:
    """How many rows at the top of `cue` repeat the rows at the bottom of `last`."""
    if cue.start - last.end > 0.5:
        return 0
    before, after = _texts(last), _texts(cue)
    shared = range(min(len(before), len(after), MAX_ROLLED_ROWS), 0, -1)
    return next((k for k in shared if before[-k:] == after[:k]), 0)


def _rolls(cues: Sequence[Cue]) -> bool:
    """Whether the file rolls: it has words timed inside its cues and rows that repeat, or a third
    of its cues begin with the rows of the cue before.
    """
    pairs = list(pairwise(cues))
    rolling = sum(
        _repeated_rows(a, b) > 0 and (len(a.rows) > 1 or len(b.rows) > 1 or b.end - b.start < 0.1)
        for a, b in pairs
    )
    timed = any(row.marks for cue in cues for row in cue.rows)
    return rolling > 0 and (timed or (len(pairs) >= 3 and rolling * 3 >= len(pairs)))


def _unroll(cues: Sequence[Cue]) -> list[Cue]:
    """Each row once, from the cue in which it first appears. A cue without new rows prolongs the
    last one.
    """
    unrolled: list[Cue] = []
    for last, cue in zip([None, *cues[:-1]], cues, strict=True):
        repeated = _repeated_rows(last, cue) if last else 0
        if repeated < len(cue.rows):
            unrolled.append(Cue(cue.start, cue.end, cue.rows[repeated:]))
        elif unrolled and cue.end - cue.start > 0.1:
            unrolled[-1] = Cue(
                unrolled[-1].start, max(unrolled[-1].end, cue.end), unrolled[-1].rows
            )
    return unrolled
