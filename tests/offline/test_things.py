"""Phrases on things and people, with detectors whose findings are set by the test."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mustsee.media.frames import encode
from mustsee.media.objects import AgreeingDetectors, Detection, ObjectRules, join_objects
from mustsee.offline import things
from mustsee.offline.facts_phrases import sight_of
from mustsee.offline.looking import Evidence, ShownFrame

JPEG = encode(np.full((9, 16, 3), 90, np.uint8), 80)
DOG, LEFT, RIGHT = ("dog", 0.1), ("person", 0.1), ("person", 0.6)


def box(name: str, x: float, score: float = 0.9) -> Detection:
    return Detection(name=name, score=score, x=x, y=0.2, width=0.2, height=0.5)


def install(monkeypatch: pytest.MonkeyPatch, one: Sequence[Any], other: Sequence[Any]) -> None:
    first, second = [box(*b) for b in one], [box(*b) for b in other]
    both = AgreeingDetectors(lambda image: first, lambda image: second, ObjectRules())
    monkeypatch.setattr(things, "_detectors", lambda: both)
    things._compare.cache_clear()


@pytest.mark.parametrize(
    ("phrase", "one", "other", "expected"),
    [
        ("a dog", [DOG], [DOG], True),
        ("a dog", [DOG], [], None),
        ("a dog", [], [DOG], None),
        ("a dog", [LEFT], [LEFT], False),
        ("a person", [LEFT], [LEFT], True),
        ("a person", [LEFT], [], None),
        ("a person", [DOG], [DOG], False),
        ("at least two people", [LEFT, RIGHT], [LEFT, RIGHT], True),
        ("at least two people", [LEFT, RIGHT], [LEFT], None),
        ("at least two people", [LEFT], [LEFT], None),
        ("at least two people", [], [(*RIGHT, 0.35)], None),
        ("at least two people", [], [], False),
    ],
)
def test_what_only_one_detector_sees_is_open(
    monkeypatch: pytest.MonkeyPatch, phrase: str, one: Any, other: Any, expected: bool | None
) -> None:
    install(monkeypatch, one, other)
    assert things.shows_thing(phrase, JPEG) is expected
    evidence = Evidence(frames=(ShownFrame(time=1.0, jpeg=JPEG),), lines=())
    assert sight_of(f"{phrase} can be seen", evidence).verdict is expected


def test_without_the_weights_all_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(things, "_detectors", lambda: None)
    things._compare.cache_clear()
    assert things.shows_thing("a dog", JPEG) is None


def test_a_fact_needs_two_samples_and_people_are_counted() -> None:
    samples = [
        (0.0, [box(*LEFT), box("dog", 0.4), box("elephant", 0.7)]),
        (4.0, [box(*LEFT), box(*RIGHT), box("elephant", 0.7)]),
        (8.0, [box(*LEFT), box(*RIGHT)]),
    ]
    assert things.phrases_of(join_objects(samples, 4.0)) == {
        "a person can be seen": [0.0, 4.0, 8.0],
        "an elephant can be seen": [0.0, 4.0],
        "at least two people can be seen": [4.0, 8.0],
    }


def test_other_phrases_are_not_of_things() -> None:
    assert things.bare_phrase("a dog can be seen") == "a dog"
    assert things.bare_phrase("a unicorn can be seen") is None
    assert things.bare_phrase("the whole picture is dark") is None
