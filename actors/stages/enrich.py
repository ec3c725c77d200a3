"""`enrich`: reasoning traces of the questions that passed, checked before use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from actors.part import AskOptions, LlmConfig, Opened, RunContext, capabilities_of, video_input_of
from mustsee.errors import UserError
from mustsee.files.store import Store, hardware, identity, keyed_by
from mustsee.records import Video, is_rules
from mustsee.verify import traces
from mustsee.verify.conditions.video_frames import VideoPreparer
from mustsee.verify.filters import VettingContext
from mustsee.verify.traces import Traces

UNTRACED = Traces()


@dataclass(frozen=True, kw_only=True)
class Enrich(AskOptions):
    """Writes reasoning traces of questions that passed.

    The `verifier` checks each step, and the `grader` grades the whole. The job skips this stage
    if nothing is to be made.
    """

    version: ClassVar[str] = "3"
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    reads: ClassVar[tuple[str, ...]] = ("questions", "lines", "digest", "start", "end")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    writer: LlmConfig
    """Model that writes."""
    grader: LlmConfig
    """Model that grades traces."""
    verifier: LlmConfig | None = keyed_by(lambda part: part.verifier_identity, default=None)
    """Vision model that checks each step."""
    watch: bool = hardware(default=True)  # `verifier_identity` says whether videos are shown
    """Show the video itself to a model that takes videos (llm.watches); false: frames."""
    traces: Traces = UNTRACED
    """Step-by-step reasoning from the video to the answer, for each kept question."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.is_on:
            return
        if self.verifier is None:
            raise UserError("enrich.traces needs a verifier: set enrich/verifier=openai")
        if not capabilities_of(self.verifier).images:
            raise UserError(
                f"enrich.verifier={self.verifier!r} takes no images, which the steps of "
                "enrich.traces need: set enrich/verifier= to a model that does"
            )

    @property
    def is_on(self) -> bool:
        """Whether traces are to be made."""
        return self.traces.most > 0

    @property
    def roles(self) -> dict[str, LlmConfig]:
        verifying = {} if self.verifier is None else {"verifier": self.verifier}
        return {"writer": self.writer, "grader": self.grader, **verifying}

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return traces.PROMPTS

    @property
    def verifier_identity(self) -> list[Any] | None:
        """What counts in the store's key of the verifier."""
        if self.verifier is None:
            return None
        return [self.verifier.identity, identity(self._watch(self.verifier))]

    def _watch(self, verifier: LlmConfig, store: Store | None = None) -> VideoPreparer | None:
        return video_input_of(verifier, store) if self.watch else None

    def open(self, run: RunContext) -> Opened:
        verifier = self.verifier
        if verifier is None or not self.is_on:
            return lambda video: video
        writing, grading = self.open_asker(self.writer, run), self.open_asker(self.grader, run)
        verifying = self.open_asker(verifier, run, self._watch(verifier, run.store))
        settings = self.traces
        if not capabilities_of(self.writer).images:
            settings = replace(settings, near=None)

        async def work(video: Video) -> Video:
            writer, grader = writing.with_provenance(), grading.with_provenance()
            vetting = VettingContext(
                askers={"verifier": verifying.with_provenance()},
                video_frames=run.frames(video, crop=not is_rules(verifier.identity)),
                seed=self.seed,
                count=run.count,
            )
            traced = (
                traces.add_trace(q, video, writer, grader, settings, vetting)
                for q in video.questions or ()
            )
            questions = tuple(await asyncio.gather(*traced))
            return replace(video, questions=questions, requests=vetting.requests.counts)

        return work
