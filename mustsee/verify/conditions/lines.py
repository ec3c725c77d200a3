"""What is said in a video, as a prompt holds it: with times, and no longer than it may be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mustsee.records import Line
from mustsee.text import TermVectors, length


def excerpt(lines: Sequence[Line], wanted: str, most: int) -> str:
    """The transcript with times; of a longer one, what `nearest` leaves of it."""
    kept = nearest(lines, wanted, most)
    return "\n".join(map(_written, kept)) if kept else "(nothing is said)"


def nearest(lines: Sequence[Line], wanted: str, most: int) -> tuple[Line, ...]:
    """The lines; of more than `most` words of them, those nearest in words to `wanted`, in their
    order, as many as fit.
    """
    sizes = [length(_written(x)) for x in lines]
    if sum(sizes) <= most:
        return tuple(lines)
    likeness = _terms(tuple(x.text for x in lines)).likeness(wanted)
    kept: set[int] = set()
    room = most
    for index in sorted(range(len(lines)), key=lambda i: (-likeness[i], i)):
        if sizes[index] <= room:
            kept.add(index)
            room -= sizes[index]
    return tuple(lines[i] for i in sorted(kept))


def _written(line: Line) -> str:
    return f"[{line.start:.1f}-{line.end:.1f}] {' '.join(line.text.split())}"


@lru_cache(maxsize=4)
def _terms(texts: tuple[str, ...]) -> TermVectors:
    return TermVectors(texts)
