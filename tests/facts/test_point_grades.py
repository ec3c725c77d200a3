"""Several answers are graded in one request by a grader that does not know whose they are."""

from __future__ import annotations

import asyncio

import pytest

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import BadRow
from mustsee.facts.point_grades import PROMPT, answers_grade_form, grade_answers, read_letters
from mustsee.judge.points import PointsGrade
from mustsee.prompts import Prompts
from mustsee.records import Point

POINTS = (Point(text="The cook hides the key.", weight=3), Point(text="The boy finds it."))
WRONG = ("The boy hides the key.",)
SAID = {"alone": "The dog ate it.", "in_view": "The boy finds it.", "seeing": "Cook hides it."}


class Grader:
    """Finds the words of each statement in the answers."""

    identity = "model"

    def __init__(self, reply: str = "") -> None:
        self.requests: list[Request] = []
        self.reply = reply

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        answers = dict(zip("ABC", request.variables["answers"], strict=False))

        def by(words: str) -> str:
            return ", ".join(x for x, text in answers.items() if words in text) or "NONE"

        text = (
            f"POINT 1: {by('Cook')} | {by('dog')} | The dog ate the key.\n"
            f"POINT 2: {by('finds')} | NONE |\nSTATEMENT 1: {by('Cook')}"
        )
        return Reply(text=self.reply or text, model="model")


def grade(grader: Grader, said: dict[str, str] = SAID, seed: int = 0) -> dict[str, PointsGrade]:
    asker = Asker(llm=grader, prompts=Prompts(), tries=1)
    return asyncio.run(grade_answers("Where is it?", said, POINTS, WRONG, asker, seed=seed))


@pytest.mark.parametrize("seed", range(6))
def test_each_answer_gets_its_own_verdicts_in_whatever_order_it_is_shown(seed: int) -> None:
    grades = grade(Grader(), seed=seed)
    assert {name: one.verdicts for name, one in grades.items()} == {
        "alone": (-1, 0), "in_view": (0, 1), "seeing": (1, 0)
    }  # fmt: skip
    assert {name: one.asserted for name, one in grades.items()} == {
        "alone": (False,), "in_view": (False,), "seeing": (True,)
    }  # fmt: skip
    assert grades["alone"].words == ("The dog ate the key.", "")
    assert grades["seeing"].words == ("", "")
    assert (grades["seeing"].reached_weight, grades["seeing"].total_weight) == (3, 4)


def test_nothing_tells_the_grader_whose_answers_they_are() -> None:
    orders = set[tuple[str, ...]]()
    for seed in range(12):
        grader = Grader()
        grade(grader, seed=seed)
        (request,) = grader.requests
        orders.add(request.variables["answers"])
        text = " ".join(message.text for message in request.messages)
        assert not any(name in text for name in ("in_view", "seeing", "blind"))
    assert len(orders) > 3


def test_an_empty_answer_states_nothing_and_is_not_shown() -> None:
    grader = Grader()
    grades = grade(grader, {**SAID, "alone": " ... "})
    assert grades["alone"].verdicts == (0, 0)
    assert len(grader.requests[0].variables["answers"]) == 2
    nobody = Grader()
    assert grade(nobody, {"alone": ""})["alone"].asserted == (False,)
    assert nobody.requests == []


@pytest.mark.parametrize(
    "reply",
    [
        "POINT 1: A | A | x\nPOINT 2: NONE | NONE |\nSTATEMENT 1: NONE",
        "POINT 1: D | NONE |\nPOINT 2: NONE | NONE |\nSTATEMENT 1: NONE",
        "POINT 1: all of them | NONE |\nPOINT 2: NONE | NONE |\nSTATEMENT 1: NONE",
        "POINT 1: A | NONE |\nSTATEMENT 1: NONE",
        "POINT 1: A | NONE |\nPOINT 2: NONE | NONE |",
        "POINT 1: A\nPOINT 2: NONE | NONE |\nSTATEMENT 1: NONE",
    ],
)
def test_grades_that_are_incomplete_or_of_nobody_are_refused(reply: str) -> None:
    with pytest.raises(BadRow, match=PROMPT):
        grade(Grader(reply))


@pytest.mark.parametrize(
    ("text", "places"),
    [("A", {0}), ("a, c", {0, 2}), ("A and C.", {0, 2}), ("Answers A, B", {0, 1}), ("NONE", set()),
     ("none.", set()), ("", set()), ("A/B/C", {0, 1, 2}), ("(B)", {1})],
)  # fmt: skip
def test_letters_are_read_in_several_forms(text: str, places: set[int]) -> None:
    assert read_letters(text, 3, "point 1") == places


def test_a_reply_as_json_is_read_alike() -> None:
    form = answers_grade_form(3, 1, 0)
    by_lines = form.read("POINT 1: B | C | it falls")
    by_json = form.read(
        '{"point": [{"number": 1, "stated_by": "B", "contradicted_by": "C", "words": "it falls"}]}'
    )
    assert by_lines == by_json
