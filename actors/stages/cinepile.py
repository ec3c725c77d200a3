"""`ask` of CinePile, with a model for each role and question templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from actors.part import AskOptions, LlmConfig, Opened, RunContext
from mustsee.files.store import keyed_by
from mustsee.prompts import ROOT
from mustsee.questions.fact_funnel import no_questions_reason
from mustsee.recipes.cinepile.ask import QUESTIONS, SHORTLIST, CinePileSettings, ask
from mustsee.recipes.cinepile.templates import Template, read_templates
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class AskScene(AskOptions):
    """Writes the clip's questions; its `split` becomes their subset. `templates`: a reviewed file
    or folder of the template job; null: the templates written by hand. `llms`: role ("shortlister",
    "reasoning", "perceptual") -> model.
    """

    version: ClassVar[str] = "4"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "scene", "duration", "split")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions", "unasked")

    llms: Mapping[str, LlmConfig]
    templates: str | None = keyed_by(lambda part: part.all_templates, default=None)
    settings: CinePileSettings = field(default_factory=CinePileSettings)

    @cached_property
    def all_templates(self) -> tuple[Template, ...]:
        """All templates: induced, perceptual and temporal. Raises UserError."""
        folder = (ROOT if self.prompts is None else Path(self.prompts)) / "cinepile"
        perceptual = read_templates(folder / "perceptual.md", kind="perceptual")
        temporal = read_templates(folder / "temporal.md", kind="temporal")
        own = read_templates(self.templates or folder / "reasoning.md")
        return (*own, *perceptual, *temporal)

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the templates cannot be read."""
        _ = self.all_templates

    @property
    def roles(self) -> dict[str, LlmConfig]:
        return {f"llms.{role}": llm for role, llm in self.llms.items()}

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return (SHORTLIST, QUESTIONS)

    def open(self, run: RunContext) -> Opened:
        askers = {role: self.open_asker(llm, run) for role, llm in self.llms.items()}
        settings = replace(self.settings, templates=self.all_templates)

        async def work(video: Video) -> Video:
            row = await ask(video, askers, settings)
            split = video.split or "train"
            questions = (replace(q, subsets=(*q.subsets, split)) for q in row.questions or ())
            by = " + ".join(dict.fromkeys(a.llm.identity for a in askers.values()))
            why = None if row.questions else no_questions_reason(row, by, self.reads, "cinepile")
            return replace(row, questions=tuple(questions), unasked=why)

        return work
