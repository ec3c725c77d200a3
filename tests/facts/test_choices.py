"""Questions whose options are claims: read back, and guessed by two readers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mustsee.calls.llm import Request
from mustsee.errors import Transient, UserError
from mustsee.facts.choices import (
    CHOICE_EXAMS,
    CHOICE_LISTS,
    GUESSED_CHOICES,
    NOT_READ,
    ask_choices,
    free_claims,
)
from mustsee.facts.points import Statement
from mustsee.facts.settings import ChoiceRules
from mustsee.records import Point, Question, Span
from tests.facts.test_deep import Model, counter

CLAIMS = tuple(
    Statement(
        text=f"The thing {n} falls because the man came to the door {'again ' * (n == 11)}.",
        facts=(f"c{n}", f"f{n}", f"f{n + 20}"),
        spans=(Span(10.0 * n, 10.0 * n + 20), Span(10.0 * n + 60, 10.0 * n + 80)),
    )
    for n in range(12)
)
LISTED = (
    "QUESTION 1: C1 | C2, C3, C4 | Why does the first fall?\n"
    "QUESTION 2: C5 | C6, C7, C8 | Why does the fifth fall?"
)


def right_letter(request: Request, place: int) -> str:
    """The letter of the claim that a question of the list asks for."""
    one = request.variables["asked"][place]
    text = CLAIMS[0 if "first" in one["question"] else 4].text
    return "ABCD"[one["options"].index(text)]


def read(request: Request) -> str:
    lines: list[str] = []
    for n, _ in enumerate(request.variables["asked"]):
        letter = right_letter(request, n)
        lines.append(f"QUESTION {n + 1}: {letter} | {', '.join(x for x in 'ABCD' if x != letter)}")
    return "\n".join(lines)


def guess(knows: Callable[[Request, str], bool]) -> Callable[[Request], str]:
    def reply(request: Request) -> str:
        lines: list[str] = []
        for n, one in enumerate(request.variables["asked"]):
            letter = right_letter(request, n)
            others = [x for x in "ABCD" if x != letter]
            order = [letter, *others] if knows(request, one["question"]) else [*others, letter]
            lines.append(f"QUESTION {n + 1}: {' > '.join(order)} | so")
        return "\n".join(lines)

    return reply


NOBODY = guess(lambda request, question: False)


def ask(
    *, first: Any = NOBODY, second: Any = NOBODY, reader: Any = read, listed: str = LISTED,
    count: int = 2, rules: ChoiceRules | None = None,
) -> tuple[tuple[Question, ...], Counter[str], dict[str, Model]]:  # fmt: skip
    models = {
        "writer": Model({"facts/choices": lambda request: listed}),
        "first": Model({"facts/rank": first, "facts/read_back": reader}),
        "second": Model({"facts/rank": second}),
    }
    counts, work = counter(models["first"].asker())
    roles = replace(work.roles, writer=models["writer"].asker(), guesser_2=models["second"].asker())
    done = ask_choices(replace(work, roles=roles), CLAIMS, rules or ChoiceRules(), count)
    return asyncio.run(done), counts, models


def test_all_options_are_claims_and_the_right_one_is_marked() -> None:
    questions, _, models = ask()
    assert [q.question for q in questions] == [
        "Why does the first fall?", "Why does the fifth fall?"
    ]  # fmt: skip
    texts = {claim.text for claim in CLAIMS}
    for question, claim in zip(questions, (CLAIMS[0], CLAIMS[4]), strict=True):
        assert set(question.options) <= texts
        assert len(set(question.options)) == 4
        assert question.answer_index is not None
        assert question.options[question.answer_index] == question.answer == claim.text
        assert question.evidence == claim.spans
        assert question.metrics["reach_seconds"] == 40
        assert not question.points
    assert models["writer"].requests[0].variables["count"] == 12, "six times as many"
    assert not models["first"].of("facts/rank")[0].messages[-1].images
    (notes,) = models["first"].of("facts/read_back")
    assert {fact.phrase for fact in notes.variables["facts"]} == {c.text for c in CLAIMS[:8]}


@pytest.mark.parametrize("who", ["first", "second"])
def test_what_either_guesser_knows_gets_other_options_twice_and_then_goes(who: str) -> None:
    knows = guess(lambda request, question: "fifth" in question)
    questions, counts, models = ask(**{who: knows})
    assert [q.question for q in questions] == ["Why does the first fall?"]
    assert counts[GUESSED_CHOICES] == 1
    offered = [
        one["options"]
        for request in models[who].of("facts/rank")
        for one in request.variables["asked"]
        if "fifth" in one["question"]
    ]
    assert len(offered) == 3
    wrong = [set(options) - {CLAIMS[4].text} for options in offered]
    assert wrong[0].isdisjoint(wrong[1])
    assert wrong[1].isdisjoint(wrong[2])


def test_a_question_that_is_not_known_with_other_options_stays() -> None:
    def knows(request: Request, question: str) -> bool:
        return "first" in question and request.seed == 0

    questions, counts, _ = ask(first=guess(knows))
    again = next(q for q in questions if "first" in q.question)
    assert not set(again.options) & {c.text for c in CLAIMS[1:4]}
    assert counts[GUESSED_CHOICES] == 0


def test_a_question_with_a_second_answer_or_none_is_left_out() -> None:
    def two(request: Request) -> str:
        lines = read(request).splitlines()
        lines[0] = "QUESTION 1: A, B | C, D"
        return "\n".join(lines)

    questions, counts, _ = ask(reader=two)
    assert [q.question for q in questions] == ["Why does the fifth fall?"]
    assert counts[NOT_READ] == 1


def test_options_that_stand_out_by_their_length_are_not_used() -> None:
    short = replace(CLAIMS[1], text="It falls.")
    claims = (CLAIMS[0], short, *CLAIMS[2:])
    model = Model(
        {"facts/choices": lambda r: LISTED, "facts/read_back": read, "facts/rank": NOBODY}
    )
    done = ask_choices(counter(model.asker())[1], claims, ChoiceRules(), 2)
    assert [q.question for q in asyncio.run(done)] == ["Why does the fifth fall?"]


def test_few_are_wanted_and_each_has_its_own_answer() -> None:
    assert len(ask(count=1)[0]) == 1
    assert ask(count=0)[0] == ()
    twice = LISTED + "\nQUESTION 3: C1 | C9, C10, C11 | Why does the first thing fall?"
    assert len(ask(listed=twice, count=9)[0]) == 2
    assert ask(rules=ChoiceRules(options=8), listed="NONE")[0] == ()


@pytest.mark.parametrize(
    "listed",
    ["QUESTION 1: C1 | C2, C3 | Why?", "QUESTION 1: C1, C2 | C3, C4, C5 | Why?",
     "QUESTION 1: C1 | C1, C2, C3 | Why?", "QUESTION 1: C99 | C2, C3, C4 | Why?",
     "QUESTION 1: C1 | C2, C3, C4 | Tell me.", "I see."],
)  # fmt: skip
def test_a_list_of_another_form_is_counted_and_gives_no_question(listed: str) -> None:
    questions, counts, _ = ask(listed=listed)
    assert questions == ()
    assert counts[CHOICE_LISTS] == 1


def test_an_exam_that_cannot_be_read_lets_nothing_pass() -> None:
    questions, counts, _ = ask(second=lambda request: "No.")
    assert questions == ()
    assert counts[CHOICE_EXAMS] > 0

    def lost(request: Request) -> str:
        raise Transient("lost")

    with pytest.raises(Transient):
        ask(first=lost)


def test_no_option_is_a_point_of_an_open_question_that_is_asked() -> None:
    def asked(number: int, drop: str | None = None) -> Question:
        return Question(
            question_id=f"o{number}", video_id="v", recipe="facts", question="?",
            question_type="Other", points=(Point(text="It.", facts=CLAIMS[number].facts),),
            drop=drop,
        )  # fmt: skip

    free = free_claims(CLAIMS, [asked(0), asked(3), asked(5, "exam: too few")])
    assert [claim.facts[0] for claim in free] == [f"c{n}" for n in range(12) if n not in (0, 3)]


@pytest.mark.parametrize(
    "values", [{"share": 1.5}, {"options": 2}, {"options": 9}, {"drafts": 0.5}, {"longest": 0.9}]
)
def test_rules_of_another_form_are_refused(values: dict[str, float]) -> None:
    given: dict[str, Any] = dict(values)
    with pytest.raises(UserError, match=r"ask\.settings\.deep\.choices"):
        ChoiceRules(**given)
