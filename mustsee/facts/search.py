"""Searches the moments at which a fact may hold, too, besides those at which it is claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mustsee.facts.moments import image_looks_of, looks_of
from mustsee.facts.table import find_touched
from mustsee.nn.vectors import Index, unit
from mustsee.records import Caption, Fact, Frame, ImageVector, Span

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def search_moments(
    facts: Sequence[Fact],
    moments: Sequence[Span],
    *,
    frames: Sequence[Frame],
    vectors: Sequence[ImageVector],
    captions: Sequence[Caption],
    encode: Encode,
    most: int,
) -> Mapping[str, tuple[int, ...]]:
    """Return for each fact the numbers of at most `most` moments that it does not claim: those that
    are nearest by the words of other facts and captions there, and by the looks of its own. Looks
    are the `vectors` of keyframes, or without any the descriptors of frames.
    """
    if not facts or most < 1:
        return {}
    own = {fact.fact_id: set(find_touched(fact.spans, moments)) for fact in facts}
    texts = [(f.phrase, n) for f in facts for n in own[f.fact_id]]
    texts += [
        (c.text, n) for c in captions for n, m in enumerate(moments) if m.start <= c.time < m.end
    ]
    index = Index(encode([text for text, _ in texts]))
    _, rows = index.search(encode([fact.phrase for fact in facts]), len(texts))
    looks = unit(image_looks_of(moments, vectors) if vectors else looks_of(moments, frames))
    look_index = Index(looks)
    found: dict[str, tuple[int, ...]] = {}
    for number, fact in enumerate(facts):
        claimed = own[fact.fact_id]
        by_words = [texts[row][1] for row in rows[number] if row >= 0]
        mean = looks[sorted(claimed)].mean(axis=0, keepdims=True)
        _, near = look_index.search(mean, len(moments))
        by_looks = [int(row) for row in near[0] if row >= 0]
        turns = _in_turns(*([m for m in by if m not in claimed] for by in (by_words, by_looks)))
        found[fact.fact_id] = tuple(sorted(turns[:most]))
    return found


def _in_turns(some: Sequence[int], others: Sequence[int]) -> list[int]:
    """Return the distinct numbers of both in turns, the first of `some` first."""
    firsts, seconds = list(dict.fromkeys(some)), list(dict.fromkeys(others))
    length = max(len(firsts), len(seconds))
    turns = (part[n] for n in range(length) for part in (firsts, seconds) if n < len(part))
    return list(dict.fromkeys(turns))
