"""Refinement: nothing is called fixed that was not tested on all rotations, whatever fails."""

import asyncio
import random
import re
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.llm.offline import OfflineLlm
from mustsee.errors import BadRow, Transient
from mustsee.llm import Asker, Reply, Request
from mustsee.prompts import Prompts
from mustsee.recipes.cinepile.choosing import rotated
from mustsee.recipes.cinepile.refine import Refined, Refinement, refine
from mustsee.records import Question
from mustsee.text import LETTERS

SCENE = "\n".join(
    f"<subtitle> {4 * i}.0 {4 * i + 2}.0 {text}"
    for i, text in enumerate(
        [
            "Where did you put the letter?", "On the table by the door.", "Nobody came in today.",
            "Then who took it away?", "Ask the postman tomorrow.", "He will not tell us anything.",
            "Look behind the blue curtain.", "There is only dust in here.",
        ]
    )
)  # fmt: skip
QUESTION = Question(
    question_id="q", video_id="v", recipe="cinepile", question_type="Temporal",
    question='Which reply comes after the words "Then who took it away"?',
    options=("On the table by the door.", "Ask the postman tomorrow.", "Nobody came in today.",
             "There is only dust in here.", "Look behind the blue curtain."),
    answer_index=1, answer="Ask the postman tomorrow.", subsets=("test",),
)  # fmt: skip


@dataclass
class Moody:
    """Guesses right with a chance that each wording has, fails at random, answers in odd forms;
    remembers what it was asked without a scene and what it answered.
    """

    rng: random.Random
    failing: float
    knows: float
    identity: str = "moody"
    tests: list[tuple[str, tuple[str, ...], str | None]] = field(default_factory=list)
    rewrites: int = 0

    async def complete(self, request: Request) -> Reply:
        failure = self.rng.random() / self.failing if self.failing else 1.0
        blind = request.prompt == "cinepile/choose" and request.variables["context"] is None
        if failure < 1:
            if blind:
                self._note(request, None)
            if failure < 0.5:
                raise BadRow("filtered")
            return Reply(text="I would rather not say.", model="moody")
        if request.prompt == "cinepile/rewrite":
            self.rewrites += 1
            options = [f"{o.rstrip('.')} {self.rewrites}" for o in request.variables["options"]]
            listed = "\n".join(f"- {LETTERS[i]}) {o}" for i, o in enumerate(options))
            text = f"Question: {request.variables['question']} {self.rewrites}\n{listed}"
            return Reply(text=f"{text}\nCorrect Answer: {request.variables['letter']}", model="m")
        options = tuple(request.variables["options"])
        right = next(i for i, o in enumerate(options) if "postman" in o)
        place = right if self.rng.random() < self.knows else self.rng.randrange(len(options))
        if blind:
            self._note(request, options[place])
        return Reply(text=f"**Answer:** {LETTERS[place]}\n**Rationale:** so", model="moody")

    def _note(self, request: Request, chosen: str | None) -> None:
        asked = tuple(request.variables["options"])
        self.tests.append((request.variables["question"], asked, chosen))


def run(llm: object, question: Question = QUESTION, rules: Refinement | None = None) -> Refined:
    asker = Asker(llm=llm, prompts=Prompts(), tries=1)  # type: ignore[arg-type]
    return asyncio.run(
        refine(question, SCENE, blind=asker, writer=asker, judge=asker,
               settings=rules or Refinement())
    )  # fmt: skip


