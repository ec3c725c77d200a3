"""Guesses at sets: the guesser sees all questions of a set and their list of answers at once, and
says which answer belongs to which question.

A matching is easier than single guesses, because sure pairs leave fewer answers for the others. It
is also cheaper: one request for a set. Members of a set fail together, if more than `most` of them
are matched right; at chance one of them is, whatever their number.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mustsee.errors import BadRow, UserError
from mustsee.questions.chance import matching_chances
from mustsee.records import SET, Question, Verdict, Video, guessed_metric
from mustsee.verify.blind import is_recognised
from mustsee.verify.conditions.lines import excerpt
from mustsee.verify.match_set import PROMPT, match
from mustsee.verify.outcome import GUESSED, HEARD, FilterOutcome, add_outcome, mark_unverified
from mustsee.verify.vetting import VettingContext

RIGHT_IN_SET = "_right"  # suffix of the metric with the members of a question's set matched right


@dataclass(frozen=True, kw_only=True)
class SetGuess:
    """A filter by one guess at each set of questions with a shared list of options.

    Questions outside of sets, and single ones that are left of a set, are passed over.
    """

    name: str
    """Name of the filter in verdicts and drop reasons."""
    guesser: str = "guesser"
    """Role of the model that guesses."""
    most: int = 2
    """Questions of a set matched right with which it passes; with more, none of the set is in
    mma."""
    transcript: bool = False
    """Whether the guesser reads the transcript, at most `max_words` of it; videos without one
    are then passed over."""
    max_words: int = 20_000
    drops: bool = False
    """Whether the members of a set that does not pass are dropped; otherwise they only stay out
    of the subset."""

    def __post_init__(self) -> None:
        if self.most < 0:
            raise UserError(f"vet: {self.name}.most={self.most!r}: expected at least 0")

    @property
    def roles(self) -> tuple[str, ...]:
        return (self.guesser,)

    @property
    def prompts(self) -> tuple[str, ...]:
        return (PROMPT,)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("lines", "transcribed_by") if self.transcript else ()

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question as it is: a single one is no set."""
        return question

    async def try_all(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        """Return the questions with the verdicts of one guess at each of their sets."""
        if self.transcript and not video.lines:
            return list(questions)
        sets = sets_of(questions)
        done = await gather(*(self._guess(members, video, vetting) for members in sets))
        judged = {q.question_id: q for members in done for q in members}
        return [judged.get(q.question_id, q) for q in questions]

    async def _guess(
        self, members: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        asker = vetting.askers[self.guesser]
        answers = [q.options[q.answer_index or 0] for q in members]
        lines = None
        if self.transcript:
            wanted = " ".join((*(q.question for q in members), *answers))
            lines = excerpt(video.lines or (), wanted, self.max_words)
        blank = Verdict(
            filter=self.name,
            model=asker.llm.identity,
            seed=vetting.seed,
            prompt=asker.prompts.digest(PROMPT),
        )
        try:
            matched = await match(
                [q.question for q in members],
                answers,
                asker,
                seed=vetting.seed,
                transcript=lines,
                recognised=is_recognised(video),
            )
        except BadRow as error:
            failed = replace(blank, detail=str(error))
            unread = (replace(q, verdicts=(*q.verdicts, failed)) for q in members)
            return [mark_unverified(q, self.name) for q in unread]
        blank = replace(blank, model=asker.llm.identity)
        guesses = {q.question_id: answers[n] for q, n in zip(members, matched, strict=True)}
        return self._judge(members, guesses, blank)

    def _judge(
        self, members: Sequence[Question], guesses: Mapping[str, str], blank: Verdict
    ) -> list[Question]:
        hits = [guesses[q.question_id] == q.options[q.answer_index or 0] for q in members]
        right, count = sum(hits), len(members)
        passed = right <= min(self.most, count - 1)
        reason = f"{right} of the {count} questions of its set are matched right"
        judged: list[Question] = []
        for question, hit in zip(members, hits, strict=True):
            verdict = replace(
                blank,
                reply=guesses[question.question_id],
                correct=hit,
                detail=f"{right} of {count} in its set right",
            )
            outcome = FilterOutcome(
                filter=self.name, passed=passed, fault=HEARD if self.transcript else GUESSED,
                reason=reason, drops=self.drops,
                metrics={
                    f"{self.name}{RIGHT_IN_SET}": float(right),
                    guessed_metric(self.name): float(hit),
                },
            )  # fmt: skip
            judged.append(
                add_outcome(replace(question, verdicts=(*question.verdicts, verdict)), outcome)
            )
        return judged


def sets_of(questions: Iterable[Question]) -> list[list[Question]]:
    """Return the sets among the questions, each with its members in order; at least two each."""
    sets: dict[str | None, list[Question]] = {}
    for question in questions:
        if question.relation == SET and question.options and question.answer_index is not None:
            sets.setdefault(question.group, []).append(question)
    return [members for members in sets.values() if len(members) > 1]


def beats_chance(sets: Iterable[tuple[int, int]]) -> float:
    """Return the probability that matchings at random give at least as many right pairs in all.

    `sets`: of each its right pairs, and its questions. The test is exact: the distributions of the
    sets are convolved.
    """
    counts = list(sets)
    chances = np.ones(1)
    for _, questions in counts:
        chances = np.convolve(chances, matching_chances(questions))
    return float(min(1.0, chances[sum(right for right, _ in counts) :].sum()))
