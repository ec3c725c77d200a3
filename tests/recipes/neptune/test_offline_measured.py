"""Colours, light and bars: only certain measurements are facts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mustsee.media.colours import clear_shares
from mustsee.media.pixels import layout
from mustsee.offline.facts_phrases import BRIGHT, DARK
from mustsee.recipes.neptune.offline.composed import make_questions, truth_table
from mustsee.records import Caption, Span, Video
from tests.offline.test_offline import part


def video(captions: Sequence[str]) -> Video:
    """Return a video of 6 s shots, of which the first have these captions. It has 14 shots at
    least: a moment of a shorter video is shorter than a shot.
    """
    count = max(14, len(captions))
    return Video(
        video_id="video",
        uri="video.mp4",
        duration=6.0 * count,
        shots=tuple(Span(6.0 * n, 6.0 * n + 6) for n in range(count)),
        captions=tuple(
            Caption(6.0 * n + 3, f"The picture is {text}.") for n, text in enumerate(captions)
        ),
    )


def held(captions: Sequence[str]) -> dict[str, list[bool | None]]:
    """Return for each state of a video whether it holds at each of its moments."""
    table = truth_table(part(video(captions)))
    return {
        f.phrase: [table.holds(f, n) for n in range(len(captions))] for f in table.of_kind("state")
    }


GREEN, BLUE, RED = (f"mostly {c}; much clear {c}" for c in ("green", "blue", "red"))
PALE = "mostly grey"
MUCH_RED = "much of the picture is clearly red"


def test_a_colour_holds_where_there_is_much_of_it() -> None:
    assert held([RED, GREEN, PALE])[MUCH_RED] == [True, False, False]


def test_some_of_a_colour_or_one_like_it_is_doubtful() -> None:
    """Viewers could disagree."""
    captions = [RED, "mostly grey; some clear red", "mostly pink; much clear pink", GREEN]
    assert held(captions)[MUCH_RED] == [True, None, None, False]


def test_roughly_named_colours_are_no_facts() -> None:
    """The list of colours in every caption is too rough for a question."""
    rough = ["mostly red", "mostly green and brown", "dim, mostly blue", "mostly red"]
    assert held(rough) == {}
    assert make_questions(part(video(rough)), 0) == ()


def test_the_top_and_the_bottom_are_facts_where_they_differ() -> None:
    top = "mostly grey; blue at the top; green at the bottom; some clear blue and green"
    both = "mostly blue; blue at the top; blue at the bottom; much clear blue"
    phrase = "the upper third of the picture is clearly blue"
    assert held([top, both, PALE])[phrase] == [True, None, False]


def test_light_holds_only_if_the_difference_is_clear() -> None:
    light = ["very dark, mostly black", "dark, mostly black", "mostly grey", "bright, mostly grey"]
    assert held(light)[DARK] == [True, None, False, False]
    assert held(light)[BRIGHT] == [False, False, None, True]


def test_bars_that_last_throughout_are_no_fact() -> None:
    bars = "mostly grey; black bars above and below"
    assert held([bars] * 3) == {}
    assert held([bars, PALE, bars]) == {
        "black bars lie above and below the picture": [True, False, True]
    }


def test_what_the_captions_of_a_model_say_is_not_measured() -> None:
    table = truth_table(part(Video(
        video_id="v", uri="v", duration=12.0, shots=(Span(0, 12),),
        captions=(Caption(3.0, "A woman in a dark coat; much clear red."),),
    )))  # fmt: skip
    assert table.facts == ()


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
