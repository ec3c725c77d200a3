"""A line gets a speaker only where its voice is surely that of one and of no other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.media.speakers import SpeakerRules, name_speakers
from mustsee.records import Line

RULES = SpeakerRules()
ANN, BEN = np.eye(8, dtype=np.float32)[:2]


def lines(count: int, seconds: float = 3.0) -> list[Line]:
    return [Line(start=4.0 * i, end=4.0 * i + seconds, text=f"{i}") for i in range(count)]


def voice(*parts: np.ndarray, noise: int = 0) -> np.ndarray:
    """A unit vector: the sum of `parts`, and a direction of its own for each `noise`."""
    total = sum(parts) + (0.4 * np.eye(8, dtype=np.float32)[noise] if noise else 0)
    return (total / np.linalg.norm(total)).astype(np.float32)


def speakers(vectors: list[np.ndarray | None], seconds: float = 3.0) -> list[str | None]:
    named = name_speakers(lines(len(vectors), seconds), vectors, RULES)
    assert [replace(x, speaker=None) for x in named] == lines(len(vectors), seconds)
    return [x.speaker for x in named]


def test_two_voices_are_named_in_the_order_in_which_they_speak() -> None:
    vectors = [voice(v, noise=n) for v, n in ((BEN, 2), (ANN, 3), (BEN, 4), (ANN, 5), (BEN, 6))]
    one, two = "speaker 1", "speaker 2"
    assert speakers([*vectors, None]) == [one, two, one, two, one, None]


def test_a_line_between_two_voices_has_no_speaker() -> None:
    vectors = [voice(ANN, noise=2), voice(ANN, noise=3), voice(BEN, noise=4), voice(BEN, noise=5)]
    assert speakers([*vectors, voice(ANN, 0.9 * BEN)])[-1] is None
    assert speakers([*vectors, voice(ANN, 0.2 * BEN)])[-1] == "speaker 1"


@pytest.mark.parametrize(
    ("vectors", "seconds"),
    [
        ([], 3.0),
        ([None, ANN], 3.0),
        ([voice(ANN, noise=n) for n in range(2, 7)], 3.0),  # one voice, or several alike
        ([voice(ANN, noise=2), voice(ANN, noise=3), BEN], 3.0),  # a voice heard once
        ([ANN, ANN, BEN, BEN], 1.5),  # 3 s of each
    ],
)
def test_no_line_has_a_speaker_where_two_voices_are_not_found(
    vectors: list[np.ndarray | None], seconds: float
) -> None:
    assert set(speakers(vectors, seconds)) <= {None}


@given(st.permutations(range(8)), st.lists(st.booleans(), min_size=8, max_size=8))
def test_who_speaks_does_not_depend_on_the_order_of_the_lines(
    order: list[int], who: list[bool]
) -> None:
    vectors = [voice(ANN if ann else BEN, noise=2 + i % 6) for i, ann in enumerate(who)]
    named = speakers(list(vectors))
    shuffled = speakers([vectors[i] for i in order])
    pairs = [(named[i], shuffled[at]) for at, i in enumerate(order)]
    assert len(set(pairs)) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
