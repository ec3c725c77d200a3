"""`enrich`: variants and reasoning traces of the questions that passed, checked before use."""

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
    """`twins`: an open-ended twin of each multiple-choice question that passed, where possible.
    `groups`: siblings on the same fact, which score only together. `traces`: the steps that lead
    to the answer of each kept question, twins and siblings included.

    The `writer`'s questions are vetted by `vet`, whose judge also grades the twins; those that
    fail are kept as dropped. The verifier of `vet` checks each step of a trace, and the `grader`
    grades the whole. The job skips this stage if nothing is to be made.
    """

    version: ClassVar[str] = "2"
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
                f"enrich.vet.verifier={self.vet.verifier!r} takes no images, which the steps of "
                "enrich.traces need: set enrich/vet/verifier= to a model that does"
            )

    @property
    def is_on(self) -> bool:
        """Whether twins, groups or traces are to be made."""
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
        writing, vetting_part = self.open_asker(self.writer, run), self.vet.open(run)
        grading, verifier = self.open_asker(self.grader, run), self.vet.verifier
        verifying = self.vet.asker(verifier, run) if self.traces.most and verifier else None
        judge = ConfiguredJudge(self.vet.judge, run).equivalent if self.vet.judge else None
        siblings, near = self.groups, self.traces.near
        if _blind(self.writer):
            siblings, near = replace(siblings, see=None, near=None), None

        async def make_variants(
            question: Question, video: Video, writer: Asker, video_frames: VideoFrames
        ) -> Made:
            twin, group = None, list[Question]()
            if self.twins and judge is not None:
                twin = await twins.twin(
                    question, video, writer, judge, seed=self.seed, count=run.count
                )
            if siblings.most:
                group = await groups.siblings(
                    question, video, writer, siblings, video_frames, seed=self.seed, count=run.count
                )
            return [*([twin] if twin is not None else []), *group]

        async def work(video: Video) -> Video:
            writer = writing.with_provenance()
            video_frames = VideoFrames(video, crop=self.vet.crops_bars)
            passed = [q for q in video.questions or () if _passed(q)]
            variants = await asyncio.gather(
                *(make_variants(q, video, writer, video_frames) for q in passed)
            )
            new = _new([q for siblings in variants for q in siblings], video)
            checked = vetting_part(replace(video, questions=new))
            done = checked if isinstance(checked, Video) else await checked
            questions = _grouped((*(video.questions or ()), *(done.questions or ())))
            if verifying is None:
                return replace(video, questions=questions)
            askers, grader = {"verifier": verifying.with_provenance()}, grading.with_provenance()
            vetting = VettingContext(
                askers=askers, video_frames=video_frames, seed=self.seed, count=run.count
            )
            settings = replace(self.traces, near=near)
            traced = (
                traces.add_trace(q, video, writer, grader, settings, vetting) for q in questions
            )
            return replace(video, questions=tuple(await asyncio.gather(*traced)))

        return work


def _blind(llm: LlmConfig | None) -> bool:
    """Whether a model takes no images."""
    return llm is not None and not capabilities_of(llm).images


def _passed(question: Question) -> bool:
    """Whether a question has options and an answer key, is no sibling, and passed all filters."""
    answerable = bool(question.options) and question.answer_index is not None
    first = question.sibling_of is None
    return answerable and first and question.drop is None and not question.unverified_by


def _new(variants: Sequence[Question], video: Video) -> tuple[Question, ...]:
    """The questions that the row does not have, each once."""
    existing = {q.question_id for q in video.questions or ()}
    return tuple({q.question_id: q for q in variants if q.question_id not in existing}.values())


def _grouped(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Mark the first question of each group that has a kept sibling."""
    firsts = {q.group for q in questions if q.group and q.drop is None}
    return tuple(
        replace(q, group=q.question_id) if q.question_id in firsts else q for q in questions
    )
