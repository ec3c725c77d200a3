"""Words on the screen as a script gives them: each once, with how long it stays, and whether it was
surely read. A sign that stands in twenty frames is one reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from mustsee.media.certainty import is_surely_read
from mustsee.questions.checks import normal
from mustsee.records import ScreenText

ALIKE = 0.85  # two readings of the same words share at least this much (difflib ratio)
MISSED = 1  # frames in which the reader may have missed words that stay on the screen


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Words on the screen from the first frame in which they were read to the last, as the surest
    of these has them.
    """

    start: float
    end: float
    text: str
    score: float
    sure: bool


def readings(texts: Sequence[ScreenText], looked_at: Iterable[float]) -> tuple[Reading, ...]:
    """What was read, by when it came up. `looked_at`: times of the frames."""
    frames = sorted({*looked_at, *(t.time for t in texts)})
    place = {time: n for n, time in enumerate(frames)}
    found: list[Reading] = []
    for text in sorted(texts, key=lambda t: t.time):
        here = (
            n
            for n, old in enumerate(found)
            if place[text.time] - place[old.end] <= 1 + MISSED and _same(old.text, text.text)
        )
        n = next(here, None)
        one = Reading(
            start=text.time,
            end=text.time,
            text=" ".join(text.text.split()),
            score=text.score,
            sure=is_surely_read(text),
        )
        if n is None:
            found.append(one)
        else:
            best = max(found[n], one, key=lambda reading: reading.score)
            found[n] = replace(best, start=found[n].start, end=one.end)
    return tuple(found)


def _same(one: str, other: str) -> bool:
    """Whether two readings are of the same words. Numbers count: 57 is not 51."""
    a, b = normal(one), normal(other)
    if a == b or any(c.isdigit() for c in a + b):
        return a == b
    return SequenceMatcher(None, a, b, autojunk=False).ratio() >= ALIKE
