"""Training items: questions whose answers are agreed on. Every rater answers them first, and is
told what was agreed.
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
    """A question whose answers are known, by field, and why they are so."""

    answers: Mapping[str, Any]
    why: str = ""

    def missed_fields(self, given: Mapping[str, Any]) -> list[str]:
        """The fields that were answered otherwise."""
        return [name for name, value in self.answers.items() if given.get(name) != value]


def from_rows(
    rows: Sequence[Mapping[str, Any]], form: RatingForm, questions: Mapping[str, Question]
) -> dict[str, Training]:
    """By question. A row has question_id, answers (field of the form's first round -> answer) and
    why. Raises UserError with the row.
    """
    fields = {f.name: f for f in form.rounds[0].fields if f.kind in ("pick", "ticks", "option")}
    found: dict[str, Training] = {}
    for number, row in enumerate(rows, 1):
        name, answers = str(row.get("question_id") or ""), row.get("answers")
        if name not in questions or name in found:
            raise UserError(f"training, row {number}: question_id={name!r} is none, or there twice")
        if not isinstance(answers, Mapping) or not answers or set(answers) - set(fields):
            raise UserError(
                f"training, row {number}: answers={answers!r}: of the fields {sorted(fields)}"
            )
        known = {key: _known(fields[key], questions[name], answers[key], number) for key in answers}
        found[name] = Training(answers=known, why=str(row.get("why") or ""))
    return found


def _known(field: FormField, question: Question, value: Any, number: int) -> Any:
    given = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    try:
        return field.read(given, question)
    except AnswerFault as fault:
        raise UserError(f"training, row {number}: {field.name}={value!r} {fault}") from None
