"""`enrich`: what is made of the questions that passed, and checked before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from actors.ask import SAMPLING, prompts_in
from actors.judge.seat import Seat
from actors.part import LlmConfig, Opened, RunContext
from actors.vet import Vet
from mustsee.conditions.film import Film
from mustsee.enrich import groups, twins
from mustsee.enrich.groups import Groups
from mustsee.errors import UserError
from mustsee.llm import Asker, Sampling
from mustsee.prompts import ENGLISH
from mustsee.records import Question, Video
from mustsee.store import identity

NONE = Groups()
PROMPTS = (*twins.PROMPTS, *groups.PROMPTS)


@dataclass(frozen=True, kw_only=True)
class Enrich:
    """`twins`: each multiple-choice question that passed gets an open-ended twin, where it can.
    `groups`: siblings on the same fact, to be scored with it all or nothing.

    What the `writer` makes is vetted by `vet`, whose judge also grades the twins; what falls there
    stays, dropped. With nothing to make the job leaves this stage out. What bears identity: what is
    made, the writer, the texts of its prompts, and all of `vet`.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    vet: Vet
    writer: LlmConfig
    twins: bool = False
    groups: Groups = NONE
    seed: int = 0
    prompts: str | None = None
    language: str = ENGLISH
    sampling: Sampling = SAMPLING
    tries: int = 3

    def __post_init__(self) -> None:
        if self.twins and self.vet.judge is None:
            raise UserError("enrich.twins=true needs a judge: set enrich/vet/judge=mini")

    @property
    def on(self) -> bool:
        """Whether there is anything to make."""
        return self.twins or self.groups.most > 0

    @property
    def reads(self) -> tuple[str, ...]:
        own = ("questions", "lines", "texts", "segments", "digest", "start", "end")
        return tuple(dict.fromkeys((*own, *self.vet.reads)))

    @property
    def roles(self) -> dict[str, LlmConfig]:
        return {"writer": self.writer, **self.vet.roles}

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "class": "Enrich",
            "version": self.version,
            "vet": self.vet.identity,
            "made": [self.twins, identity(self.groups)],
            "writer": identity(self.writer),
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
            return replace(video, questions=_grouped((*(video.questions or ()), *_of(done))))

        return work


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
