"""A video as a script: short stretches in time, each with what is seen, read and said in it.

The language models of the recipes read this. A stretch (`Unit`) is a shot, or a piece of a shot
that goes on for long, so that an hour in one shot can still be cut by topic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from mustsee.media.transcript import joined
from mustsee.records import Caption, Line, ScreenText, Span, Video

T = TypeVar("T")
_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*$")
_LETTERS = re.compile(r"[^\W_]{2}")


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A stretch of the video. `captions`: what was written of its frames; `caption`: one sentence
    made of them. `shots`: how many shots begin in it; 0 in the later pieces of a long shot, and
    where shots are not known.
    """

    start: float
    end: float
    captions: tuple[Caption, ...] = ()
    texts: tuple[ScreenText, ...] = ()
    lines: tuple[Line, ...] = ()
    caption: str = ""
    shots: int = 0

    @property
    def words(self) -> int:
        """About how many words the unit adds to a prompt."""
        parts = [self.caption or " ".join(c.text for c in self.captions)]
        parts += [t.text for t in self.texts] + [x.text for x in self.lines]
        return 4 + sum(len(p.split()) for p in parts)


def units(video: Video, longest: float) -> tuple[Unit, ...]:
    """The video's shots in order, those longer than `longest` seconds in equal pieces, with the
    captions, texts and lines (each by its middle) that fall into them. Units with none of these are
    part of the one before.
    """
    pieces = list(_pieces(video, longest))
    if not pieces:
        return ()
    spoken = tuple(video.lines or ())
    if any(_SENTENCE.search(line.text) for line in spoken):
        spoken = joined(spoken)
    read = [t for t in video.texts or () if _LETTERS.search(t.text) or t.text.strip().isdigit()]
    found: list[Unit] = []
    for index, (piece, shots) in enumerate(pieces):
        low = piece.start if index else -math.inf
        high = pieces[index + 1][0].start if index + 1 < len(pieces) else math.inf
        unit = Unit(
            start=piece.start,
            end=piece.end,
            captions=tuple(c for c in video.captions or () if low <= c.time < high),
            texts=tuple(t for t in read if low <= t.time < high),
            lines=tuple(x for x in spoken if low <= (x.start + x.end) / 2 < high),
            shots=shots,
        )
        if unit.captions or unit.texts or unit.lines:
            found.append(unit)
        elif found:
            found[-1] = replace(found[-1], end=piece.end, shots=found[-1].shots + shots)
    return tuple(found)


def _pieces(video: Video, longest: float) -> Iterator[tuple[Span, int]]:
    """Stretches in order, each with the number of known shots that begin in it (0 or 1)."""
    begin = video.start or 0.0
    last = max(
        [begin + (video.duration or 0.0)]
        + [line.end for line in video.lines or ()]
        + [caption.time for caption in video.captions or ()]
    )
    for shot in video.shots or ((Span(begin, last),) if last > begin else ()):
        count = max(1, math.ceil(shot.seconds / longest - 1e-9))
        step = shot.seconds / count
        for i in range(count):
            end = shot.end if i + 1 == count else shot.start + (i + 1) * step
            yield Span(shot.start + i * step, end), int(i == 0 and bool(video.shots))


def windows(items: Sequence[T], size: Callable[[T], int], most: int) -> list[tuple[T, ...]]:
    """Consecutive items in as few groups as hold at most `most` each; one that is larger stands
    alone.
    """
    groups: list[list[T]] = []
    total = 0
    for item in items:
        if not groups or total + size(item) > most:
            groups.append([])
            total = 0
        groups[-1].append(item)
        total += size(item)
    return [tuple(group) for group in groups]


def shortened(text: str, most: int) -> str:
    """Text of at most `most` words, cut at the last sentence that fits, or else at a word."""
    parts = text.split()
    if len(parts) <= most:
        return text.strip()
    kept = parts[:most]
    ends = [i for i, word in enumerate(kept) if _SENTENCE.search(word)]
    if ends and ends[-1] >= most // 2:
        return " ".join(kept[: ends[-1] + 1])
    return " ".join(kept) + " ..."
