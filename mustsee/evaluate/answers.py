"""What becomes of an answerer's reply.

Each reply is a `Verdict` of the filter "answer" on its question: the raw reply, whether it is right
(null when nothing could be read, or nothing came), and in `detail` how it was read, as JSON. So
replies travel, are stored and are published with their questions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mustsee.records import Question, Verdict
from mustsee.replies.extract import extract
from mustsee.text import LETTERS
from mustsee.verify.conditions.options import order, rotated_options

FILTER = "answer"
GRADE = "grade"


def verdict_on_reply(
    question: Question,
    reply: str,
    *,
    model: str,
    rotation: int = 0,
    seed: int = 0,
    prompt: str = "",
    extra: Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict on a reply to a question whose options were shown turned by `rotation`."""
    detail: dict[str, Any] = {"rotation": rotation, **(extra or {})}
    correct = None
    if question.options:
        found = extract(reply, rotated_options(question, rotation))
        detail |= {"rule": found.rule}
        if found.letter is not None:
            index = order(len(question.options), rotation)[LETTERS.index(found.letter)]
            detail["letter"] = LETTERS[index]
            correct = None if question.answer_index is None else index == question.answer_index
        if found.ambiguous:
            detail["ambiguous"] = True
    return Verdict(
        filter=FILTER,
        model=model,
        seed=seed,
        prompt=prompt,
        reply=reply,
        correct=correct,
        detail=json.dumps(detail, ensure_ascii=False, sort_keys=True),
    )


def likeliest(logprobs: Sequence[Mapping[str, float]], count: int) -> int | None:
    """The shown option whose letter is the most probable token, in any spelling (" B", "(B"), at
    the first place of the reply that is no opening bracket or blank; None where no letter is among
    the alternatives there.
    """
    opening = " \n\t(▁Ġ[*"
    for place in logprobs:
        if not max(place, key=lambda token: place[token], default="").strip(opening):
            continue
        found: dict[int, float] = {}
        for token, value in place.items():
            letter = token.strip(opening).upper()
            if len(letter) == 1 and letter in LETTERS[:count]:
                index = LETTERS.index(letter)
                found[index] = found.get(index, 0.0) + math.exp(value)
        return max(found, key=lambda i: (found[i], -i)) if found else None
    return None


def verdict_on_failure(
    error: str, *, model: str, rotation: int = 0, seed: int = 0, prompt: str = ""
) -> Verdict:
    """A call that gave no reply: not a wrong answer."""
    detail = json.dumps({"error": error, "rotation": rotation}, ensure_ascii=False, sort_keys=True)
    return Verdict(filter=FILTER, model=model, seed=seed, prompt=prompt, detail=detail)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One reply as read back. `letter` is of the options in their own order. `failed`: why no reply
    came. `choice`: the option of highest probability, of a local model that was asked for it.
    """

    question: Question
    model: str
    rotation: int
    reply: str
    letter: str | None
    rule: str
    failed: str | None
    correct: bool | None
    choice: str | None = None


def answers(question: Question) -> list[Answer]:
    """The replies that a question carries."""
    found: list[Answer] = []
    for verdict in question.verdicts:
        if verdict.filter != FILTER:
            continue
        detail: dict[str, Any] = json.loads(verdict.detail or "{}")
        found.append(
            Answer(
                question=question,
                model=verdict.model,
                rotation=detail.get("rotation", 0),
                reply=verdict.reply,
                letter=detail.get("letter"),
                rule=detail.get("rule", ""),
                failed=detail.get("error"),
                correct=verdict.correct,
                choice=detail.get("choice"),
            )
        )
    return found


def with_answers(question: Question, given: Sequence[Verdict]) -> Question:
    """The question with these replies, in place of earlier ones of the same model."""
    models = {v.model for v in given}
    kept = [v for v in question.verdicts if not (v.filter == FILTER and v.model in models)]
    return replace(question, verdicts=(*kept, *given))


def grades_of(question: Question, model: str) -> list[dict[str, Any]]:
    """The grades of a model's written answers to a question, with who gave them (`by`)."""
    found: list[dict[str, Any]] = []
    for verdict in question.verdicts:
        if verdict.filter == GRADE:
            told: dict[str, Any] = json.loads(verdict.detail)
            if told.get("of") == model:
                found.append({**told, "by": verdict.model, "correct": verdict.correct})
    return found


def mean_of(values: Sequence[float]) -> float:
    """The mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0
