"""The answerers that call no model: guessers that see only the question, which any model must beat,
and replies that were collected elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import ClassVar, Literal

from actors.answer.llm import replace_questions
from actors.part import Opened, RunContext
from mustsee.errors import UserError
from mustsee.evaluate.answers import (
    NOT_IN_FILE,
    read_predictions,
    verdict_on_failure,
    verdict_on_reply,
)
from mustsee.files.store import keyed_by
from mustsee.records import Question, Video
from mustsee.text import LETTERS, printable

PROMPT = "file"  # prompt of the verdicts: these replies were asked for elsewhere


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


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Replies from a file.

    A question without a reply is not scored: it is counted apart, not as a wrong answer.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("questions",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    path: str = keyed_by(lambda part: part.digest)
    """File with replies by question id: .jsonl, .csv, .tsv, .parquet, or .json; a letter, an
    option's text, or what the model wrote."""
    id: str | None = None
    """Column of the question ids; null: found by its name."""
    reply: str | None = None
    """Column of the replies; null: found by its name."""
    model: str | None = None
    """Name of the results; null: the file's name."""

    @property
    def name(self) -> str:
        return self.model or PurePath(self.path).stem

    @property
    def digest(self) -> str:
        """Of the replies: another file with the same ones computes nothing again."""
        text = json.dumps(self.replies, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def replies(self) -> dict[str, str]:
        """The replies by question id. Read once, here: workers get them with the part."""
        return read_predictions(self.path, self.id, self.reply)

    def count_unknown(self, questions: Sequence[str]) -> int:
        """Return the number of ids in the file that are no question's; raises UserError if that is
        all of them.
        """
        unknown = len(self.replies.keys() - set(questions))
        if questions and unknown == len(self.replies):
            raise UserError(
                f"answer.path={self.path!r}: none of its {unknown} ids is one of the "
                f"{len(questions)} questions', such as {questions[0]!r}"
            )
        return unknown

    def describe_missing(self, questions: Sequence[str]) -> str:
        """Return a line on the questions that the file has no reply to; empty if it has all."""
        missing = sum(question not in self.replies for question in questions)
        if not missing:
            return ""
        return printable(
            f"not in the file {self.path}: {missing} of {len(questions)} questions; the score is "
            f"of the other {len(questions) - missing}"
        )

    def open(self, run: RunContext) -> Opened:
        replies = self.replies

        def answer(video: Video) -> Video:
            asked = [q for q in video.questions or () if q.drop is None]
            given = {
                q.question_id: [
                    verdict_on_reply(q, replies[q.question_id], model=self.name, prompt=PROMPT)
                    if q.question_id in replies
                    else verdict_on_failure(NOT_IN_FILE, model=self.name, prompt=PROMPT)
                ]
                for q in asked
            }
            return replace_questions(video, given)

        return answer
