"""Transcript excerpts for prompts, with times and at most a number of words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mustsee.records import Line
from mustsee.text import TermVectors, length


def excerpt(lines: Sequence[Line], wanted: str, most: int) -> str:
    """Return the lines that `nearest` keeps, as text with times."""
    kept = nearest(lines, wanted, most)
    return "\n".join(map(_format_line, kept)) if kept else "(nothing is said)"


def nearest(lines: Sequence[Line], wanted: str, most: int) -> tuple[Line, ...]:
    """Return the lines in order; if they have more than `most` words, those most similar in words
    to the text `wanted`, as many as fit.
    """
    sizes = [length(_format_line(x)) for x in lines]
    if sum(sizes) <= most:
        return tuple(lines)
    likeness = _terms(tuple(x.text for x in lines)).likeness(wanted)
    kept: set[int] = set()
    words_left = most
    for index in sorted(range(len(lines)), key=lambda i: (-likeness[i], i)):
        if sizes[index] <= words_left:
            kept.add(index)
            words_left -= sizes[index]
    return tuple(lines[i] for i in sorted(kept))


def _format_line(line: Line) -> str:
    return f"[{line.start:.1f}-{line.end:.1f}] {' '.join(line.text.split())}"


@lru_cache(maxsize=4)
def _terms(texts: tuple[str, ...]) -> TermVectors:
    return TermVectors(texts)