@given(seed=st.integers(0, 10**6), failing=st.sampled_from([0.0, 0.1, 0.4, 0.8, 1.0]),
       knows=st.sampled_from([0.0, 0.4, 0.8, 1.0]))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_fixed_means_tested_on_all_rotations(seed: int, failing: float, knows: float) -> None:
    llm = Moody(random.Random(seed), failing, knows)
    found = run(llm)
    now = found.question
    assert found.rewrites <= 5
    assert now.answer_index == 1
    assert now.options[1] == now.answer
    answered: dict[tuple[str, ...], str] = {}
    for text, options, chosen in llm.tests:
        if text == now.question and chosen is not None:
            answered[options] = chosen
    wanted = {rotated(now.options, by) for by in range(5)}
    right = sum(answered.get(options) == now.answer for options in wanted)
    if found.status in ("fixed", "strong"):
        assert wanted <= set(answered)
        assert right <= 2
    if found.status == "fixed":
        assert now.metrics["fixed"] == 1.0
        assert now.question != QUESTION.question
    else:
        assert now.question == QUESTION.question
        assert now.metrics.get("fixed", 0.0) == 0.0
    if found.status == "untested":
        assert "weak" not in now.metrics
        assert not wanted <= set(answered)


def test_a_model_that_always_fails_passes_nothing() -> None:
    found = run(Moody(random.Random(0), 1.0, 0.0))
    assert found.status == "untested"
    assert found.question.verdicts[0].passed is None


@pytest.mark.parametrize("prompt", ["cinepile/choose", "cinepile/rewrite"])
def test_an_endpoint_that_is_down_decides_nothing(prompt: str) -> None:
    """It must not leave a guessed question "unfixed", which would drop it from the test split."""

    class Down(Moody):
        async def complete(self, request: Request) -> Reply:
            if request.prompt == prompt:
                raise Transient("no answer within 60 s")
            return await super().complete(request)

    with pytest.raises(Transient):
        run(Down(random.Random(0), 0.0, 1.0))


def test_a_question_that_is_always_guessed_is_not_fixed_after_five_rewrites() -> None:
    llm = Moody(random.Random(0), 0.0, 1.0)
    found = run(llm)
    assert (found.status, found.rewrites, llm.rewrites) == ("unfixed", 5, 5)
    assert found.question.question == QUESTION.question
    assert found.question.metrics == {"weak": 1.0, "fixed": 0.0, "rewrites": 5.0}


@pytest.mark.parametrize(("hits", "status"), [(2, "strong"), (3, "unfixed")])
def test_three_of_five_rotations_are_weak(hits: int, status: str) -> None:
    class Some:
        identity = "some"

        async def complete(self, request: Request) -> Reply:
            options = request.variables["options"]
            place = next(i for i, o in enumerate(options) if "postman" in o)
            letter = LETTERS[place if place < hits else (place + 1) % 5]
            return Reply(text=f"Answer: {letter}", model="some")

    assert run(Some(), rules=Refinement(rewrites=0)).status == status


def test_a_rewrite_that_the_scene_does_not_answer_is_refused() -> None:
    class Misled(Moody):
        async def complete(self, request: Request) -> Reply:
            if request.prompt == "cinepile/choose" and request.variables["context"] is not None:
                wrong = next(
                    i for i, o in enumerate(request.variables["options"]) if "postman" not in o
                )
                return Reply(text=f"Answer: {LETTERS[wrong]}", model="m")
            return await super().complete(request)

    found = run(Misled(random.Random(0), 0.0, 1.0))
    assert found.status == "unfixed"
    assert sum("another answer" in v.detail for v in found.question.verdicts) == 5


def test_the_rules_fix_what_they_guess() -> None:
    guessed = QUESTION.question.replace("?", " (the postman, tomorrow)?")
    from dataclasses import replace

    found = run(OfflineLlm("offline"), replace(QUESTION, question=guessed))
    assert found.question.metrics["weak"] == 1.0
    assert found.status in ("fixed", "unfixed")
    assert all(re.search(r"rotations|refused", v.detail) for v in found.question.verdicts)


@given(options=st.lists(st.text(), min_size=1, max_size=7), by=st.integers(0, 20))
def test_rotations_are_cyclic(options: list[str], by: int) -> None:
    turned = rotated(options, by)
    assert sorted(turned) == sorted(options)
    assert turned == tuple(options[(i - by) % len(options)] for i in range(len(options)))
