"""MLVU's graded answers: sub-scene captions (SSC) and video summaries (VS), 1 to 5 on two scales.

The task score is the sum of both, 2 to 10; G-Avg is the mean of the two tasks (supplement, Fig. 8).
Replies are JSON that is checked: a scale outside 1 to 5 or a missing one is asked for again, and a
fraction stays a fraction.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from mustsee.errors import Unparsed
from mustsee.llm import Asker
from mustsee.records import Question

SCALES = {"subPlot": ("accuracy", "relevance"), "summary": ("completeness", "reliability")}
PROMPTS = {"subPlot": "evaluate/scene", "summary": "evaluate/summary"}


@dataclass(frozen=True, kw_only=True)
class Grade:
    """`first` is accuracy (SSC) or completeness (VS), `second` relevance or reliability."""

    first: float
    second: float

    @property
    def total(self) -> float:
        return self.first + self.second


def parse(reply: str, scales: tuple[str, str]) -> Grade:
    """The grade in a reply. Raises Unparsed saying what is missing or out of range."""
    found: dict[str, Any] | None = None
    for match in re.finditer(r"\{[^{}]*\}", reply):
        try:
            value = json.loads(match[0])
        except json.JSONDecodeError:
            continue
        if isinstance(value, dict):
            found = {str(k).lower().removeprefix("score_"): v for k, v in value.items()}
    form = '{"%s": number, "%s": number}' % scales  # noqa: UP031
    if found is None:
        raise Unparsed(f"it holds no JSON object; expected {form}")
    grades: list[float] = []
    for scale in scales:
        value = found.get(scale)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 5:
            raise Unparsed(f"{scale} is {value!r}: expected a number from 1 to 5, as in {form}")
        grades.append(float(value))
    return Grade(first=grades[0], second=grades[1])


async def grade(question: Question, candidate: str, asker: Asker, seed: int = 0) -> Grade:
    """Ask for the grade of one answer. Raises BadRow after replies of a wrong form."""
    scales = SCALES[question.question_type]
    return await asker.ask(
        PROMPTS[question.question_type],
        lambda reply: parse(reply, scales),
        seed=seed,
        question=question.question,
        reference=question.answer,
        points=list(question.scoring_points) or [question.answer],
        candidate=candidate,
    )
