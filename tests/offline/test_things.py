"""Phrases on things and people, with detectors whose findings are set by the test."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mustsee.media.frames import encode
from mustsee.media.objects import (
    AgreeingDetectors,
    Detection,
    ObjectRules,
    SampledObjects,
    join_objects,
)
from mustsee.offline import things
from mustsee.offline.facts_phrases import sight_of
from mustsee.offline.looking import Evidence, ShownFrame

JPEG = encode(np.full((9, 16, 3), 90, np.uint8), 80)
DOG, LEFT, RIGHT = ("dog", 0.1), ("person", 0.1), ("person", 0.6)
BEHIND = ("person", 0.15)  # three quarters of the one on the left


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
        ("at least two people", [LEFT, BEHIND], [LEFT, BEHIND], None),
        ("at least two people", [], [], False),
        ("a dog can be seen", [], [("cat", 0.1, 0.2)], None),
        ("a bird can be seen", [DOG], [DOG], False),
        ("a dog left of the middle", [DOG], [DOG], True),
        ("a dog right of the middle", [DOG], [DOG], False),
        ("a dog left of the middle", [("dog", 0.33)], [("dog", 0.33)], None),
        ("a dog left of the middle", [("dog", 0.4)], [("dog", 0.4)], False),
        ("a dog right of the middle", [("dog", 0.45)], [("dog", 0.45)], None),
        ("a dog left of the middle", [DOG], [], None),
        ("a dog left of the middle", [], [RIGHT], False),
    ],
)
def test_what_only_one_detector_sees_is_open(
    monkeypatch: pytest.MonkeyPatch, phrase: str, one: Any, other: Any, expected: bool | None
) -> None:
    install(monkeypatch, one, other)
    thing = things.find_thing(phrase)
    assert thing
    assert things.shows_thing(thing, JPEG) is expected
    evidence = Evidence(frames=(ShownFrame(time=1.0, jpeg=JPEG),), lines=())
    assert sight_of(phrase, evidence).verdict is expected


@pytest.mark.parametrize(
    ("heights", "expected"),
    [((0.95, 0.95), True), ((0.8, 0.8), None), ((0.5, 0.8), None), ((0.5, 0.5), False)],
)
def test_a_person_as_tall_as_the_picture(
    monkeypatch: pytest.MonkeyPatch, heights: tuple[float, float], expected: bool | None
) -> None:
    first, second = ([replace(box(*LEFT), y=0.0, height=height)] for height in heights)
    both = AgreeingDetectors(lambda image: first, lambda image: second, ObjectRules())
    monkeypatch.setattr(things, "_detectors", lambda: both)
    things._compare.cache_clear()
    thing = things.find_thing("a person as tall as the picture")
    assert thing
    assert things.shows_thing(thing, JPEG) is expected


def test_without_the_weights_all_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(things, "_detectors", lambda: None)
    things._compare.cache_clear()
    assert things.shows_thing(things.ShownThing(name="dog"), JPEG) is None


def test_a_fact_needs_two_samples_and_people_are_counted() -> None:
    samples = [
        SampledObjects(0.0, (box(*LEFT), box("dog", 0.4), box("elephant", 0.7))),
        SampledObjects(4.0, (box(*LEFT), box(*RIGHT), box("elephant", 0.7))),
        SampledObjects(8.0, (box(*LEFT), box(*RIGHT))),
    ]
    assert things.phrases_of(join_objects(samples, 4.0)) == {
        "a person": [0.0, 4.0, 8.0],
        "a person left of the middle": [0.0, 4.0, 8.0],
        "a person right of the middle": [4.0, 8.0],
        "an elephant": [0.0, 4.0],
        "an elephant right of the middle": [0.0, 4.0],
        "at least two people": [4.0, 8.0],
    }


def test_other_phrases_are_not_of_things() -> None:
    assert things.find_thing("a dog can be seen") == things.ShownThing(name="dog")
    assert things.find_thing("a unicorn can be seen") is None
    assert things.find_thing("the whole picture is dark") is None
