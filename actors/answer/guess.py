"""The guessers: answerers that see only the question. Any model must beat them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar, Literal

from actors.answer.llm import replace_questions
from actors.part import Opened, RunContext
from mustsee.evaluate.answers import verdict_on_reply
from mustsee.records import Question, Video
from mustsee.text import LETTERS


@dataclass(frozen=True, kw_only=True)
class TextGuesser:
    """`by`: "random", "longest" (the longest option), or "similar" (the option most similar to all
    others, because decoys are written to resemble the answer). Questions without options are left
    unanswered.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("questions",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    by: Literal["random", "longest", "similar"]
    seed: int = 0

    @property
    def name(self) -> str:
        return f"guess {self.by}"

    def open(self, run: RunContext) -> Opened:
        def answer(video: Video) -> Video:
            verdicts = {
                q.question_id: [
                    verdict_on_reply(q, LETTERS[self.pick(q)], model=self.name, seed=self.seed)
                ]
                for q in video.questions or ()
                if q.options and q.drop is None
            }
            return replace_questions(video, verdicts)

        return answer

    def pick(self, question: Question) -> int:
        """The index of the guessed option; the seed decides ties."""
        dice = random.Random(f"{self.seed}/{question.question_id}/guess")
        ties = [dice.random() for _ in question.options]
        if self.by == "similar":
            from mustsee.text import TermVectors

            scores = [float(s) for s in TermVectors(question.options).cosines.sum(axis=1).round(9)]
        else:
            scores = [float(len(o)) if self.by == "longest" else 0.0 for o in question.options]
        return max(range(len(ties)), key=lambda i: (scores[i], ties[i]))
