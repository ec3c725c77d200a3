"""Colours, light and bars: only certain measurements are asked about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mustsee.media.colours import clear_shares
from mustsee.media.pixels import layout
from mustsee.recipes.neptune.offline import rules as neptune
from mustsee.recipes.neptune.offline.moments import RuleQuestion
from mustsee.records import Caption, Span, Video
from tests.offline.test_offline import part


def made(captions: Sequence[str], seed: int = 0) -> dict[str, RuleQuestion]:
    """Return the rules' questions, by text, on a video of 10 s shots with these captions."""
    count = len(captions)
    video = Video(
        video_id="video",
        uri="video.mp4",
        duration=10.0 * count,
        shots=tuple(Span(10.0 * n, 10.0 * n + 10) for n in range(count)),
        captions=tuple(
            Caption(10.0 * n + 5, f"The picture is {text}.") for n, text in enumerate(captions)
        ),
    )
    return {m.question: m for m in neptune.make_questions(part(video), seed)}


def answers(captions: Sequence[str], words: str) -> list[str]:
    return [m.answer for q, m in made(captions).items() if words in q]


GREEN, BLUE, RED = (f"mostly {c}; much clear {c}" for c in ("green", "blue", "red"))
PALE = "mostly grey"


def test_colours_are_in_the_order_of_the_video() -> None:
    assert answers([RED, GREEN, BLUE], "first fill a large part") == ["red; green; blue"]
    assert answers([RED, GREEN], "first fill a large part") == []


def test_an_earlier_colour_is_not_first() -> None:
    """A little of the colour is there early on: viewers could disagree."""
    early = f"{RED}; some clear blue"
    assert answers([early, GREEN, BLUE], "first fill a large part") == []


def test_roughly_named_colours_are_not_asked_about() -> None:
    """The list of colours in every caption is too rough for a question."""
    rough = ["mostly red", "mostly green and brown", "bright, mostly blue", "mostly red"]
    assert made(rough) == {}


@pytest.mark.parametrize(("captions", "answer"), [
    ([BLUE, BLUE, PALE, PALE, PALE], "Only in the first half"),
    ([PALE, BLUE, BLUE, BLUE, PALE], "Only about the middle"),
    ([PALE, PALE, PALE, BLUE, BLUE], "Only in the second half"),
    ([PALE, PALE, BLUE, PALE, PALE], None),  # all of it in one frame at the very middle
    ([PALE, PALE, "mostly grey; some clear blue", BLUE, BLUE], None),
    ([BLUE], None),
])  # fmt: skip
def test_the_part_of_the_video_with_a_colour(captions: Sequence[str], answer: str | None) -> None:
    assert answers(captions, "When is a large part") == ([answer] if answer else [])


def test_light_is_compared_only_if_the_difference_is_clear() -> None:
    plain = ["bright, mostly grey", "very dark, mostly black", "mostly grey"]
    close = ["mostly grey", "dim, mostly grey", "mostly grey"]
    assert answers(plain, "is the picture darkest") == ["Halfway through"]
    assert answers(close, "At which of these times") == []


def test_only_lasting_bars_are_asked_about() -> None:
    bars = "mostly grey; black bars above and below"
    assert answers([bars] * 3, "black bars") == ["Above and below"]
    assert answers([bars, PALE, bars], "black bars") == []


def test_similar_colours_are_not_options_of_one_question() -> None:
    for seed in range(6):
        for question, m in made([PALE, "mostly red; much clear red"], seed).items():
            if "Which colour" in question:
                assert not {"Pink", "Orange", "Brown", "Purple"} & set(m.decoys)


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
