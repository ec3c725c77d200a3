"""Repair: what falls goes back to a writer with what was said of it, and is vetted anew."""

import asyncio
import json
from dataclasses import dataclass, replace

import pytest

from mustsee.errors import Unparsed
from mustsee.filters.repair import Mend, explanations, parse_repair
from mustsee.filters.sight import Sight
from mustsee.filters.vetting import Vetting, vet
from mustsee.llm import Asker
from mustsee.prompts import Prompts
from mustsee.records import Question, Verdict, Video
from tests.support.looker import OPTIONS, PROSE, SCENE, Looker, Stills, question, row


def repaired(looker: Looker, *filters: Sight, rounds: int = 2, **changes: object) -> Question:
    asker = Asker(llm=looker, prompts=Prompts(), tries=1)
    video = row(question(**changes))
    askers = {"looker": asker, "repairer": asker}
    vetting = Vetting(askers=askers, film=Stills(video))
    done = asyncio.run(vet(video, filters or (Sight(),), vetting, "mma", Mend(rounds=rounds)))
    (found,) = done.questions or ()
    return found


def draft(answer: str, *wrong: str) -> str:
    lines = [f"WRONG ANSWER {n}: {w}" for n, w in enumerate(wrong, 1)]
    asked = f"QUESTION 1: (kind) Which colour is the kite?\nCORRECT ANSWER: {answer}"
    return "\n".join((asked, *lines, "EVIDENCE: 40.0-50.0"))


def test_a_mended_question_keeps_its_history_and_is_looked_at_anew() -> None:
    looker = Looker(
        {"blue": [SCENE]}, mend=lambda _: draft("blue", "red", "green", "yellow", "purple")
    )
    done = repaired(looker)
    assert (done.drop, done.answer, done.subsets) == (None, "blue", ("mma",))
    assert done.options[done.answer_index or 0] == "blue"
    (repair,) = done.repairs
    before = json.loads(repair.before)
    assert (before["question_id"], before["answer"]) == ("q", "red")
    assert repair.reason == "sight: answer disputed: 'blue' is chosen"
    assert [v.correct for v in done.verdicts][:2] == [False, False]
    assert done.verdicts[-1].seed > done.verdicts[0].seed + 1000
    request = next(r for r in looker.asked if r.prompt == "filters/repair")
    said = request.messages[-1].text
    assert "blue shows" in said
    assert "ANSWER: C" not in said  # letters of an order that the writer does not see
    assert "\nWRONG ANSWER 4: purple" in said
    assert {b"40.5", b"49.5"} <= set(request.messages[-1].images)


def test_what_cannot_be_mended_stays_as_it_was() -> None:
    done = repaired(Looker({"blue": [SCENE]}))
    assert (done.question_id, done.repairs) == ("q", ())
    assert (done.drop or "").startswith("sight: answer disputed")


@dataclass(frozen=True)
class Marks:
    """A filter that passes no question and drops none."""

    name: str = "marks"
    roles: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    async def __call__(self, asked: Question, video: Video, vetting: Vetting) -> Question:
        return replace(asked, metrics={**asked.metrics, "marks_passed": 0.0})


def test_the_best_of_the_versions_stays() -> None:
    """The rewrite of a question that was only marked is wrong, and goes: the first one stays."""
    looker = Looker(
        {"red": [SCENE]}, mend=lambda _: draft("blue", "red", "green", "yellow", "purple")
    )
    done = repaired(looker, Marks(), Sight(), rounds=1)  # type: ignore[arg-type]
    assert (done.question_id, done.drop, done.subsets) == ("q", None, ())
    assert done.answer == "red"


def test_nothing_is_mended_where_nothing_was_said() -> None:
    looker = Looker({}, dict.fromkeys(range(1, 20), PROSE), mend=lambda _: draft("blue", "red"))
    done = repaired(looker)
    assert (done.drop, done.subsets) == (None, ())
    assert all(r.prompt == "filters/sight" for r in looker.asked)


def test_rounds_of_repair_end() -> None:
    looker = Looker({"blue": [SCENE]}, mend=lambda _: draft("green", *OPTIONS[2:], "orange"))
    done = repaired(looker, rounds=2)
    assert done.drop is not None
    assert sum(r.prompt == "filters/repair" for r in looker.asked) == 2


def test_explanations_are_the_latest_without_letters() -> None:
    verdicts = [
        Verdict(filter="sight", model="m", reply=f"* EXPLANATION: {n}.\n* ANSWER: B")
        for n in "abcd"
    ]
    asked = question(verdicts=(*verdicts, Verdict(filter="blind", model="m", reply="x")))
    assert explanations(asked, "sight") == tuple(f"* EXPLANATION: {n}." for n in "dcb")


def test_a_repair_has_as_many_wrong_answers_as_before() -> None:
    assert parse_repair("NONE", 4) is None
    assert parse_repair(draft("red", "green"), 1) is not None
    with pytest.raises(Unparsed, match="4 are wanted"):
        parse_repair(draft("red", "green"), 4)
