"""Guesses from too little of the video: one frame, or frames in a random order.

A question that one frame answers needs no video, and a question of order that is answered from
frames in a random order needs no order. The same frames serve all questions of a video, so that
many are asked in one request.
"""

from __future__ import annotations

import json
import math
from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mustsee.errors import BadRow, UserError
from mustsee.records import Question, Verdict, Video, guessed_metric
from mustsee.verify.conditions.seen import Condition, plan, video_span
from mustsee.verify.guess_set import guess_set
from mustsee.verify.outcome import GUESSED, FilterOutcome, add_outcome, mark_unverified
from mustsee.verify.vetting import VettingContext

PROMPT = "filters/glimpse"
SILENT = ("one_frame", "frames", "shuffled")  # conditions without the transcript or the evidence


@dataclass(frozen=True, kw_only=True)
class Glimpse:
    """A filter by guesses of the verifier at what a condition shows: a question passes that it gets
    wrong, or whose answer it does not see there.
    """

    name: str
    """Name of the filter in verdicts and drop reasons."""
    sees: Condition = field(default_factory=lambda: Condition(condition="one_frame", frames=1))
    """What is shown of the whole video; one of `SILENT`."""
    forms: Sequence[str] | None = None
    """Forms of the questions that are asked; null: all."""
    together: int = 10
    """Questions of a video in one request."""
    drops: bool = False
    """Whether a question that does not pass is dropped; otherwise it only stays out of the
    subset."""

    def __post_init__(self) -> None:
        if self.sees.condition not in SILENT or not self.sees.looks:
            raise UserError(
                f"vet: {self.name}.sees.condition={self.sees.condition!r}: choose one of "
                f"{', '.join(SILENT)}, with frames or fps"
            )
        if self.together < 1:
            raise UserError(f"vet: {self.name}.together={self.together!r}: expected at least 1")

    @property
    def roles(self) -> tuple[str, ...]:
        return ("verifier",)

    @property
    def prompts(self) -> tuple[str, ...]:
        return (PROMPT, "filters/_options")

    @property
    def reads(self) -> tuple[str, ...]:
        return ("digest", "start", "end")

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question with its verdict, and dropped if it does not pass."""
        return (await self.try_all([question], video, vetting))[0]

    async def try_all(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        """Return all questions with their verdicts, from as few requests as `together` allows."""
        due = [
            q
            for q in questions
            if q.options and q.answer_index is not None
            and (self.forms is None or q.form in self.forms)
        ]  # fmt: skip
        count = math.ceil(len(due) / self.together)
        groups = [due[n::count] for n in range(count)]
        done = await gather(*(self._ask(group, video, vetting) for group in groups))
        judged = {q.question_id: q for group in done for q in group}
        return [judged.get(q.question_id, q) for q in questions]

    async def _ask(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        asker = vetting.askers["verifier"]
        blank = Verdict(
            filter=self.name,
            model=asker.llm.identity,
            seed=vetting.seed,
            prompt=asker.prompts.digest(PROMPT),
        )
        try:
            planned = plan(self.sees, video_span(video), (), seed=vetting.seed)
            times = planned.times if planned is not None else ()
            guesses = await guess_set(
                questions,
                asker,
                blank,
                prompt=PROMPT,
                images=await vetting.video_frames.jpegs(times, self.sees),
                pictures=len(times),
                forced=False,
                shuffled=self.sees.condition == "shuffled",
            )
        except BadRow as error:  # no reply could be parsed, or the video cannot be decoded
            failed = replace(blank, detail=json.dumps({"unread": str(error)}))
            unread = (replace(q, verdicts=(*q.verdicts, failed)) for q in questions)
            return [mark_unverified(q, self.name) for q in unread]
        judged: list[Question] = []
        for question, guess in zip(questions, guesses, strict=True):
            right = guess.verdict.correct is True
            shown = f"{len(times)} frame{'s' if len(times) > 1 else ''}"
            outcome = FilterOutcome(
                filter=self.name, passed=not right, fault=GUESSED, reason=f"right from {shown}",
                drops=self.drops, metrics={guessed_metric(self.name): float(right)},
            )  # fmt: skip
            verdict = replace(guess.verdict, model=asker.llm.identity)
            judged.append(
                add_outcome(replace(question, verdicts=(*question.verdicts, verdict)), outcome)
            )
        return judged
