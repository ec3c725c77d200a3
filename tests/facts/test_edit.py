"""What an editor of open questions sends back is written again; what it rejects is not asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mustsee.calls.llm import Request
from mustsee.errors import BadRow, Unparsed
from mustsee.facts.edit import QUESTION_LISTS, REJECTED, REPEATED, RETURNED, remarks_form
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


@pytest.mark.parametrize(
    ("reply", "remarks"),
    [
        ("QUESTION 1: NONE\nQUESTION 2: One scene | ask more", ("", "one scene: ask more")),
        ("QUESTION 2: beside | C3\nQUESTION 1: none | fine", ("", "beside: C3")),
        ("QUESTION 1: wrong\nQUESTION 2: none", ("wrong", "")),
    ],
)
def test_remarks_are_read(reply: str, remarks: tuple[str, ...]) -> None:
    assert remarks_form(2).read(reply) == remarks


@pytest.mark.parametrize(
    "reply", ["QUESTION 1: none", "QUESTION 1: splendid | so\nQUESTION 2: none", "all good"]
)
def test_a_reply_that_names_no_fault_of_each_question_is_refused(reply: str) -> None:
    with pytest.raises(Unparsed):
        remarks_form(2).read(reply)
