"""Which evaluations are of one benchmark, and what is said where questions differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mustsee.errors import UserError
from mustsee.evaluate.compare import ComparedEvaluation
from mustsee.evaluate.compare_sets import (
    check_same_questions,
    describe_labels,
    describe_overlaps,
    group_by_benchmark,
)
from mustsee.records import Point, Question
from tests.evaluate.test_compare import evaluate
from tests.evaluate.test_score import ask, right


def evaluated(folder: str, questions: Sequence[Question], dataset: str = "d") -> ComparedEvaluation:
    return evaluate([right(q, folder) for q in questions], folder, dataset=dataset)


BASE = [ask(3 * i) for i in range(4)]


def test_other_questions_are_refused_with_what_each_evaluates() -> None:
    other = evaluated("B", [ask(300 + i) for i in range(6)], "other.json")
    with pytest.raises(UserError) as caught:
        check_same_questions([evaluated("A", BASE), other])
    for part in ("'A' and 'B'", "4 of 'd' (q0, q3, q6 and 1 more)", "6 of 'other.json'",
                 "none is in both", "evaluations=FOLDER"):  # fmt: skip
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"question": "Else?"}, "text in q3"),
        ({"options": ("one x", "two y", "four w")}, "options in q3"),
        ({"answer_index": 2}, "answer key in q3"),
        ({"options": (), "answer_index": None, "answer": "x"}, "options in q3; answer key in q3"),
    ],
)
def test_versions_of_a_question_are_refused_with_what_differs(
    change: dict[str, object], what: str
) -> None:
    changed = [replace(BASE[1], **change), *BASE[2:]]  # type: ignore[arg-type]
    same, more = evaluated("A", BASE), evaluated("M", [*BASE[2:], ask(90)])
    check_same_questions([same, more])
    with pytest.raises(UserError, match=f"'A' and 'B'.* 1 of 3 questions.*{what}"):
        check_same_questions([same, more, evaluated("B", changed)])


def test_open_questions_differ_by_reference_and_points() -> None:
    first = replace(BASE[0], options=(), answer_index=None, answer="x", points=(Point(text="p"),))
    others = {"reference answer": {"answer": "y"}, "points": {"points": (Point(text="q"),)}}
    for what, change in others.items():
        with pytest.raises(UserError, match=f"{what} in q0"):
            check_same_questions(
                [evaluated("A", [first]), evaluated("B", [replace(first, **change)])]  # type: ignore[arg-type]
            )


def test_a_part_of_the_questions_is_the_same_set() -> None:
    check_same_questions([evaluated("A", BASE), evaluated("B", BASE[1:3])])


def test_benchmarks_are_told_by_their_source_and_copies_by_their_questions() -> None:
    one, part = evaluated("A", BASE, "runs/d"), evaluated("B", BASE[:2], "runs/d/")
    copy, other = evaluated("C", BASE, "/copy/d"), evaluated("D", [ask(0, "Else")], "e")
    groups = group_by_benchmark([one, other, part, copy])
    assert [[e.folder for e in group] for group in groups] == [["A", "B", "C"], ["D"]]


def test_benchmarks_of_equal_ids_do_not_meet_and_a_part_elsewhere_is_said() -> None:
    one, part = [evaluated("A", BASE, "d")], [evaluated("B", BASE[:2], "elsewhere")]
    other = [evaluated("C", [ask(0, question="Else?")], "e")]
    notes = describe_overlaps([one, part, other])
    assert [len(of) for of in notes] == [1, 1, 0]
    assert "2 of these 4 questions are in elsewhere, too" in notes[0][0]
    assert "2 of these 2 questions are in d, too" in notes[1][0]


def test_other_labels_are_said_and_no_reason_to_refuse() -> None:
    relabelled = evaluated("B", [replace(BASE[0], question_type="Else", skill="plan"), *BASE[1:]])
    check_same_questions([evaluated("A", BASE), relabelled])
    (note,) = describe_labels([evaluated("A", BASE), evaluated("C", BASE), relabelled])
    assert note.startswith("B has other labels of 1 questions than A")
    assert note.endswith("type in q0; skill in q0.")
