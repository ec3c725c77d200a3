"""`enrich`: what is made of the questions that passed, and checked before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from actors.ask import SAMPLING, prompts_in
from actors.judge.seat import Seat
from actors.part import LlmConfig, Opened, RunContext
from actors.vet import Vet
from mustsee.conditions.film import Film
from mustsee.enrich import groups, traces, twins
from mustsee.enrich.groups import Groups
from mustsee.enrich.traces import Traces
from mustsee.errors import UserError
from mustsee.filters.vetting import Vetting
from mustsee.llm import Asker, Sampling
from mustsee.prompts import ENGLISH
from mustsee.records import Question, Video
from mustsee.store import identity

NONE, UNTRACED = Groups(), Traces()
PROMPTS = (*twins.PROMPTS, *groups.PROMPTS, *traces.PROMPTS)
Tracing = Callable[[Video, tuple[Question, ...], Asker, Film], Awaitable[tuple[Question, ...]]]


@dataclass(frozen=True, kw_only=True)
class Enrich:
    """`twins`: each multiple-choice question that passed gets an open-ended twin, where it can.
    `groups`: siblings on the same fact, to be scored with it all or nothing. `traces`: how one
    comes to the answer of each question that stays, twins and siblings too.

    What the `writer` makes is vetted by `vet`, whose judge also grades the twins; what falls there
    stays, dropped. The steps of a trace are looked at by the looker of `vet`, and all of it is
    graded by the `grader`. With nothing to make the job leaves this stage out. What bears identity:
    what is made, the writer and the grader, the texts of their prompts, and all of `vet`.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    vet: Vet
    writer: LlmConfig
    grader: LlmConfig
    twins: bool = False
    groups: Groups = NONE
    traces: Traces = UNTRACED
    seed: int = 0
    prompts: str | None = None
    language: str = ENGLISH
    sampling: Sampling = SAMPLING
    tries: int = 3

    def __post_init__(self) -> None:
        if self.twins and self.vet.judge is None:
            raise UserError("enrich.twins=true needs a judge: set enrich/vet/judge=mini")
        if self.traces.most and self.vet.looker is None:
            raise UserError("enrich.traces needs a looker: set enrich/vet/looker=openai")

    @property
    def on(self) -> bool:
        """Whether there is anything to make."""
        return self.twins or self.groups.most > 0 or self.traces.most > 0

    @property
    def reads(self) -> tuple[str, ...]:
        own = ("questions", "lines", "texts", "segments", "digest", "start", "end")
        return tuple(dict.fromkeys((*own, *self.vet.reads)))

    @property
    def roles(self) -> dict[str, LlmConfig]:
        grading = {"grader": self.grader} if self.traces.most else {}
        return {"writer": self.writer, **grading, **self.vet.roles}

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "class": "Enrich",
            "version": self.version,
            "vet": self.vet.identity,
            "made": [self.twins, identity(self.groups), identity(self.traces)],
            "writer": identity(self.writer),
            "grader": identity(self.grader) if self.traces.most else None,
            "prompts": prompts_in(self.prompts, self.language).digest(*PROMPTS),
            "asked": [self.seed, self.tries, identity(self.sampling)],
        }

    def open(self, run: RunContext) -> Opened:
        asker = Asker(
            llm=run.llm(self.writer),
            prompts=prompts_in(self.prompts, self.language),
            sampling=self.sampling,
            tries=self.tries,
        )
        vetted = self.vet.open(run)
        trace = self._tracing(run)
        seat = Seat(self.vet.judge, run) if self.vet.judge else None

        async def work(video: Video) -> Video:
            passed = [q for q in video.questions or () if _passed(q)]
            writer, film = asker.witnessed(), Film(video)

            async def made(question: Question) -> list[Question]:
                found: list[Question] = []
                if self.twins and seat is not None:
                    twin = await twins.twin(
                        question, video, writer, seat.equivalent, seed=self.seed, count=run.count
                    )
                    found += [twin] if twin is not None else []
                if self.groups.most:
                    found += await groups.siblings(
                        question, video, writer, self.groups, film, seed=self.seed, count=run.count
                    )
                return found

            new = [q for some in await asyncio.gather(*map(made, passed)) for q in some]
            checked = vetted(replace(video, questions=_new(new, video)))
            done = checked if isinstance(checked, Video) else await checked
            asked = _grouped((*(video.questions or ()), *_of(done)))
            return replace(video, questions=await trace(video, asked, writer, film))

        return work

    def _tracing(self, run: RunContext) -> Tracing:
        """What gives the questions that stay their traces."""
        if not self.traces.most or self.vet.looker is None:
            return _untraced
        looker, grader = (self.vet.asker(llm, run) for llm in (self.vet.looker, self.grader))

        async def trace(
            video: Video, asked: tuple[Question, ...], writer: Asker, film: Film
        ) -> tuple[Question, ...]:
            askers = {"looker": looker.witnessed()}
            vetting = Vetting(askers=askers, film=film, seed=self.seed, count=run.count)
            by = grader.witnessed()
            return tuple(
                await asyncio.gather(
                    *(
                        traces.traced(q, video, writer, by, self.traces, vetting)
                        if _stays(q)
                        else _same(q)
                        for q in asked
                    )
                )
            )

        return trace


async def _untraced(
    video: Video, asked: tuple[Question, ...], writer: Asker, film: Film
) -> tuple[Question, ...]:
    return asked


async def _same(question: Question) -> Question:
    return question


def _stays(question: Question) -> bool:
    return question.drop is None and not question.unvetted_by and bool(question.answer)


def _passed(question: Question) -> bool:
    """Whether a question has options, a known answer, and passed whatever could tell of it."""
    known = bool(question.options) and question.answer_index is not None
    first = question.sibling_of is None
    return known and first and question.drop is None and not question.unvetted_by


def _new(made: Sequence[Question], video: Video) -> tuple[Question, ...]:
    """Those that are not asked already, each once."""
    known = {q.question_id for q in video.questions or ()}
    return tuple({q.question_id: q for q in made if q.question_id not in known}.values())


def _of(video: Video) -> tuple[Question, ...]:
    return video.questions or ()


def _grouped(questions: Sequence[Question]) -> tuple[Question, ...]:
    """With the first of each group marked, where any of its siblings stays."""
    firsts = {q.group for q in questions if q.group and q.drop is None}
    return tuple(
        replace(q, group=q.question_id) if q.question_id in firsts else q for q in questions
    )
