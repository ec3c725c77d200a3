"""Facts by rules: only what is certain is listed, seen or ruled out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mustsee.calls.llm import Message, Request
from mustsee.facts.extract import Window, facts_form, make_fact
from mustsee.facts.look import NOT_SEEN, SEEN, UNSURE, verdicts_form
from mustsee.facts.table import VIEW, find_touched
from mustsee.offline import facts, filters
from mustsee.offline.facts_phrases import STATES, VIEWS, resembles
from mustsee.questions.orders import has_known_place, naturalness
from mustsee.records import Fact, Span
from mustsee.text import length
from mustsee.verify.guess.ask import matching_form, rankings
from tests.offline.test_sight import BLUE, BRIGHT, DARK, GREEN, RED, WIDTH, card, plain, shown

RED_AREA, BLUE_AREA = "a large red area", "a large blue area"
MOMENTS = (Span(0.0, 6.0), Span(6.0, 12.0), Span(12.0, 18.0))


def ask(prompt: str, images: Sequence[np.ndarray] = (), **variables: Any) -> str:
    message = Message("user", "", tuple(shown(images)))
    rules = {**facts.RULES, **filters.RULES}
    return rules[prompt](
        Request(prompt=prompt, digest="", messages=(message,), variables=variables)
    )


def listed(
    images: Sequence[np.ndarray],
    times: Sequence[float],
    most: int = 9,
) -> dict[str, tuple[Span, ...]]:
    window = Window(span=Span(0.0, 18.0), moments=MOMENTS)
    reply = ask("facts/extract", images, window=window, frames=tuple(times), most=most)
    return {fact.phrase: fact.spans for fact in facts_form(window.span, [VIEW], most).read(reply)}


def test_states_are_listed_at_the_moments_that_show_them() -> None:
    found = listed([plain("red"), plain("red"), plain("blue")], [1.0, 5.9, 13.0])
    assert set(found) == {RED_AREA, BLUE_AREA}
    assert find_touched(found[RED_AREA], MOMENTS) == [0]  # not the moment that begins 0.1 s later
    assert find_touched(found[BLUE_AREA], MOMENTS) == [2]
    again = listed([plain(c) for c in ("red", "grey", "red")], [1.0, 7.0, 13.0])
    assert find_touched(again[RED_AREA], MOMENTS) == [0, 2]


def test_doubtful_states_are_not_listed() -> None:
    assert listed([plain("between"), plain("grey")], [1.0, 7.0]) == {}
    assert listed([], []) == {}


def test_areas_are_listed_where_the_opposite_one_differs() -> None:
    left = plain("grey")
    left[:, : WIDTH // 2] = plain("red")[:, : WIDTH // 2]
    area = "a red left half of the picture"
    assert area in listed([left, plain("grey")], [1.0, 7.0])
    assert area not in listed([left, plain("red")], [1.0, 7.0])


def test_bars_are_listed_where_they_are_not_everywhere() -> None:
    barred = plain("green")
    barred[:20], barred[-20:] = 0, 0
    phrase = "black bars above and below the picture"
    assert phrase in listed([barred, plain("green")], [1.0, 7.0])
    assert phrase not in listed([barred, barred], [1.0, 7.0])


def test_no_more_facts_are_listed_than_are_asked_for() -> None:
    assert len(listed([plain("red"), plain("blue")], [1.0, 7.0], most=1)) == 1


def test_phrases_have_the_form_of_their_kind() -> None:
    assert all(3 <= length(phrase) <= 9 and phrase[0].islower() for phrase in (*STATES, *VIEWS))
    assert set(VIEWS.values()) == set(STATES)


def fact(phrase: str, kind: str = VIEW) -> Fact:
    return make_fact(kind, phrase, [Span(0.0, 1.0)], "m")


def verdicts(
    facts_shown: Sequence[Fact],
    images: Sequence[np.ndarray],
    times: Sequence[float] | None = None,
    span: Span = MOMENTS[0],
) -> list[str]:
    times = times or [1.0 + n for n in range(len(images))]
    reply = ask("facts/look", images, phrases=tuple(facts_shown), frames=tuple(times), span=span)
    return list(verdicts_form(len(facts_shown)).read(reply))


def test_a_state_is_seen_or_not_or_doubtful() -> None:
    assert verdicts([fact(RED_AREA), fact(BLUE_AREA)], [plain("red")]) == [SEEN, NOT_SEEN]
    states = [fact(phrase) for phrase in (RED, GREEN, DARK, BRIGHT)]
    assert verdicts(states, [plain("red")] * 2) == [SEEN, NOT_SEEN, UNSURE, NOT_SEEN]
    assert verdicts([fact(DARK)], [plain("white")]) == [NOT_SEEN]
    assert verdicts(states[2:], [plain("green")]) == [UNSURE, NOT_SEEN]
    assert verdicts(states, [plain("red"), plain("black")])[:3] == [SEEN, NOT_SEEN, SEEN]
    assert verdicts([fact(BLUE)], [plain("red"), plain("between")]) == [UNSURE]
    assert verdicts(states, []) == [UNSURE] * 4


@pytest.mark.parametrize(
    ("rgb", "colour", "expected"),
    [((176, 228, 214), "green", UNSURE), ((70, 181, 170), "green", UNSURE),
     ((70, 181, 170), "blue", UNSURE), ((205, 190, 225), "purple", UNSURE),
     ((70, 181, 170), "red", NOT_SEEN), ((250, 170, 145), "green", NOT_SEEN),
     ((58, 36, 35), "brown", UNSURE)],
)  # fmt: skip
def test_what_may_be_called_a_colour_leaves_it_open(
    rgb: tuple[int, int, int], colour: str, expected: str
) -> None:
    image = plain("grey")
    image[:] = rgb
    assert verdicts([fact(f"a large {colour} area")], [image]) == [expected]


def test_a_picture_is_bright_only_if_it_is_far_brighter_than_grey() -> None:
    images = [np.full_like(plain("grey"), light) for light in (120, 175, 200)]
    assert [verdicts([fact(BRIGHT)], [image]) for image in images] == [
        [NOT_SEEN], [UNSURE], [SEEN]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lights", "expected"),
    [((200, 100), SEEN), ((150, 110), UNSURE), ((110, 100), NOT_SEEN), ((25, 5), UNSURE),
     ((100, 200), NOT_SEEN)],
)  # fmt: skip
def test_a_half_is_far_brighter_or_not_or_stands_out_a_little(
    lights: tuple[int, int], expected: str
) -> None:
    image = plain("grey")
    image[:, : WIDTH // 2], image[:, WIDTH // 2 :] = lights
    phrase = "a left half far brighter than the rest"
    assert verdicts([fact(phrase)], [image]) == [expected]
    assert (phrase in listed([image, plain("grey")], [1.0, 7.0])) == (expected == SEEN)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.15, 0.2, 0.3, 0.6, 1.0])
def test_a_share_between_two_bounds_is_doubtful(share: float) -> None:
    image = plain("grey")
    image[:, : round(WIDTH * share)] = plain("blue")[:, : round(WIDTH * share)]
    expected = SEEN if share >= 0.25 else NOT_SEEN if share <= 0.05 else UNSURE
    assert verdicts([fact(BLUE)], [image]) == [expected]


def test_a_pale_colour_is_doubtful() -> None:
    pale = plain("grey")
    pale[:] = (209, 196, 232)
    assert verdicts([fact("a large purple area")], [pale]) == [UNSURE]


def test_frames_beside_the_moment_are_not_judged() -> None:
    frames = [plain("grey"), plain("red")]
    assert verdicts([fact(RED)], frames, [5.0, 6.4]) == [NOT_SEEN]
    assert verdicts([fact(RED)], frames, [5.0, 5.98]) == [NOT_SEEN]  # at the edge
    assert verdicts([fact(RED)], frames, [5.0, 5.9]) == [SEEN]
    assert verdicts([fact(RED)], frames[:1], [5.0]) == [NOT_SEEN]


@pytest.mark.parametrize(
    ("phrase", "kind"),
    [
        ("a woman opens a door", "event"),
        ("the jug is half empty", "state"),
        ("“We begin with eggs.”", "line"),
        ("the words “EGGS”", "sound"),
    ],
)
def test_a_phrase_that_cannot_be_measured_is_unsure(phrase: str, kind: str) -> None:
    assert verdicts([fact(phrase, kind)], [plain("red")]) == [UNSURE]


def test_texts_are_seen_missing_or_doubtful() -> None:
    pytest.importorskip("rapidocr")
    image = card("HARBOUR FRONT", "OLD TOWN")
    texts = [
        fact(f"the words “{text}”", "text")
        for text in ("HARBOUR FRONT", "OLD TOWN", "RAILWAY", "HARBOUR FROST", "HARBOUR")
    ]
    found = verdicts(texts, [image])
    assert found[:3] == [SEEN, SEEN, NOT_SEEN]
    assert found[3] in (SEEN, UNSURE)  # another reading of nearly the same letters
    assert verdicts(texts[:3], [plain("grey")]) == [NOT_SEEN] * 3
    assert verdicts(texts[:1], [plain("grey"), image]) == [SEEN]


def test_of_many_frames_half_are_read_and_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from mustsee.offline import looking

    read: list[bytes] = []
    monkeypatch.setattr(looking, "read", lambda jpegs: [read.append(j) or () for j in jpegs])
    frames = [np.full((90, 160, 3), 10 * n, np.uint8) for n in range(12)]
    assert verdicts(
        [fact("the words “EGGS”", "text")], frames, [0.4 + 0.45 * n for n in range(12)]
    ) == [NOT_SEEN]
    jpegs = shown(frames)
    assert {jpegs[0], jpegs[-1]} <= set(read)
    assert len(set(read)) == 7


def test_letters_that_cannot_be_read_rule_out_no_text_of_their_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mustsee.offline import looking
    from mustsee.offline.looking import ReadText

    unread = (ReadText(text="8O88B", top=0.1, ratio=3.0),)
    monkeypatch.setattr(looking, "read", lambda jpegs: [unread for _ in jpegs])
    short, own, long = (
        fact(f"the words “{text}”", "text") for text in ("EGGS", "8O88B", "EGGS FROM THE FARM")
    )
    assert verdicts([short, own, long], [plain("grey")]) == [UNSURE, UNSURE, NOT_SEEN]


@pytest.mark.parametrize(
    ("text", "reading", "yes"),
    [
        ("HARBOUR", "HARB0UR", True),
        ("HARBOUR", "THE OLD HARBOUR OF THE TOWN", True),
        ("THE OLD HARBOUR", "HARBOUR", True),
        ("HARBOUR", "RAILWAY", False),
        ("EGGS FROM THE FARM", "200 GRAMS", False),
    ],
)
def test_a_reading_that_may_be_of_a_text(text: str, reading: str, *, yes: bool) -> None:
    assert resembles(text, reading) is yes


QUESTIONS = ("What is seen when the red boat sails?", "What is seen when the dog barks?")
ANSWERS = ("a dog in a garden", "a red boat at sea", "a man on a chair")


def test_answers_are_ranked_by_wording() -> None:
    asked = [{"question": question, "options": ANSWERS} for question in QUESTIONS]
    reply = ask("facts/rank", asked=asked)
    first, second = (ranking[0] for ranking in rankings([3, 3]).read(reply))
    assert (first[0], second[0]) == (1, 0)
    assert sorted(first) == sorted(second) == [0, 1, 2]


@pytest.mark.parametrize("transcript", [None, "[0.0-2.0] The dog barks in a garden."])
def test_questions_are_matched_with_answers(transcript: str | None) -> None:
    asked = (*QUESTIONS, "Who sits?")
    reply = ask("filters/match", asked=asked, answers=ANSWERS, transcript=transcript)
    assert matching_form(3).read(reply) == (1, 0, 2)


def test_known_sequences_are_guessed() -> None:
    after = "Which of these is seen next after the words “SPRING” can be seen?"
    seasons = [f"the words “{text}”" for text in ("WINTER", "SUMMER", "AUTUMN", "THE POND")]
    for seed in range(8):
        assert int(filters.giveaway(after, seasons, seed).argmax()) == 1
        before = after.replace("next after", "last before").replace("SPRING", "WINTER")
        assert int(filters.giveaway(before, seasons[1:], seed).argmax()) == 1
    said = "Which words are seen while this is said: “Enjoy your breakfast.”?"
    assert naturalness(said, "the words “GOODBYE”") == 1 > naturalness(said, "the words “MILK”")
    order = "In which order are these seen? STEP 2; STEP 3; STEP 1"
    assert naturalness(order, "STEP 1; STEP 2; STEP 3") == 1
    assert naturalness(order, "STEP 3; STEP 2; STEP 1") == -1
    assert naturalness(order, "MILK; EGGS; FLOUR") == 0


def test_texts_with_a_known_place() -> None:
    seasons = ["SPRING", "SUMMER", "THE POND"]
    assert [has_known_place(text, seasons) for text in seasons] == [True, True, False]
    assert not has_known_place("SPRING", ["SPRING", "THE POND"])
    assert has_known_place("GOODBYE", ["GOODBYE"])


@pytest.mark.parametrize("seed", range(3))
def test_spans_lie_within_their_moments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = sorted(rng.uniform(0, 18, 12).round(3).tolist())
    names = rng.choice(["red", "blue", "grey", "white"], 12)
    for spans in listed([plain(name) for name in names], times, most=40).values():
        assert all(one.end <= other.start for one, other in pairwise(spans))
        for span in spans:
            assert any(m.start - 0.06 <= span.start and span.end <= m.end + 0.06 for m in MOMENTS)
