"""People's own answers to questions, from the votes that `mustsee rate do=write` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mustsee.raters.votes import FILTER_PREFIX
from mustsee.records import Question


def score_people(questions: Iterable[Question]) -> dict[str, dict[str, float]]:
    """Return "form, round" -> question id -> share of the votes that picked the right option.

    A vote picks an option by its number; forms whose votes hold no number ask people something
    else. Dropped questions, and those without a known answer, are left out.
    """
    picked: dict[str, dict[str, list[bool]]] = {}
    for question in questions:
        if question.drop is not None or question.answer_index is None:
            continue
        for verdict in question.verdicts:
            if not verdict.filter.startswith(FILTER_PREFIX):
                continue
            answers: dict[str, Any] = json.loads(verdict.reply)
            numbers = [value for value in answers.values() if type(value) is int]
            if numbers:
                form = verdict.filter.removeprefix(FILTER_PREFIX)
                name = f"{form}, {verdict.detail.rpartition(',')[0]}".replace("_", " ")
                votes = picked.setdefault(name, {}).setdefault(question.question_id, [])
                votes.append(numbers[-1] == question.answer_index)
    return {
        name: {question: sum(votes) / len(votes) for question, votes in by_question.items()}
        for name, by_question in picked.items()
    }
