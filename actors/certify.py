"""Temporal certificates: an answerer shown clips that grow until it answers rightly."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from actors.answer.llm import AnswerLlm
from actors.answer.look import Shown
from actors.ask import prompts_in
from actors.part import Opened, RunContext
from mustsee.conditions.seen import spread, stretch
from mustsee.errors import BadRow, UserError
from mustsee.evaluate.answers import answers
from mustsee.evaluate.certificate import Certificate, Steps, certify
from mustsee.llm import Llm
from mustsee.media.transcript import within
from mustsee.prompts import Prompts
from mustsee.records import Question, Span, Verdict, Video
from mustsee.schemas import dump
from mustsee.store import identity

FILTER = "certificate"
STEPS = Steps()


@dataclass(frozen=True, kw_only=True)
class Certify:
    """Each multiple-choice question with a known answer gets a verdict of the filter "certificate"
    with what was tried. `answer`: the model, its prompt and picture size; how many frames it is
    shown otherwise is not used. A reply that names no option counts as wrong, a call that failed as
    no answer. With `see.transcript` it is told what is said within the clip, and no more.
    """

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("questions", "digest", "start", "end", "lines")
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    answer: AnswerLlm
    steps: Steps = STEPS

    @property
    def listens(self) -> bool:
        """Whether the transcript is used."""
        return bool(getattr(self.answer, "listens", False))

    def check(self, budget_usd: float | None) -> None:
        """Said before any work: a model looks, and is shown the options. Raises UserError."""
        if not isinstance(self.answer, AnswerLlm):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(
                f"a certificate is made by a model that looks, not by {type(self.answer).__name__}:"
                " choose answer=openai or answer=transformers"
            )
        if self.answer.open_ended:
            raise UserError("answer.open_ended=true: a certificate needs the options")

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "class": "Certify",
            "version": self.version,
            "answer": identity(self.answer),
            "steps": identity(self.steps),
        }

    def open(self, run: RunContext) -> Opened:
        llm, prompts = run.llm(self.answer.llm), prompts_in(self.answer.prompts)

        async def work(video: Video) -> Video:
            asked = [
                q for q in video.questions or ()
                if q.options and q.answer_index is not None and q.drop is None
            ]  # fmt: skip
            found = await asyncio.gather(
                *(self._one(video, q, llm, prompts) for q in asked), return_exceptions=True
            )
            verdicts: dict[str, Verdict] = {}
            for question, item in zip(asked, found, strict=True):
                if isinstance(item, BaseException):
                    raise item
                verdicts[question.question_id] = self._verdict(item)
            return replace(
                video,
                questions=tuple(
                    replace(q, verdicts=(*_others(q), verdicts[q.question_id]))
                    if q.question_id in verdicts
                    else q
                    for q in video.questions or ()
                ),
            )

        return work

    def _verdict(self, found: Certificate) -> Verdict:
        return Verdict(
            filter=FILTER,
            model=self.answer.llm.identity,
            seed=self.answer.seed,
            passed=found.clip is not None,
            detail=json.dumps(dump(found), sort_keys=True),
        )

    async def _one(
        self, video: Video, question: Question, llm: Llm, prompts: Prompts
    ) -> Certificate:
        film = stretch(video)
        start = film.start
        if not video.uri:
            raise BadRow(f"no film for {video.video_id!r}: give its folder as videos=")

        async def attempt(asked: Question, span: Span, fps: float, seed: int) -> bool | None:
            images = await asyncio.to_thread(self._pictures, video.uri, start, span, fps)
            answerer = replace(self.answer, seed=seed)
            said = within(video.lines or (), start + span.start, start + span.end)
            shown = replace(video, lines=said)
            verdict = await answerer.one(shown, asked, 0, Shown(images), llm, prompts)
            (read,) = answers(replace(asked, verdicts=(verdict,)))
            return None if read.failed is not None else read.correct is True

        return await certify(question, film.seconds, attempt, self.steps, seed=self.answer.seed)

    def _pictures(self, uri: str, start: float, span: Span, fps: float) -> tuple[bytes, ...]:
        from mustsee.media.video import frames_at

        count = max(1, round(span.seconds * fps))
        times = [start + t for t in spread((span,), count)]
        see = self.answer.see
        return tuple(p.jpeg(see.longest, see.quality) for p in frames_at(uri, times))


def _others(question: Question) -> tuple[Verdict, ...]:
    """Without the certificate of an earlier run."""
    return tuple(v for v in question.verdicts if v.filter != FILTER)
