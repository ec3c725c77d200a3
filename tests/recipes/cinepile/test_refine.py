"""Refinement: a question is fixed only if all rotations were tested, whatever fails."""

import asyncio
import json
import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import BadRow, Transient
from mustsee.prompts import Prompts
from mustsee.recipes.cinepile.filters import Refine
from mustsee.records import Line, Question, SceneText, Video
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import rotated_options
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import VettingContext
from mustsee.verify.repair import RepairRule
from mustsee.verify.vetting import vet

SAID = [
    "Where did you put the letter?", "On the table by the door.", "Nobody came in today.",
    "Then who took it away?", "Ask the postman tomorrow.", "He will not tell us anything.",
    "Look behind the blue curtain.", "There is only dust in here.",
]  # fmt: skip
SCENE = SceneText(
    lines=tuple(Line(start=4.0 * i, end=4.0 * i + 2, text=text) for i, text in enumerate(SAID)),
    visual=(0.0,) * len(SAID), start=0, end=32, rate=1, score=1, head=1, tail=1,
)  # fmt: skip
REPAIR = RepairRule(rounds=5, of=("refine",), see=None, near=None)
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
        if request.prompt == "filters/repair":
            self.rewrites += 1
            now = request.variables["now"]
            wrong = [f"WRONG ANSWER {n}: {o.rstrip('.')} {self.rewrites}"
                     for n, o in enumerate(now.wrong, 1)]  # fmt: skip
            asked = f"QUESTION 1: {now.question} {self.rewrites}"
            return Reply(
                text="\n".join((asked, f"CORRECT ANSWER: {now.answer}", *wrong)), model="m"
            )
        options = tuple(request.variables["options"])
        right = next(i for i, o in enumerate(options) if "postman" in o)
        place = right if self.rng.random() < self.knows else self.rng.randrange(len(options))
        if blind:
            self._note(request, options[place])
        return Reply(text=f"**Answer:** {LETTERS[place]}\n**Rationale:** so", model="moody")

    def _note(self, request: Request, chosen: str | None) -> None:
        asked = tuple(request.variables["options"])
        self.tests.append((request.variables["question"], asked, chosen))


def run(
    llm: object, question: Question = QUESTION, repair: RepairRule = REPAIR, **changes: object
) -> Question:
    asker = Asker(llm=llm, prompts=Prompts(), tries=1)  # type: ignore[arg-type]
    video = Video(
        video_id="v",
        uri="",
        duration=32.0,
        scene=SCENE,
        questions=(replace(question, **changes),),  # type: ignore[arg-type]
    )
    askers = dict.fromkeys(("guesser", "reader", "repairer"), asker)
    vetting = VettingContext(askers=askers, video_frames=VideoFrames(video))
    return (asyncio.run(vet(video, (Refine(),), vetting, None, repair)).questions or ())[0]


@given(
    seed=st.integers(0, 10**6),
    failing=st.sampled_from([0.0, 0.1, 0.4, 0.8, 1.0]),
    knows=st.sampled_from([0.0, 0.4, 0.8, 1.0]),
    subset=st.sampled_from(["train", "test"]),
)
def test_fixed_means_tested_on_all_rotations(
    seed: int, failing: float, knows: float, subset: str
) -> None:
    llm = Moody(random.Random(seed), failing, knows)
    now = run(llm, subsets=(subset,))
    assert llm.rewrites <= 5
    assert now.options[now.answer_index or 0] == now.answer == QUESTION.answer
    answered: dict[tuple[str, ...], str] = {}
    for text, options, chosen in llm.tests:
        if text == now.question and chosen is not None:
            answered[options] = chosen
    wanted = {rotated_options(now, by) for by in range(5)}
    right = sum(answered.get(options) == now.answer for options in wanted)
    if now.metrics.get("refine_passed"):
        assert wanted <= set(answered)
        assert right <= 2
        assert now.drop is None
    if now.metrics.get("fixed"):
        assert now.question != QUESTION.question
        assert now.repairs[0].reason.startswith("refine:")
        assert json.loads(now.repairs[0].before)["question"] == QUESTION.question
    elif subset == "train":
        assert now.question == QUESTION.question
        assert now.drop is None
    elif now.metrics.get("weak"):
        assert (now.drop or "").startswith("refine: ")
    if "weak" not in now.metrics:
        assert not wanted <= set(answered)


