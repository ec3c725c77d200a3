"""Guesses at sets: one request a set, members that fail together, an exact test against chance."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.prompts import Prompts
from mustsee.questions.chance import matching_chances
from mustsee.records import SET, Line, Question, Span, Verdict, Video
from mustsee.text import LETTERS
from mustsee.verify.filters import QuestionFilter, VettingContext
from mustsee.verify.guess.counts import beats_chance
from mustsee.verify.guess.filters import SetGuess
from mustsee.verify.vetting import vet
from tests.support.verifier import Stills

ANSWERS = ("a man opens a door", "a dog runs", "a cup falls", "a car stops", "a bell rings")


def members(group: str = "g0", count: int = 5) -> list[Question]:
    """The questions of a set; the answer to question n is number n of the list."""
    return [
        Question(
            question_id=f"{group}-{n}", video_id="v", recipe="facts", question_type="Other",
            question=f"What happens after thing {n} of {group}?", group=group, relation=SET,
            options=ANSWERS[n:] + ANSWERS[:n], answer_index=0, answer=ANSWERS[n],
        )
        for n in range(count)
    ]  # fmt: skip


@dataclass
class Knowing:
    """A guesser that gives the questions `right` their answers, and the others wrong ones;
    `reply`: what it writes instead.
    """

    right: Sequence[str] = ()
    reply: str | None = None
    identity: str = "guesser"
    requests: list[Request] = field(default_factory=list[Request])

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        if self.reply is not None:
            return Reply(text=self.reply, model="guesser")
        asked, answers = request.variables["asked"], list(request.variables["answers"])
        truth = {q.question: q for q in itertools.chain(members("g0"), members("g1"))}
        known = {q: truth[q].answer for q in asked if truth[q].question_id in self.right}
        open_questions = [q for q in asked if q not in known]
        left = [truth[q].answer for q in open_questions]
        known |= dict(zip(open_questions, left[1:] + left[:1], strict=True))
        lines = [f"QUESTION {n}: {LETTERS[answers.index(known[q])]} | so"
                 for n, q in enumerate(asked, 1)]  # fmt: skip
        return Reply(text="\n".join(lines), model="guesser")


def vetted(
    questions: Sequence[Question],
    llm: Knowing,
    *filters: QuestionFilter,
    lines: tuple[Line, ...] = (),
) -> list[Question]:
    video = Video(video_id="v", uri="v", questions=tuple(questions), lines=lines)
    asker = Asker(llm=llm, prompts=Prompts())
    vetting = VettingContext(askers={"guesser": asker}, video_frames=Stills(video))
    done = asyncio.run(vet(video, filters or (SetGuess(name="match"),), vetting, "mma"))
    return list(done.questions or ())


@pytest.mark.parametrize(("right", "passes"), [(0, True), (2, True), (3, False), (5, False)])
def test_a_set_fails_as_a_whole_if_too_many_are_matched(right: int, passes: bool) -> None:
    llm = Knowing([f"g0-{n}" for n in range(right)])
    done = vetted([*members("g0"), *members("g1")], llm)
    assert len(llm.requests) == 2
    first, second = done[:5], done[5:]
    assert [q.subsets for q in first] == [("mma",) if passes else ()] * 5
    assert [q.subsets for q in second] == [("mma",)] * 5
    assert {q.metrics["match_right"] for q in first} == {right}
    assert {q.metrics["match_passed"] for q in first} == {float(passes)}
    assert [q.verdicts[0].correct for q in first] == [n < right for n in range(5)]
    assert [q.verdicts[0].reply == q.answer for q in first] == [n < right for n in range(5)]
    assert all(q.drop is None for q in done)


def test_a_set_of_which_all_are_matched_never_passes() -> None:
    done = vetted(members(count=2), Knowing(["g0-0", "g0-1"]))
    assert [q.metrics["match_passed"] for q in done] == [0, 0]
    assert vetted(members(count=2), Knowing())[0].metrics["match_passed"] == 1


def test_a_set_that_does_not_pass_can_be_dropped() -> None:
    llm = Knowing([q.question_id for q in members()])
    done = vetted(members(), llm, SetGuess(name="match", drops=True))
    assert {q.drop for q in done} == {"match: 5 of the 5 questions of its set are matched right"}


def test_the_list_is_shown_once_in_an_order_that_tells_nothing() -> None:
    llm = Knowing()
    vetted([*members("g0"), *members("g1")], llm)
    for request in llm.requests:
        shown = [ANSWERS.index(answer) for answer in request.variables["answers"]]
        asked = [int(text.split(" thing ")[1][0]) for text in request.variables["asked"]]
        assert sorted(shown) == sorted(asked) == list(range(5))
        assert shown != asked
        assert all(request.messages[-1].text.count(answer) == 1 for answer in ANSWERS)


def test_single_questions_are_passed_over() -> None:
    llm = Knowing()
    alone = [members("g0")[0], members("g1")[1]]
    assert [q.verdicts for q in vetted(alone, llm)] == [(), ()]
    assert llm.requests == []


def test_an_unparseable_matching_leaves_its_set_unverified() -> None:
    done = vetted(members(), Knowing(reply="I cannot say."))
    assert all(q.unverified_by == ("match",) and q.subsets == () for q in done)
    assert all(q.drop is None and q.verdicts[0].correct is None for q in done)


def test_the_transcript_is_shown_where_there_is_one() -> None:
    heard = SetGuess(name="match_asr", transcript=True)
    silent, speaking = Knowing(), Knowing()
    assert vetted(members(), silent, heard)[0].verdicts == ()
    assert silent.requests == []
    line = Line(start=1.0, end=2.0, text="Mind the dog.")
    done = vetted(members(), speaking, heard, lines=(line,))
    assert done[0].verdicts[0].filter == "match_asr"
    assert "Mind the dog." in speaking.requests[0].messages[-1].text


@given(st.integers(1, 6))
def test_the_chances_of_matchings_are_those_of_all_permutations(count: int) -> None:
    rights = [
        sum(n == place for n, place in enumerate(order))
        for order in itertools.permutations(range(count))
    ]
    expected = [rights.count(n) / math.factorial(count) for n in range(count + 1)]
    assert matching_chances(count) == pytest.approx(expected)


@given(st.lists(st.integers(2, 4), min_size=1, max_size=2), st.data())
def test_the_test_against_chance_is_exact(counts: list[int], data: st.DataObject) -> None:
    sets = [(data.draw(st.sampled_from([n for n in range(k + 1) if n != k - 1])), k)
            for k in counts]  # fmt: skip
    right = sum(hits for hits, _ in sets)
    totals = [
        sum(sum(n == place for n, place in enumerate(order)) for order in orders)
        for orders in itertools.product(*(itertools.permutations(range(k)) for k in counts))
    ]
    expected = sum(total >= right for total in totals) / len(totals)
    assert beats_chance(sets) == pytest.approx(expected)


def test_many_sets_a_little_above_chance_are_not_chance() -> None:
    assert beats_chance([(1, 5)] * 40) > 0.4
    assert beats_chance([(2, 5)] * 20 + [(1, 5)] * 20) < 0.01


@dataclass
class Slow(Knowing):
    """A guesser that replies a moment later, and counts its pending requests."""

    pending: int = 0
    most_pending: int = 0

    async def complete(self, request: Request) -> Reply:
        self.pending += 1
        self.most_pending = max(self.pending, self.most_pending)
        await asyncio.sleep(0)
        self.pending -= 1
        return await super().complete(request)


@pytest.mark.parametrize(("drops", "at_once"), [(False, 2), (True, 1)])
def test_guesses_run_at_once_unless_one_may_drop_what_the_next_asks(
    drops: bool, at_once: int
) -> None:
    llm = Slow(["g0-0", "g0-1"])
    first, second = SetGuess(name="first", drops=drops), SetGuess(name="second", most=1)
    done = vetted(members(), llm, first, second)
    assert llm.most_pending == at_once
    for question in done:
        assert [v.filter for v in question.verdicts] == ["first", "second"]
        assert (question.metrics["first_passed"], question.metrics["second_passed"]) == (1, 0)
        assert question.subsets == ()


LOOKED_AT = Span(3.0, 4.0)


@dataclass
class WaitingGuesser(Knowing):
    """A guesser that replies once all others of `together` wait, too."""

    together: asyncio.Barrier = field(kw_only=True)

    async def complete(self, request: Request) -> Reply:
        await asyncio.wait_for(self.together.wait(), 2)
        return await super().complete(request)


@dataclass(frozen=True)
class WaitingLook:
    """A look that ends once all others of `together` wait, too. It corrects the evidence, and drops
    the question `wrong`.
    """

    together: asyncio.Barrier
    wrong: str
    name: str = "sight"
    roles: tuple[str, ...] = ("verifier",)
    prompts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        await asyncio.wait_for(self.together.wait(), 2)
        verdict = Verdict(filter=self.name, model="verifier", seed=0, prompt="")
        is_right = question.question_id != self.wrong
        return replace(
            question,
            evidence=(LOOKED_AT,),
            verdicts=(*question.verdicts, verdict),
            metrics={**question.metrics, "sight_passed": float(is_right)},
            drop=None if is_right else "sight: disputed",
        )


def test_the_first_look_runs_beside_guesses_and_keeps_what_it_changes() -> None:
    llm = WaitingGuesser(["g0-0", "g0-1"], together=asyncio.Barrier(1 + 5))
    look = WaitingLook(llm.together, wrong="g0-2")
    done = vetted(members(), llm, SetGuess(name="match", most=1), look)
    assert [[v.filter for v in q.verdicts] for q in done] == [["match", "sight"]] * 5
    assert [q.evidence for q in done] == [(LOOKED_AT,)] * 5
    assert [q.drop for q in done] == [None, None, "sight: disputed", None, None]
    assert [q.metrics["match_passed"] for q in done] == [0] * 5
    assert [q.metrics["sight_passed"] for q in done] == [1, 1, 0, 1, 1]


def test_a_metric_of_an_earlier_run_does_not_replace_that_of_a_guess_at_the_same_time() -> None:
    earlier = {"first_passed": 0.0, "second_passed": 0.0}
    questions = [replace(q, metrics=earlier) for q in members()]
    first, second = SetGuess(name="first"), SetGuess(name="second")
    for question in vetted(questions, Knowing(), first, second):
        assert (question.metrics["first_passed"], question.metrics["second_passed"]) == (1, 1)
