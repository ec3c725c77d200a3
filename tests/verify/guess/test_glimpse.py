"""Guesses from one frame and from shuffled frames: many questions in one request, marks, forms."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import BadRow, UserError
from mustsee.prompts import Prompts
from mustsee.records import Question
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.filters import QuestionFilter, VettingContext
from mustsee.verify.guess.filters import BlindGuess, Glimpse
from mustsee.verify.sight import Sight
from mustsee.verify.vetting import vet
from tests.support.verifier import SECONDS, Stills, question, row

SHUFFLED = Condition(condition="shuffled", frames=8)


@dataclass
class Ranks:
    """A verifier that ranks the option `first` of each question first."""

    first: str = "red"
    reply: str | None = None
    identity: str = "verifier"
    requests: list[Request] = field(default_factory=list[Request])

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        lines: list[str] = []
        for n, asked in enumerate(request.variables["asked"], 1):
            options = list(asked["options"])
            best = options.index(self.first)
            order = [best, *(i for i in range(len(options)) if i != best)]
            lines.append(f"QUESTION {n}: {' > '.join(LETTERS[i] for i in order)} | it shows")
        return Reply(text=self.reply or "\n".join(lines), model="verifier")


def vetted(
    questions: Sequence[Question],
    llm: Ranks,
    *filters: QuestionFilter,
    frames: type[Stills] = Stills,
) -> list[Question]:
    video = row(*questions)
    asker = Asker(llm=llm, prompts=Prompts())
    vetting = VettingContext(askers={"verifier": asker}, video_frames=frames(video))
    return list(asyncio.run(vet(video, filters, vetting, "mma")).questions or ())


def some(count: int, **changes: object) -> list[Question]:
    return [question(question_id=f"q{n}", question=f"Which colour is kite {n}?", **changes)
            for n in range(count)]  # fmt: skip


def test_one_frame_from_the_middle_serves_ten_questions() -> None:
    llm = Ranks()
    done = vetted(some(20), llm, Glimpse(name="one_frame"))
    assert [len(r.variables["asked"]) for r in llm.requests] == [10, 10]
    (image,) = llm.requests[0].messages[-1].images
    assert float(image) == SECONDS / 2
    assert f"{SECONDS / 2:.0f}" not in llm.requests[0].messages[-1].text
    assert all(q.metrics["one_frame_passed"] == 0 and q.subsets == () for q in done)
    assert all(q.drop is None and q.verdicts[0].correct for q in done)


def test_behind_a_filter_that_looks_for_each_question_one_frame_still_serves_ten() -> None:
    llm = Ranks()
    glimpse = Glimpse(name="one_frame")
    done = vetted(some(20), llm, Sight(sample=0.0, least=0), glimpse)
    assert [len(r.variables["asked"]) for r in llm.requests] == [10, 10]
    assert done == vetted(some(20), Ranks(), glimpse)


def test_what_it_gets_wrong_passes() -> None:
    (done,) = vetted(some(1), Ranks("blue"), Glimpse(name="one_frame"))
    assert (done.metrics["one_frame_passed"], done.subsets) == (1, ("mma",))
    assert done.verdicts[0].correct is False


def test_what_the_pictures_do_not_tell_passes_without_a_guess() -> None:
    llm = Ranks(reply="QUESTION 1: NONE | the kite is not shown")
    (done,) = vetted(some(1), llm, Glimpse(name="one_frame"))
    assert (done.metrics["one_frame_passed"], done.metrics["one_frame_guessed"]) == (1, 0)
    assert done.verdicts[0].correct is False
    assert "NONE" in (done.verdicts[0].reply or "")


def test_drops_says_from_how_much() -> None:
    (done,) = vetted(some(1), Ranks(), Glimpse(name="one_frame", drops=True))
    assert done.drop == "one_frame: right from 1 frame"


def test_shuffled_frames_are_asked_for_forms_of_order_and_shown_without_times() -> None:
    llm = Ranks()
    asked = [question(question_id="a", form="order"), question(question_id="b", form="where")]
    glimpse = Glimpse(name="shuffled", sees=SHUFFLED, forms=["order", "after"])
    ordered, other = vetted(asked, llm, glimpse)
    (request,) = llm.requests
    times = [float(image) for image in request.messages[-1].images]
    assert len(times) == 8 == len(set(times))
    assert times != sorted(times)
    assert not any(f"{time:.1f}" in request.messages[-1].text for time in times)
    assert (ordered.metrics["shuffled_passed"], ordered.subsets) == (0, ())
    assert ("shuffled_passed" in other.metrics, other.subsets) == (False, ("mma",))


class Missing(Stills):
    async def jpegs(self, times: Sequence[float], see: Condition) -> tuple[bytes, ...]:
        raise BadRow("no such video")


@pytest.mark.parametrize(("frames", "reply"), [(Missing, None), (Stills, "It is a kite.")])
def test_without_frames_or_a_reply_questions_are_unverified(
    frames: type[Stills], reply: str | None
) -> None:
    done = vetted(some(2), Ranks(reply=reply), Glimpse(name="one_frame"), frames=frames)
    assert all(q.unverified_by == ("one_frame",) and q.drop is None for q in done)
    assert all(q.subsets == () for q in done)


@pytest.mark.parametrize("condition", ["whole", "evidence", "blind"])
def test_only_conditions_that_show_too_little_are_taken(condition: str) -> None:
    with pytest.raises(UserError, match="one_frame, frames, shuffled"):
        Glimpse(name="g", sees=Condition(condition=condition, frames=4))  # type: ignore[arg-type]


class Counting:
    """Answers every prompt of guesses wrong, in the way of `wrong`, and counts the requests."""

    identity = "guesser"

    def __init__(self, right: dict[int, Sequence[str]]) -> None:
        self.right, self.requests = right, list[Request]()

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        lines: list[str] = []
        for n, asked in enumerate(request.variables["asked"], 1):
            options = list(asked["options"])
            known = asked["question"] in self.right.get(request.seed, ())
            best = options.index("red" if known else "blue")
            order = [best, *(i for i in range(len(options)) if i != best)]
            lines.append(f"QUESTION {n}: {' > '.join(LETTERS[i] for i in order)} | so")
        return Reply(text="\n".join(lines), model="guesser")


def test_each_run_asks_many_questions_together_in_other_orders() -> None:
    questions = some(4)
    texts = [q.question for q in questions]
    llm = Counting({0: texts[:2], 1: texts[:1] + texts[3:], 2: texts[3:]})
    filter_ = BlindGuess(
        name="blind", prompt="filters/blind", runs=3, min_failures=2, together=10, drops=False
    )
    asker = Asker(llm=llm, prompts=Prompts())  # type: ignore[arg-type]
    video = row(*questions)
    vetting = VettingContext(askers={"guesser": asker}, video_frames=Stills(video))
    done = asyncio.run(vet(video, (filter_,), vetting, "mma")).questions or ()
    # q0 is right twice, q2 wrong twice; q1 and q3 need a third run.
    assert [[v.correct for v in q.verdicts] for q in done] == [
        [True, True], [True, False, False], [False, False], [False, True, True],
    ]  # fmt: skip
    assert [len(r.variables["asked"]) for r in llm.requests] == [4, 4, 2]
    assert [q.metrics["blind_passed"] for q in done] == [0, 1, 1, 0]
    first, second = (r.variables["asked"] for r in llm.requests[:2])
    assert [a["options"] for a in first] != [b["options"] for b in second]
    assert [v.seed for v in done[1].verdicts] == [0, 1, 2]
    assert [q.metrics["blind_agreement"] for q in done] == pytest.approx([1, 1 / 3, 1, 1 / 3])


def test_a_sample_is_a_share_that_ids_decide() -> None:
    questions = some(400)
    video = row(*questions)
    drawn, more = (
        {q.question_id for q in questions if Sight(sample=share).draws(q, video)}
        for share in (0.1, 0.3)
    )
    assert 20 <= len(drawn) <= 60
    assert drawn < more


@pytest.mark.parametrize("least", [0, 1, 2])
def test_a_sample_has_at_least_some_of_each_video(least: int) -> None:
    video = row(*some(5))
    drawn = [q for q in video.questions or () if Sight(sample=0.0, least=least).draws(q, video)]
    assert len(drawn) == least


def test_what_is_not_drawn_passes_unasked() -> None:
    class Never:
        identity = "verifier"

        async def complete(self, request: Request) -> Reply:
            raise AssertionError("it was asked")

    asker = Asker(llm=Never(), prompts=Prompts())
    video = row(*some(3))
    vetting = VettingContext(askers={"verifier": asker}, video_frames=Stills(video))
    none = Sight(sample=0.0, least=0)
    done = asyncio.run(vet(video, (none,), vetting, "mma")).questions or ()
    assert [(q.subsets, q.metrics, q.verdicts) for q in done] == [(("mma",), {}, ())] * 3
