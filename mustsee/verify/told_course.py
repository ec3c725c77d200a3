"""The filter `course`: questions on a recipe's or a tutorial's own words, whose place many know.

Where somebody explains how a thing is made, the words on the screen and the lines that are said
follow a course that can be told without the video. Of the questions that rules made of words and
lines of two such videos, a strong reader who had not seen them answered all 11 right, and 3 of the
6 about what is seen. No model is asked. The words of a step are English: in other languages every
question passes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mustsee.errors import UserError
from mustsee.records import Line, Question, Verdict, Video
from mustsee.verify.vetting import VettingContext

MIN_STEPS = 3  # lines with words of a step, at least
_STEP = re.compile(
    r"(?:and |so |but |okay,? )?(?:first|second|third|next|now|then|after that|finally|lastly)\b"
    r"|.*\b(?:step|(?:first|next|last) (?:job|thing))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?:the words )?“.*”", re.DOTALL)
NAMES_NO_MOMENT = ("first", "last", "part", "longest", "order")  # forms that ask of the whole video


@dataclass(frozen=True, kw_only=True)
class ToldCourse:
    """`share`: of a video's transcript lines that must have words of a step, 0 to 1. It then tells
    a course, and a question that joins on-screen words and lines alone fails.
    """

    share: float = 0.15
    drops: bool = False

    name: str = "course"
    roles: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("lines",)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UserError(f"vet.filters.{self.name}.share={self.share!r}: above 0, at most 1")

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question with one verdict; without one if the video has no transcript."""
        lines = video.lines or ()
        if not lines:
            return question
        fails = is_of_words_alone(question) and tells_course(lines, self.share)
        reason = "the lines tell the course that these words follow" if fails else ""
        verdict = Verdict(filter=self.name, model="rules", passed=not fails, reply=reason)
        return replace(
            question,
            verdicts=(*question.verdicts, verdict),
            metrics={**question.metrics, f"{self.name}_passed": float(not fails)},
            drop=f"{self.name}: {reason}" if fails and self.drops else question.drop,
        )


def tells_course(lines: Sequence[Line], share: float) -> bool:
    """Whether at least a share of the lines, and at least `MIN_STEPS`, have words of a step."""
    steps = sum(_STEP.match(line.text.strip()) is not None for line in lines)
    return steps >= max(MIN_STEPS, share * len(lines))


def is_of_words_alone(question: Question) -> bool:
    """Whether a composed question asks for quoted words, and states no more than quoted words."""
    things = question.answer.split("; ") if question.form == "order" else question.options
    return all(_QUOTED.fullmatch(thing) for thing in things) and (
        "“" in question.question or question.form in NAMES_NO_MOMENT
    )
