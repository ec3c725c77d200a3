"""CinePile's `ask`: a model for each role, and the templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from actors.part import LlmConfig, Opened, RunContext
from actors.stages.ask import SAMPLING, prompts_in
from mustsee.calls.llm import Asker, Sampling
from mustsee.prompts import ENGLISH, ROOT, Prompts
from mustsee.questions.no_questions import no_questions_reason
from mustsee.recipes.cinepile.ask import CinePileSettings, ask
from mustsee.recipes.cinepile.templates import Template, read_templates
from mustsee.records import Video
from mustsee.store import identity


@dataclass(frozen=True, kw_only=True)
class AskScene:
    """Writes the clip's questions; its `split` becomes their subset. `templates`: the reviewed file
    or folder of the template job; null: the hand-written ones. `llms`: role ("reasoning",
    "perceptual") -> model.
    """

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "scene", "duration", "split")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions", "unasked")

    llms: Mapping[str, LlmConfig]
    templates: str | None = None
    settings: CinePileSettings = field(default_factory=CinePileSettings)
    prompts: str | None = None
    language: str = ENGLISH
    sampling: Sampling = SAMPLING
    tries: int = 3

    @cached_property
    def all_templates(self) -> tuple[Template, ...]:
        """All templates: induced, perceptual, temporal. Raises UserError."""
        folder = (ROOT if self.prompts is None else Path(self.prompts)) / "cinepile"
        perceptual = read_templates(folder / "perceptual.md", kind="perceptual")
        temporal = read_templates(folder / "temporal.md", kind="temporal")
        own = read_templates(self.templates or folder / "reasoning.md")
        return (*own, *perceptual, *temporal)

    def check(self, budget_usd: float | None = None) -> None:
        """Said before any work: the templates can be read. Raises UserError."""
        _ = self.all_templates

    @property
    def roles(self) -> dict[str, LlmConfig]:
        return {f"llms.{role}": llm for role, llm in self.llms.items()}

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "class": "AskScene",
            "version": self.version,
            "settings": identity(self.settings),
            "templates": identity(self.all_templates),
            "llms": identity(self.llms),
            "prompts": prompts_in(self.prompts, self.language).digest("cinepile"),
            "sampling": identity(self.sampling),
            "tries": self.tries,
        }

    def open(self, run: RunContext) -> Opened:
        askers = _askers(
            self.llms, run, prompts_in(self.prompts, self.language), self.sampling, self.tries
        )
        settings = replace(self.settings, templates=self.all_templates)

        async def work(video: Video) -> Video:
            asked = await ask(video, askers, settings)
            split = video.split or "train"
            questions = (replace(q, subsets=(*q.subsets, split)) for q in asked.questions or ())
            by = " + ".join(dict.fromkeys(a.llm.identity for a in askers.values()))
            why = (
                None if asked.questions else no_questions_reason(asked, by, self.reads, "cinepile")
            )
            return replace(asked, questions=tuple(questions), unasked=why)

        return work


def _askers(
    llms: Mapping[str, LlmConfig],
    run: RunContext,
    prompts: Prompts,
    sampling: Sampling,
    tries: int,
) -> dict[str, Asker]:
    return {
        role: Asker(llm=run.llm(llm), prompts=prompts, sampling=sampling, tries=tries)
        for role, llm in llms.items()
    }
