"""What is said in a film, as a prompt holds it: with times, and no longer than it may be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mustsee.records import Line
from mustsee.text import Terms


def excerpt(lines: Sequence[Line], wanted: str, most: int) -> str:
    """The transcript with times; of a longer one, the lines nearest in words to `wanted`, in their
    order, up to `most` words.
    """
    written = [(f"[{x.start:.1f}-{x.end:.1f}] {' '.join(x.text.split())}", x) for x in lines]
    if not written:
        return "(nothing is said)"
    sizes = [len(text.split()) for text, _ in written]
    if sum(sizes) <= most:
        return "\n".join(text for text, _ in written)
    likeness = _terms(tuple(x.text for x in lines)).likeness(wanted)
    kept: set[int] = set()
    room = most
    for index in sorted(range(len(written)), key=lambda i: (-likeness[i], i)):
        if sizes[index] <= room:
            kept.add(index)
            room -= sizes[index]
    return "\n".join(written[i][0] for i in sorted(kept))


@lru_cache(maxsize=4)
def _terms(texts: tuple[str, ...]) -> Terms:
    return Terms(texts)
