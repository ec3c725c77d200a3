"""Subtitle text to transcript lines.

Times and cue numbers are never taken for words: what cannot be read is refused. Markup, notes,
readings in ruby and speaker tags are removed; `mustsee.media.rolling` joins captions that roll or
grow. pysubs2 and webvtt-py take some times and numbers for words, or leave cues out
(docs/decisions/0102-subtitles.md).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mustsee.errors import BadRow
from mustsee.media.rolling import Cue, CueRow, unroll
from mustsee.media.transcript import order_lines
from mustsee.records import Line, Word

FORMATS = ("srt", "vtt", "ass", "ssa", "sbv")
CONVERT = (
    f"convert them to one that is ({', '.join('.' + name for name in FORMATS)}), or move them away"
)
_STAMP = r"[-−–]?\s?\d+(?:\s?:\s?\d{1,3}){1,3}(?:\s?[.,]\s?\d{0,9})?"
_CLOCK = r"\d+:\d\d:\d\d(?:[.,:]\d{1,3})?"  # hours, minutes, seconds
# Two times in one row: of SRT and VTT, of Whisper's own text (`[00:01.000 --> 00:02.000]  Words`),
# of SBV (`0:00:01.000,0:00:02.000`). A number may stand before, settings or words after them.
_TIMING = re.compile(
    rf"\s*(?:[\[(]|\d+[.):]?\s+)?(?:({_STAMP})\s*(?:-+\s?>|[–—−]+>|→|=>)\s*({_STAMP})"
    rf"|({_CLOCK})\s*[^\w\s]{{0,3}}\s*({_CLOCK}))[\])]?(?=\s|$)(.*)"
)
# What looks like a time on one side of an arrow.
_TIME_LIKE = re.compile(r"\d\s*:\s*\W?\d|^\W*\d[\d\s.,]*$")
_ASS_TIME = re.compile(r"-?\d+:\d{1,2}:\d{1,2}(?:[.,]\d{1,3})?")
# where a file does not name them: layer, times, style, speaker, three margins, effect, words
_ASS_COLUMNS = ("layer", "start", "end", "style", "name", "l", "r", "v", "effect", "text")
_SETTINGS = re.compile(r"\s*(?:[\w-]+:.*)?")
_WIDE = str.maketrans("：，．", ":,.")
_NUMBER = re.compile(r"#?(\d+)[.):]?")
_BLOCK = re.compile(r"\ufeff?(WEBVTT|NOTE|STYLE|REGION)(?:\s|$)")  # header and notes of VTT
_MARK = re.compile(r"<((?:\d+:)?\d\d:\d\d\.\d{2,3})>")
_VOICE = re.compile(r"<v(?:\.[^ >]*)?\s+([^>]+)>")
_READING = re.compile(r"<(r[tp])\b[^<>]*>.*?(?:</\1\s*>|(?=<r[bpt]\b|</ruby)|$)", re.I | re.S)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")
_BRACES = re.compile(r"(?<!\\)\{[^{}]*\}")
DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
_NAME = re.compile(r"^([A-Z][A-Z0-9 .'\-]{1,30}):\s+(?=\S)")
_TURN = re.compile(r"^(?:>>+|[-–—](?![-–—]))\s*")
_ROW = re.compile(r"\\N|\\n|\n|\[br\]|<br\s*/?>|(?=<v[. ])", re.IGNORECASE)
# A second speaker in the same row, "- Ready? - Not yet.", begins after the end of a sentence, or
# with a capitalised word of two letters or more (not the "I" of the same speaker).
_INNER = re.compile(
    r"(?:(?<=[.?!…\"”’)])\s+[-–—]\s*(?=[^\s\-–—])|\s+[-–—]\s*(?=[A-ZÀ-ÖØ-ÞА-Я][^\W_]))"
)
_SOUND = re.compile(r"^(?:\[[^\[\]]*\]|\([^()]*\)|[♪♫#\s*]+|♪.*♪)$")
# Limits of a file: a day of rolling captions has 350,000 line breaks and 140,000 rows of text.
MAX_LINE_BREAKS, MAX_ROWS = 500_000, 150_000
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\xad]")
# What a file without times is named in the message that refuses it.
_OTHER_FORMATS = (
    ("TTML", re.compile(r"<(?:\w+:)?tt[\s>]")),
    ("SAMI", re.compile(r"<SAMI\b", re.IGNORECASE)),
    ("YouTube's XML", re.compile(r"<(?:timedtext|transcript)\b")),
    ("a web page", re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)),
    ("XML", re.compile(r"\A\s*<\?xml")),
    ("MicroDVD, which counts in frames", re.compile(r"^\s*\{\d+\}\s*\{\d*\}", re.MULTILINE)),
    ("MPL2", re.compile(r"^\[\d+\]\s*\[\d*\]", re.MULTILINE)),
    ("LRC", re.compile(r"^\s*\[\d+:\d\d(?:[.:]\d+)?\]", re.MULTILINE)),
    ("SCC", re.compile(r"Scenarist_SCC")),
    ("JSON", re.compile(r"\A\s*[\[{]\s*[\"{\[\d]")),
    ("TMPlayer", re.compile(r"^\d+:\d\d:\d\d[:=]\S", re.MULTILINE)),
    ("not text", re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\ufffd]")),
)


def lines(text: str, *, sounds: bool = False) -> tuple[Line, ...]:
    """Return the transcript lines of a subtitle file's text; none of an empty file, or of a header
    without cues.

    Raises BadRow for a text in another format, times that cannot be read, and cues without words.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (breaks := len(_ROW.findall(text))) > MAX_LINE_BREAKS:
        raise BadRow(f"{breaks:,} line breaks, more than {MAX_LINE_BREAKS:,}")
    ass = re.search(r"^\[(?:Script Info|V4\+? Styles|Events)\]", text[:5000], re.MULTILINE)
    cues = _ass_cues(text) if ass else _timed_cues(text)
    if (rows := sum(len(cue.rows) for cue in cues)) > MAX_ROWS:
        raise BadRow(f"{rows:,} rows of text, more than {MAX_ROWS:,}")
    if cues and not rows:
        raise BadRow(f"{len(cues):,} cues, and no words in them: move them away, or mend them")
    return lines_of_cues(cues, sounds=sounds)


