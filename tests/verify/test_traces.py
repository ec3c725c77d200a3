"""Reasoning traces: parsing, drops by an unconfirmed step, and grades."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mustsee.calls.llm import Asker, Message, Reply, Request
from mustsee.errors import Unparsed, UserError
from mustsee.offline.facts import RULES
from mustsee.offline.sight import RULES as SIGHT
from mustsee.prompts import Prompts
from mustsee.records import Line, Question, Span, Step, Trace
from mustsee.verify import traces
from mustsee.verify.filters import VettingContext
from mustsee.verify.look_replies import OPEN, RIGHT, WRONG, OptionVerdict, look_form, say
from mustsee.verify.traces import AXES, Traces, add_trace, steps_form
from tests.offline.test_sight import card, plain, shown
from tests.support.verifier import SCENE, Stills, question, row

STEPS = (
    "STEP 1: 41.0-44.0: A kite rises: it is red.\nSTEP 2: 45-48: It falls.\n"
    "CONCLUSION: So it is red."
)
TRACE = Trace(
    steps=(Step(start=41.0, end=44.0, text="A kite rises: it is red."),
           Step(start=45.0, end=48.0, text="It falls.")),
    conclusion="So it is red.",
)  # fmt: skip
VIDEO = Span(0.0, 300.0)


@dataclass
class Writer:
    """A model with one prepared reply."""

    reply: str
    identity: str = "writer"

    async def complete(self, request: Request) -> Reply:
        return Reply(text=self.reply, model="writer")


def mcq(text: str, answer: str, *wrong: str) -> Question:
    return question(question=text, options=(answer, *wrong), answer=answer, answer_index=0)


def grades(**levels: int) -> str:
    given = {**dict.fromkeys(AXES, 2), **levels}
    return "\n".join(f"{a.upper()} REASON: so\n{a.upper()}: {n}" for a, n in given.items())


@dataclass
class ScriptedVerifier:
    """Finds each step (or not) by what it says; `says`: step -> its replies in turn."""

    says: Mapping[str, Sequence[str]]
    identity: str = "verifier"

    async def complete(self, request: Request) -> Reply:
        text = request.variables["question"]
        said = next((s for step, s in self.says.items() if step in text), ["Yes"])
        word = said[request.seed % len(said)]
        options = list(request.variables["options"])
        if word == "?":
            return Reply(text="It depends.", model="it")
        other = OptionVerdict(WRONG if word in options else OPEN)
        right = OptionVerdict(RIGHT, (Span(41.0, 42.0),))
        text = say([right if option == word else other for option in options], "it")
        return Reply(text=text, model="it")


def make_trace(
    says: Mapping[str, Sequence[str]] | None = None, reply: str = STEPS, graded: str = grades()
) -> tuple[Question, Counter[str]]:
    counted, video = Counter[str](), row()
    writer, grader, verifier = (
        Asker(llm=llm, prompts=Prompts(), tries=1)
        for llm in (Writer(reply), Writer(graded), ScriptedVerifier(says or {}))
    )
    vetting = VettingContext(askers={"verifier": verifier}, video_frames=Stills(video),
                      count=lambda name, n: counted.update({name: n}))  # fmt: skip
    done = add_trace(question(), video, writer, grader, Traces(most=4), vetting)
    return asyncio.run(done), counted


def test_a_trace_with_confirmed_steps_is_kept_with_its_grades() -> None:
    found, counted = make_trace()
    assert found.trace == TRACE
    assert {a: found.metrics[f"trace_{a}"] for a in AXES} == dict.fromkeys(AXES, 2.0)
    assert found.metrics["trace_passed"] == 1
    looks = [v for v in found.verdicts if v.filter == "trace" and "condition" in v.detail]
    assert len(looks) == 4  # two for each step
    shown_at = [json.loads(v.detail)["frames"] for v in looks]
    assert all(41 <= t <= 44 for t in shown_at[0])
    assert json.loads(found.verdicts[-1].detail) == dict.fromkeys(AXES, 2)
    assert not counted


@pytest.mark.parametrize("said", [["No"], ["Cannot"]])
def test_one_unconfirmed_step_drops_the_trace(said: Sequence[str]) -> None:
    found, counted = make_trace({"It falls": said})
    assert (found.trace, found.metrics["trace_passed"]) == (None, 0)
    assert counted == {traces.FALLEN: 1}
    assert found.verdicts
    assert found.drop is None  # the question is none the worse


def test_a_single_wrong_look_does_not_decide() -> None:
    found, _ = make_trace({"It falls": ["No", "Yes", "Yes"]})
    assert found.trace == TRACE
    looks = [v for v in found.verdicts if v.filter == "trace" and "condition" in v.detail]
    assert len(looks) == 5  # two at the first step, three at the second


def test_unparseable_replies_leave_a_trace_unverified() -> None:
    for found, _ in (make_trace({"It falls": ["?"]}), make_trace(graded="Good, all in all.")):
        assert found.trace is None
        assert found.unverified_by == ("trace",)
        assert "trace_passed" not in found.metrics


def test_a_low_grade_drops_the_trace() -> None:
    found, _ = make_trace(graded=grades(logic=0))
    assert (found.trace, found.metrics["trace_passed"], found.metrics["trace_logic"]) == (
        None,
        0,
        0,
    )


@pytest.mark.parametrize("reply", ["NONE", "He sees it.", '{"steps": [], "conclusion": "NONE"}'])
def test_a_question_without_a_trace_is_counted(reply: str) -> None:
    found, counted = make_trace(reply=reply)
    assert (found, counted) == (question(), {traces.WITHOUT: 1})


def test_text_and_json_replies_parse_to_the_same() -> None:
    said = {"steps": [{"start": s.start, "end": s.end, "seen": s.text} for s in TRACE.steps],
            "conclusion": TRACE.conclusion}  # fmt: skip
    bold = "Sure:\r\n" + STEPS.replace("STEP 1:", "**STEP 1:**").replace("\n", "\r\n\r\n")
    form = steps_form(VIDEO, 4)
    assert form.read(STEPS) == form.read(json.dumps(said)) == form.read(bold) == TRACE


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("STEP 1: It is red.\nCONCLUSION: So.", "does not begin with its stretch"),
        ("STEP 1: 10-20: It is red.", "steps and a conclusion"),
        ("CONCLUSION: So.", "steps and a conclusion"),
        ("STEP 1: 310-320: It is red.\nCONCLUSION: So.", "outside of the video"),
        ("STEP 1: 10-20: \nCONCLUSION: So.", "does not begin|no text"),
        (
            "\n".join([*(f"STEP {n}: 1-2: a" for n in range(5)), "CONCLUSION: b"]),
            "5 steps; expected at most 4",
        ),
    ],
)
def test_a_faulty_trace_is_sent_back(reply: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        steps_form(VIDEO, 4).read(reply)


def test_trace_settings_out_of_range_are_refused() -> None:
    wrong: list[dict[str, Any]] = [{"most": -1}, {"least": 3}, {"runs": 0}]
    for given in wrong:
        with pytest.raises(UserError, match=r"enrich\.traces"):
            Traces(**given)


LINES = (Line(start=10, end=14, text="Break the eggs."), Line(start=15, end=19, text="Stir them."))


def ruled(source: Question) -> Trace | None:
    request = Request(prompt="enrich/trace", digest="", messages=(),
                      variables={"question": source, "most": 8})  # fmt: skip
    return steps_form(VIDEO, 8).read(RULES["enrich/trace"](request))


def steps_of(source: Question, *evidence: Span) -> list[tuple[float, str]]:
    found = ruled(replace(source, evidence=evidence))
    return [(s.start, s.text) for s in found.steps] if found else []


def test_rules_write_the_steps_of_composed_questions() -> None:
    one, two = Span(1.0, 3.0), Span(9.0, 11.0)
    milk, eggs = "the words “MILK”", "the words “EGGS”"
    order = mcq(f"In which order are these seen? {milk}; {eggs}", f"{eggs}; {milk}", "x")
    read = [(1.0, "The words “EGGS” can be read on the screen."),
            (9.0, "The words “MILK” can be read on the screen.")]  # fmt: skip
    assert steps_of(order, one, two) == read
    before = mcq(f"Which of these is seen last before {milk} can be seen?", eggs, "x")
    assert steps_of(before, two, one) == read
    assert steps_of(before, two, Span(3.0, 9.0), one) == read  # what lies between shows neither
    between = mcq(f"Which of these is seen after {eggs} can be seen but before {milk} can be seen?",
                  "the words “SALT”", "x")  # fmt: skip
    assert [time for time, _ in steps_of(between, one, Span(5.0, 6.0), two)] == [1.0, 5.0, 9.0]
    said = mcq("Which of these is said while much of the picture is clearly red?",
               "“Break the eggs.”", "x")  # fmt: skip
    both = [(1.0, "Much of the picture is clearly red."),
            (1.0, "One hears the words “Break the eggs.”.")]  # fmt: skip
    assert steps_of(said, one) == both


def test_rules_write_no_steps_where_a_span_or_a_measure_is_lacking() -> None:
    one, two = Span(1.0, 3.0), Span(9.0, 11.0)
    milk, eggs = "the words “MILK”", "the words “EGGS”"
    after = mcq(f"Which of these is seen next after {milk} can be seen?", eggs, "x")
    assert steps_of(after, one, two, Span(20.0, 21.0), Span(30.0, 31.0)) == []
    seen = mcq(f"Who is seen when {milk} can be seen?", "the man in red", "x")
    assert steps_of(seen, one) == []
    assert steps_of(mcq("Who breaks the eggs?", "Anna", "Ben"), one) == []


def measured(step: str, options: Sequence[str], images: Sequence[np.ndarray]) -> str:
    """Return the offline verifier's answer about a step."""
    variables = {"question": traces.ASKED.format(step), "options": tuple(options), "lines": LINES,
                 "frames": tuple(map(float, range(len(images)))),
                 "earlier_frames": (), "earlier_lines": ()}  # fmt: skip
    message = Message("user", "", tuple(shown(images)))
    request = Request(prompt="filters/sight", digest="", messages=(message,), variables=variables)
    reply = SIGHT["filters/sight"](request)
    choice = look_form(2).read(reply).choice
    assert isinstance(choice, int)
    return options[choice]


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("The words “MEDIUM HEAT” can be read on the screen.", "Yes"),
        ("The words “BREAD” can be read on the screen.", "No"),
        ("One hears the words “Break the eggs”.", "Yes"),
        ("One hears the words “Add milk”.", "No"),
        ("Much of the picture is clearly red.", "No"),
    ],
)
@pytest.mark.parametrize("options", [("Yes", "No"), ("No", "Yes")])
def test_the_offline_verifier_measures_the_statement_of_a_step(
    step: str, answer: str, options: Sequence[str]
) -> None:
    assert measured(step, options, [card("MEDIUM HEAT")] * 2) == answer


def test_the_offline_verifier_measures_large_areas() -> None:
    step = "Much of the picture is clearly red."
    assert measured(step, ("Yes", "No"), [plain("red")]) == "Yes"


def test_rules_grade_by_counting() -> None:
    source = question(evidence=(SCENE, Span(100.0, 110.0)))
    request = Request(prompt="enrich/rubric", digest="", messages=(),
                      variables={"question": source, "trace": TRACE})  # fmt: skip
    levels, _ = traces.levels_form(dict.fromkeys(AXES, traces.LEVELS)).read(
        RULES["enrich/rubric"](request)
    )
    assert levels == {"perception": 2, "time": 2, "logic": 2, "completeness": 1}
