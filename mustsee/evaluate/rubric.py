"""MLVU's graded answers: sub-scene captions (SSC) and video summaries (VS), 1 to 5 on two scales.

The task score is the sum of both, 2 to 10; G-Avg is the mean of the two tasks (supplement, Fig. 8).
Replies are JSON that is checked: a scale outside 1 to 5 or a missing one is asked for again, and a
fraction stays a fraction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mustsee.errors import Unparsed
from mustsee.forms import Form, form, number, record
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


def grades(scales: tuple[str, str]) -> Form[Grade]:
    """A number from 1 to 5 on each scale. The prompt asks for the JSON itself; the other leg reads
    `scale: number`, also under the name that MLVU's own prompts have (`score_accuracy`).
    """
    wanted = '{"%s": number, "%s": number}' % scales  # noqa: UP031

    def graded(**found: float) -> Grade:
        for scale in scales:
            if not 1 <= found[scale] <= 5:
                raise Unparsed(
                    f"{scale} is {found[scale]!r}: expected a number from 1 to 5, as in {wanted}"
                )
        return Grade(first=found[scales[0]], second=found[scales[1]])

    def written(reply: str) -> Grade:
        found: dict[str, float] = {}
        for scale in scales:
            line = rf"(?<!\w)(?:score_)?{scale}[\"'*_]*\s*[:：=][\s*_]*(\d+(?:\.\d+)?)(?![\w.]*\w)"
            values = {float(v) for v in re.findall(line, reply, re.IGNORECASE)}
            if len(values) != 1:
                raise Unparsed(f"it holds no one number for {scale}; expected {wanted}")
            found[scale] = values.pop()
        return graded(**found)

    each = {scale: number("from 1 to 5") for scale in scales}
    return form(text=written, shape=record(graded, **each))


async def grade(question: Question, candidate: str, asker: Asker, seed: int = 0) -> Grade:
    """Ask for the grade of one answer. Raises BadRow after replies of a wrong form."""
    scales = SCALES[question.question_type]
    return await asker.ask(
        PROMPTS[question.question_type],
        grades(scales),
        seed=seed,
        question=question.question,
        reference=question.answer,
        points=list(question.scoring_points) or [question.answer],
        candidate=candidate,
    )
