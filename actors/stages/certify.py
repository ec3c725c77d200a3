"""Temporal certificates: the shortest clip from which a verifier answers a question correctly."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import ClassVar

from actors.part import (
    AskOptions,
    ConfiguredJudge,
    LlmConfig,
    Opened,
    RunContext,
    capabilities_of,
    gather_all,
)
from mustsee.errors import UserError
from mustsee.evaluate.certificate import Certificate, CertificateClip, CertificateSteps
from mustsee.files.schemas import dump
from mustsee.judge.judge import JudgeConfig
from mustsee.records import Question, Span, Verdict, Video, is_rules
from mustsee.verify.conditions.seen import Condition, FramePlan, spread
from mustsee.verify.fewest import fewest
from mustsee.verify.filters import VettingContext, is_judgeable
from mustsee.verify.looks import OPEN, PROMPT, VerifierSession

FILTER = "certificate"
LOOKS = "certificate: look"


@dataclass(frozen=True, kw_only=True)
class Certify(AskOptions):
    """Shows the verifier clips that grow until it answers correctly. Each question with a known
    answer gets a verdict of the filter "certificate" with the clip that it needs, the clip's
    `metrics.min_frames` and `min_seconds`, and a verdict for each look.

    `verifier`: the model that is asked, with the prompt of `sight`, which allows "undecidable".
    `see`: size of the frames; with `transcript`, the clip's transcript is shown too. `judge`:
    judges answers in words; null: questions without options are left out.
    """

    version: ClassVar[str] = "5"
    reads: ClassVar[tuple[str, ...]] = ("questions", "digest", "start", "end", "lines")
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    verifier: LlmConfig
    see: Condition = field(default_factory=lambda: Condition(condition="evidence", fps=1.0))
    steps: CertificateSteps = field(default_factory=CertificateSteps)
    judge: JudgeConfig | None = None
    seed: int = 0

    @property
    def listens(self) -> bool:
        """Whether the transcript is shown."""
        return self.see.listens

    def check(self, budget_usd: float | None) -> None:
        """Raise UserError if the verifier takes no images."""
        if not capabilities_of(self.verifier).images:
            raise UserError(
                f"{self.verifier.identity} takes no images, which certificates need: set llm= to a "
                "model that does"
            )

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return (PROMPT, OPEN, "filters/_sight")

    def open(self, run: RunContext) -> Opened:
        asker = self.open_asker(self.verifier, run)
        judge = ConfiguredJudge(self.judge, run).equivalent if self.judge else None

        async def work(video: Video) -> Video:
            vetting = VettingContext(
                askers={"verifier": asker},
                video_frames=run.frames(video, crop=not is_rules(self.verifier.identity)),
                seed=self.seed,
                count=run.count,
                judge=judge,
            )
            questions = await gather_all(
                self._certify(q, video, vetting) for q in video.questions or ()
            )
            return replace(video, questions=tuple(questions))

        return work

    async def _certify(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        answerable = question.answer_index is not None
        if not question.options:
            answerable = is_judgeable(question, vetting)
        if question.drop is not None or not answerable:
            return question
        session = VerifierSession(question, video, vetting, name=LOOKS)
        ladders = [[_plan(clip) for clip in clips] for clips in self.steps.ladders(session.extent)]
        see = replace(self.see, condition="evidence", fps=self.see.fps or 1.0, frames=0)
        looks = 1 + self.steps.verifiers
        outcome = await fewest(session, see, ladders, looks, in_turn=self.steps.in_turn)
        clip = outcome.plan and _clip(outcome.plan, session.extent)
        certificate = Certificate(
            question_id=question.question_id,
            video_id=question.video_id,
            duration=session.extent.seconds,
            clip=clip,
            most_wrong=outcome.failed,
            calls=len(session.verdicts),
            unanswered=sum(v.correct is None for v in session.verdicts),
        )
        verdict = Verdict(
            filter=FILTER,
            model=self.verifier.identity,
            seed=self.seed,
            passed=clip is not None,
            detail=json.dumps(dump(certificate), sort_keys=True),
        )
        others = tuple(v for v in question.verdicts if v.filter not in (FILTER, LOOKS))
        sizes = {"min_frames": float(clip.frames), "min_seconds": clip.span.seconds} if clip else {}
        return replace(
            question,
            verdicts=(*others, *session.verdicts, verdict),
            metrics={**question.metrics, **sizes},
        )


def _plan(clip: CertificateClip) -> FramePlan:
    return FramePlan(spans=(clip.span,), times=spread((clip.span,), clip.frames))


def _clip(plan: FramePlan, video: Span) -> CertificateClip:
    """The clip that was shown; an empty clip where nothing was shown."""
    if not plan.times:
        return CertificateClip(span=Span(video.start, video.start), fps=0.0, frames=0)
    (span,) = plan.spans
    return CertificateClip(span=span, fps=len(plan.times) / span.seconds, frames=len(plan.times))
