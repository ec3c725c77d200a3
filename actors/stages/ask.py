"""`ask`: runs a recipe on a row, with a model and the prompts; asks by facts (`mustsee.facts`); or
as CinePile does, with a model for each role and question templates.

A recipe is an async function `(video, asker, settings) -> video` in `mustsee/recipes/`. Its
settings name the columns that it reads and the folder of its prompts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from actors.part import (
    AskOptions,
    LlmConfig,
    Opened,
    RunContext,
    capabilities_of,
    model_identity,
    video_input_of,
)
from mustsee.calls.llm import Asker
from mustsee.facts.deep import Roles
from mustsee.facts.recipe import ask_facts
from mustsee.facts.settings import FactSettings
from mustsee.files.store import keyed_by
from mustsee.media.contact_sheet import SheetRules
from mustsee.nn.weights import MINILM
from mustsee.prompts import ROOT
from mustsee.questions.fact_funnel import no_questions_reason
from mustsee.recipes.cinepile.ask import QUESTIONS, SHORTLIST, CinePileSettings, ask
from mustsee.recipes.cinepile.templates import Template, read_templates
from mustsee.records import Video, is_rules


class RecipeSettings(Protocol):
    """Settings of a recipe, a frozen dataclass. `area`: the folder of its prompts."""

    version: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    area: ClassVar[str]


Recipe = Callable[[Video, Asker, Any], Awaitable[Video]]


@dataclass(frozen=True, kw_only=True)
class Ask(AskOptions):
    """Writes the row's segments and questions, or the reason why there are none. A row becomes a
    problem when `tries` replies to one prompt are unparseable. The recipe gets the row's keyframes
    only where they are shown.
    """

    version: ClassVar[str] = "3"
    needs: ClassVar[tuple[str, ...]] = ("uri", "unheard")
    writes: ClassVar[tuple[str, ...]] = ("segments", "questions", "unasked")

    recipe: Recipe = keyed_by(lambda part: f"{part.recipe.__module__}.{part.recipe.__qualname__}")
    settings: RecipeSettings
    llm: LlmConfig = keyed_by(lambda part: model_identity(part.llm))
    """Model that writes."""

    @property
    def reads(self) -> tuple[str, ...]:
        return (*self.settings.reads, *(("keyframes",) if self._shows_sheets else ()))

    @property
    def _shows_sheets(self) -> bool:
        """Whether a model that takes images is shown contact sheets of the row's keyframes."""
        sheets = getattr(self.settings, "sheets", None)
        takes_images = capabilities_of(self.llm).images and not is_rules(self.llm.identity)
        return isinstance(sheets, SheetRules) and sheets.most > 0 and takes_images

    @property
    def roles(self) -> dict[str, LlmConfig]:
        return {"llm": self.llm}

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return (self.settings.area,)

    def open(self, run: RunContext) -> Opened:
        asker = self.open_asker(self.llm, run, video_input_of(self.llm, run.store))

        async def ask(video: Video) -> Video:
            recorded = asker.with_provenance()
            done = await self.recipe(video, recorded, self.settings)
            if not done.questions:
                by, reads = recorded.llm.identity, self.settings.reads
                done = replace(
                    done, unasked=no_questions_reason(done, by, reads, self.settings.area)
                )
            if cut := sum(segment.words_cut > 0 for segment in done.segments or ()):
                run.count("dense captions cut", cut)
            return done

        return ask


@dataclass(frozen=True, kw_only=True)
class AskFacts(AskOptions):
    """Writes the row's facts, claims and questions, or the reason why there are none."""

    version: ClassVar[str] = "5"
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = (
        "facts", "listed", "claims", "questions", "forms", "missing", "unasked",
    )  # fmt: skip

    settings: FactSettings
    writer: LlmConfig
    """Model that lists facts."""
    verifier: LlmConfig
    """Vision model that looks at them."""
    guesser: LlmConfig
    """Model that ranks answers without the video; vet.guesser measures."""
    guesser_2: LlmConfig | None = keyed_by(
        lambda part: part.roles["guesser_2"].identity if "guesser_2" in part.roles else None,
        default=None,
    )
    """Second model that guesses questions whose options are claims, where deep.choices is on;
    another one than guesser."""
    encoder: str = MINILM
    """Sentence model, a folder or `package:NAME/FOLDER`."""

    @property
    def reads(self) -> tuple[str, ...]:
        return self.settings.reads

    @property
    def roles(self) -> dict[str, LlmConfig]:
        roles = {"writer": self.writer, "verifier": self.verifier, "guesser": self.guesser}
        deep = self.settings.deep
        if self.guesser_2 is not None and deep is not None and deep.choices is not None:
            roles["guesser_2"] = self.guesser_2
        return roles

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return (self.settings.area,)

    def for_rows(self, names: Sequence[str]) -> AskFacts:
        """The part for a run of some rows: it spreads numbers of questions in all over them."""
        return replace(self, settings=self.settings.for_videos(names))

    def open(self, run: RunContext) -> Opened:
        from mustsee.nn.bert import Encoder

        roles = {role: self.open_asker(llm, run) for role, llm in self.roles.items()}
        model, lock = Encoder.load(self.encoder), Lock()
        crop = not is_rules(self.verifier.identity)  # Rules measure bars.

        def encode(texts: Sequence[str]) -> NDArray[np.float32]:
            places = {text: n for n, text in enumerate(dict.fromkeys(texts))}
            with lock:  # A fact of a long video is named in each of its moments.
                vectors = model.encode(list(places))
            return vectors[[places[text] for text in texts]]

        async def ask(video: Video) -> Video:
            own = {role: asker.with_provenance() for role, asker in roles.items()}
            frames = run.frames(video, crop=crop)
            return await ask_facts(video, Roles(**own), frames, encode, self.settings, run.count)

        return ask


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
