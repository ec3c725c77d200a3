"""Captions by measurement name only clear colours, with their place."""

from __future__ import annotations

import numpy as np
import pytest

from mustsee.media.colours import clear_shares
from mustsee.media.pixels import are_measured, describe, layout
from mustsee.records import ScreenText, SeenObject


@pytest.mark.parametrize(("rgb", "name"), [
    ((30, 60, 200), "blue"), ((20, 160, 40), "green"), ((225, 15, 25), "red"),
    ((252, 252, 252), "white"), ((4, 4, 4), "black"),
    ((70, 140, 150), None), ((128, 128, 128), None), ((205, 180, 160), None), ((90, 90, 70), None),
])  # fmt: skip
def test_only_clear_colours_have_a_name(rgb: tuple[int, int, int], name: str | None) -> None:
    shares = clear_shares(np.full((9, 16, 3), rgb, np.uint8))
    assert {c for c, share in shares.items() if share > 0.5} == ({name} if name else set())


def test_captions_name_colours_with_their_place() -> None:
    image = np.full((90, 160, 3), 120, np.uint8)
    image[:40] = (30, 60, 200)
    assert "blue at the top" in layout(image)
    assert "all that is clearly blue in the upper half" in layout(image)
    image[:10] = image[-10:] = 0
    assert "black bars above and below" in layout(image)


@pytest.mark.parametrize("light", [5, 40, 90, 140, 250])
def test_sentences_by_rules_are_told_from_those_of_a_model(light: int) -> None:
    """Whatever the light, with things and words on the screen."""
    grey = np.full((36, 64, 3), light, np.uint8)
    noise = np.random.default_rng(light).integers(0, 256, (36, 64, 3), np.uint8)
    things = [
        SeenObject(name=name, start=0, end=1, score=1, boxes=()) for name in ("cup", "person")
    ]
    words = [ScreenText(time=0, text="The man walks", score=1)]
    texts = [describe(grey, None, ()), describe(noise, None, words, ["some clear red"], things)]
    model = ["A man walks to a door.", "The picture on the wall is mostly red.", "C lifts a cup."]
    assert are_measured(texts)
    assert are_measured([*texts, model[0]])
    assert not are_measured(model)
    assert not are_measured([texts[0], model[1]])
    assert not are_measured([])
