"""`ask`: runs a recipe on a row, with a model and the prompts.

A recipe is an async function `(video, asker, settings) -> video` in `mustsee/recipes/`. Its
settings name the columns that it reads and the folder of its prompts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

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
from mustsee.files.store import keyed_by
from mustsee.media.contact_sheet import SheetRules
from mustsee.questions.fact_funnel import no_questions_reason
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
