"""Spare questions: those guessed from their words are left out, and only as many as are wanted are
looked at.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.stages.vet import Vet
from mustsee.calls.llm import Llm, Request
from mustsee.records import RULES, WHEN, Point, Provenance, Question, Span, Video
from mustsee.text import LETTERS
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import VettingContext, mark_unverified
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.sight import Sight
from mustsee.verify.vetting import SPARE, vet
from tests.support import coloured, verifier
from tests.support.bench import Bench
from tests.support.verifier import ScriptedVerifier

WRITER = Provenance(llm="openai m", prompts="")
BY_RULES = Provenance(llm=f"{RULES} 1", prompts="")


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A filter that marks or drops the questions of these ids; `asked`: all that it was asked."""

    name: str
    fails: Sequence[str] = ()
    unverified: Sequence[str] = ()
    drops: bool = False
    roles: tuple[str, ...] = ("guesser",)
    prompts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        self.asked.append(question.question_id)
        if question.question_id in self.unverified:
            return mark_unverified(question, self.name)
        failed = question.question_id in self.fails
        metrics = {**question.metrics, f"{self.name}_passed": float(not failed)}
        drop = f"{self.name}: no" if failed and self.drops else None
        return replace(question, metrics=metrics, drop=drop)


@dataclass(frozen=True)
class Rewrites:
    """Writes a new version, whose id ends with a "+"; `asked`: what it was asked to repair."""

    rounds: int = 1
    asked: list[str] = field(default_factory=list[str])

    async def __call__(
        self, question: Question, video: Video, vetting: VettingContext, failed_filter: str
    ) -> Question:
        self.asked.append(question.question_id)
        again = f"{question.question_id}+"
        return replace(question, question_id=again, metrics={}, verdicts=(), drop=None)


def asked_of(
    count: int, by: Mapping[int, Provenance | None] | None = None, **changes: object
) -> list[Question]:
    """Return questions q0, q1, ..., by a model unless `by` names another writer."""
    base = Question(
        question_id="", video_id="v", recipe="r", question="Who?", question_type="Other",
        options=("a", "b"), answer_index=0, answer="a", provenance=WRITER,
    )  # fmt: skip
    base = replace(base, **changes)  # type: ignore[arg-type]
    by = by or {}
    return [replace(base, question_id=f"q{n}", provenance=by.get(n, WRITER)) for n in range(count)]


def run(
    questions: Sequence[Question], *filters: Filter, spare: float, repair: Rewrites | None = None
) -> list[Question]:
    video = Video(video_id="v", uri="", questions=tuple(questions))
    vetting = VettingContext(askers={}, video_frames=VideoFrames(video))
    return list(asyncio.run(vet(video, filters, vetting, "mma", repair, spare)).questions or ())


def filters(
    guessed: Sequence[str] = (), wrong: Sequence[str] = (), drops: bool = True
) -> tuple[Filter, Filter]:
    looks = Filter(name="sight", fails=wrong, drops=drops, roles=("verifier",))
    return Filter(name="blind", fails=guessed), looks


def kept(done: Sequence[Question]) -> list[str]:
    return [q.question_id for q in done if q.drop is None]


def test_guessed_questions_are_left_out_and_not_repaired_while_others_pass() -> None:
    blind, sight = filters(guessed=("q0", "q3"))
    repair = Rewrites()
    done = run(asked_of(6), blind, sight, spare=2.0, repair=repair)
    assert blind.asked == [f"q{n}" for n in range(6)]
    assert sight.asked == kept(done) == ["q1", "q2", "q4"]
    assert repair.asked == []
    assert [q.drop for q in done if q.drop] == [
        f"{SPARE}: it did not pass blind, and enough others passed",
        f"{SPARE}: it did not pass blind, and enough others passed",
        f"{SPARE}: enough others passed",
    ]
    assert [q.subsets for q in done] == [("mma",) if q.drop is None else () for q in done]


def test_questions_with_points_have_sat_their_exam_and_join_the_subset() -> None:
    deep, dropped = (
        verifier.question(
            question_id=name, options=(), answer_index=None, points=(Point(text="It is so."),),
            drop=drop, subsets=("full",),
        )
        for name, drop in (("deep", None), ("dropped", "exam: too little"))
    )  # fmt: skip
    each = Filter(name="blind")
    video = verifier.row(verifier.question(), deep, dropped)
    context = VettingContext(askers={}, video_frames=VideoFrames(video))
    done = asyncio.run(vet(video, [each], context, "mma")).questions or ()
    assert each.asked == [verifier.question().question_id]
    subsets = {q.question_id: q.subsets for q in done}
    assert subsets["deep"] == ("full", "mma")
    assert subsets["dropped"] == ("full",)


def test_questions_that_ask_when_are_proved_and_join_the_subset() -> None:
    when = verifier.question(
        question_id="when", options=(), answer_index=None, answer="1.0 to 2.0 s", form=WHEN,
        evidence=(Span(1.0, 2.0),), subsets=("full", "when"),
    )  # fmt: skip
    each = Filter(name="blind")
    video = verifier.row(verifier.question(), when)
    context = VettingContext(askers={}, video_frames=VideoFrames(video))
    done = asyncio.run(vet(video, [each], context, "mma")).questions or ()
    assert each.asked == [verifier.question().question_id]
    assert replace(when, subsets=("full", "when", "mma")) in done


