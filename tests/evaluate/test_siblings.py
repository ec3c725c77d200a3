"""The gap between choosing and answering freely, and groups that must be right as a whole."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mustsee import stats
from mustsee.evaluate import score, score_show
from mustsee.evaluate.answers import GRADE, verdict_on_reply, with_answers
from mustsee.evaluate.compare import ComparedEvaluation, compare_models, score_evaluation
from mustsee.records import OPEN, Question, Verdict
from mustsee.text import LETTERS
from tests.evaluate.test_score import ask, right, wrong


def twin(source: Question, correct: bool | None, model: str = "m") -> Question:
    """The twin of a question, answered in words and graded."""
    name = source.question_id
    made = replace(source, question_id=f"{name}-open", options=(), answer_index=None, answer="one",
                   verdicts=(), sibling_of=name, relation=OPEN)  # fmt: skip
    said = with_answers(made, [verdict_on_reply(made, "one", model=model)])
    if correct is None:
        return said
    grade = Verdict(filter=GRADE, model="judge", correct=correct,
                    detail=json.dumps({"of": model, "rotation": 0}))  # fmt: skip
    return replace(said, verdicts=(*said.verdicts, grade))


def test_the_gap_is_paired_and_clustered_by_video() -> None:
    asked = [(right if n % 4 else wrong)(ask(n)) for n in range(24)]  # three of a video
    twins = [twin(q, n % 2 == 0) for n, q in enumerate(asked)]
    (found,) = score.score([*asked, *twins])
    assert found.twins is not None
    choice, written = [float(n % 4 > 0) for n in range(24)], [float(n % 2 == 0) for n in range(24)]
    videos = [q.video_id for q in asked]
    assert found.twins.choice == stats.mean(choice, videos)
    assert found.twins.written == stats.mean(written, videos)
    assert found.twins.gap == stats.paired_difference(choice, written, videos)
    assert found.twins.gap.value == pytest.approx(0.25)
    assert found.twins.gap.clusters == 8
    assert found.weighted is not None
    assert found.weighted.n == 24  # the twins are written answers, and no further choices
    assert found.written is not None
    assert found.written.asked == 24
    shown = score_show.table([found])
    assert {"twins: by choice", "  in words, judged right", "  gap"} <= {*shown.columns[0].cells}
    (line,) = score_show.headline([found])
    assert "24 of them with a twin: 75.0" in line
    assert "points" in line


def test_incomplete_pairs_do_not_count() -> None:
    first, second, third, fourth = (right(ask(n)) for n in (0, 3, 6, 9))
    dropped = replace(twin(third, True), drop="sight: answer disputed")
    questions = [first, twin(first, True), second, twin(second, None), third, dropped,
                 replace(fourth, drop="later"), twin(fourth, False)]  # fmt: skip
    (found,) = score.score(questions)
    assert found.twins is not None
    assert (found.twins.choice.n, found.twins.gap.value) == (1, 0.0)
    (without,) = score.score([first, second])
    assert without.twins is None
    assert "twins: by choice" not in {*score_show.table([without]).columns[0].cells}


def sibling(number: int, first: Question) -> Question:
    """A question on the same fact."""
    return ask(number, video_id=first.video_id, sibling_of=first.question_id, relation="opposite",
               group=first.question_id)  # fmt: skip


def test_a_group_is_right_only_if_all_members_are() -> None:
    questions: list[Question] = []
    for n in range(
        12
    ):  # of six videos; the first right in ten, its sibling in eight, both in seven
        first = ask(100 * n, group=f"q{100 * n}", video_id=f"video{n // 2}")
        questions.append((right if n < 10 else wrong)(first))
        questions.append((right if n < 7 or n == 11 else wrong)(sibling(100 * n + 1, first)))
    questions += [right(ask(5000)), right(ask(6000, group="q6000"))]  # alone: no group
    (found,) = score.score(questions)
    assert found.groups is not None
    videos = [f"video{n // 2}" for n in range(12)]
    whole = [float(n < 7) for n in range(12)]
    assert found.groups.whole == stats.mean(whole, videos)
    assert found.groups.single.value == pytest.approx(18 / 24)
    assert found.groups.whole.clusters == 6
    assert found.weighted is not None
    assert (found.weighted.n, found.asked) == (14, 14)  # siblings count in their groups only
    assert {"groups: all right"} <= {*score_show.table([found]).columns[0].cells}
    (line,) = score_show.headline([found])
    assert "all right in 58.3" in line
    assert "of 12 groups" in line


def test_groups_are_scored_by_rotation_and_then_averaged() -> None:
    first = ask(0, group="q0")
    second = sibling(1, first)
    letters = [LETTERS[(first.answer_index or 0) + r] for r in range(2)]
    first = with_answers(
        first,
        [
            verdict_on_reply(first, letters[0], model="m"),
            verdict_on_reply(first, letters[1], model="m", rotation=1),
        ],
    )
    both = [
        verdict_on_reply(second, LETTERS[1], model="m"),
        verdict_on_reply(second, "A", model="m", rotation=1),
    ]
    (found,) = score.score([first, with_answers(second, both)])
    assert found.groups is not None
    assert found.groups.whole.value == 0.5
    assert found.groups.single.value == 0.75


def test_siblings_are_left_out_of_comparisons() -> None:
    first = right(right(ask(0, group="q0"), "a"), "b")
    second = right(wrong(sibling(1, first), "a"), "b")
    third = right(wrong(ask(9), "a"), "b")
    scored = score_evaluation([first, second, third], {})
    (table,) = compare_models([ComparedEvaluation(folder="e", dataset="d", **scored)])
    (found,) = table.pairs
    assert found.difference.n == 2
