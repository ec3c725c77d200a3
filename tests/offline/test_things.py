"""Phrases on things and people, with detectors whose findings are set by the test."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mustsee.media.frames import encode
from mustsee.media.objects import (
    AgreeingDetectors,
    Detection,
    Image,
    ObjectRules,
    SampledObjects,
    join_objects,
)
from mustsee.offline import things
from mustsee.offline.facts_phrases import sight_of, verdict_of
from mustsee.offline.looking import Evidence, ShownFrame

JPEG = encode(np.full((9, 16, 3), 90, np.uint8), 80)
DOG, LEFT, RIGHT = ("dog", 0.1), ("person", 0.1), ("person", 0.6)
BEHIND = ("person", 0.15)  # three quarters of the one on the left


def box(name: str, x: float, score: float = 0.9) -> Detection:
    return Detection(name=name, score=score, x=x, y=0.2, width=0.2, height=0.5)


def install(monkeypatch: pytest.MonkeyPatch, one: Sequence[Any], other: Sequence[Any]) -> None:
    first, second = [box(*b) for b in one], [box(*b) for b in other]
    both = AgreeingDetectors(lambda image: first, lambda image: second, ObjectRules())
    monkeypatch.setattr(things, "_own", SimpleNamespace(detectors=both))
    things.frame_of.cache_clear()


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
    assert things.frame_of(JPEG).shows(thing) is expected
    evidence = Evidence(frames=(ShownFrame(time=1.0, jpeg=JPEG),), lines=())
    assert sight_of(phrase, evidence).verdict is expected
    assert verdict_of(phrase, evidence) is expected


@pytest.mark.parametrize(
    ("heights", "expected"),
    [((0.95, 0.95), True), ((0.8, 0.8), None), ((0.5, 0.8), None), ((0.5, 0.5), False)],
)
def test_a_person_as_tall_as_the_picture(
    monkeypatch: pytest.MonkeyPatch, heights: tuple[float, float], expected: bool | None
) -> None:
    first, second = ([replace(box(*LEFT), y=0.0, height=height)] for height in heights)
    both = AgreeingDetectors(lambda image: first, lambda image: second, ObjectRules())
    monkeypatch.setattr(things, "_own", SimpleNamespace(detectors=both))
    things.frame_of.cache_clear()
    thing = things.find_thing("a person as tall as the picture")
    assert thing
    assert things.frame_of(JPEG).shows(thing) is expected


class Detectors:
    """Two detectors that see set boxes in each frame, told apart by its brightness."""

    def __init__(self, *frames: tuple[Sequence[Any], Sequence[Any]]) -> None:
        self.jpegs = [encode(np.full((9, 16, 3), 20 * n, np.uint8), 95) for n in range(len(frames))]
        self.frames, self.asked = frames, list[int]()
        self.both = AgreeingDetectors(self._first, self._second, ObjectRules())

    def _first(self, image: Image) -> list[Detection]:
        return [box(*b) for b in self.frames[round(image.mean() / 20)][0]]

    def _second(self, image: Image) -> list[Detection]:
        self.asked.append(round(image.mean() / 20))
        return [box(*b) for b in self.frames[self.asked[-1]][1]]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(things, "_own", SimpleNamespace(detectors=self.both))
        things.frame_of.cache_clear()


DOUBTFUL = ("dog", 0.1, 0.4)


@pytest.mark.parametrize(
    ("frames", "expected", "asked"),
    [
        ([([], []), ([DOG], [DOG]), ([DOG], [])], True, [1]),
        ([([], []), ([DOG], []), ([], [])], None, [1]),
        ([([], []), ([DOUBTFUL], [DOG])], None, []),
        ([([], []), ([LEFT], [])], False, [0, 1]),
        ([([], []), ([], [DOG])], None, [0, 1]),
        ([], None, []),
    ],
)
def test_the_second_detector_runs_where_the_first_leaves_it_to_it(
    monkeypatch: pytest.MonkeyPatch, frames: Any, expected: bool | None, asked: list[int]
) -> None:
    detectors = Detectors(*frames)
    detectors.install(monkeypatch)
    assert things.is_shown(things.ShownThing(name="dog"), detectors.jpegs) is expected
    assert sorted(detectors.asked) == asked


BOXES = st.lists(
    st.tuples(
        st.sampled_from(["dog", "cat", "person"]),
        st.sampled_from([0.05, 0.1, 0.33, 0.6]),
        st.sampled_from([0.35, 0.55, 0.9]),
    ),
    max_size=3,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    st.lists(st.tuples(BOXES, BOXES), min_size=1, max_size=4),
    st.sampled_from(["a dog", "a dog left of the middle", "at least two people", "a person"]),
)
def test_a_verdict_is_that_of_both_detectors_on_all_frames(
    monkeypatch: pytest.MonkeyPatch, frames: Any, phrase: str
) -> None:
    detectors = Detectors(*frames)
    detectors.install(monkeypatch)
    evidence = Evidence(
        frames=tuple(ShownFrame(time=float(n), jpeg=j) for n, j in enumerate(detectors.jpegs)),
        lines=(),
    )
    found = verdict_of(phrase, evidence)
    detectors.install(monkeypatch)
    assert sight_of(phrase, evidence).verdict is found


def test_without_the_weights_all_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(things, "_own", SimpleNamespace(detectors=None))
    things.frame_of.cache_clear()
    assert things.is_shown(things.ShownThing(name="dog"), [JPEG]) is None


def test_a_fact_needs_two_samples_and_people_are_counted() -> None:
    samples = [
        SampledObjects(0.0, (box(*LEFT), box("dog", 0.4), box("elephant", 0.7))),
        SampledObjects(4.0, (box(*LEFT), box(*RIGHT), box("elephant", 0.7))),
        SampledObjects(8.0, (box(*LEFT), box(*RIGHT))),
    ]
    assert things.seen_phrases(join_objects(samples, 4.0)) == {
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
