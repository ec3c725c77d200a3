"""The verifier without a model: right on drawn videos, undecided on doubtful frames."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mustsee.calls.llm import Message, Request
from mustsee.errors import BadRow
from mustsee.media.frames import encode
from mustsee.media.video import frames_at
from mustsee.offline import sight
from mustsee.recipes.neptune.offline import rules as neptune
from mustsee.records import Line
from mustsee.verify.look_replies import look_form
from tests.offline.test_offline import part, sample_video
from tests.support.sample_videos import cuts, write

RGB = {"green": (20, 160, 40), "blue": (30, 60, 200), "red": (220, 20, 30), "white": (250,) * 3,
       "black": (0,) * 3, "grey": (120,) * 3, "between": (70, 140, 150)}  # fmt: skip
HEIGHT, WIDTH = 180, 320


def plain(colour: str) -> np.ndarray:
    return np.full((HEIGHT, WIDTH, 3), RGB[colour], np.uint8)


def card(*lines: str, ground: str = "white") -> np.ndarray:
    """Draw lines of text that are large enough to be read."""
    import cv2

    image = np.full((360, 640, 3), RGB[ground], np.uint8)
    for number, line in enumerate(lines):
        cv2.putText(image, line, (40, 60 + 60 * number), cv2.FONT_HERSHEY_SIMPLEX, 1.2, 0, 2)
    return image


def shown(images: Sequence[np.ndarray]) -> list[bytes]:
    return [encode(np.ascontiguousarray(image[..., ::-1]), 85) for image in images]


def look(
    question: str,
    options: Sequence[str],
    images: Sequence[np.ndarray],
    *,
    times: Sequence[float] | None = None,
    lines: Sequence[Line] = (),
) -> str:
    """Return the chosen option, "cannot" or "several"."""
    text = reply(question, options, shown(images), times=times, lines=lines)
    choice = look_form(len(options)).read(text).choice
    return options[choice] if isinstance(choice, int) else choice


def reply(
    question: str,
    options: Sequence[str],
    jpegs: Sequence[bytes],
    *,
    times: Sequence[float] | None = None,
    lines: Sequence[Line] = (),
    earlier: Sequence[float] = (),
) -> str:
    """Return the rules' reply to frames; those at `earlier` were sent in an earlier turn."""
    times = times or [float(t) for t in range(len(jpegs))]
    turns = [jpeg for time, jpeg in zip(times, jpegs, strict=True) if time in earlier]
    new = [jpeg for time, jpeg in zip(times, jpegs, strict=True) if time not in earlier]
    variables = {
        "question": question,
        "options": tuple(options),
        "frames": tuple(time for time in times if time not in earlier),
        "lines": tuple(lines),
        "earlier_frames": tuple(earlier),
        "earlier_lines": (),
    }
    before = (Message("user", "", tuple(turns)), Message("assistant", "")) if earlier else ()
    messages = (*before, Message("user", "", tuple(new)))
    request = Request(prompt="filters/sight", digest="", messages=messages, variables=variables)
    return sight.RULES["filters/sight"](request)


COLOURS = ("Green", "Blue", "Red", "White", "Black")
AT_END = (
    "Which colour fills a large part of the picture at the end of the video, "
    "but not at the beginning?"
)
ORDER = "In what order do these colours first fill a large part of the picture: {}?"
WHEN = ("Only in the first half", "Only about the middle", "Only in the second half", "All through",
        "Near the beginning and again near the end")  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_the_same_in_any_order_of_options(tmp_path: Path, seed: int) -> None:
    """The frames come from a video file, as in the filter."""
    rng = random.Random(seed)
    one, two, three = rng.sample(("green", "blue", "red"), 3)
    images = [plain(c) for c in (one, two, three) for _ in range(24)]
    path = write(tmp_path / "video.mp4", images, fps=12)
    times = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    jpegs = [p.jpeg(512, 80) for p in frames_at(str(path), times)]
    orders = [
        f"{one}; {two}; {three}",
        f"{two}; {one}; {three}",
        f"{three}; {two}; {one}",
        f"{one}; {three}; {two}",
    ]
    rng.shuffle(orders)
    text = reply(ORDER.format("; ".join((two, three, one))), orders, jpegs, times=times)
    assert look_form(4).read(text).choice == orders.index(f"{one}; {two}; {three}")


