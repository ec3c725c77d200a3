"""The verifier without a model: right on drawn frames, undecided on doubtful ones."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from mustsee.calls.llm import Message, Request
from mustsee.errors import BadRow
from mustsee.facts.forms import DEFAULT_FORMS
from mustsee.media.frames import encode
from mustsee.offline import sight
from mustsee.offline.facts_questions import DECIDERS, phrases_of
from mustsee.records import Line, Span
from mustsee.verify.guess.ask import rankings
from mustsee.verify.look_replies import look_form
from tests.facts.tables import table_of

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
    extent: Span | None = None,
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
        "video": extent,
    }
    before = (Message("user", "", tuple(turns)), Message("assistant", "")) if earlier else ()
    messages = (*before, Message("user", "", tuple(new)))
    request = Request(prompt="filters/sight", digest="", messages=messages, variables=variables)
    return sight.RULES["filters/sight"](request)


RED, GREEN, BLUE = (f"much of the picture is clearly {c}" for c in ("red", "green", "blue"))
PINK = "much of the picture is clearly pink"
DARK, BRIGHT = "the whole picture is dark", "the whole picture is bright"
AFTER = f"Which of these is so next after {RED}?"
BEFORE = f"Which of these is so last before {RED}?"
WHEN = f"Which of these is so when {RED}?"
LINES = tuple(
    Line(start=2.0 * n, end=2.0 * n + 1, text=text)
    for n, text in enumerate(
        ("We begin with three eggs.", "Then comes the flour.", "At last we add the milk.")
    )
)
SAID = tuple(f"“{line.text}”" for line in LINES)


def colours(*names: str) -> list[np.ndarray]:
    return [plain(name) for name in names]


@pytest.mark.parametrize(
    ("question", "frames", "answer"),
    [
        (AFTER, ("green", "red", "red", "blue", "green"), BLUE),
        (BEFORE, ("green", "red", "red", "blue", "green"), GREEN),
        (AFTER, ("blue", "green", "red"), "cannot"),  # nothing is shown after it
        (AFTER, ("green", "blue"), "cannot"),  # it is not shown itself
        (AFTER, ("red", "between", "green"), "cannot"),  # a tone between green and blue
        (AFTER, ("red",), "cannot"),
        (AFTER, (), "cannot"),
    ],
)
def test_what_follows_a_phrase_is_the_nearest(
    question: str, frames: Sequence[str], answer: str
) -> None:
    for options in ((GREEN, BLUE, PINK), (PINK, BLUE, GREEN)):
        assert look(question, options, colours(*frames), times=spaced(frames)) == answer


def spaced(frames: Sequence[str]) -> list[float]:
    """Return times so far apart that neighbours are not doubtful."""
    return [3.0 * n for n in range(len(frames))]


def test_two_options_that_begin_together_are_ambiguous() -> None:
    half = plain("blue")
    half[:, : WIDTH // 2] = RGB["green"]
    assert look(AFTER, (GREEN, BLUE, PINK), [plain("red"), half], times=[0, 3]) == "several"
    close = colours("red", "green", "blue")
    assert look(AFTER, (GREEN, BLUE, PINK), close, times=[0, 3, 4]) == "several"


def test_what_is_shown_with_the_phrase_does_not_follow_it() -> None:
    half = plain("red")
    half[:, : WIDTH // 2] = RGB["green"]
    images = [half, plain("green"), plain("blue")]
    assert look(AFTER, (GREEN, BLUE, PINK), images, times=[0, 3, 6]) == BLUE
    assert look(WHEN, (GREEN, BLUE, PINK), images, times=[0, 3, 6]) == GREEN
    assert look(WHEN, (GREEN, BLUE, PINK), images[1:], times=[3, 6]) == "cannot"


def test_what_is_far_away_does_not_follow() -> None:
    images = colours("red", "blue")
    assert look(AFTER, (GREEN, BLUE, PINK), images, times=[0, 3]) == BLUE
    assert look(AFTER, (GREEN, BLUE, PINK), images, times=[0, 30]) == "cannot"


ORDER = f"In which order are these seen? {BLUE}; {RED}; {GREEN}"
ORDERS = tuple("; ".join(o) for o in ((GREEN, RED, BLUE), (BLUE, GREEN, RED), (RED, BLUE, GREEN)))


def test_orders_are_those_of_the_frames() -> None:
    assert look(ORDER, ORDERS, colours("red", "blue", "green")) == ORDERS[2]
    assert look(ORDER, ORDERS, colours("green", "red", "blue")) == ORDERS[0]
    assert look(ORDER, ORDERS, colours("red", "red", "green")) == "cannot"
    assert look(ORDER, ORDERS, colours("between", "red", "blue", "green")) == "cannot"
    assert look(ORDER, ORDERS, colours("red", "green", "blue")) == "cannot"  # no option says so
    assert look(ORDER, ORDERS, colours("red")) == "cannot"


def test_what_lies_between_two_phrases() -> None:
    question = f"Which of these is so after {RED} but before {BRIGHT}?"
    images = colours("blue", "red", "green", "white", "blue")
    assert look(question, (BLUE, GREEN, PINK), images, times=spaced("-----")) == GREEN
    assert look(question, (BLUE, PINK), images, times=spaced("-----")) == "cannot"
    assert look(question, (BLUE, GREEN), images[:3], times=spaced("---")) == "cannot"


def test_lines_are_taken_from_the_transcript_that_is_given() -> None:
    images, times = colours("grey", "red", "grey"), [0.5, 2.5, 4.5]
    question = f"Which of these is said while {RED}?"
    assert look(question, SAID, images, times=times, lines=LINES) == SAID[1]
    assert look(question, SAID, images, times=times) == "cannot"
    seen = f"Which of these is so while this is said: {SAID[1]}?"
    assert look(seen, (RED, GREEN), images, times=times, lines=LINES) == RED
    assert look(seen, (RED, GREEN), images, times=times) == "cannot"
    order = f"In which order are these said? {'; '.join(SAID[::-1])}"
    options = ("; ".join((SAID[1], SAID[0], SAID[2])), "; ".join(SAID))
    assert look(order, options, images, times=times, lines=LINES) == options[1]


def extended(
    question: str, options: Sequence[str], names: Sequence[str], extent: Span, gap: float = 3.0
) -> str:
    """Return the option chosen for frames at equal gaps of a video of a known length."""
    jpegs = shown(colours(*names))
    text = reply(
        question, options, jpegs, times=[gap * n for n in range(len(names))], extent=extent
    )
    choice = look_form(len(options)).read(text).choice
    return options[choice] if isinstance(choice, int) else choice


FRAMES = ("grey", "red", "grey", "blue", "blue", "blue", "grey", "green", "grey")
LONG = Span(0.0, 27.0)


def test_ends_are_decided_where_all_frames_up_to_them_are_known() -> None:
    first, last = "Which of these is so first?", "Which of these is so last?"
    options = (GREEN, BLUE, RED)
    assert extended(first, options, FRAMES, LONG) == RED
    assert extended(last, options, FRAMES, LONG) == GREEN
    assert extended(first, options, FRAMES, Span(-9.0, 27.0)) == "cannot"
    assert extended(last, options, FRAMES, Span(0.0, 60.0)) == "cannot"
    assert extended(first, options, FRAMES, LONG, gap=6.0) == "cannot"
    assert extended(first, options, ("between", *FRAMES), LONG) == "cannot"
    assert look(first, options, colours(*FRAMES), times=spaced(FRAMES)) == "cannot"


def test_thirds_of_the_video() -> None:
    options = (GREEN, BLUE, RED)
    for third, answer in (("first", RED), ("second", BLUE), ("last", GREEN)):
        question = f"Which of these is so in the {third} third of the video?"
        assert extended(question, options, FRAMES, LONG) == answer
        twice = ("red", *FRAMES[1:-1], "red")
        assert extended(question, (BLUE, RED), twice, LONG) in ("cannot", BLUE)


def test_the_quarter_in_which_something_is_seen_first_or_last() -> None:
    frames = ("grey", "grey", "blue", "grey", "blue", "grey")
    options = ("the first quarter", "the second quarter", "the third quarter", "the last quarter")
    for end, answer in (("first", options[1]), ("last", options[2])):
        question = f"In which quarter of the video is a large blue area seen {end}?"
        assert extended(question, options, frames, Span(0.0, 18.0)) == answer
        assert (
            extended(question, options, ("between", *frames, "between"), Span(0.0, 24.0))
            == "cannot"
        )
        assert extended(question, options, frames, Span(-9.0, 60.0)) == "cannot"


def test_what_lasts_longest() -> None:
    question = "Which of these is on the screen longest in all?"
    assert extended(question, (GREEN, BLUE, RED), FRAMES, LONG) == BLUE
    assert extended(question, (GREEN, RED), FRAMES, LONG) == "cannot"
    assert extended(question, (GREEN, BLUE, RED), FRAMES, Span(0.0, 60.0)) == "cannot"


def test_what_is_seen_the_next_time() -> None:
    question = f"First {RED}. When {BRIGHT} the next time after that, which of these is so?"
    images = [plain("red"), plain("grey"), plain("white"), plain("green")]
    images[2][:, : WIDTH // 2] = RGB["blue"]
    bright = np.full_like(images[2], 252)
    bright[:, : WIDTH // 3] = RGB["blue"]
    images[2] = bright
    assert look(question, (BLUE, GREEN), images, times=spaced("----")) == BLUE
    assert look(question, (BLUE, GREEN), images[:2], times=spaced("--")) == "cannot"
    assert look(question, (BLUE, GREEN), images[1:], times=spaced("---")) == "cannot"


def test_few_frames_decide_what_they_show() -> None:
    """In the order in which they are shown, which is not that of the video if they are shuffled."""
    asked = [
        {"question": WHEN, "options": [GREEN, f"{PINK}"]},
        {"question": AFTER, "options": [GREEN, BLUE]},
        {"question": "Why does she leave?", "options": ["a", "b"]},
    ]

    def guesses(images: Sequence[np.ndarray]) -> list[int | None]:
        message = Message("user", "", tuple(shown(images)))
        request = Request(prompt="filters/glimpse", digest="", messages=(message,),
                          variables={"asked": asked, "pictures": len(images)})  # fmt: skip
        replies = rankings([2, 2, 2], forced=False).read(sight.RULES["filters/glimpse"](request))
        return [ranking[0] if ranking else None for ranking, _ in replies]

    half = plain("red")
    half[:, : WIDTH // 2] = RGB["green"]
    assert guesses([half]) == [0, None, None]
    assert guesses([half, plain("blue"), plain("grey")])[1] == 1
    assert guesses([plain("red"), plain("green"), plain("blue")])[1] == 0
    assert len(guesses([plain("grey")])) == 3


def test_what_was_measured_is_named_as_evidence() -> None:
    jpegs = shown(colours("green", "red", "blue"))
    parsed = look_form(2).read(reply(AFTER, (BLUE, GREEN), jpegs, times=[10.0, 13.0, 16.0]))
    assert parsed.choice == 0
    for time in (13.0, 16.0):
        assert any(span.start <= time <= span.end for span in parsed.evidence)


def test_frames_of_earlier_turns_count() -> None:
    """The same frames, all at once or in two turns that are not in their order in the video."""
    jpegs, times = shown(colours("green", "red", "blue")), [0.0, 3.0, 6.0]
    at_once = reply(AFTER, (BLUE, GREEN), jpegs, times=times)
    assert reply(AFTER, (BLUE, GREEN), jpegs, times=times, earlier=times[2:]) == at_once
    alone = look_form(2).read(reply(AFTER, (BLUE, GREEN), jpegs[2:], times=times[2:]))
    assert alone.choice == "cannot"


@pytest.mark.parametrize("noise", range(3))
def test_grain_and_compression_change_nothing(noise: int) -> None:
    rng = np.random.default_rng(noise)
    images = [image.astype(int) for image in colours("green", "red", "blue")]
    grainy = [np.clip(p + rng.normal(0, 18, p.shape), 0, 255).astype(np.uint8) for p in images]
    assert look(AFTER, (GREEN, BLUE), grainy, times=[0, 3, 6]) == BLUE


@pytest.mark.parametrize(
    "question",
    [
        "Why does the woman leave the room?",
        "Which of these happens next after a woman opens a door?",
        "Which of these is so next after a woman opens a door?",
        "Who is seen when much of the picture is clearly red?",
        "",
    ],
)
def test_a_question_that_cannot_be_measured_is_refused(question: str) -> None:
    with pytest.raises(BadRow, match="cannot measure"):
        look(question, (RED, GREEN), colours("red", "green"))


def test_words_are_read_from_the_frames() -> None:
    pytest.importorskip("rapidocr")
    images = [card("HARBOUR", "OLD TOWN"), card("MARKET SQUARE"), card("RAILWAY")]
    words = [f"the words “{text}”" for text in ("HARBOUR", "MARKET SQUARE", "RAILWAY", "CASTLE")]
    after = f"Which of these is seen next after {words[0]} can be seen?"
    times = [0.0, 3.0, 6.0]
    assert look(after, words[1:], images, times=times) == words[1]
    assert look(after, words[1:], images[::-1], times=times) == "cannot"
    assert look(after, words[1:], images[:1], times=times[:1]) == "cannot"
    order = f"In which order are these seen? {'; '.join(words[:3])}"
    options = ["; ".join((words[2], words[0], words[1])), "; ".join(words[:3])]
    assert look(order, options, images, times=times) == options[1]
    said = f"Which of these is said while {words[1]} can be seen?"
    assert look(said, SAID, images, times=times, lines=LINES) == SAID[1]


def test_the_verifier_knows_every_form_of_the_rules() -> None:
    """A question of an unknown form would never be verified."""
    words = ("EGGS", "FLOUR", "MILK", "HONEY", "SALT", "YEAST", "SUGAR", "BUTTER", "RICE")
    facts = [("view", f"the words “{word}”", [n]) for n, word in enumerate(words)]
    facts += [("view", "a large red area", [1, 2, 5])]
    table = table_of(facts, [0] * len(words))
    known = set[str]()
    for stem in (s for form in DEFAULT_FORMS.values() for s in form.stems(table, Random(0))):
        matches = [one.text for one, _ in DECIDERS if one.read(stem.question) is not None]
        assert matches, stem.question
        known.update(matches)
        quarter = "quarter" in stem.question  # has no phrase as its answer
        assert quarter or phrases_of(stem.question, stem.answer), stem.question
    assert len(known) >= 3