def _ass_cues(text: str) -> list[Cue]:
    """The cues of .ass and .ssa. Raises BadRow for an event without times."""
    columns, cues, in_events = list(_ASS_COLUMNS), list[Cue](), False
    for row in text.split("\n"):
        kind, _, values = row.partition(":")
        if row.startswith("["):
            in_events = row.strip().lower() == "[events]"
        elif in_events and kind == "Format":
            columns = [name.strip().lower() for name in values.split(",")]
        elif kind == "Dialogue":
            event = dict(zip(columns, values.split(",", len(columns) - 1), strict=False))
            times = [_ASS_TIME.fullmatch(event.get(name, "").strip()) for name in ("start", "end")]
            if "text" not in event or not all(times):
                raise BadRow(
                    f"no times and words can be read in the row {row.strip()!r}: correct it"
                )
            if not DRAWING.search(event["text"]):
                start, end = (_seconds(match[0]) for match in times if match)
                cues.append(read_ass_cue(start, end, event["text"], event.get("name", "")))
    return sorted(cues, key=lambda cue: cue.start)


def read_ass_cue(start: float, end: float, text: str, name: str) -> Cue:
    """Return the cue of an .ass event, in which text in braces is not shown."""
    text = _BRACES.sub("", text).replace(r"\{", "{").replace(r"\}", "}")
    return read_cue(start, end, text, name)


@dataclass
class _TimedRows:
    """The times of a cue and the rows after them, up to the times of the next one."""

    start: float
    end: float
    rows: list[str] = field(default_factory=list[str])


def _timed_cues(text: str) -> list[Cue]:
    """The cues of SRT, VTT and SBV. Raises BadRow for a text without times."""
    text = text.lstrip("\ufeff \n\t")
    vtt = text.startswith("WEBVTT")
    timed: list[_TimedRows] = []
    before, blank, block, number = list[str](), True, None, 0
    for row in text.split("\n"):
        begins, blank = blank, not row.strip()
        if begins and vtt and (match := _BLOCK.match(row)):
            block = match[1]
        if blank:
            block = None
        timing = _timing(row) if block in (None, "WEBVTT") else None
        rows = timed[-1].rows if timed else before
        if timing:
            number = _remove_number(rows, number, named=vtt)
            timed.append(timing)
            block = None
        elif block is None:
            rows.append(row)
    if timed:
        _remove_last_number(timed[-1].rows, number)
    elif "".join(before).strip():
        raise BadRow(_format_seen(text))
    return [read_cue(t.start, t.end, "\n".join(t.rows), "") for t in timed]


