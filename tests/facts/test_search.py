"""Moments like a fact's own, by words and by looks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mustsee.facts.moments import search_moments
from mustsee.records import Caption, Fact, Frame, ImageVector, Span

WORDS = ("cup", "dog", "door")


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array([[word in text for word in WORDS] for text in texts], np.float32)


def fact(name: str, phrase: str, start: float) -> Fact:
    span = Span(start, start + 1)
    return Fact(fact_id=name, kind="event", phrase=phrase, source="m", spans=(span,))


def test_nearest_moments_by_words_and_by_looks_are_found_and_never_its_own() -> None:
    moments = [Span(float(n), n + 1.0) for n in range(6)]
    facts = [fact("a", "a man lifts a cup", 0), fact("b", "a cup falls", 3), fact("c", "a dog", 5)]
    values = [0.1, 0.9, 0.15, 0.8, 0.7, 0.85]
    frames = [
        Frame(time=n + 0.5, brightness=v, motion=0, descriptor=(v,) * 48 + (1 - v,) * 48)
        for n, v in enumerate(values)
    ]
    captions = [Caption(time=4.5, text="a cup on a shelf")]

    def found(most: int, vectors: Sequence[ImageVector] = ()) -> tuple[int, ...]:
        return search_moments(
            facts, moments, frames=frames, vectors=vectors, captions=captions, encode=encode,
            most=most,
        ).get("a", ())  # fmt: skip

    assert set(found(1)) <= {3, 4}
    assert 2 in found(2)  # The only other dark moment.
    assert 0 not in found(5)
    assert len(found(5)) == 5
    assert found(0) == ()
    values = {0: (3.0, 1.0), 1: (1.0, 3.0), 2: (1.0, 3.0), 5: (3.0, 1.1)}
    vectors = [ImageVector(time=n + 0.5, values=v) for n, v in values.items()]
    assert 5 in found(2, vectors)  # One of the bright moments.
    assert 2 not in found(2, vectors)


def test_with_fewer_keyframes_than_moments_looks_find_moments_without_one() -> None:
    moments = [Span(float(n), n + 1.0) for n in range(8)]
    shown = {0: (1.0, 0.0), 2: (0.0, 1.0), 4: (1.0, 0.0), 6: (0.0, 1.0)}
    vectors = [ImageVector(time=n + 0.9, values=values) for n, values in shown.items()]

    def found(start: float, most: int) -> tuple[int, ...]:
        facts = [fact("a", "a cup", start)]
        return search_moments(
            facts, moments, frames=(), vectors=vectors, captions=(), encode=encode, most=most
        )["a"]

    assert found(2, 3) == (3, 6, 7)  # Moments 3 and 7 have no keyframe.
    assert found(3, 3) == (2, 6, 7)  # It is claimed only where there is none.
