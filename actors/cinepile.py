"""CinePile's `ask` and `vet`: parts with a model for each role."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from actors.ask import SAMPLING, prompts_in
from actors.part import LlmConfig, Opened, RunContext
from mustsee.llm import Asker, Sampling
from mustsee.prompts import ROOT
from mustsee.recipes.cinepile.ask import Settings, ask
from mustsee.recipes.cinepile.degenerate import degenerate
from mustsee.recipes.cinepile.hardness import hardness
from mustsee.recipes.cinepile.refine import Refinement, refine
from mustsee.recipes.cinepile.scene import Told, told, written
from mustsee.recipes.cinepile.templates import Template, read_templates
from mustsee.recipes.cinepile.vision import vision
from mustsee.records import Question, Video
from mustsee.store import identity


@dataclass(frozen=True, kw_only=True)
class AskScene:
    """Writes the clip's questions. `templates`: the reviewed file or folder of the template job;
    null: the hand-written ones. `llms`: role ("reasoning", "perceptual") -> model.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "scene", "duration")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    llms: Mapping[str, LlmConfig]
    templates: str | None = None
    settings: Settings = field(default_factory=Settings)
    prompts: str | None = None
    sampling: Sampling = SAMPLING
    tries: int = 3

    @cached_property
    def known(self) -> tuple[Template, ...]:
        """All templates: induced, perceptual, temporal. Raises UserError."""
        folder = (ROOT if self.prompts is None else Path(self.prompts)) / "cinepile"
        perceptual = read_templates(folder / "perceptual.md", kind="perceptual")
        temporal = read_templates(folder / "temporal.md", kind="temporal")
        own = read_templates(self.templates or folder / "reasoning.md")
        return (*own, *perceptual, *temporal)

    def check(self, budget_usd: float | None = None) -> None:
        """Said before any work: the templates can be read. Raises UserError."""
        _ = self.known

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "class": "AskScene",
            "version": self.version,
            "settings": identity(self.settings),
            "templates": identity(self.known),
            "llms": identity(self.llms),
            "prompts": prompts_in(self.prompts).digest("cinepile"),
            "sampling": identity(self.sampling),
            "tries": self.tries,
        }

    def open(self, run: RunContext) -> Opened:
        askers = _askers(self.llms, run, self.prompts, self.sampling, self.tries)
        settings = replace(self.settings, templates=self.known)

        async def work(video: Video) -> Video:
            return await ask(video, askers, settings)

        return work


@dataclass(frozen=True, kw_only=True)
class VetScene:
    """Refines what is guessed blind, and measures. The row's `split` becomes a subset of its
    questions.

    `llms`: role -> model. "blind" guesses for the refinement, "writer" rewrites, "judge" answers
    from dialogue and from the scene; the roles in `guessers` decide on degeneracy, all of them.
    `refinement`: null for none. A weak question that was not fixed is dropped from the test split.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "questions", "scene", "split")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    llms: Mapping[str, LlmConfig]
    guessers: tuple[str, ...] = ("guesser_1", "guesser_2", "guesser_3")
    refinement: Refinement | None = None
    threshold: float = 0.5
    seed: int = 0
    prompts: str | None = None
    sampling: Sampling = SAMPLING
    tries: int = 2

    @property
    def identity(self) -> dict[str, Any]:
        prompts = prompts_in(self.prompts)
        return {
            "class": "VetScene",
            "version": self.version,
            "llms": identity(self.llms),
            "guessers": list(self.guessers),
            "refinement": identity(self.refinement),
            "threshold": self.threshold,
            "seed": self.seed,
            "prompts": prompts.digest("cinepile/choose", "cinepile/rewrite"),
            "sampling": identity(self.sampling),
            "tries": self.tries,
        }

    def open(self, run: RunContext) -> Opened:
        askers = _askers(self.llms, run, self.prompts, self.sampling, self.tries)

        async def work(video: Video) -> Video:
            lines = told(video.scene, threshold=self.threshold) if video.scene else ()
            split = video.split or "train"
            done = await gather(
                *(self._question(q, split, lines, askers) for q in video.questions or ())
            )
            for question in done:
                if question.metrics.get("weak"):
                    run.count("weak questions", 1)
                if question.metrics.get("fixed"):
                    run.count("weak questions fixed", 1)
            return replace(video, questions=tuple(done))

        return work

    async def _question(
        self,
        question: Question,
        split: str,
        lines: tuple[Told, ...],
        askers: Mapping[str, Asker],
    ) -> Question:
        question = replace(question, subsets=(*question.subsets, split))
        if question.drop is not None or question.answer_index is None:
            return question
        scene = written(lines)
        dialogue = "\n".join(f"{x.start:.1f} {x.end:.1f} {x.text}" for x in lines if not x.visual)
        if self.refinement is not None:
            found = await refine(
                question, scene, blind=askers["blind"], writer=askers["writer"],
                judge=askers["judge"], settings=self.refinement, seed=self.seed,
            )  # fmt: skip
            question = found.question
            if found.status == "unfixed" and split == "test":
                times = f"{found.rewrites} rewrites"
                question = replace(
                    question, drop=f"refine: guessed without the scene after {times}"
                )
        guessers = {name: askers[name] for name in self.guessers}
        question = await degenerate(question, guessers, seed=self.seed)
        question = await vision(question, askers["judge"], dialogue, seed=self.seed)
        return await hardness(question, askers["judge"], scene, seed=self.seed)


def _askers(
    llms: Mapping[str, LlmConfig],
    run: RunContext,
    prompts: str | None,
    sampling: Sampling,
    tries: int,
) -> dict[str, Asker]:
    return {
        role: Asker(llm=run.llm(llm), prompts=prompts_in(prompts), sampling=sampling, tries=tries)
        for role, llm in llms.items()
    }
