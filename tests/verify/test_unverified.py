"""Unparseable replies decide nothing: they drop and repair no question, and put none into the
subset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.llm.offline import Offline
from mustsee.calls.llm import Asker, Reply, Request
from mustsee.files import schemas
from mustsee.prompts import Prompts
from mustsee.records import Question, Video
from mustsee.run.tables import Tables, question_counts
from mustsee.text import LETTERS
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import QuestionFilter, VettingContext
from mustsee.verify.giveaways import Giveaways
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.repair import RepairRule
from mustsee.verify.sight import Sight
from mustsee.verify.vetting import vet
from ray_jobs.runtime.summary import unverified_lines
from tests.support.verifier import OPTIONS, SCENE, ScriptedVerifier, Stills, question, row

BLIND = BlindGuess(name="blind", prompt="filters/blind")
ASR = BlindGuess(name="asr", prompt="filters/asr", transcript=True)
FILTERS: Sequence[QuestionFilter] = (Giveaways(longest=None, shortest=None), Sight(), BLIND, ASR)
PROMPTS = {"sight": "filters/sight", "blind": "filters/blind", "asr": "filters/asr"}


def wrong(request: Request) -> str:
    """A guesser that is never right."""
    options = list(request.variables["options"])
    first = options.index("green")
    rest = [i for i in range(len(options)) if i != first]
    return "* ANSWER: " + " > ".join(LETTERS[i] for i in (first, *rest))


@dataclass
class Muddled(ScriptedVerifier):
    """A verifier and guesser that talks nonsense in answer to some prompts."""

    nonsense: Sequence[str] = ()
    again: Callable[[Request], bool] = field(default=lambda request: True)

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        if request.prompt in self.nonsense and self.again(request):
            return replace(reply, text="Certainly! As you can see, it depends.")
        return reply


def run_filters(llm: ScriptedVerifier, *asked: Question) -> tuple[Question, ...]:
    video = row(*asked)
    roles = dict.fromkeys(("guesser", "verifier", "repairer"), Asker(llm=llm, prompts=Prompts()))
    vetting = VettingContext(askers=roles, video_frames=Stills(video))
    return (
        asyncio.run(vet(video, FILTERS, vetting, "mma", RepairRule(see=None, near=None))).questions
        or ()
    )


def test_a_question_that_passes_every_filter_is_in_the_subset() -> None:
    """The other tests rely on this."""
    (found,) = run_filters(Muddled({"red": [SCENE]}, guess=wrong), question())
    assert (found.drop, found.subsets, found.unverified_by) == (None, ("mma",), ())


@pytest.mark.parametrize("name", PROMPTS)
def test_unparseable_replies_to_one_filter_drop_and_repair_nothing(name: str) -> None:
    llm = Muddled({"red": [SCENE]}, guess=wrong, nonsense=(PROMPTS[name],))
    some = [question(question_id=f"q{n}", question=f"Which colour is kite {n}?") for n in range(3)]
    for found in run_filters(llm, *some):
        assert (found.drop, found.subsets, found.repairs) == (None, (), ())
        assert found.unverified_by == (name,)
        assert f"{name}_passed" not in found.metrics
        others = {f"{other}_passed" for other in (*PROMPTS, "giveaways") if other != name}
        assert {key: found.metrics[key] for key in others} == dict.fromkeys(others, 1.0)
        verdicts = [v for v in found.verdicts if v.filter == name]
        assert verdicts
        assert {v.correct for v in verdicts} == {None}
        assert all(PROMPTS[name] in v.detail for v in verdicts)
    assert "filters/repair" not in {request.prompt for request in llm.asked}


@pytest.mark.parametrize(("read", "fate"), [
    ((False, False, None), "passed"), ((True, True, None), "fallen"), ((True, None, False), "open"),
    ((None, None, False), "open"), ((None, None, True), "open"),
])  # fmt: skip
def test_unparseable_runs_are_votes_for_neither_side(
    read: Sequence[bool | None], fate: str
) -> None:
    def guess(request: Request) -> str:
        said = read[request.seed]
        options = list(request.variables["options"])
        order = sorted(range(5), key=lambda i: (options[i] == "red") != said)
        return "Hm." if said is None else "* ANSWER: " + " > ".join(LETTERS[i] for i in order)

    asker = Asker(llm=ScriptedVerifier({}, guess=guess), prompts=Prompts())
    video = row(question())
    vetting = VettingContext(askers={"guesser": asker}, video_frames=Stills(video))
    found = asyncio.run(replace(BLIND, all_runs=True)(question(), video, vetting))
    assert (found.drop is not None) == (fate == "fallen")
    assert found.metrics.get("blind_passed") == {"passed": 1.0, "fallen": 0.0}.get(fate)
    assert found.unverified_by == (("blind",) if fate == "open" else ())


def test_an_unverified_repair_does_not_replace_the_question() -> None:
    """The question is dropped in its first wording; guesses at its rewrite are unparseable."""

    def knows(request: Request) -> str:
        if request.prompt == "filters/asr":
            return wrong(request)
        order = sorted(range(5), key=lambda i: list(request.variables["options"])[i] != "red")
        ranked = " > ".join(LETTERS[i] for i in order)
        return f"* ANSWER: {ranked}\n* EXPLANATION: kites are red."

    def repair(request: Request) -> str:
        lines = [f"WRONG ANSWER {n}: {text}" for n, text in enumerate(OPTIONS[1:], 1)]
        return "\n".join(("QUESTION 1: (other) Which colour has the kite over the hill?",
                          "CORRECT ANSWER: red", *lines, "EVIDENCE: 40.0-50.0"))  # fmt: skip

    llm = Muddled({"red": [SCENE]}, guess=knows, repair=repair, nonsense=("filters/blind",),
                  again=lambda request: "hill" in str(request.variables["question"]))  # fmt: skip
    (found,) = run_filters(llm, question())
    assert "filters/repair" in {request.prompt for request in llm.asked}
    assert found.question == question().question
    assert found.drop is not None
    assert found.drop.startswith("blind: right in")


def write_tables(folder: Path, found: Sequence[Question]) -> None:
    pq.write_table(schemas.table(list(found), Question), folder / "questions.parquet")
    pq.write_table(schemas.table([row()], Video), folder / "videos.parquet")


def test_the_summary_names_the_prompt_and_the_reason(tmp_path: Path) -> None:
    found = run_filters(
        Muddled({"red": [SCENE]}, guess=wrong, nonsense=("filters/blind",)), question()
    )
    write_tables(tmp_path, list(found))
    counted = question_counts(Tables(tmp_path))
    (line,) = unverified_lines(counted)
    for part in ("1 of 1 questions are unverified by blind", "filters/blind", "* ANSWER: A > B"):
        assert part in line
    assert (counted.kept, counted.filters["blind"].dropped) == (1, 0)


def test_each_question_that_sight_cannot_verify_has_its_reason(tmp_path: Path) -> None:
    """Rules that do not know the question's form, and missing videos."""

    async def verified(asked: Question, video: Video) -> Question:
        asker = Asker(llm=Offline().open(), prompts=Prompts())
        gone = replace(video, uri="narrations:v")
        frames = Stills(video) if video.uri else VideoFrames(gone)
        vetting = VettingContext(askers={"verifier": asker}, video_frames=frames)
        return await Sight()(asked, video, vetting)

    known = [replace(question(), question_id=f"q{n}") for n in range(3)]
    found = [
        asyncio.run(verified(known[0], row(known[0]))),
        *(
            asyncio.run(verified(one, replace(row(one), video_id=name, uri="")))
            for one, name in zip(known[1:], ("gone", "lost"), strict=True)
        ),
    ]
    assert all(one.unverified_by == ("sight",) and one.drop is None for one in found)
    write_tables(tmp_path, found)
    counted = question_counts(Tables(tmp_path))
    assert list(counted.filters["sight"].unread.values()) == [2, 1]
    (line,) = unverified_lines(counted)
    assert "3 of 3 questions are unverified by sight (2: no video for" in line
    assert "1: the rules cannot measure what the question asks for" in line
