"""`ask`: a recipe at work on one row, with a model and the prompts.

A recipe is an async function `(video, asker, settings) -> video` in `mustsee/recipes/`; its
settings name the columns that it reads and the folder of its prompts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from actors.part import LlmConfig, Opened, RunContext
from actors.video_input import video_input_of
from mustsee.calls.llm import Asker, Sampling
from mustsee.prompts import ENGLISH, Prompts
from mustsee.questions.no_questions import no_questions_reason
from mustsee.records import Video
from mustsee.store import identity
from mustsee.verify.conditions.watch import VideoPreparer

SAMPLING = Sampling()


def prompts_in(folder: str | None, language: str) -> Prompts:
    """The prompts in a folder; None: the project's own, wherever this process has it."""
    return Prompts(language=language) if folder is None else Prompts(folder, language)


class Manner(Protocol):
    """How a part asks: its fields of these names."""

    @property
    def prompts(self) -> str | None: ...
    @property
    def language(self) -> str: ...
    @property
    def sampling(self) -> Sampling: ...
    @property
    def tries(self) -> int: ...


def asker_of(
    how: Manner, llm: LlmConfig, run: RunContext, watch: VideoPreparer | None = None
) -> Asker:
    """A model of a part, asked in its manner."""
    return Asker(
        llm=run.llm(llm),
        prompts=prompts_in(how.prompts, how.language),
        sampling=how.sampling,
        tries=how.tries,
        watch=watch,
    )


class RecipeSettings(Protocol):
    """A recipe's settings, a frozen dataclass. `area`: the folder of its prompts."""

    version: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    area: ClassVar[str]


Recipe = Callable[[Video, Asker, Any], Awaitable[Video]]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Writes the row's segments and questions, or why there is none.

    `prompts`: another folder of prompts. `language`: that is written in. `tries`: how often one
    prompt may be answered in a wrong form before the row becomes a problem. What bears identity:
    the recipe's name and version, its settings, the texts of its prompts, the model, the sampling.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = ("segments", "questions", "unasked")

    recipe: Recipe
    settings: RecipeSettings
    llm: LlmConfig
    prompts: str | None = None
    language: str = ENGLISH
    sampling: Sampling = SAMPLING
    tries: int = 3

    @property
    def reads(self) -> tuple[str, ...]:
        return self.settings.reads

    @property
    def roles(self) -> dict[str, LlmConfig]:
        return {"llm": self.llm}

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "class": "Ask",
            "version": self.version,
            "recipe": f"{self.recipe.__module__}.{self.recipe.__qualname__}",
            "settings": identity(self.settings),
            "llm": identity(self.llm),
            "watch": identity(video_input_of(self.llm)),
            "prompts": prompts_in(self.prompts, self.language).digest(self.settings.area),
            "sampling": identity(self.sampling),
            "tries": self.tries,
        }

    def open(self, run: RunContext) -> Opened:
        asker = asker_of(self, self.llm, run, video_input_of(self.llm, run.store))

        async def ask(video: Video) -> Video:
            seen = asker.with_provenance()
            done = await self.recipe(video, seen, self.settings)
            if not done.questions:
                by, reads = seen.llm.identity, self.settings.reads
                done = replace(
                    done, unasked=no_questions_reason(done, by, reads, self.settings.area)
                )
            if cut := sum(segment.words_cut > 0 for segment in done.segments or ()):
                run.count("dense captions cut", cut)
            return done

        return ask