def _timing(row: str) -> _TimedRows | None:
    """The times of a row, with the words after them; None for a row of text. Raises BadRow."""
    row = _INVISIBLE.sub("", row)
    if not any(c.isdigit() for c in row):
        return None
    timing = _TIMING.match(row.translate(_WIDE))
    if timing is None:
        if "-->" in row and all(_TIME_LIKE.search(side) for side in row.split("-->", 1)):
            raise BadRow(f"no times can be read in the row {row.strip()!r}: correct it")
        return None
    first, second = timing.group(1) or timing.group(3), timing.group(2) or timing.group(4)
    after = row[timing.start(5) :]
    words = [] if _SETTINGS.fullmatch(after) else [after]
    return _TimedRows(_seconds(first), _seconds(second), words)


def _seconds(stamp: str) -> float:
    """The time of a stamp; below zero where subtitles were moved before the start. Milliseconds may
    be left out, or follow a colon. Raises BadRow for a stamp that counts frames.
    """
    clock, _, fraction = re.sub(r"[\s\-−–]", "", stamp).replace(",", ".").partition(".")
    units = clock.split(":")
    if len(units) > 2 and len(units[-1]) == 3 and not fraction:
        *units, fraction = units
    if len(units) > 3:
        raise BadRow(
            f"the last part of the time {stamp!r} may count frames: write milliseconds, with three "
            "digits"
        )
    seconds = 0
    for unit in units:
        seconds = seconds * 60 + int(unit)
    time = (seconds * 1000 + int(fraction.ljust(3, "0")[:3])) / 1000
    return -time if stamp.lstrip()[0] in "-−–" else time


def _remove_number(rows: list[str], last: int, *, named: bool) -> int:
    """Remove from a cue's rows the number (or in VTT the name) of the next cue. Return the number,
    or `last`, that of the cue itself.

    A number stands directly before the times of its cue, or between blank rows; one that ends a
    text, as a year does, is kept. Numbers of cues that were taken out stand between the two.
    """
    near = bool(rows) and bool(rows[-1].strip())
    _remove_blanks(rows)
    found = _number(rows)
    if found is None or not (near or _stands_alone(rows)):
        if named and near and len(rows) > 1 and not rows[-2].strip():
            rows.pop()
        return last
    rows.pop()
    _remove_blanks(rows)
    while (other := _number(rows)) is not None and _stands_alone(rows):
        if not (other == found or last < other <= found):
            break
        rows.pop()
        _remove_blanks(rows)
    return found


def _remove_last_number(rows: list[str], last: int) -> None:
    """Remove the number of a cue that was cut off at the end of a file."""
    _remove_blanks(rows)
    if _number(rows) == last + 1 and len(rows) > 1 and _stands_alone(rows):
        rows.pop()


def _remove_blanks(rows: list[str]) -> None:
    while rows and not _INVISIBLE.sub("", rows[-1]).strip():
        rows.pop()


def _number(rows: Sequence[str]) -> int | None:
    """The number that a cue's last row consists of."""
    number = _NUMBER.fullmatch(_INVISIBLE.sub("", rows[-1]).strip()) if rows else None
    return int(number[1]) if number and len(number[1]) < 10 else None


def _stands_alone(rows: Sequence[str]) -> bool:
    return len(rows) > 1 and not rows[-2].strip()


def _format_seen(text: str) -> str:
    """Say what a text without times looks like, and what to do."""
    seen = next((name for name, form in _OTHER_FORMATS if form.search(text[:100_000])), None)
    start = repr(" ".join(text.split())[:60])
    found = f"they look like {seen}" if seen else f"no times of lines in {start}"
    return f"{found}; this format is not read: {CONVERT}"


def read_cue(start: float, end: float, text: str, name: str) -> Cue:
    """Return a cue's rows without markup.

    A speaker named in one row also speaks the rows after it. A row with two speakers becomes two
    rows.
    """
    rows: list[CueRow] = []
    speaker = " ".join(name.split()) or None
    for raw_row in _ROW.split(_READING.sub("", text).replace(r"\h", " ")):
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
                speaker, utterance = name_match.group(1).strip(), utterance[name_match.end() :]
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
    times = [None, *map(_seconds, texts_and_times[1::2])]
    return tuple(
        (word, start)
        for words, start in zip(texts_and_times[::2], times, strict=True)
        for word in _plain(words).split()
    )


def lines_of_cues(cues: Iterable[Cue], *, sounds: bool) -> tuple[Line, ...]:
    """Return the transcript lines of cues.

    `sounds`: keep the lines that only describe a sound, `[Music]`.
    """
    lines: list[Line] = []
    for cue in unroll(sorted((c for c in cues if c.rows), key=lambda c: c.start)):
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
