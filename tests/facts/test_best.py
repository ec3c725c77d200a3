"""Of more open questions than are wanted, an editor says which are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mustsee.calls.llm import Request
from mustsee.facts.deep import SPARE
from mustsee.facts.edit import ORDERS
from mustsee.facts.settings import PointRules
from tests.facts.test_deep import SETTINGS, Model, Reply, Story, run_story


def ask_one_of_two(best: Reply, more: Mapping[str, Reply] | None = None) -> Any:
    """Return the questions, the counts and the model of a run that wants one and has two."""
    assert SETTINGS.deep is not None
    points = PointRules(spare=2.0)
    deep = replace(SETTINGS.deep, questions=1, least_questions=1, points=points)
    story = Story()

    def of_goal(request: Request) -> str:
        return story.questions(request).replace("cause", "goal")

    replies = {**story.model().replies, "facts/questions": of_goal, "facts/best": best}
    model = Model({**replies, **(more or {})})
    questions, counts = run_story(story, replace(SETTINGS, mix={"goal": 1}, deep=deep), model)
    return questions, counts, model


@pytest.mark.parametrize("first", [1, 2])
def test_as_many_open_questions_are_asked_as_are_wanted(first: int) -> None:
    """Both are of the one skill that is wanted once; the one that an editor would publish second is
    left out as one too many.
    """

    def best(request: Request) -> str:
        assert request.variables["number"] == 1
        return f"BEST 1: {first}, {3 - first}"

    questions, counts, model = ask_one_of_two(best)
    (request,) = model.of("facts/best")
    asked = [question.question for question in request.variables["asked"]]
    assert [q.question for q in questions if q.drop is None] == [asked[first - 1]]
    assert [q.question for q in questions if q.drop == SPARE] == [asked[2 - first]]
    wanted = model.of("facts/questions")[0].variables["wanted"]
    assert [(skill.name, skill.count) for skill in wanted] == [("goal", 2)]
    assert not [name for name, n in counts.items() if "missing" in name and n]


@pytest.mark.parametrize("reply", ["BEST 1: 1", "ORDER 1: 1, 1", "ORDER 1: 2, 3", "the first"])
def test_an_order_that_nobody_can_read_leaves_those_with_most_weight(reply: str) -> None:
    """It is counted, and nothing is lost."""
    questions, counts, _ = ask_one_of_two(lambda request: reply)
    kept = {q.question: sum(p.weight for p in q.points) for q in questions}
    (asked,) = [q.question for q in questions if q.drop is None]
    assert kept[asked] == max(kept.values())
    assert counts[ORDERS] == 1


def test_nobody_is_asked_for_an_order_where_all_are_wanted() -> None:
    model = Story().model()
    run_story(Story(), model=model)
    assert not model.of("facts/best")
