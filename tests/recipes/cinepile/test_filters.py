"""CinePile's measures: degenerate, vision and hardness."""

import asyncio
from dataclasses import replace

import pytest

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.prompts import Prompts
from mustsee.recipes.cinepile.filters import GUESSERS, Degenerate, Fits, Hardness, Vision
from mustsee.records import Question, Video
from mustsee.text import LETTERS
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import QuestionFilter, VettingContext


class Says:
    """Chooses the option at a given place of the question, or writes an unparseable reply."""

    def __init__(self, option: str | None) -> None:
        self.identity, self.option = "says", option

    async def complete(self, request: Request) -> Reply:
        if self.option is None:
            return Reply(text="No idea.", model="says")
        return Reply(text=LETTERS[request.variables["options"].index(self.option)], model="says")


def asker(option: str | None) -> Asker:
    return Asker(llm=Says(option), prompts=Prompts(), tries=1)


CLIP = Video(video_id="v", uri="")
ONE = Question(
    question_id="q", video_id="v", recipe="cinepile", question="Which?", question_type="Temporal",
    options=("a", "b", "c", "d", "e"), answer_index=2, answer="c",
)  # fmt: skip


def run(measure: QuestionFilter, question: Question, askers: dict[str, Asker]) -> Question:
    vetting = VettingContext(askers=askers, video_frames=VideoFrames(CLIP))
    return asyncio.run(measure(question, CLIP, vetting))


@pytest.mark.parametrize(
    ("guesses", "split", "is_degenerate", "dropped"),
    [
        (("c", "c", "c"), "test", 1.0, True),
        (("c", "c", "c"), "train", 1.0, False),
        (("c", "c", "b"), "test", 0.0, False),
        (("b", "c", None), "test", 0.0, False),
        (("c", "c", None), "test", None, False),  # the third might have been wrong
        ((None, None, None), "test", None, False),
    ],
)
def test_a_question_that_all_three_guess_is_degenerate(
    guesses: tuple[str | None, ...], split: str, is_degenerate: float | None, dropped: bool
) -> None:
    askers = dict(zip(GUESSERS, map(asker, guesses), strict=True))
    judged = run(Degenerate(), replace(ONE, subsets=(split,)), askers)
    assert judged.metrics.get("degenerate") == is_degenerate
    assert judged.unverified_by == (("degenerate",) if is_degenerate is None else ())
    assert (judged.drop is not None) == dropped
    assert [v.correct for v in judged.verdicts] == [
        None if g is None else g == "c" for g in guesses
    ]


def test_vision_and_hardness_are_zero_if_the_model_is_right() -> None:
    for option, value in (("c", 0.0), ("a", 1.0)):
        with_vision = run(Vision(), ONE, {"reader": asker(option)})
        hard = run(Hardness(), ONE, {"reader": asker(option)})
        assert (with_vision.metrics["vision_reliance"], hard.metrics["hardness"]) == (value, value)
        assert ("hard" in hard.subsets) == bool(value)
    silent = {"reader": asker(None)}
    assert "vision_reliance" not in run(Vision(), ONE, silent).metrics
    assert "hardness" not in run(Hardness(), ONE, silent).metrics


class Words:
    """Gives the same reply to every request."""

    identity = "words"

    def __init__(self, text: str) -> None:
        self.text = text

    async def complete(self, request: Request) -> Reply:
        return Reply(text=self.text, model="words")


def fit(reply: str, split: str = "test", **given: bool) -> Question:
    reader = Asker(llm=Words(reply), prompts=Prompts(), tries=1)
    return run(Fits(**given), replace(ONE, subsets=(split,)), {"reader": reader})


@pytest.mark.parametrize(
    ("reply", "passed", "drop"),
    [
        ("WHY: x\nFITS: C\nSPEAKER: NONE", 1.0, None),
        ("WHY: x\nFITS: C, D\nSPEAKER: TOLD", 0.0, "fits: D fits as well as the answer"),
        ("**FITS:** C\n**SPEAKER:** OPEN", 0.0, "fits: the scene does not name the speaker"),
        ("FITS: A\nSPEAKER: NONE", 1.0, None),  # an error of the answer is for hardness and sight
        ('{"why": "x", "fits": ["C", "A"], "speaker": "none"}', 0.0,
         "fits: A fits as well as the answer"),
        ("FITS: NONE\nSPEAKER: NONE", 1.0, None),
    ],
)  # fmt: skip
def test_two_fitting_options_and_unnamed_speakers_are_dropped(
    reply: str, passed: float, drop: str | None
) -> None:
    judged = fit(reply)
    assert (judged.metrics["fits_passed"], judged.drop) == (passed, drop)
    assert judged.verdicts[-1].passed == bool(passed)


def test_train_keeps_ambiguous_questions_by_default() -> None:
    two = "WHY: x\nFITS: C, D\nSPEAKER: NONE"
    assert (fit(two, "train").drop, fit(two, "train").metrics["fits_passed"]) == (None, 0.0)
    assert fit(two, "train", train=True).drop == "fits: D fits as well as the answer"
    assert fit("FITS: C\nSPEAKER: OPEN", "train").drop is not None


def test_a_question_with_an_unparseable_reply_is_unverified() -> None:
    for reply in ("It is C.", "FITS: C", "FITS: J\nSPEAKER: NONE", "FITS: some\nSPEAKER: NONE"):
        assert fit(reply).unverified_by == ("fits",)
