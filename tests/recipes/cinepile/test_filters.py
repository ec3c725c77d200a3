"""CinePile's measures: degenerate, vision and hardness."""

import asyncio
from dataclasses import replace

import pytest

from mustsee.llm import Asker, Reply, Request
from mustsee.prompts import Prompts
from mustsee.recipes.cinepile.degenerate import degenerate
from mustsee.recipes.cinepile.hardness import hardness
from mustsee.recipes.cinepile.vision import vision
from mustsee.records import Question
from mustsee.text import LETTERS


class Says:
    """Chooses the option in a given place of the question, or fails to say anything readable."""

    def __init__(self, option: str | None) -> None:
        self.identity, self.option = "says", option

    async def complete(self, request: Request) -> Reply:
        if self.option is None:
            return Reply(text="No idea.", model="says")
        return Reply(text=LETTERS[request.variables["options"].index(self.option)], model="says")


def asker(option: str | None) -> Asker:
    return Asker(llm=Says(option), prompts=Prompts(), tries=1)


ONE = Question(
    question_id="q", video_id="v", recipe="cinepile", question="Which?", question_type="Temporal",
    options=("a", "b", "c", "d", "e"), answer_index=2, answer="c",
)  # fmt: skip


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
def test_degenerate_is_what_all_three_guess(
    guesses: tuple[str | None, ...], split: str, is_degenerate: float | None, dropped: bool
) -> None:
    askers = {str(i): asker(g) for i, g in enumerate(guesses)}
    found = asyncio.run(degenerate(replace(ONE, subsets=(split,)), askers))
    assert found.metrics.get("degenerate") == is_degenerate
    assert found.unvetted_by == (("degenerate",) if is_degenerate is None else ())
    assert (found.drop is not None) == dropped
    assert [v.correct for v in found.verdicts] == [None if g is None else g == "c" for g in guesses]


def test_vision_and_hardness_are_zero_where_the_model_is_right() -> None:
    for option, value in (("c", 0.0), ("a", 1.0)):
        seen = asyncio.run(vision(ONE, asker(option), "words"))
        hard = asyncio.run(hardness(ONE, asker(option), "scene"))
        assert (seen.metrics["vision_reliance"], hard.metrics["hardness"]) == (value, value)
        assert ("hard" in hard.subsets) == bool(value)
    assert "vision_reliance" not in asyncio.run(vision(ONE, asker(None), "words")).metrics
    assert "hardness" not in asyncio.run(hardness(ONE, asker(None), "scene")).metrics
