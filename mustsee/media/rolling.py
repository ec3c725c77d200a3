"""Captions that roll or grow: each word once.

Automatic and live captions repeat the rows before the new one, or a row each time with some more
letters of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

MAX_ROLLED_ROWS = 16  # rows of a cue that may repeat; to compare 100,000 would take hours
MAX_GAP_S = 0.5  # seconds between a cue and the one that repeats it
BLINK_S = 0.1  # seconds below which a cue only carries rows on to the next
_ENDS = " .,;:!?…-–—"  # what may end a row and go as it grows


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
    """Rows that are shown from `start` to `end` (seconds)."""

    start: float
    end: float
    rows: tuple[CueRow, ...]


def unroll(cues: Sequence[Cue]) -> list[Cue]:
    """Return cues, sorted by start, in which nothing is repeated.

    Of captions that roll or grow each row is returned once, whole, from the time of its first
    letter: in all of a file where a third of its cues do, else in each run of three cues or more.
    Of the others only those are joined that show the same text at the same time, as layered styles
    do.
    """
    rolling = [False, *(_rolls(a, b) for a, b in pairwise(cues)), False]
    timed = any(row.marks for cue in cues for row in cue.rows)
    least = 1 if timed else max(2, (len(cues) - 1) / 3)
    all_roll = sum(rolling) >= least
    unrolled: list[Cue] = []
    for number, cue in enumerate(cues):
        before, now, after = rolling[max(0, number - 1)], rolling[number], rolling[number + 1]
        if not unrolled:
            unrolled.append(cue)
        elif all_roll or (now and (before or after)):
            _add_new_rows(unrolled, cues[number - 1], cue)
        else:
            _add_whole(unrolled, cue)
    return unrolled


def _add_whole(unrolled: list[Cue], cue: Cue) -> None:
    """Add a cue, or prolong the last one if it shows the same."""
    last = unrolled[-1]
    if _texts(last) == _texts(cue) and cue.start < last.end:
        unrolled[-1] = replace(last, end=max(last.end, cue.end))
    else:
        unrolled.append(cue)


def _add_new_rows(unrolled: list[Cue], last: Cue, cue: Cue) -> None:
    """Add what is new in a cue after the `last` one. Without new words it prolongs the row before;
    the rest of a row that has grown joins it.
    """
    letters = _repeated(last, cue)
    grown, new = _split(cue, letters) if letters else ("", cue.rows)
    if letters:
        goes_on = any(map(str.isalnum, grown)) or (not new and cue.end - cue.start > BLINK_S)
        unrolled[-1] = _grow(unrolled[-1], grown, cue.end if goes_on else unrolled[-1].end)
    if new:
        unrolled.append(replace(cue, rows=new))


def _texts(cue: Cue) -> list[str]:
    return [row.text for row in cue.rows]


def _repeated(last: Cue, cue: Cue) -> int:
    """The number of letters at the top of `cue` (rows joined by blanks) that repeat the rows at the
    bottom of `last`; the last of these may have grown. Capitals and what ends the rows may differ,
    as live captions correct them.
    """
    if cue.start - last.end > MAX_GAP_S:
        return 0
    before, after = _texts(last), " ".join(_texts(cue)).lower()
    for rows in range(min(len(before), MAX_ROLLED_ROWS), 0, -1):
        shared = " ".join(before[-rows:]).lower().rstrip(_ENDS)
        if shared and after.startswith(shared):
            return len(shared)
    return 0


def _rolls(last: Cue, cue: Cue) -> bool:
    """Whether a cue repeats rows of the one before; a single row that is shown again as it was may
    be a refrain.
    """
    letters = _repeated(last, cue)
    is_new = len(last.rows) > 1 or any(map(str.isalnum, " ".join(_texts(cue))[letters:]))
    return letters > 0 and (is_new or cue.end - cue.start < BLINK_S)


def _split(cue: Cue, letters: int) -> tuple[str, tuple[CueRow, ...]]:
    """What is new in a cue after its first `letters`: the rest of the row that they end in, and the
    rows after it.
    """
    for number, row in enumerate(cue.rows):
        if letters <= len(row.text):
            return row.text[letters:], cue.rows[number + 1 :]
        letters -= len(row.text) + 1
    return "", ()


def _grow(cue: Cue, text: str, end: float) -> Cue:
    """A cue whose last row goes on with `text`, up to `end`."""
    *rows, row = cue.rows
    marks = () if any(map(str.isalnum, text)) else row.marks
    row = replace(row, text=row.text.rstrip(_ENDS) + text, marks=marks)
    return Cue(cue.start, max(cue.end, end), (*rows, row))
