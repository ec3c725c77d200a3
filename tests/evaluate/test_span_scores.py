"""IoU of spans, and what counts: unreadable replies as 0, failed calls not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.evaluate import score, score_show
from mustsee.evaluate.answers import verdict_on_failure, verdict_on_reply
from mustsee.evaluate.compare import IOU, Measure, score_evaluation
from mustsee.evaluate.span_scores import measure_iou
from mustsee.records import WHEN, Question, Span

RIGHT = (Span(10.0, 20.0),)
SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda x: Span(x[0], x[0] + x[1])),
    min_size=1, max_size=4,
)  # fmt: skip


def when(name: str, replies: Sequence[str | None], **fields: object) -> Question:
    question = Question(
        question_id=name, video_id=name, recipe="facts", question="When does this happen: it?",
        question_type="Temporal Grounding", answer="10.0 to 20.0 s", evidence=RIGHT, form=WHEN,
    )  # fmt: skip
    question = replace(question, **fields)  # type: ignore[arg-type]
    given = [
        verdict_on_failure("no reply", model="m")
        if reply is None
        else verdict_on_reply(question, reply, model="m")
        for reply in replies
    ]
    return replace(question, verdicts=tuple(given))


@pytest.mark.parametrize(
    ("named", "iou"),
    [
        ([Span(10, 20)], 1.0),
        ([Span(10, 15)], 0.5),
        ([Span(15, 25)], 1 / 3),
        ([Span(10, 14), Span(12, 16)], 0.6),
        ([Span(0, 30)], 1 / 3),
        ([Span(20, 30)], 0.0),
        ([Span(12, 12)], 0.0),
        ([], 0.0),
    ],
)
def test_iou(named: Sequence[Span], iou: float) -> None:
    assert measure_iou(named, RIGHT) == pytest.approx(iou)


@given(SPANS, SPANS)
def test_iou_is_that_of_the_seconds(one: Sequence[Span], other: Sequence[Span]) -> None:
    first, second = ({n for s in spans for n in range(int(s.start), int(s.end))}
                     for spans in (one, other))  # fmt: skip
    expected = len(first & second) / len(first | second)
    assert measure_iou(one, other) == pytest.approx(expected)
    assert measure_iou(other, one) == pytest.approx(expected)


def test_recall_and_mean_iou_count_unreadable_replies_as_wrong_and_failed_calls_not() -> None:
    asked = [
        when("a", ["10 to 20 s"]), when("b", ["15 to 25 s"]), when("c", ["10 to 16 s"]),
        when("d", ["It is hard to say."]), when("e", [None]), when("f", []),
    ]  # fmt: skip
    (found,) = score.score(asked)
    by = found.when
    assert by is not None
    assert by.mean_iou is not None
    assert by.mean_iou.value == pytest.approx((1 + 1 / 3 + 0.6 + 0) / 4)
    assert {t: e.value for t, e in by.recall.items()} == {"0.3": 0.75, "0.5": 0.5, "0.7": 0.25}
    assert (by.asked, by.failed, by.replies, by.unread) == (6, 2, 4, 1)
    assert found.written is None  # No judge reads them, and no metric of words.
    assert found.no_key == 0
    (line,) = score_show.headline([found])
    assert "mIoU 48.3" in line
    assert "1 of 4 replies unreadable" in line
    cells = list(score_show.table([found]).columns[0].cells)
    assert "when: mean IoU of spans" in cells


def test_several_replies_to_one_question_are_averaged() -> None:
    (found,) = score.score([when("a", ["10 to 20 s", "nobody knows"])])
    assert found.when is not None
    assert found.when.mean_iou is not None
    assert found.when.mean_iou.value == pytest.approx(0.5)
    assert found.when.mean_iou.n == 1


def test_without_such_questions_there_are_no_such_scores() -> None:
    options = when("a", ["B"], form="first", options=("red", "blue"), answer_index=1)
    (found,) = score.score([options])
    assert found.when is None
    assert found.with_evidence is None


def test_an_answer_with_evidence_is_right_and_near() -> None:
    fields = {"form": "first", "options": ("red", "blue"), "answer_index": 1, "answer": "blue"}
    asked = [
        when("a", ["B\nEVIDENCE: 10 to 20 s"], **fields),
        when("b", ["B\nEVIDENCE: 40 to 50 s"], **fields),
        when("c", ["A\nEVIDENCE: 10 to 20 s"], **fields),
        when("d", ["B"], **fields),  # It names none, though it was asked.
    ]
    (found,) = score.score(asked)
    assert found.weighted is not None
    assert found.weighted.value == 0.75
    by = found.with_evidence
    assert by is not None
    assert by.right.value == 0.75
    assert by.with_evidence.value == 0.25
    assert by.spans.unread == 1
    assert by.spans.mean_iou is not None
    assert by.spans.mean_iou.value == 0.5


def test_evaluations_are_compared_by_iou() -> None:
    found = score_evaluation([when("a", ["10 to 15 s"]), when("b", ["perhaps"])], {})
    (model,) = found["models"]
    assert model.by_measure == {Measure(IOU): {"a": 0.5, "b": 0.0}}
