"""Drops questions with words of the prompt, or with openings that the curators' sheet forbids
(EgoSchema, 3.1.3 and 6.1; MLVU forbids names). The words are in `conf/keywords/`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mustsee.records import Question, Verdict, Video

_ASKING = "do|does|did|is|are|was|were|will|would|has|have|had|can|could|must|should"
_CLAUSE = rf"(?!when\s+(?!(?:{_ASKING})\b))"


@dataclass(frozen=True, kw_only=True)
class Keywords:
    """A filter by words of the question.

    "When" is an opening before a verb like "does" and at the end; else it begins a clause.
    """

    words: tuple[str, ...] = ()
    """Words forbidden in questions and options; the paper names the first three, the rest are
    ours."""
    openings: tuple[str, ...] = ()
    """Beginnings of questions that are forbidden."""

    @cached_property
    def _word(self) -> re.Pattern[str]:
        return _any(self.words, r"\b(?:{})\b")

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        return _any(self.openings, rf"(?:^|[.?!:;,]\s*|\b(?:and|or)\s+){_CLAUSE}(?:{{}})\b")

    def reason(self, question: str, options: Sequence[str]) -> str | None:
        """Return the fault of a question, or None."""
        for text in (question, *options):
            match = self._word.search(text)
            if match:
                return f"keyword: {match.group().lower()!r}"
        opening = self._opening.search(question)
        return f"keyword: asks {opening.group().strip(' .?!:;,').lower()!r}" if opening else None

    def __call__(self, video: Video) -> Video:
        """Add a verdict to each question that is not dropped yet, and drop the faulty ones."""
        return replace(video, questions=tuple(map(self._judge, video.questions or ())))

    def _judge(self, question: Question) -> Question:
        if question.drop is not None:
            return question
        reason = self.reason(question.question, question.options)
        verdict = Verdict(
            filter="keywords", model="rules", passed=reason is None, detail=reason or ""
        )
        return replace(question, verdicts=(*question.verdicts, verdict), drop=reason)


def _any(words: Sequence[str], frame: str) -> re.Pattern[str]:
    if not words:
        return re.compile(r"(?!)")
    kinds = [r"[\s-]*".join(map(re.escape, re.split(r"[\s-]+", word))) for word in words]
    return re.compile(frame.replace("{}", "|".join(kinds)), re.IGNORECASE)
