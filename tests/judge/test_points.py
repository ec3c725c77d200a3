"""Grades by points: the arithmetic, what is asked of the grader, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import BadRow, Unparsed
from mustsee.judge.points import PointsGrade, counted_points, grade_form, grade_statements
from mustsee.prompts import Prompts
from mustsee.records import COUNTED, GIVEN, UNREACHED
from tests.support.every_prompt import DEEP

grades = st.integers(1, 8).flatmap(
    lambda n: st.builds(
        PointsGrade,
        weights=st.tuples(*[st.integers(1, 3)] * n),
        verdicts=st.tuples(*[st.sampled_from((-1, 0, 1))] * n),
        asserted=st.lists(st.booleans(), max_size=4).map(tuple),
    )
)


@given(grades)
def test_a_score_is_a_share_that_no_wrong_statement_raises(grade: PointsGrade) -> None:
    assert 0 <= grade.score <= grade.reached_weight / grade.total_weight <= 1
    assert replace(grade, asserted=(*grade.asserted, True)).score <= grade.score
    silent = replace(grade, verdicts=tuple(max(v, 0) for v in grade.verdicts), asserted=())
    assert grade.score <= silent.score == silent.reached_weight / silent.total_weight


def test_points_count_by_weight_and_wrong_statements_cost() -> None:
    grade = PointsGrade(weights=(3, 2, 1, 2), verdicts=(1, 1, 0, -1), asserted=(False, True))
    assert (grade.reached_weight, grade.lost_weight, grade.total_weight) == (5, 3, 8)
    assert grade.score == 2 / 8
    assert replace(grade, asserted=()).score == 3 / 8
    assert replace(grade, verdicts=(0, 0, 1, -1)).score == 0


def test_without_points_there_is_no_score_to_reach() -> None:
    assert PointsGrade(weights=(), verdicts=()).score == 0


class Grader:
    """Replies with one text; remembers the requests."""

    identity = "grader"

    def __init__(self, text: str) -> None:
        self.text, self.requests = text, list[Request]()

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(text=self.text, model="grader")


def grade(model: Grader, answer: str, states: Sequence[str] = (COUNTED,) * 3) -> PointsGrade:
    asker = Asker(llm=model, prompts=Prompts(), tries=1)
    points = tuple(replace(p, state=s) for p, s in zip(DEEP.points, states, strict=True))
    counted = counted_points(replace(DEEP, points=points))
    return asyncio.run(grade_statements(DEEP.question, answer, counted, DEEP.contradictions, asker))


def test_only_points_that_count_are_graded_all_in_one_call() -> None:
    model = Grader("POINT 1: Entailed | so\nSTATEMENT 2: **No** |\nSTATEMENT 1: yes | she does")
    graded = grade(model, "She opens the box.", (GIVEN, COUNTED, UNREACHED))
    assert graded == PointsGrade(weights=(1,), verdicts=(1,), asserted=(True, False))
    (request,) = model.requests
    text = request.messages[-1].text
    assert DEEP.points[1].text in text
    assert DEEP.points[0].text not in text
    assert "She opens the box." in text


@pytest.mark.parametrize("answer", ["", " \n", "..."])
def test_an_empty_answer_reaches_nothing_without_a_call(answer: str) -> None:
    model = Grader("")
    assert (grade(model, answer).reached_weight, model.requests) == (0, [])


@pytest.mark.parametrize(
    "reply",
    [
        "POINT 1: ENTAILED | so",
        "POINT 1: ENTAILED | so\nPOINT 2: MAYBE | so\nSTATEMENT 1: NO",
        "POINT 1: ENTAILED | a\nPOINT 1: ABSENT | a\nPOINT 2: ABSENT | a\nSTATEMENT 1: NO",
        "POINT 1: ENTAILED | so\nPOINT 2: ABSENT | so",
        "POINT 1: ENTAILED or ABSENT | so\nPOINT 2: ABSENT | so\nSTATEMENT 1: NO",
        "The answer is right.",
    ],
)
def test_a_reply_that_does_not_answer_each_number_once_is_refused(reply: str) -> None:
    with pytest.raises(Unparsed):
        grade_form(2, 1).read(reply)
    with pytest.raises(BadRow, match="facts/grade"):
        grade(Grader(reply), "It is opened.")