def test_others_take_the_place_of_what_the_looks_drop() -> None:
    blind, sight = filters(guessed=("q0",), wrong=("q1", "q3"))
    done = run(asked_of(6), blind, sight, spare=3.0)
    assert sight.asked == ["q1", "q2", "q3", "q4"]
    assert kept(done) == ["q2", "q4"]
    assert [q.drop for q in done if q.drop and q.drop.startswith("sight")] == ["sight: no"] * 2


def test_guessed_questions_are_repaired_when_too_few_pass() -> None:
    blind, sight = filters(guessed=("q0", "q1", "q2"))
    repair = Rewrites()
    done = run(asked_of(4), blind, sight, spare=2.0, repair=repair)
    assert repair.asked == ["q0"]  # one passes, two are wanted
    assert kept(done) == ["q0+", "q3"]
    assert sight.asked == ["q3", "q0+"]


def test_what_text_filters_drop_is_not_called_spare() -> None:
    done = run(asked_of(4), Filter(name="giveaways", fails=("q3",), drops=True), *filters(),
               spare=2.0)  # fmt: skip
    assert [q.drop for q in done] == [None, None, f"{SPARE}: enough others passed", "giveaways: no"]


def test_an_unverified_question_does_not_count_as_passed() -> None:
    blind = Filter(name="blind", unverified=("q0",))
    done = run(asked_of(4), blind, filters()[1], spare=2.0)
    assert kept(done) == ["q0", "q1", "q2"]
    assert [q.subsets for q in done if q.drop is None] == [(), ("mma",), ("mma",)]


@pytest.mark.parametrize("writer", [None, BY_RULES])
def test_questions_of_rules_or_of_unknown_writers_are_all_looked_at(
    writer: Provenance | None,
) -> None:
    blind, sight = filters(guessed=("q1",))
    done = run(asked_of(6, dict.fromkeys(range(6), writer)), blind, sight, spare=2.0)
    assert sorted(sight.asked) == [f"q{n}" for n in range(6)] == kept(done)
    one = filters()
    run(asked_of(6, {4: writer}), *one, spare=2.0)
    assert len(one[1].asked) == 6


def test_dropped_questions_are_neither_wanted_nor_tried() -> None:
    """A second run on the result leaves out what the first one left out."""
    made = asked_of(6)
    made[0] = replace(made[0], drop="check: an empty text")
    blind, sight = filters()
    done = run(made, blind, sight, spare=2.5)
    assert kept(done) == ["q1", "q2"]
    assert done[0] == made[0]
    blind, sight = filters()
    again = run(done, blind, sight, spare=1.0)
    assert blind.asked == sight.asked == ["q1", "q2"]
    assert [q.drop for q in again] == [q.drop for q in done]


class Guesses(ScriptedVerifier):
    """A verifier that sees red, and a guesser that knows the colour of the first kites."""

    def open(self) -> Llm:
        return self

    def known(self, request: Request) -> str:
        options = list(request.variables["options"])
        known = any(f"kite {n}?" in request.variables["question"] for n in range(2))
        first = options.index("red" if known else "blue")
        ranked = [first, *(n for n in range(len(options)) if n != first)]
        return f"* ANSWER: {' > '.join(LETTERS[n] for n in ranked)}\n* EXPLANATION: so"


def test_a_second_run_of_the_stage_calls_no_model(tmp_path: Path) -> None:
    llm = Guesses({"red": [Span(4.0, 8.0)]})
    llm.guess = llm.known
    blind = BlindGuess(name="blind", prompt="filters/blind", drops=False)
    part = Vet(filters={"blind": blind, "sight": Sight()}, guesser=llm, verifier=llm,
               subset="mma", spare=3.0)  # fmt: skip
    made = tuple(
        verifier.question(question_id=f"q{n}", question=f"Which colour has kite {n}?",
                          provenance=WRITER, evidence=(Span(5.0, 7.0),))
        for n in range(6)
    )  # fmt: skip
    asked_row = coloured.row(coloured.coloured(tmp_path / "v.mp4"), questions=made)
    (first,) = Bench(tmp_path / "store").run(part, asked_row)
    calls = len(llm.asked)
    assert len(llm.looks) == 4  # two questions, two looks each
    questions = first.questions or ()
    assert [q.question_id for q in questions if "mma" in q.subsets] == ["q2", "q3"]
    assert sum((q.drop or "").startswith(SPARE) for q in questions) == 4
    assert Bench(tmp_path / "store").run(part, asked_row) == [first]
    assert len(llm.asked) == calls


ids = st.lists(st.integers(0, 11).map("q{}".format), max_size=12)


@given(st.integers(0, 12), st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0]), ids, ids)
def test_as_many_pass_as_are_wanted_if_there_are_as_many(
    count: int, spare: float, guessed: list[str], wrong: list[str]
) -> None:
    blind, sight = filters(guessed, wrong)
    done = run(asked_of(count), blind, sight, spare=spare)
    assert [q.question_id for q in done] == [f"q{n}" for n in range(count)]
    wanted = math.ceil(count / spare)
    good = [q.question_id for q in done if q.question_id not in {*guessed, *wrong}]
    passed = [q.question_id for q in done if "mma" in q.subsets]
    assert {*passed} <= {*good}
    assert len(passed) == min(wanted, len(good))
    assert len({*sight.asked}) == len(sight.asked)
    left_out = [q for q in done if (q.drop or "").startswith(SPARE)]
    assert not left_out or len(passed) == wanted
    assert not {q.question_id for q in left_out} & {*sight.asked}
    if wanted <= len(good):
        assert spare == 1.0 or not {*guessed} & {*sight.asked} or len(good) == wanted