def test_what_was_measured_is_named_as_evidence() -> None:
    jpegs = shown([plain("green")] * 4 + [plain("blue")] * 4)
    times = [10.0 * t for t in range(8)]
    parsed = look_form(5).read(reply(AT_END, COLOURS, jpegs, times=times))
    assert parsed.choice == 1
    for time in (0.0, 70.0):
        assert any(span.start <= time <= span.end for span in parsed.evidence)


def test_frames_of_earlier_turns_count() -> None:
    """The same frames, all at once or in two turns that are not in their order in the video."""
    jpegs = shown([plain("green")] * 4 + [plain("blue")] * 4)
    times = [10.0 * t for t in range(8)]
    at_once = reply(AT_END, COLOURS, jpegs, times=times)
    assert reply(AT_END, COLOURS, jpegs, times=times, earlier=times[4:]) == at_once
    alone = look_form(5).read(reply(AT_END, COLOURS, jpegs[4:], times=times[4:]))
    assert alone.choice == "cannot"


def test_doubtful_measurements_give_no_answer() -> None:
    """Tones between two colours, an earlier colour, no frames."""
    assert look(AT_END, COLOURS, [plain("black"), plain("between")] * 2) == "cannot"
    assert look(AT_END, COLOURS, [plain("blue")] * 4) == "cannot"
    assert look(AT_END, COLOURS, []) == "cannot"


