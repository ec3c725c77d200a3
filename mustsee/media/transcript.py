"""Transcript lines: put in order, joined to sentences, cut to a clip, to text and back.

A transcript is a tuple of `Line`, sorted by start, in which no line begins before the one before it
has ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mustsee.records import Line, Video, Word

SECONDS_PER_CHARACTER = 0.06  # about 16 characters a second, the usual reading speed of subtitles
_SENTENCE_END = re.compile(r"[.!?…。！？؟][\"'”’»)\]]*$")
_TITLES = frozenset(("Mr.", "Mrs.", "Ms.", "Dr.", "St."))
_STAMP = r"(\d+):(\d\d):(\d\d)\.(\d\d\d)"
_WRITTEN = re.compile(rf"\[{_STAMP} - {_STAMP}\] (?:<([^<>]+)> )?(.*)")


def with_transcript(
    video: Video, lines: tuple[Line, ...], *, by: str, language: str | None
) -> Video:
    """The row with its transcript lines, what transcribed them, and their language; without any
    line both are null, since a language that nobody was heard to speak is a guess.
    """
    if not lines:
        return replace(video, lines=(), language=None, transcribed_by=None)
    return replace(video, lines=lines, language=language, transcribed_by=by)


def order_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """A transcript from lines in any order: empty ones left out, none overlapping.

    A line that runs into the next one ends where that begins; lines that begin together share their
    time in proportion to their length; a line without any length gets the time it takes to read it,
    as far as the next line leaves it.
    """
    found = [replace(x, start=max(0.0, x.start)) for x in lines if x.text.strip()]
    found.sort(key=lambda x: x.start)
    result: list[Line] = []
    while found:
        together = [x for x in found if x.start == found[0].start]
        found = found[len(together) :]
        start = together[0].start
        end = max(x.end for x in together)
        if end <= start:
            end = start + SECONDS_PER_CHARACTER * sum(len(x.text) for x in together)
        if found:
            end = min(end, found[0].start)
        result += _shared(together, start, end)
    return tuple(result)


def _shared(lines: Sequence[Line], start: float, end: float) -> Iterator[Line]:
    if len(lines) == 1:
        yield _fitted(lines[0], start, end)
        return
    total = sum(len(x.text) for x in lines)
    done = 0
    for line in lines:
        first = start + (end - start) * done / total
        done += len(line.text)
        last = end if done == total else start + (end - start) * done / total
        yield _fitted(line, first, last)


def _fitted(line: Line, start: float, end: float) -> Line:
    """The line between new borders; words that leave them are cut to them."""
    words = tuple(
        replace(w, start=min(max(w.start, start), end), end=min(max(w.end, start), end))
        for w in line.words
    )
    return replace(line, start=start, end=end, words=words)


def join_lines(
    lines: Iterable[Line], *, gap: float = 0.8, seconds: float = 20.0, characters: int = 300
) -> tuple[Line, ...]:
    """Lines that continue a sentence, joined to it.

    A line continues the one before it when that one does not end a sentence, nobody else begins to
    speak, at most `gap` seconds of silence lie between, and the whole stays within `seconds` and
    `characters`. Where full stops are left out, a line that begins with a capital begins a
    sentence.
    """
    lines = tuple(lines)
    bare = _bare(lines)
    result: list[Line] = []
    for line in lines:
        last = result[-1] if result else None
        if (
            last is not None
            and last.speaker == line.speaker
            and not line.turn
            and not (bare and _capital(line.text))
            and line.start - last.end <= gap
            and line.end - last.start <= seconds
            and len(last.text) + 1 + len(line.text) <= characters
            and not _SENTENCE_END.search(last.text)
        ):
            text = f"{last.text} {line.text}"
            result[-1] = replace(last, end=line.end, text=text, words=last.words + line.words)
        else:
            result.append(line)
    return tuple(result)


def _bare(lines: Sequence[Line]) -> bool:
    """Whether full stops are left out: of the lines after one without an end, most begin with a
    capital. Where sentences have their full stops, only names and nouns do.
    """
    after = [_capital(b.text) for a, b in pairwise(lines) if not _SENTENCE_END.search(a.text)]
    return 2 * sum(after) > len(after)


def _capital(text: str) -> bool:
    """Whether a text begins with a capital, unless all of it is in capitals."""
    return text.lstrip("\"'“‘«¿¡([")[:1].isupper() and not text.isupper()


def sentences(
    words: Iterable[Word], pauses: Sequence[float] = (), *, seconds: float = 20.0
) -> Iterator[Line]:
    """Words as they were spoken, in lines: a line ends with a sentence, in a pause (`pauses` are
    moments at which nobody speaks; times of words run over them), or after `seconds`.
    """
    held: list[Word] = []
    for word in words:
        if held and (
            (_SENTENCE_END.search(held[-1].word) and held[-1].word not in _TITLES)
            or any(_middle(held[-1]) < pause < _middle(word) for pause in pauses)
            or word.end - held[0].start > seconds
        ):
            yield _spoken(held)
            held = []
        held.append(word)
    if held:
        yield _spoken(held)


def _middle(word: Word) -> float:
    return (word.start + word.end) / 2


def _spoken(words: Sequence[Word]) -> Line:
    text = " ".join(word.word for word in words)
    return Line(start=words[0].start, end=words[-1].end, text=text, words=tuple(words))


def lines_between(
    lines: Iterable[Line], start: float | None = None, end: float | None = None
) -> tuple[Line, ...]:
    """The lines heard between `start` and `end`; lines that cross a border are kept if at least
    half of them lies inside, and end at the border. Times stay those of the whole video.
    """
    low = 0.0 if start is None else start
    high = float("inf") if end is None else end
    return tuple(
        _fitted(line, max(line.start, low), min(line.end, high))
        for line in lines
        if low <= (line.start + line.end) / 2 <= high
    )


def shift_to_zero(lines: Iterable[Line], start: float) -> tuple[Line, ...]:
    """The lines of a stretch that begins at `start`, in its own time."""
    return tuple(
        replace(
            x, start=max(x.start - start, 0.0), end=max(x.end - start, 0.0),
            words=tuple(replace(w, start=w.start - start, end=w.end - start) for w in x.words),
        )
        for x in lines
    )  # fmt: skip


def text(lines: Iterable[Line], *, times: bool = True) -> str:
    """One line of text for each line: `[0:00:12.500 - 0:00:15.000] <Ann> Hello.`; without `times`
    only what was said, by whom.
    """
    written: list[str] = []
    for line in lines:
        said = " ".join(line.text.split())
        who = f"<{line.speaker}> " if line.speaker else ""
        when = f"[{_stamp(line.start)} - {_stamp(line.end)}] " if times else ""
        written.append(f"{when}{who}{said}")
    return "\n".join(written)


def parse(written: str) -> tuple[Line, ...]:
    """Lines from `text(lines)`, to the millisecond and without words. Raises ValueError."""
    result: list[Line] = []
    for number, row in enumerate(written.split("\n") if written else (), 1):
        match = _WRITTEN.fullmatch(row)
        if not match:
            raise ValueError(
                f"line {number}: {row!r} is not of the form '[0:00:12.500 - 0:00:15.000] words'"
            )
        groups = match.groups()
        start, end = (_seconds(groups[0:4]), _seconds(groups[4:8]))
        result.append(Line(start=start, end=end, text=groups[9], speaker=groups[8]))
    return tuple(result)


def _stamp(seconds: float) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def _seconds(parts: Sequence[str]) -> float:
    hours, minutes, seconds, ms = map(int, parts)
    return (((hours * 60 + minutes) * 60 + seconds) * 1000 + ms) / 1000
