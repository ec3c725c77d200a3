"""Giveaways in options: each guess, with and without a clear margin."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.questions.drafts import Draft
from mustsee.questions.orders import build_options
from mustsee.records import Question, Video
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import QuestionFilter, VettingContext
from mustsee.verify.giveaways import Giveaways, most_crowded_share
from mustsee.verify.vetting import vet

VIDEO = Video(video_id="v", uri="v")
VETTING = VettingContext(askers={}, video_frames=VideoFrames(VIDEO))
FAIR = ("Up the ladder", "Into a drawer", "Under the bed", "Behind the shed", "Over a fence")
ALIKE = ("A red cup", "A red plate", "A blue cup", "A green cup", "A red knife")


def make_question(options: tuple[str, ...], question: str = "Where is the cat put?") -> Question:
    """The right answer is the first option."""
    return Question(
        question_id="q",
        video_id="v",
        recipe="r",
        question=question,
        question_type="Other",
        options=options,
        answer_index=0,
        answer=options[0],
    )


def judged(question: Question, filter_: Giveaways | None = None) -> Question:
    return asyncio.run((filter_ or Giveaways())(question, VIDEO, VETTING))


@pytest.mark.parametrize(
    ("question", "options", "guess"),
    [
        ("Where is the cat put?", FAIR, None),
        ("What falls?", ALIKE, "alike"),
        ("What falls?", (*ALIKE[1:], ALIKE[0]), None),
        ("Why?", ("Because of the rain that came in at dusk", *FAIR[1:]), "longest"),
        ("Why?", ("Because of the cold", *FAIR[1:]), None),
        ("Why?", ("Rain", *FAIR[1:]), "shortest"),
        ("Why is the cat on a ladder?", FAIR, "echo"),
        ("Why is the cat on a ladder and in a drawer?", FAIR, None),
    ],
)
def test_each_giveaway_is_recognised(
    question: str, options: tuple[str, ...], guess: str | None
) -> None:
    done = judged(make_question(options, question))
    assert done.metrics["giveaways_passed"] == (guess is None)
    assert done.drop is None
    (verdict,) = done.verdicts
    assert verdict.passed is (guess is None)
    if guess is None:
        assert not verdict.reply
    else:
        assert done.metrics[f"giveaway_{guess}"] == 1
        assert verdict.reply
        off = judged(make_question(options, question), Giveaways(**{guess: None}))  # type: ignore[arg-type]
        assert off.metrics["giveaways_passed"] == 1
        assert off.metrics[f"giveaway_{guess}"] == 1


def test_margins_are_settings() -> None:
    four = make_question(("Because of the cold", *FAIR[1:]))
    assert judged(four).metrics["giveaway_longest"] == 1
    assert judged(four).metrics["giveaways_passed"] == 1
    assert judged(four, Giveaways(longest=1.3)).metrics["giveaways_passed"] == 0
    for wrong in ({"longest": 0.5}, {"alike": -1.0}, {"echo": 0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            Giveaways(**wrong)  # type: ignore[arg-type]


ORDER = "In what order are these shown: the pan; the bowl; the cup; the jug?"
AROUND = (  # each wrong order is the right one with two neighbours changed
    "the bowl; the pan; the cup; the jug",
    "the pan; the bowl; the cup; the jug",
    "the bowl; the cup; the pan; the jug",
    "the bowl; the pan; the jug; the cup",
    "the jug; the pan; the cup; the bowl",
)
EVEN = (
    "the bowl; the pan; the cup; the jug",
    "the pan; the bowl; the jug; the cup",
    "the cup; the jug; the bowl; the pan",
    "the jug; the cup; the pan; the bowl",
    "the pan; the cup; the bowl; the jug",
)


def test_orders_similar_to_the_right_one_give_it_away() -> None:
    done = judged(make_question(AROUND, ORDER))
    assert done.metrics["giveaway_alike"] == 1
    assert done.metrics["giveaways_passed"] == 0
    assert done.metrics["giveaway_places"] == 0.6


def test_orders_with_each_thing_in_every_position_pass() -> None:
    done = judged(make_question(EVEN, ORDER))
    assert done.metrics["giveaways_passed"] == 1
    assert done.metrics["giveaway_places"] == 0.4
    assert most_crowded_share(EVEN[:4]) == 0.25


NEIGHBOURS = (  # the second is most like the others in places, the first in places and neighbours
    "the bowl; the pan; the cup; the jug",
    "the bowl; the pan; the jug; the cup",
    "the bowl; the jug; the pan; the cup",
    "the pan; the cup; the jug; the bowl",
    "the cup; the jug; the bowl; the pan",
)


def test_orders_with_the_neighbours_of_the_right_one_give_it_away() -> None:
    done = judged(make_question(NEIGHBOURS, ORDER))
    assert done.metrics["giveaway_alike"] == 1
    assert done.metrics["giveaways_passed"] == 0


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_orders_made_by_code_pass(size: int) -> None:
    things = ("the bowl", "the big pan", "a cup", "the jug", "a lid", "an egg")[:size]
    made = build_options(Draft(question=ORDER.split(":")[0] + "?", answer="; ".join(things)))
    done = judged(make_question((made.answer, *made.decoys), made.question))
    assert done.metrics["giveaways_passed"] == 1
    assert done.metrics["giveaway_alike"] == 0
    assert done.metrics["giveaway_places"] == pytest.approx(1 / size)


def test_all_combinations_pass_whatever_the_length_of_their_parts() -> None:
    answer, wrong = "a long red scarf; a very old hat", ("a long red scarf; boots", "gloves; boots")
    made = build_options(Draft(question="What does she wear?", answer=answer, decoys=wrong))
    options = (made.answer, *made.decoys)
    assert len(options) == 4
    assert judged(make_question(options)).metrics["giveaway_alike"] == 0
    lopsided = (answer, "a long red scarf; boots", "gloves; a very old hat", "boots; an egg")
    assert judged(make_question(lopsided)).metrics["giveaway_alike"] == 1


def test_giveaways_can_mark_or_drop_questions() -> None:
    assert isinstance(Giveaways(), QuestionFilter)
    video = replace(VIDEO, questions=(make_question(ALIKE), make_question(FAIR)))
    soft = asyncio.run(vet(video, (Giveaways(),), VETTING, subset="mma")).questions or ()
    assert [(q.drop, q.subsets) for q in soft] == [(None, ()), (None, ("mma",))]
    hard = asyncio.run(vet(video, (Giveaways(drops=True),), VETTING)).questions or ()
    assert [(q.drop or "").split(":")[0] for q in hard] == ["giveaways", ""]


def test_echoes_are_checked_in_english_only() -> None:
    question = make_question(("Auf der Leiter", *FAIR[1:]), "Wo ist die Katze auf der Leiter?")
    assert judged(question).metrics["giveaways_passed"] == 0
    assert judged(question, Giveaways(language="German")).metrics["giveaways_passed"] == 1


@pytest.mark.parametrize(
    ("longest", "short"),
    [
        ("因为黄昏时分突然下起了一场很大的雨", "在梯子上"),
        ("بسبب المطر الذي هطل عند الغروب فجأة", "على السلم"),
    ],
)
def test_lengths_are_compared_in_any_script(longest: str, short: str) -> None:
    done = judged(make_question((longest, short + "。", short, short + "!", short + "?"), "?"))
    assert done.metrics["giveaway_longest"] == 1


def test_open_ended_questions_are_not_checked() -> None:
    question = replace(make_question(FAIR), options=(), answer_index=None)
    assert judged(question) == question


@given(st.lists(st.text(min_size=1, max_size=30), min_size=2, max_size=6), st.text(max_size=40))
def test_any_options_are_judged(options: list[str], question: str) -> None:
    done = judged(make_question(tuple(options), question))
    assert done.metrics["giveaways_passed"] in (0, 1)
    guesses = ("alike", "longest", "shortest", "echo")
    assert all(done.metrics[f"giveaway_{g}"] in (0, 1) for g in guesses)
