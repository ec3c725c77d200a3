"""The gap between choosing and saying, over pairs of a question and its twin."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mustsee import stats
from mustsee.evaluate import score, score_show
from mustsee.evaluate.answers import GRADE, answered, with_answers
from mustsee.records import OPEN, Question, Verdict
from tests.evaluate.test_score import ask, right, wrong


def twin(source: Question, correct: bool | None, model: str = "m") -> Question:
    """The twin of a question, answered in words and graded."""
    name = source.question_id
    made = replace(source, question_id=f"{name}-open", options=(), answer_index=None, answer="one",
                   verdicts=(), sibling_of=name, relation=OPEN)  # fmt: skip
    said = with_answers(made, [answered(made, "one", model=model)])
    if correct is None:
        return said
    grade = Verdict(filter=GRADE, model="judge", correct=correct,
                    detail=json.dumps({"of": model, "rotation": 0}))  # fmt: skip
    return replace(said, verdicts=(*said.verdicts, grade))


def test_the_gap_is_taken_pair_by_pair_and_by_film() -> None:
    asked = [(right if n % 4 else wrong)(ask(n)) for n in range(24)]  # three of a film
    twins = [twin(q, n % 2 == 0) for n, q in enumerate(asked)]
    (found,) = score.score([*asked, *twins])
    assert found.twins is not None
    choice, written = [float(n % 4 > 0) for n in range(24)], [float(n % 2 == 0) for n in range(24)]
    films = [q.video_id for q in asked]
    assert found.twins.choice == stats.mean(choice, films)
    assert found.twins.written == stats.mean(written, films)
    assert found.twins.gap == stats.paired(choice, written, films)
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


def test_pairs_of_which_one_side_is_missing_do_not_count() -> None:
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
