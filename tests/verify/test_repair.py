"""Repair: a dropped question is rewritten with the explanations, and vetted again."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from mustsee.calls.llm import Asker, Request
from mustsee.errors import Unparsed
from mustsee.media.frames import encode
from mustsee.prompts import Prompts
from mustsee.records import Question, Repair, Span, Verdict, Video
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.filters import FAULTS, GUESSED, WORDED, QuestionFilter, VettingContext
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.repair import (
    PROMPT,
    FailedWording,
    RepairRule,
    explanations,
    frames_for_writer,
    other_questions,
    repair_form,
)
from mustsee.verify.sight import Sight
from mustsee.verify.vetting import vet
from tests.support.verifier import OPTIONS, PROSE, SCENE, ScriptedVerifier, Stills, question, row


def vet_and_repair(
    verifier: ScriptedVerifier, *filters: QuestionFilter, rounds: int = 2, **changes: object
) -> Question:
    asker = Asker(llm=verifier, prompts=Prompts(), tries=1)
    video = row(question(**changes))
    askers = dict.fromkeys(("verifier", "guesser", "repairer"), asker)
    vetting = VettingContext(askers=askers, video_frames=Stills(video))
    done = asyncio.run(vet(video, filters or (Sight(),), vetting, "mma", RepairRule(rounds=rounds)))
    (found,) = done.questions or ()
    return found


def draft(answer: str, *wrong: str) -> str:
    lines = [f"WRONG ANSWER {n}: {w}" for n, w in enumerate(wrong, 1)]
    asked = f"QUESTION 1: (kind) Which colour is the kite?\nCORRECT ANSWER: {answer}"
    return "\n".join((asked, *lines, "EVIDENCE: 40.0-50.0"))


def test_a_repaired_question_keeps_its_history_and_is_vetted_again() -> None:
    verifier = ScriptedVerifier(
        {"blue": [SCENE]}, repair=lambda _: draft("blue", "red", "green", "yellow", "purple")
    )
    done = vet_and_repair(verifier)
    assert (done.drop, done.answer, done.subsets) == (None, "blue", ("mma",))
    assert done.options[done.answer_index or 0] == "blue"
    (repair,) = done.repairs
    before = json.loads(repair.before)
    assert (before["question_id"], before["answer"]) == ("q", "red")
    assert repair.reason == "sight: answer disputed: 'blue' is chosen"
    assert [v.correct for v in done.verdicts][:2] == [False, False]
    assert done.verdicts[-1].seed > done.verdicts[0].seed + 1000
    request = next(r for r in verifier.asked if r.prompt == "filters/repair")
    said = request.messages[-1].text
    assert "blue shows" in said
    assert "ANSWER: C" not in said  # letters of an order that the writer does not see
    assert "\nWRONG ANSWER 4: purple" in said
    assert {b"41.0", b"49.0"} <= set(request.messages[-1].images)


def test_an_irreparable_question_stays_dropped() -> None:
    done = vet_and_repair(ScriptedVerifier({"blue": [SCENE]}))
    assert (done.question_id, done.repairs) == ("q", ())
    assert (done.drop or "").startswith("sight: answer disputed")


@dataclass(frozen=True)
class Marks:
    """A filter that passes no question and drops none."""

    name: str = "marks"
    roles: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    async def __call__(self, asked: Question, video: Video, vetting: VettingContext) -> Question:
        return replace(asked, metrics={**asked.metrics, "marks_passed": 0.0})


def test_the_best_version_is_kept() -> None:
    """If the rewrite of a question that was only marked is wrong, the first wording is kept."""
    verifier = ScriptedVerifier(
        {"red": [SCENE]}, repair=lambda _: draft("blue", "red", "green", "yellow", "purple")
    )
    done = vet_and_repair(verifier, Marks(), Sight(), rounds=1)  # type: ignore[arg-type]
    assert (done.question_id, done.drop, done.subsets) == ("q", None, ())
    assert done.answer == "red"


def test_a_question_without_explanations_is_not_repaired() -> None:
    verifier = ScriptedVerifier(
        {}, dict.fromkeys(range(1, 20), PROSE), repair=lambda _: draft("blue", "red")
    )
    done = vet_and_repair(verifier)
    assert (done.drop, done.subsets) == (None, ())
    assert all(r.prompt == "filters/sight" for r in verifier.asked)


def test_repair_ends_after_its_rounds() -> None:
    verifier = ScriptedVerifier(
        {"blue": [SCENE]}, repair=lambda _: draft("green", *OPTIONS[2:], "orange")
    )
    done = vet_and_repair(verifier, rounds=2)
    assert done.drop is not None
    assert sum(r.prompt == "filters/repair" for r in verifier.asked) == 2


def test_explanations_are_the_latest_without_letters_and_those_that_solved_it_first() -> None:
    said = [
        Verdict(filter="f", model="m", reply=f"* EXPLANATION: {n}.\n* ANSWER: B", correct=n in "ab")
        for n in "abcd"
    ]
    assert explanations(said, solved=True) == tuple(f"{n}." for n in "bad")
    assert explanations(said, solved=False) == tuple(f"{n}." for n in "dcb")


def test_explanations_name_options_in_place_of_letters() -> None:
    """Each run had its own letters, which the writer does not see."""
    guess = "* ANSWER: C > A > B\n* EXPLANATION: A plural: option A and (B) are singular, C is not."
    look = "* SEEN: a kite.\n* PREMISE: HOLDS\n* A: WRONG\n* B: RIGHT 40.0-44.0\n* C: OPEN"
    said = [
        Verdict(filter="f", model="m", reply=guess, detail="options shown as CAB"),
        Verdict(filter="f", model="m", reply=look, detail='{"condition": "x", "order": "BCA"}'),
        Verdict(filter="f", model="m", reply="B is it."),
    ]
    assert explanations(said, solved=False, options=("red", "green", "blue")) == (
        "B is it.",
        "* SEEN: a kite.\n* PREMISE: HOLDS\n* “green”: WRONG\n* “blue”: RIGHT 40.0-44.0\n"
        "* “red”: OPEN",
        "A plural: “blue” and “red” are singular, “green” is not.",
    )


def test_each_wording_is_shown_with_its_own_explanations() -> None:
    """In the second round the writer gets both wordings, each with its own explanations."""
    wordings = iter(("green", "orange"))
    verifier = ScriptedVerifier(
        {"blue": [SCENE]}, repair=lambda _: draft(next(wordings), "a", "b", "blue", "c")
    )
    vet_and_repair(verifier, rounds=2)
    first, second = (r for r in verifier.asked if r.prompt == "filters/repair")
    assert first.variables["earlier"] == ()
    (before,) = second.variables["earlier"]
    now = second.variables["now"]
    assert (before.answer, now.answer) == ("red", "green")
    assert before.reason.startswith("sight: answer disputed")
    assert before.replies
    assert now.replies
    said = second.messages[-1].text
    assert said.index("CORRECT ANSWER: red") < said.index("CORRECT ANSWER: green")
    assert "version 2" in said


@pytest.mark.parametrize("kind", FAULTS)
def test_the_writer_gets_only_the_instruction_for_the_fault(kind: str) -> None:
    """Each instruction is in the prompt for its own fault only."""
    said = {k: instruction(k) for k in FAULTS}
    assert len(set(said.values())) == len(said)
    assert all(said[kind] not in other for k, other in said.items() if k != kind)


def test_a_fault_of_another_filter_is_told_in_the_words_of_its_reason() -> None:
    assert "Change what is said above to be wrong" in instruction("rhymes")


def instruction(kind: str) -> str:
    wording = FailedWording(
        question="q", answer="a", wrong=("b",), reason="r", fault=kind, replies=("s",)
    )
    said = Prompts().render(
        PROMPT, frames=(), segments=(), lines=(), described=False, others=(), question=question(),
        kinds=(), now=wording, earlier=(), fault=kind, least=0.0, builds_options=False,
    ).user  # fmt: skip
    return said.partition("Mend it.\n")[2].partition("Every wrong answer")[0]


def test_the_videos_other_questions_are_shown_and_its_own_earlier_wording_is_not() -> None:
    asked = question(drop="sight: more than one option fits")
    video = row(
        asked,
        question(question_id="r", question="Who opens the door?"),
        question(question_id="s", question="Who has left?", drop="check: an empty text"),
    )
    assert other_questions(video, asked) == ("Who opens the door?",)
    before = json.dumps({"question_id": "r", "verdicts": 0})
    reworded = replace(asked, repairs=(Repair(kind="wording", reason="r", by="m", before=before),))
    assert other_questions(video, reworded) == ()


def test_a_repair_keeps_the_reach_of_a_question() -> None:
    far, near = (
        draft("red", "green").replace("40.0-50.0", spans)
        for spans in ("40.0-50.0; 130.0-131.0", "40.0-50.0; 60.0-61.0")
    )
    assert repair_form(1, 60.0).read(far) is not None
    assert repair_form(1).read(near) is not None
    with pytest.raises(Unparsed, match="at least 60 s"):
        repair_form(1, 60.0).read(near)
    verifier = ScriptedVerifier(
        {"blue": [SCENE]}, repair=lambda _: draft("blue", *OPTIONS[:2], *OPTIONS[3:])
    )
    done = vet_and_repair(verifier, rounds=1, metrics={"apart_seconds": 90.0})
    assert done.repairs == ()
    done = vet_and_repair(verifier, rounds=1, metrics={"apart_seconds": 30.0})
    assert done.answer == "blue"


def test_a_repair_may_change_the_question_type() -> None:
    def repair_as(tag: str) -> Question:
        text = draft("blue", *OPTIONS[:2], *OPTIONS[3:]).replace("(kind)", f"({tag})")
        asker = Asker(
            llm=ScriptedVerifier({"blue": [SCENE]}, repair=lambda _: text), prompts=Prompts()
        )
        video = row(question(question_type="Counting"))
        vetting = VettingContext(
            askers={"verifier": asker, "repairer": asker}, video_frames=Stills(video)
        )
        rule = RepairRule(rounds=1, kinds=("Counting", "State Changes"))
        return (asyncio.run(vet(video, (Sight(),), vetting, None, rule)).questions or ())[0]

    assert repair_as("state changes").question_type == "State Changes"
    assert repair_as("colour").question_type == "Counting"


def test_of_wordings_that_are_all_guessed_only_the_one_that_is_kept_is_looked_at() -> None:
    verifier = ScriptedVerifier(
        {"red": [SCENE]}, guess=guesses("red"), repair=lambda _: draft("red", "a", "b", "c", "d")
    )
    blind = BlindGuess(name="blind", prompt="filters/blind", drops=False)
    done = vet_and_repair(verifier, blind, Sight(), rounds=2)
    prompts = [r.prompt for r in verifier.asked]
    assert prompts.count("filters/repair") == 2
    assert "filters/sight" not in prompts[: prompts.index("filters/repair")]
    assert prompts[-2:] == ["filters/sight"] * 2
    assert prompts.count("filters/sight") == 2
    assert (done.question_id, done.subsets, done.repairs) == ("q", (), ())
    assert done.metrics["rewrites"] == 2


def test_guessers_do_not_run_on_questions_that_sight_drops() -> None:
    verifier = ScriptedVerifier({"blue": [SCENE]}, guess=guesses("red"))
    blind = BlindGuess(name="blind", prompt="filters/blind", drops=False)
    done = vet_and_repair(verifier, Sight(), blind, rounds=0)
    assert done.drop is not None
    assert {r.prompt for r in verifier.asked} == {"filters/sight"}


def test_only_drops_by_the_named_filters_are_repaired() -> None:
    verifier = ScriptedVerifier(
        {"blue": [SCENE]}, repair=lambda _: draft("blue", *OPTIONS[:2], *OPTIONS[3:])
    )
    asker = Asker(llm=verifier, prompts=Prompts())
    video = row(question())
    vetting = VettingContext(
        askers={"verifier": asker, "repairer": asker}, video_frames=Stills(video)
    )
    done = asyncio.run(vet(video, (Sight(),), vetting, None, RepairRule(of=("blind",))))
    assert (done.questions or ())[0].repairs == ()


def guesses(answer: str) -> Callable[[Request], str]:
    """A guesser that ranks an answer first."""

    def reply(request: Request) -> str:
        options = list(request.variables["options"])
        letters = ["ABCDE"[options.index(answer)]]
        ranked = [*letters, *(x for x in "ABCDE" if x not in letters)]
        return f"* ANSWER: {' > '.join(ranked)}\n* EXPLANATION: so."

    return reply


def test_a_repair_has_as_many_wrong_answers_as_before() -> None:
    assert repair_form(4).read("NONE") is None
    assert repair_form(1).read(draft("red", "green")) is not None
    with pytest.raises(Unparsed, match="expected 4"):
        repair_form(4).read(draft("red", "green"))


def test_a_writer_is_shown_black_frames_only_where_there_are_no_others() -> None:
    class HalfBlack(Stills):
        async def jpegs(self, times: Sequence[float], see: Condition) -> tuple[bytes, ...]:
            shades = [0 if time < 100 else 200 for time in times]
            return tuple(encode(np.full((36, 64, 3), shade, np.uint8), 90) for shade in shades)

    video = row(question())
    for see, shown in ((Condition(frames=6), {125.0, 175.0, 225.0, 275.0}), (None, {42.5, 47.5})):
        near = Condition(condition="evidence", frames=2)
        writer = frames_for_writer(video, HalfBlack(video), see, near, (SCENE,))
        times, jpegs = asyncio.run(writer)
        assert set(times) == shown
        assert len(jpegs) == len(times)


def repaired(
    question_: Question, by: str, writer: ScriptedVerifier, rule: RepairRule | None = None
) -> Question | None:
    """Repair a question that the filter `by` did not pass."""
    asker = Asker(llm=writer, prompts=Prompts(), tries=1)
    video = row(question_)
    vetting = VettingContext(askers={"repairer": asker}, video_frames=Stills(video))
    return asyncio.run((rule or RepairRule())(question_, video, vetting, by))


def failed(by: str, *replies: str, **changes: object) -> Question:
    correct = None if by == "giveaways" else True
    verdicts = tuple(Verdict(filter=by, model="m", reply=r, correct=correct) for r in replies)
    fault = WORDED if by == "giveaways" else GUESSED
    return question(verdicts=verdicts, **{"faults": {by: fault}, **changes})


REWRITTEN = draft("red", "green", "yellow", "purple", "orange")


def test_the_writer_gets_the_guessers_own_words_as_the_cue() -> None:
    writer = ScriptedVerifier({}, repair=lambda _: REWRITTEN)
    reply = "* ANSWER: A > B > C > D > E\n* EXPLANATION: The only colour of a fire engine."
    assert repaired(failed("blind", reply), "blind", writer) is not None
    said = writer.asked[0].messages[-1].text
    cue = said.index("- The only colour of a fire engine.")
    assert said.index("What gave the answer away, in the words of those who picked it") < cue
    assert cue < said.index("Mend it.")
    assert "EXPLANATION" not in said


def test_no_text_is_said_twice() -> None:
    writer = ScriptedVerifier({}, repair=lambda _: REWRITTEN)
    reply = "the right answer is by far the longest option: 4 words, the next has 1"
    assert repaired(failed("giveaways", reply), "giveaways", writer) is not None
    said = writer.asked[0].messages[-1].text
    assert said.count("by far the longest option") == 1
    assert "explained" not in said


def test_no_frames_are_sent_where_only_the_wording_is_at_fault() -> None:
    for by, shows in (("giveaways", False), ("blind", True)):
        writer = ScriptedVerifier({}, repair=lambda _: REWRITTEN)
        assert repaired(failed(by, "a cue"), by, writer) is not None
        assert bool(writer.asked[0].messages[-1].images) == shows


ORDER = "In which order are these seen: a lid, a bowl, an egg, a pan?"
AROUND = (  # each wrong order is the right one with two things exchanged
    "an egg; a bowl; a pan; a lid",
    "a bowl; an egg; a pan; a lid",
    "an egg; a pan; a bowl; a lid",
    "an egg; a bowl; a lid; a pan",
    "a lid; a bowl; a pan; an egg",
)
BALANCED = {AROUND[0], "a bowl; a lid; an egg; a pan", "a pan; an egg; a lid; a bowl",
            "a lid; a pan; a bowl; an egg"}  # fmt: skip


def test_an_order_whose_wording_is_at_fault_is_repaired_without_a_model() -> None:
    asked = failed("giveaways", "too alike", question=ORDER, options=AROUND, answer=AROUND[0])
    writer = ScriptedVerifier({})
    done = repaired(asked, "giveaways", writer, RepairRule(builds_options=True))
    assert done is not None
    assert writer.asked == []
    assert (done.question, done.answer, {*done.options}) == (ORDER, AROUND[0], BALANCED)
    assert done.options[done.answer_index or 0] == AROUND[0]
    assert (done.drop, done.evidence, done.repairs[0].by) == (None, asked.evidence, "rules")
    again = failed("giveaways", "too alike", question=ORDER, options=done.options, answer=AROUND[0])
    assert repaired(again, "giveaways", writer, RepairRule(builds_options=True)) is None
    assert len(writer.asked) == 1  # code has nothing else to offer, so the model is asked
    other = ScriptedVerifier({})
    assert repaired(asked, "giveaways", other) is None
    assert len(other.asked) == 1


def test_a_writers_orders_are_replaced_by_balanced_ones() -> None:
    lines = [f"WRONG ANSWER {n}: {order}" for n, order in enumerate(AROUND[1:], 1)]
    text = "\n".join((f"QUESTION 1: (order) {ORDER}", f"CORRECT ANSWER: {AROUND[0]}", *lines))
    for builds in (True, False):
        writer = ScriptedVerifier({}, repair=lambda _: text)
        rule = RepairRule(builds_options=builds)
        done = repaired(failed("blind", "a cue"), "blind", writer, rule)
        assert done is not None
        assert done.drop is None
        assert {*done.options} == (BALANCED if builds else {*AROUND})
        assert ("balanced" in writer.asked[0].messages[-1].text) == builds


def test_frames_of_the_moments_that_the_verifier_named_come_first() -> None:
    """Within the limit on frames, the evidence gets what the named moments leave."""
    video = row(question())
    near = Condition(condition="evidence", fps=1.0, most=6)

    def times(named: Sequence[Span], most: int = 6) -> list[float]:
        shown = asyncio.run(
            frames_for_writer(video, Stills(video), None, replace(near, most=most), (SCENE,), named)
        )
        assert [f"{time}".encode() for time in shown[0]] == list(shown[1])
        return list(shown[0])

    assert all(40 <= t <= 50 for t in times(()))
    assert len(times(())) == 6
    inside = times((Span(200.0, 204.0),))
    assert sum(200 <= t <= 204 for t in inside) == 4
    assert sum(40 <= t <= 50 for t in inside) == 2
    assert all(200 <= t <= 212 for t in times((Span(200.0, 212.0),)))
    reply = "* SEEN: so\n* PREMISE: HOLDS\n* OPTION A: WRONG\n* OPTION B: RIGHT 200.0-204.0"
    writer = ScriptedVerifier({}, repair=lambda _: REWRITTEN)
    asked = failed(
        "sight",
        reply,
        drop="sight: answer disputed: 'green' is chosen",
        faults={"sight": "disputed"},
    )
    assert repaired(asked, "sight", writer, RepairRule(near=near, see=None)) is not None
    frames = writer.asked[0].variables["frames"]
    assert sum(200 <= t <= 204 for t in frames) == 4


def test_no_repair_asks_for_a_side_or_forbids_what_only_the_video_shows() -> None:
    said = {kind: instruction(kind) for kind in FAULTS}
    assert "no way out" not in "".join(said.values())
    whole = Prompts().render(
        PROMPT, frames=(), segments=(), lines=(), described=False, others=(), question=question(),
        kinds=(), now=FailedWording(
            question="q", answer="a", wrong=("b",), reason="r", fault=GUESSED, replies=()
        ),
        earlier=(), fault="guessed", least=0.0, builds_options=False,
    ).user  # fmt: skip
    assert "left or right" in whole
