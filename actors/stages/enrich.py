"""`enrich`: what is made of the questions that passed, and checked before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from actors.judge.seat import ConfiguredJudge
from actors.part import LlmConfig, Opened, RunContext, capabilities_of
from actors.stages.ask_options import AskOptions
from actors.stages.vet import Vet
from mustsee.calls.llm import Asker
from mustsee.enrich import groups, traces, twins
from mustsee.enrich.groups import GroupSettings
from mustsee.enrich.traces import Traces
from mustsee.errors import UserError
from mustsee.records import Question, Video
from mustsee.store import keyed_by
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.vetting import VettingContext

NONE, UNTRACED = GroupSettings(), Traces()
Made = list[Question]
PROMPTS = (*twins.PROMPTS, *groups.PROMPTS, *traces.PROMPTS)


@dataclass(frozen=True, kw_only=True)
class Enrich(AskOptions):
    """`twins`: each multiple-choice question that passed gets an open-ended twin, where it can.
    `groups`: siblings on the same fact, to be scored with it all or nothing. `traces`: how one
    comes to the answer of each question that stays, twins and siblings too.

    What the `writer` makes is vetted by `vet`, whose judge also grades the twins; what falls there
    stays, dropped. The steps of a trace are looked at by the verifier of `vet`, and all of it is
    graded by the `grader`. With nothing to make the job leaves this stage out. What bears identity:
    what is made, the writer and the grader, the texts of their prompts, and all of `vet`.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    vet: Vet
    writer: LlmConfig
    grader: LlmConfig = keyed_by(lambda part: part.grader.identity if part.traces.most else None)
    twins: bool = False
    groups: GroupSettings = NONE
    traces: Traces = UNTRACED
    seed: int = 0

    def __post_init__(self) -> None:
        if self.twins and self.vet.judge is None:
            raise UserError("enrich.twins=true needs a judge: set enrich/vet/judge=mini")
        if self.traces.most and self.vet.verifier is None:
            raise UserError("enrich.traces needs a verifier: set enrich/vet/verifier=openai")
        if self.traces.most and _blind(self.vet.verifier):
            raise UserError(
                f"enrich.vet.verifier={self.vet.verifier!r} takes no pictures, which the "
                "steps of enrich.traces need: set enrich/vet/verifier= to a model that does"
            )

    @property
    def is_on(self) -> bool:
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
    def prompt_names(self) -> tuple[str, ...]:
        return PROMPTS

    def open(self, run: RunContext) -> Opened:
        writing, vetted = self.open_asker(self.writer, run), self.vet.open(run)
        grading, verifier = self.open_asker(self.grader, run), self.vet.verifier
        looking = self.vet.asker(verifier, run) if self.traces.most and verifier else None
        judge = ConfiguredJudge(self.vet.judge, run).equivalent if self.vet.judge else None
        shown, near = self.groups, self.traces.near
        if _blind(self.writer):
            shown, near = replace(shown, see=None, near=None), None

        async def make_variants(
            question: Question, video: Video, writer: Asker, video_frames: VideoFrames
        ) -> Made:
            twin, some = None, list[Question]()
            if self.twins and judge is not None:
                twin = await twins.twin(
                    question, video, writer, judge, seed=self.seed, count=run.count
                )
            if shown.most:
                some = await groups.siblings(
                    question, video, writer, shown, video_frames, seed=self.seed, count=run.count
                )
            return [*([twin] if twin is not None else []), *some]

        async def work(video: Video) -> Video:
            writer, video_frames = writing.with_provenance(), VideoFrames(video)
            passed = [q for q in video.questions or () if _passed(q)]
            found = await asyncio.gather(
                *(make_variants(q, video, writer, video_frames) for q in passed)
            )
            new = _new([q for some in found for q in some], video)
            checked = vetted(replace(video, questions=new))
            done = checked if isinstance(checked, Video) else await checked
            asked = _grouped((*(video.questions or ()), *(done.questions or ())))
            if looking is None:
                return replace(video, questions=asked)
            askers, grader = {"verifier": looking.with_provenance()}, grading.with_provenance()
            vetting = VettingContext(
                askers=askers, video_frames=video_frames, seed=self.seed, count=run.count
            )
            how = replace(self.traces, near=near)
            steps = (traces.add_trace(q, video, writer, grader, how, vetting) for q in asked)
            return replace(video, questions=tuple(await asyncio.gather(*steps)))

        return work


def _blind(llm: LlmConfig | None) -> bool:
    """Whether a model takes no images."""
    return llm is not None and not capabilities_of(llm).images


def _passed(question: Question) -> bool:
    """Whether a question has options, a known answer, and passed whatever could tell of it."""
    known = bool(question.options) and question.answer_index is not None
    first = question.sibling_of is None
    return known and first and question.drop is None and not question.unverified_by


def _new(made: Sequence[Question], video: Video) -> tuple[Question, ...]:
    """Those that are not asked already, each once."""
    known = {q.question_id for q in video.questions or ()}
    return tuple({q.question_id: q for q in made if q.question_id not in known}.values())


def _grouped(questions: Sequence[Question]) -> tuple[Question, ...]:
    """With the first of each group marked, where any of its siblings stays."""
    firsts = {q.group for q in questions if q.group and q.drop is None}
    return tuple(
        replace(q, group=q.question_id) if q.question_id in firsts else q for q in questions
    )
