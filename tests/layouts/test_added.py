"""People's questions stand beside those of a run; what cannot be added is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mustsee.errors import UserError
from mustsee.layouts import QuestionFile
from mustsee.layouts.added import (
    NO_KEY,
    NO_VIDEO,
    NOT_MADE,
    NOT_WITHIN,
    PEOPLE,
    add_questions,
    describe_verdicts,
)
from mustsee.layouts.detect import read
from mustsee.records import Question, Span, Video, passed_metric, unverified_metric

VIDEOS = (
    Video(video_id="aa", uri="/films/pan.mp4", duration=60.0),
    Video(video_id="bb", uri="/films/other.mp4", duration=60.0, drop="probe: too short"),
)
MINE = Question(
    question_id="m1", video_id="pan", recipe="table", question="Who?", question_type="",
    options=("a", "b"), answer_index=1, evidence=(Span(1, 2),),
)  # fmt: skip
OLD = replace(MINE, question_id="old", video_id="aa", recipe="facts", subsets=("mma",))


def file_of(*questions: Question) -> QuestionFile:
    return QuestionFile(layout="table", questions=questions)


def test_questions_are_added_by_the_id_or_file_of_their_video() -> None:
    by_id = replace(MINE, question_id="m2", video_id="aa")
    added = add_questions(file_of(MINE, by_id), VIDEOS, [OLD])
    row, other = added.rows
    assert row.questions is not None
    assert row.questions[0] == OLD
    assert [(q.question_id, q.video_id, q.recipe) for q in row.questions[1:]] == [
        ("m1", "aa", PEOPLE), ("m2", "aa", PEOPLE),
    ]  # fmt: skip
    assert (row.questions[1].question, row.questions[1].options) == (MINE.question, MINE.options)
    assert row.questions[1].answer == "b"
    assert other.questions == ()
    assert added.lines() == ["2 questions by people added"]


def test_what_cannot_be_added_is_named_with_its_reason() -> None:
    others = {
        "gone": (replace(MINE, video_id="gone"), NO_VIDEO),
        "drop": (replace(MINE, video_id="other"), NOT_MADE),
        "key": (replace(MINE, answer_index=None), NO_KEY),
        "late": (replace(MINE, evidence=(Span(59, 61),)), NOT_WITHIN),
    }
    questions = [replace(q, question_id=name) for name, (q, _) in others.items()]
    added = add_questions(file_of(MINE, *questions), VIDEOS, [OLD])
    assert added.left_out == {name: reason for name, (_, reason) in others.items()}
    assert f"1 not added, {NO_VIDEO}: gone" in added.lines()
    assert added.plain() == {"added": ("m1",), "left_out": added.left_out}
    with pytest.raises(UserError, match=r"none of 4 questions.*has no such video \(1\).*as aa, bb"):
        add_questions(file_of(*questions), VIDEOS, [OLD])
    with pytest.raises(UserError, match="ids of questions of the run: m1"):
        add_questions(file_of(MINE), VIDEOS, [replace(OLD, question_id="m1")])


def test_broken_rows_of_a_table_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(
        "vid,qid,q,a0,a1,answer\npan,1,Who?,a,b,0\npan,2,Who?,a,a,0\npan,3,Who?,c,d,1\n"
    )
    added = add_questions(read(file), VIDEOS, [OLD])
    assert added.added == ("1", "3")
    assert added.left_out == {"2": "two options are the same"}


def test_verdicts_are_described_for_added_questions_alone() -> None:
    mine = replace(MINE, recipe=PEOPLE)
    known = replace(mine, metrics={passed_metric("blind"): 0.0})
    open_ = replace(mine, metrics={unverified_metric("sight"): 1.0}, drop="x: y")
    (line,) = describe_verdicts([mine, known, open_, OLD])
    assert line == (
        "questions by people: 1 of 3 passed every filter; 1 dropped; did not pass blind (1); "
        "unverified by sight (1)"
    )
