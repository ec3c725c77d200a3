"""Rows of training sets as questions: known layouts, kinds of answers, and what is left alone."""

from typing import Any

import pytest

from mustsee.clean.columns import TrainingRow, columns_of, count_from, read_question
from mustsee.errors import UserError


def read(row: dict[str, Any], **given: Any) -> TrainingRow:
    columns = count_from([row], columns_of(list(row), given or None))
    return read_question(row, columns, "file/0", "file")


def test_video_r1_s_rows_are_read() -> None:
    row = {
        "problem_id": 7, "problem": "<video>What is red?", "problem_type": "multiple choice",
        "options": ["A. the car", "B. the bus"], "solution": "<answer>B</answer>",
        "path": "./star/clip.mp4", "data_source": "STAR",
    }  # fmt: skip
    read_row = read(row)
    assert (read_row.kind, read_row.options, read_row.answer_index) == (
        "choice", ("the car", "the bus"), 1,
    )  # fmt: skip
    assert (read_row.question, read_row.video, read_row.source) == ("What is red?", "clip", "STAR")
    assert (read_row.question_id, read_row.question_type) == ("7", "multiple choice")


def test_a_chat_of_one_turn_is_a_question_and_options_may_stand_in_it() -> None:
    turns = [
        {"from": "human", "value": "<image>\nWho runs?\nA. a man\nB. a dog\nAnswer with a letter."},
        {"from": "gpt", "value": "B."},
    ]
    row = read({"id": "x", "conversations": turns, "video": "a/b.mp4"})
    assert (row.question, row.options, row.answer) == ("Who runs?", ("a man", "a dog"), "a dog")
    parts = [{"type": "video"}, {"type": "text", "text": "How many?"}]
    row = read({"messages": [{"role": "user", "content": parts},
                             {"role": "assistant", "content": "3"}]})  # fmt: skip
    assert (row.question, row.kind, row.answer) == ("How many?", "number", "3")
    assert read({"conversations": [*turns, *turns]}).left == "a chat of several turns"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("Yes.", "yes/no"), ("false", "yes/no"), ("3", "number"), ("1,200 m", "number"),
        ("seven", "number"), ("\\boxed{12.5}", "number"), ("a red car", "open"),
        ("3 - 4", "open"), ("two men", "open"),
    ],
)  # fmt: skip
def test_the_kind_of_an_answer(answer: str, kind: str) -> None:
    assert read({"question": "What?", "answer": answer}).kind == kind


def test_an_answer_that_is_read_off_the_screen_is_a_text() -> None:
    assert read({"question": "What?", "answer": "Exit 12", "type": "OCR"}).kind == "text"


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("[12, 30, 200, 410]", "its answer is a box"),
        ("<|box_start|>(1,2),(3,4)<|box_end|>", "its answer is a box"),
        ([1, 2, 3, 4], "its answer is a box"),
        ("12.5 - 18.0", "its answer is a span"),
        ("3 to 7 s", "its answer is a span"),
        ("00:12 - 01:30", "its answer is a span"),
        ([[1.0, 2.5]], "its answer is a span"),
        ({"x": 1}, "its answer is an object"),
        (["a", "b"], "its answer is a list"),
        ("", "no answer"),
        (None, "no answer"),
    ],
)
def test_what_is_left_alone(answer: Any, left: str) -> None:
    assert read({"question": "Where?", "answer": answer}).left == left


def test_a_key_that_is_no_option_is_named() -> None:
    row = {"question": "Q", "options": ["x", "y"], "answer": "z"}
    assert read(row).left == "its answer is none of the options"
    assert read({**row, "answer": "y"}).answer_index == 1
    assert read({**row, "answer": "(B)"}).answer_index == 1
    assert read({**row, "question": ""}).left == "no question"


def test_numbers_of_options_are_counted_as_the_rows_show() -> None:
    rows = [{"question": "Q", "a0": "x", "a1": "y", "answer": n} for n in ("0", "1")]
    columns = count_from(rows, columns_of(list(rows[0]), None))
    assert columns.first == 0
    assert read_question(rows[1], columns, "1", "f").answer == "y"
    from_one = [{**row, "answer": n} for row, n in zip(rows, ("1", "2"), strict=True)]
    assert count_from(from_one, columns_of(list(rows[0]), None)).first == 1
    with pytest.raises(UserError, match="counted from 0 or from 1"):
        count_from(rows[1:], columns_of(list(rows[0]), None))
    with pytest.raises(UserError, match="number from 0, number from 1"):
        columns_of(list(rows[0]), {"answers": "number from 2"})
    assert columns_of(list(rows[0]), {"answers": "number from 1"}).first == 1


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(UserError, match="no column is known to hold the question"):
        columns_of(["clip", "ask", "key"], None)
    with pytest.raises(UserError, match=r"no column \['asks'\]"):
        columns_of(["clip", "ask", "key"], {"question": "asks"})
    with pytest.raises(UserError, match="are not among"):
        columns_of(["question"], {"questions": "ask"})
    row = read({"clip": "a.mp4", "ask": "Who?", "key": "a dog"},
               question="ask", answer="key", video="clip")  # fmt: skip
    assert (row.question, row.answer, row.video, row.kind) == ("Who?", "a dog", "a", "open")
