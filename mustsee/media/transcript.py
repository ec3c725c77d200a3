"""Transcript lines: ordered, joined to sentences, limited to a clip, as text.

A transcript is a tuple of `Line`, sorted by start, in which no line begins before the end of the
one before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mustsee.records import Line, Video, Word

# seconds: about 16 characters per second, the usual speed of subtitles
SECONDS_PER_CHARACTER = 0.06
_SENTENCE_END = re.compile(r"[.!?…。！？؟][\"'”’»)\]]*$")
_TITLES = frozenset(("Mr.", "Mrs.", "Ms.", "Dr.", "St."))


def with_transcript(
    video: Video, lines: tuple[Line, ...], *, by: str, language: str | None
) -> Video:
    """Return the row with its transcript lines, what transcribed them, and their language.

    Without any line both are null, since a language without speech is a guess.
    """
    if not lines:
        return replace(video, lines=(), language=None, transcribed_by=None)
    return replace(video, lines=lines, language=language, transcribed_by=by)


def order_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return a transcript from lines in any order: without empty ones, none overlapping.

    A line that overlaps the next one ends where that begins. Lines that begin together share their
    time in proportion to their length. A line without a duration gets its reading time, up to the
    next line. What ends before the start is left out.
    """
    heard = (x for x in lines if x.text.strip() and (x.start >= 0 or x.end > 0))
    remaining = [replace(x, start=max(0.0, x.start)) for x in heard]
    remaining.sort(key=lambda x: x.start)
    ordered: list[Line] = []
    while remaining:
        together = [x for x in remaining if x.start == remaining[0].start]
        remaining = remaining[len(together) :]
        start = together[0].start
        end = max(x.end for x in together)
        if end <= start:
            end = start + SECONDS_PER_CHARACTER * sum(len(x.text) for x in together)
        if remaining:
            end = min(end, remaining[0].start)
        ordered += _share_time(together, start, end)
    return tuple(ordered)


def _share_time(lines: Sequence[Line], start: float, end: float) -> Iterator[Line]:
    if len(lines) == 1:
        yield _fit(lines[0], start, end)
        return
    total = sum(len(x.text) for x in lines)
    characters = 0
    for line in lines:
        first = start + (end - start) * characters / total
        characters += len(line.text)
        last = end if characters == total else start + (end - start) * characters / total
        yield _fit(line, first, last)


def _fit(line: Line, start: float, end: float) -> Line:
    """The line between new borders; words that exceed them are cut to them."""
    words = tuple(
        replace(w, start=min(max(w.start, start), end), end=min(max(w.end, start), end))
        for w in line.words
    )
    return replace(line, start=start, end=end, words=words)


def join_lines(
    lines: Iterable[Line], *, gap: float = 0.8, seconds: float = 20.0, characters: int = 300
) -> tuple[Line, ...]:
    """Return the lines, with those that continue a sentence joined to it.

    A line continues the one before if that one does not end a sentence, the speaker is the same, at
    most `gap` seconds of silence lie between, and the whole stays within `seconds` and
    `characters`. In a transcript without full stops a line that begins with a capital begins a
    sentence.
    """
    lines = tuple(lines)
    no_full_stops = _lacks_full_stops(lines)
    joined: list[Line] = []
    for line in lines:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.speaker == line.speaker
            and not line.turn
            and not (no_full_stops and _starts_with_capital(line.text))
            and line.start - last.end <= gap
            and line.end - last.start <= seconds
            and len(last.text) + 1 + len(line.text) <= characters
            and not _SENTENCE_END.search(last.text)
        ):
            text = f"{last.text} {line.text}"
            joined[-1] = replace(last, end=line.end, text=text, words=last.words + line.words)
        else:
            joined.append(line)
    return tuple(joined)


def _lacks_full_stops(lines: Sequence[Line]) -> bool:
    """Whether full stops are left out: most lines after a line without one begin with a capital.
    With full stops, only names and nouns do.
    """
    capitals = [
        _starts_with_capital(b.text) for a, b in pairwise(lines) if not _SENTENCE_END.search(a.text)
    ]
    return 2 * sum(capitals) > len(capitals)


def _starts_with_capital(text: str) -> bool:
    """Whether a text begins with a capital, unless all of it is in capitals."""
    return text.lstrip("\"'“‘«¿¡([")[:1].isupper() and not text.isupper()


def sentences(
    words: Iterable[Word], pauses: Sequence[float] = (), *, seconds: float = 20.0
) -> Iterator[Line]:
    """Yield lines from words in spoken order.

    A line ends with a sentence, in a pause (`pauses` are times without speech, over which word
    times may run), or after `seconds`.
    """
    line_words: list[Word] = []
    for word in words:
        if line_words and (
            (_SENTENCE_END.search(line_words[-1].word) and line_words[-1].word not in _TITLES)
            or any(_middle(line_words[-1]) < pause < _middle(word) for pause in pauses)
            or word.end - line_words[0].start > seconds
        ):
            yield _line_of_words(line_words)
            line_words = []
        line_words.append(word)
    if line_words:
        yield _line_of_words(line_words)


def _middle(word: Word) -> float:
    return (word.start + word.end) / 2


def _line_of_words(words: Sequence[Word]) -> Line:
    text = " ".join(word.word for word in words)
    return Line(start=words[0].start, end=words[-1].end, text=text, words=tuple(words))


def lines_between(
    lines: Iterable[Line], start: float | None = None, end: float | None = None
) -> tuple[Line, ...]:
    """Return the lines between `start` and `end`, with the times of the whole video.

    A line that crosses a border is kept if at least half of it lies inside, and then ends at the
    border.
    """
    low = 0.0 if start is None else start
    high = float("inf") if end is None else end
    return tuple(
        _fit(line, max(line.start, low), min(line.end, high))
        for line in lines
        if low <= (line.start + line.end) / 2 <= high
    )


def shift(lines: Iterable[Line], seconds: float) -> Iterator[Line]:
    """Yield the lines with all times moved by `seconds`, also below 0."""
    for x in lines:
        words = tuple(replace(w, start=w.start + seconds, end=w.end + seconds) for w in x.words)
        yield replace(x, start=x.start + seconds, end=x.end + seconds, words=words)


def shift_to_zero(lines: Iterable[Line], start: float) -> tuple[Line, ...]:
    """Return the lines of a clip that begins at `start`, in the clip's own time."""
    return tuple(
        replace(x, start=max(x.start, 0.0), end=max(x.end, 0.0)) for x in shift(lines, -start)
    )


def text(lines: Iterable[Line], *, times: bool = True) -> str:
    """Return one row of text for each line: `[0:00:12.500 - 0:00:15.000] <Ann> Hello.`; without
    `times` only speaker and text.
    """
    rows: list[str] = []
    for line in lines:
        words = " ".join(line.text.split())
        speaker = f"<{line.speaker}> " if line.speaker else ""
        span = f"[{_stamp(line.start)} - {_stamp(line.end)}] " if times else ""
        rows.append(f"{span}{speaker}{words}")
    return "\n".join(rows)


def _stamp(seconds: float) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
