"""What an editor of open questions sends back is written again; what it rejects is not asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mustsee.calls.llm import Request
from mustsee.errors import BadRow, Unparsed
from mustsee.facts.edit import (
    FAULTS,
    MENDED,
    NO_FAULT,
    QUESTION_LISTS,
    REJECTED,
    REPEATED,
    RETURNED,
    Reading,
    readings_form,
)
from mustsee.facts.points import OpenDraft, Statement, Statements
from mustsee.facts.settings import FactSettings
from tests.facts.test_deep import SETTINGS, Model, Story, edit_reply, run_story

ONE_SCENE = "one scene | the end alone tells it"


def of_points(**given: Any) -> FactSettings:
    assert SETTINGS.deep is not None
    points = replace(SETTINGS.deep.points, **given)
    return replace(SETTINGS, deep=replace(SETTINGS.deep, points=points))


def edited(*remarks: str, **replies: Any) -> Model:
    return Model({**Story().model().replies, "facts/edit": edit_reply(*remarks), **replies})


def test_the_writer_writes_again_what_the_editor_sends_back() -> None:
    """It is told the question, the points, the remark, and what is published already."""
    model = edited("none |", ONE_SCENE)

    def write(request: Request) -> str:
        lines = Story().questions(request).splitlines()
        if not request.variables["returned"]:
            return "\n".join(lines)
        again = [line for line in lines if line.startswith(("QUESTION 2", "POINT 2"))]
        return "\n".join(line.replace("second half", "other half") for line in again)

    model = replace(model, replies={**model.replies, "facts/questions": write})
    questions, counts = run_story(Story(), model=model)
    assert [q.drop for q in questions] == [None, None]
    assert [q.question for q in questions] == [
        "What becomes of the first half?", "What becomes of the other half?",
    ]  # fmt: skip
    first, again = model.of("facts/questions")
    assert (first.variables["published"], first.variables["returned"]) == ([], [])
    (returned,) = again.variables["returned"]
    assert returned["question"] == "What becomes of the second half?"
    assert returned["remark"] == "one scene: the end alone tells it"
    assert returned["ids"].startswith("C")
    assert [one["question"] for one in again.variables["published"]] == [
        "What becomes of the first half?"
    ]
    assert [(one.name, one.count) for one in again.variables["wanted"]] == [("goal", 1)]
    read, read_again = model.of("facts/edit")
    assert (len(read.variables["drafts"]), read.variables["published"]) == (2, [])
    assert len(read_again.variables["drafts"]) == 1
    assert read_again.variables["published"] == again.variables["published"]
    assert (counts[RETURNED], counts[REJECTED]) == (1, 0)


def test_the_editor_looks_at_the_whole_video_and_knows_the_statements() -> None:
    model = edited()
    run_story(Story(), model=model)
    (read,) = model.of("facts/edit")
    assert len(read.messages[-1].images) == 64
    assert read.variables["claims"] == model.of("facts/questions")[0].variables["claims"]
    assert len(model.of("facts/questions")) == 1, "nothing was sent back"


def test_every_fault_is_explained_to_the_editor() -> None:
    model = edited()
    run_story(Story(), model=model)
    text = model.of("facts/edit")[0].messages[-1].text
    assert [line[2:].split(":")[0] for line in text.splitlines() if line.startswith("- ")][
        : len(FAULTS) + 1
    ] == [*FAULTS, NO_FAULT]


def test_what_the_editor_still_rejects_is_not_asked_and_says_why() -> None:
    model = edited(*[ONE_SCENE] * 6)
    questions, counts = run_story(Story(), model=model)
    assert {q.drop for q in questions} == {"editor: one scene: the end alone tells it"}
    assert not model.of("facts/answer_seen"), "nothing is spent on it"
    assert (counts[RETURNED], counts[REJECTED]) == (4, 2)
    assert len(model.of("facts/edit")) == 3


@pytest.mark.parametrize("is_edited", [True, False])
def test_a_question_is_asked_once(is_edited: bool) -> None:
    """A writer may give back a question that was published before."""

    def write(request: Request) -> str:
        lines = Story().questions(request).replace("second half", "first half").splitlines()
        if request.variables["returned"]:
            lines = [line for line in lines if " 2:" in line]
        return "\n".join(lines)

    settings = SETTINGS if is_edited else of_points(editor=None)
    model = edited("none |", ONE_SCENE, **{"facts/questions": write})
    questions, counts = run_story(Story(), settings, model)
    assert [q.question for q in questions] == ["What becomes of the first half?"]
    assert counts[REPEATED] >= 1


def test_nobody_reads_the_questions_without_an_editor() -> None:
    model = edited(ONE_SCENE)
    questions, _ = run_story(Story(), of_points(editor=None), model)
    assert not model.of("facts/edit")
    assert [q.drop for q in questions] == [None, None]


def test_readings_that_nobody_can_read_end_the_row() -> None:
    """All of a step, as everywhere."""
    with pytest.raises(BadRow):
        run_story(Story(), model=edited("splendid | it shines", "splendid | too"))


def test_a_writer_that_has_nothing_better_leaves_the_question_out() -> None:
    def write(request: Request) -> str:
        return "NONE" if request.variables["returned"] else Story().questions(request)

    model = edited("none |", ONE_SCENE, **{"facts/questions": write})
    questions, counts = run_story(Story(), model=model)
    assert questions[1].drop == "editor: one scene: the end alone tells it"
    assert counts[REJECTED] == 1


def test_a_question_that_could_not_be_written_again_stays_rejected() -> None:
    """The reply is counted as one that could not be read; what passed is not lost."""

    def write(request: Request) -> str:
        return "Sure!" if request.variables["returned"] else Story().questions(request)

    model = edited("none |", ONE_SCENE, **{"facts/questions": write})
    questions, counts = run_story(Story(), model=model)
    assert [q.drop for q in questions] == [None, "editor: one scene: the end alone tells it"]
    assert counts[QUESTION_LISTS] == 1


MENDING = """MENDED {n}: What becomes of the half that was hidden?
POINT {n}: 3 | C1
POINT {n}: 2 | C2
POINT {n}: 1 | F1
POINT {n}: 1 | F2
ANSWER {n}: It was hidden, and then found."""


def mending(fault: str, times: int = 1) -> Any:
    """An editor who finds this fault in the last question it is given, and mends it, `times` in
    turn.
    """
    left = [fault] * times

    def reply(request: Request) -> str:
        count = len(request.variables["drafts"])
        lines = [f"QUESTION {n}: none |" for n in range(1, count + 1)]
        if left:
            lines[-1] = f"QUESTION {count}: {left.pop()} | so\n{MENDING.format(n=count)}"
        return "\n".join(lines)

    return reply


def test_what_the_editor_mends_is_read_again_and_asked_as_it_reads_then() -> None:
    model = edited(**{"facts/edit": mending("incomplete")})
    questions, counts = run_story(Story(), model=model)
    assert [q.drop for q in questions] == [None, None]
    assert questions[1].question == "What becomes of the half that was hidden?"
    assert [point.weight for point in questions[1].points] == [3, 2, 1, 1]
    _, read_again = model.of("facts/edit")
    (again,) = read_again.variables["drafts"]
    assert again["question"] == "What becomes of the half that was hidden?"
    assert again["answer"] == "It was hidden, and then found."
    assert len(model.of("facts/questions")) == 1, "the writer has nothing to do"
    assert (counts[MENDED], counts[RETURNED], counts[REJECTED]) == (1, 0, 0)


@pytest.mark.parametrize(("fault", "is_asked"), [("stiff", True), ("one scene", False)])
def test_the_last_mending_ends_a_slight_fault_only(fault: str, is_asked: bool) -> None:
    """Nobody would read a question again whose points were changed for a grave one."""
    model = edited(**{"facts/edit": mending(fault, 3)})
    questions, counts = run_story(Story(), model=model)
    assert questions[1].question == "What becomes of the half that was hidden?"
    assert questions[1].drop == (None if is_asked else f"editor: {fault}: so")
    assert len(model.of("facts/edit")) == 3
    assert (counts[MENDED], counts[REJECTED]) == (3, 0 if is_asked else 1)


CLAIMS = tuple(Statement(text=f"Claim {n}.", facts=(f"c{n}",), spans=()) for n in range(2))
RULES = of_points(least=3).deep.points  # type: ignore[union-attr]
STATEMENTS = Statements(
    claims=CLAIMS,
    facts=tuple(Statement(text=f"Fact {n}.", facts=(f"f{n}",), spans=()) for n in range(2)),
    rules=RULES,
)
DRAFT = OpenDraft(skill="cause", question="Why is the box open?", statements=CLAIMS, weights=(3, 2))


def read(reply: str) -> tuple[Reading, ...]:
    return readings_form((DRAFT, DRAFT), STATEMENTS).read(reply)


@pytest.mark.parametrize(
    ("reply", "remarks"),
    [
        ("QUESTION 1: NONE\nQUESTION 2: One scene | ask more", ("", "one scene: ask more")),
        ("QUESTION 2: beside | C3\nQUESTION 1: none | fine", ("", "beside: C3")),
        ("QUESTION 1: wrong\nQUESTION 2: none", ("wrong", "")),
    ],
)
def test_remarks_are_read(reply: str, remarks: tuple[str, ...]) -> None:
    readings = read(reply)
    assert tuple(reading.draft.remark for reading in readings) == remarks
    assert [reading.mended for reading in readings] == [None, None]


def test_a_mended_question_keeps_its_skill() -> None:
    _, reading = read(f"QUESTION 1: none\nQUESTION 2: open | so\n{MENDING.format(n=2)}")
    assert reading.mended is not None
    assert (reading.mended.skill, reading.mended.remark) == ("cause", "")
    assert [one.text for one in reading.mended.statements] == [
        "Claim 0.", "Claim 1.", "Fact 0.", "Fact 1.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        "QUESTION 1: none",
        "QUESTION 1: splendid | so\nQUESTION 2: none",
        "all good",
        "QUESTION 1: none\nQUESTION 2: open | so\n" + MENDING.format(n=2).replace("C2", "C9"),
        "QUESTION 1: none\nQUESTION 2: open | so\nMENDED 2: Why is it so?\nPOINT 2: 3 | C1",
        "QUESTION 1: none\nQUESTION 2: open | so\nPOINT 2: 3 | C1",
        f"QUESTION 1: none\n{MENDING.format(n=1)}\nQUESTION 2: none",
        f"QUESTION 1: none\nQUESTION 2: none\n{MENDING.format(n=3)}",
    ],
)
def test_a_reply_that_breaks_the_form_is_refused(reply: str) -> None:
    """Each question has a fault, and a mended one the points of a question."""
    with pytest.raises(Unparsed):
        read(reply)