def test_a_model_that_always_fails_passes_nothing() -> None:
    refined = run(Moody(random.Random(0), 1.0, 0.0))
    assert (refined.metrics, refined.drop) == ({"refine_unverified": 1.0}, None)
    assert {v.correct for v in refined.verdicts} == {None}


@pytest.mark.parametrize("prompt", ["cinepile/choose", "filters/repair"])
def test_an_unavailable_endpoint_decides_nothing(prompt: str) -> None:
    """It must not leave a guessed question unchanged, which would drop it from the test split."""

    class Down(Moody):
        async def complete(self, request: Request) -> Reply:
            if request.prompt == prompt:
                raise Transient("no answer within 60 s")
            return await super().complete(request)

    with pytest.raises(Transient):
        run(Down(random.Random(0), 0.0, 1.0))


def test_a_question_that_is_always_guessed_is_not_fixed_after_five_rewrites() -> None:
    llm = Moody(random.Random(0), 0.0, 1.0)
    refined = run(llm)
    assert llm.rewrites == 5
    assert refined.drop == "refine: guessed without the scene in 5 of 5 rotations"
    kept = run(Moody(random.Random(0), 0.0, 1.0), subsets=("train",))
    assert (kept.drop, kept.question, kept.repairs) == (None, QUESTION.question, ())
    assert kept.metrics == {
        "weak": 1.0, "fixed": 0.0, "refine_passed": 0.0, "rewrites": 5.0, "version_kept": 1.0,
    }  # fmt: skip


def test_each_round_has_orders_and_seeds_of_its_own() -> None:
    llm = Moody(random.Random(0), 0.0, 1.0)
    refined = run(llm)
    assert len({options.index(QUESTION.answer) for _, options, _ in llm.tests[::5]}) > 1
    seeds = [v.seed for v in refined.verdicts]
    assert len(seeds) == len(set(seeds)) == 30


@pytest.mark.parametrize(("hits", "weak"), [(2, 0.0), (3, 1.0)])
def test_three_of_five_rotations_are_weak(hits: int, weak: float) -> None:
    class Some:
        identity = "some"

        async def complete(self, request: Request) -> Reply:
            options = request.variables["options"]
            place = next(i for i, o in enumerate(options) if "postman" in o)
            letter = LETTERS[place if place < hits else (place + 1) % 5]
            return Reply(text=f"Answer: {letter}", model="some")

    assert run(Some(), repair=replace(REPAIR, rounds=0)).metrics["weak"] == weak


def test_a_rewrite_that_the_scene_does_not_answer_is_refused() -> None:
    class Misled(Moody):
        async def complete(self, request: Request) -> Reply:
            if request.prompt == "cinepile/choose" and self.rewrites:
                wrong = next(
                    i for i, o in enumerate(request.variables["options"]) if "postman" not in o
                )
                return Reply(text=f"Answer: {LETTERS[wrong]}\nRationale: so", model="m")
            return await super().complete(request)

    refined = run(Misled(random.Random(0), 0.0, 1.0), subsets=("train",))
    assert (refined.question, refined.metrics["fixed"]) == (QUESTION.question, 0.0)
    refined = run(Misled(random.Random(0), 0.0, 1.0))
    assert refined.drop == "refine: the scene gives another answer"


def test_the_writer_gets_the_scene_and_the_guessers_reasons() -> None:
    requests: list[Request] = []

    class Watched(Moody):
        async def complete(self, request: Request) -> Reply:
            requests.append(request)
            return await super().complete(request)

    run(Watched(random.Random(0), 0.0, 1.0), repair=replace(REPAIR, rounds=1))
    (asked,) = (r for r in requests if r.prompt == "filters/repair")
    text = asked.messages[-1].text
    assert all(line in text for line in SAID)
    assert "Rationale:** so" in text
    assert "picked out without the video" in text
    assert asked.messages[-1].images == ()


@given(options=st.lists(st.text(), min_size=1, max_size=7), by=st.integers(0, 20))
def test_rotations_are_cyclic(options: list[str], by: int) -> None:
    turned = rotated_options(replace(QUESTION, options=tuple(options)), by)
    assert sorted(turned) == sorted(options)
    assert turned == tuple(options[(i - by) % len(options)] for i in range(len(options)))