def test_two_fitting_options_are_ambiguous() -> None:
    half = plain("blue")
    half[:, : WIDTH // 2] = RGB["green"]
    images = [plain("black")] * 3 + [half] * 3
    assert look(AT_END, COLOURS, images, times=[0, 1, 2, 8, 9, 10]) == "several"


@pytest.mark.parametrize(
    "question",
    [
        "Why does the woman leave the room?",
        "What colour is the car that stops last?",
        "In how many separate shots does a face look out of the picture?",
        "Who says “good morning” first?",
        "",
    ],
)
def test_a_question_of_an_unknown_form_is_refused(question: str) -> None:
    with pytest.raises(BadRow, match="cannot measure"):
        look(question, COLOURS, cuts([2, 2, 2]))


def test_the_answer_key_is_not_used() -> None:
    """The same question on reversed frames has the other answer."""
    question = ORDER.format("green; red; blue")
    options = ("green; blue; red", "red; blue; green", "blue; green; red")
    images = [plain(c) for c in ("green", "blue", "red")]
    assert look(question, options, images) == options[0]
    assert look(question, options, images[::-1]) == options[1]


@pytest.mark.parametrize(("there", "answer"), [
    ("111000000", WHEN[0]), ("000111000", WHEN[1]), ("000000111", WHEN[2]), ("111111111", WHEN[3]),
    ("110000011", WHEN[4]), ("000100000", "cannot"), ("000001000", "cannot"),
    ("011111100", "cannot"), ("000000000", "cannot"),
])  # fmt: skip
def test_the_part_of_the_video_with_a_colour(there: str, answer: str) -> None:
    images = [plain("blue" if x == "1" else "grey") for x in there]
    question = "When is a large part of the picture clearly blue?"
    assert look(question, WHEN, images) == answer
    assert look(question, WHEN, images[:2]) in ("cannot", WHEN[3])


def test_the_darkest_and_the_lightest_time() -> None:
    question = "At which of these times in the video is the picture darkest?"
    options = ("At the beginning", "Halfway through", "At the end", "All through alike",
               "At the beginning and at the end alike")  # fmt: skip
    levels = (200, 200, 200, 60, 60, 60, 190, 190, 190)
    images = [np.full((HEIGHT, WIDTH, 3), level, np.uint8) for level in levels]
    assert look(question, options, images) == "Halfway through"
    close = [np.full((HEIGHT, WIDTH, 3), level, np.uint8) for level in (150,) * 6 + (130,) * 3]
    assert look(question, options, close) == "cannot"


def test_answers_on_bars_and_halves() -> None:
    question = "Where does the picture have black bars all through the video?"
    options = ("Above and below", "On the left and the right", "On all four sides", "Only below",
               "Only above")  # fmt: skip
    barred = cuts([3], width=WIDTH, height=HEIGHT)
    for image in barred:
        image[:20], image[-20:] = 0, 0
    assert look(question, options, barred) == "Above and below"
    assert look(question, options, cuts([3], width=WIDTH, height=HEIGHT)) == "cannot"
    sky = plain("grey")
    sky[: HEIGHT // 2] = RGB["blue"]
    question = "Where in the picture is nearly everything that is clearly blue?"
    halves = ("In the upper half", "In the lower half", "In the left half", "In the right half",
              "In all parts of it alike")  # fmt: skip
    assert look(question, halves, [sky] * 3) == "In the upper half"
    assert look(question, halves, [sky, sky[::-1]]) == "cannot"


@pytest.mark.parametrize("noise", range(3))
def test_grain_and_compression_change_nothing(noise: int) -> None:
    rng = np.random.default_rng(noise)
    images = [plain(c).astype(int) for c in ("green", "green", "blue", "blue")]
    grainy = [np.clip(p + rng.normal(0, 18, p.shape), 0, 255).astype(np.uint8) for p in images]
    assert look(AT_END, COLOURS, grainy, times=[0, 1, 8, 9]) == "Blue"


def test_words_are_read_from_the_frames() -> None:
    pytest.importorskip("rapidocr")
    images = [card("HARBOUR", "OLD TOWN"), card("MARKET SQUARE"), card("RAILWAY")]
    orders = ("“HARBOUR”; “RAILWAY”; “MARKET SQUARE”", "“HARBOUR”; “MARKET SQUARE”; “RAILWAY”")
    question = f"In what order do these words come up on the screen: {orders[0]}?"
    assert look(question, orders, images) == orders[1]
    question = "Which of these words come up on the screen soonest after “HARBOUR”?"
    assert look(question, ("RAILWAY", "MARKET SQUARE", "OLD TOWN"), images[:1]) == "cannot"
    assert look(question, ("RAILWAY", "MARKET SQUARE", "CASTLE"), images) == "MARKET SQUARE"
    question = "Which of these words are on the screen together with “HARBOUR”?"
    assert look(question, ("RAILWAY", "OLD TOWN"), images) == "OLD TOWN"
    question = "All of these words are on the screen at once. Which stand lowest?"
    lines = ("HARBOUR", "CASTLE", "RAILWAY", "MARKET", "CHURCH")
    assert look(question, sorted(lines), [card(*lines)]) == "CHURCH"
    assert look(question, sorted(lines), [card(*lines[:4])]) == "cannot"


def test_speech_is_taken_from_the_given_lines() -> None:
    texts = ("We begin with three eggs.", "Then comes the flour.", "At last we add the milk.")
    lines = [Line(start=2.0 * n, end=2.0 * n + 1, text=t) for n, t in enumerate(texts)]
    question = "What is said right after “Then comes the flour”?"
    options = ("We begin with three eggs", "At last we add the milk", "The oven is hot")
    images = [plain("grey")] * 2
    assert look(question, options, images, lines=lines) == options[1]
    assert look(question, options, images) == "cannot"


def test_the_verifier_knows_every_form_of_the_rules() -> None:
    """A question of an unknown form would always be dropped."""
    patterns = [pattern for pattern, _ in sight.FORMS]
    questions = [
        m.question for seed in range(6) for m in neptune.make_questions(part(sample_video()), seed)
    ]
    assert len(set(questions)) > 10
    for question in questions:
        assert any(p.search(question) for p in patterns), question
