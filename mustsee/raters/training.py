"""Training items: questions with agreed answers, which every rater answers first.

The rater then sees the agreed answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.errors import UserError
from mustsee.raters.form import AnswerFault, FormField, RatingForm
from mustsee.records import Question


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training item's agreed answers by field, with an explanation."""

    answers: Mapping[str, Any]
    why: str = ""

    def missed_fields(self, answers: Mapping[str, Any]) -> list[str]:
        """Return the fields with other answers than the agreed ones."""
        return [name for name, value in self.answers.items() if answers.get(name) != value]


def from_rows(
    rows: Sequence[Mapping[str, Any]], form: RatingForm, questions: Mapping[str, Question]
) -> dict[str, Training]:
    """Return question id -> training item.

    A row has question_id, answers (field of the form's first round -> answer) and why. Raises
    UserError naming the row.
    """
    fields = {f.name: f for f in form.rounds[0].fields if f.kind in ("pick", "ticks", "option")}
    training: dict[str, Training] = {}
    for number, row in enumerate(rows, 1):
        name, answers = str(row.get("question_id") or ""), row.get("answers")
        if name not in questions or name in training:
            raise UserError(
                f"training, row {number}: question_id={name!r} is not a question of this dataset, "
                "or occurs twice"
            )
        if not isinstance(answers, Mapping) or not answers or set(answers) - set(fields):
            raise UserError(
                f"training, row {number}: answers={answers!r} must be an object with some of the "
                f"fields {sorted(fields)}"
            )
        parsed = {
            key: _parse_answer(fields[key], questions[name], answers[key], number)
            for key in answers
        }
        training[name] = Training(answers=parsed, why=str(row.get("why") or ""))
    return training


def _parse_answer(field: FormField, question: Question, value: Any, number: int) -> Any:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    try:
        return field.read(text, question)
    except AnswerFault as fault:
        raise UserError(f"training, row {number}: {field.name}={value!r} {fault}") from None
