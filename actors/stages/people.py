"""`people`: the perceived age and gender of the people in a video."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from actors.part import AskOptions, LlmConfig, Opened, RunContext, capabilities_of
from mustsee.calls.usage import RequestTally
from mustsee.errors import UserError
from mustsee.recipes.neptune.diversity import PROMPT, perceive_people
from mustsee.records import Video


@dataclass(frozen=True, kw_only=True)
class People(AskOptions):
    """Writes `perceived_age`, `perceived_gender` and `perceived_by`, as the `llm` judges them from
    `frames` keyframes: an impression, not a fact about a person.
    """

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("keyframes",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("perceived_age", "perceived_gender", "perceived_by")

    llm: LlmConfig
    """Vision model that gives the impression."""
    frames: int = 8
    """Keyframes that it is shown."""
    seed: int = 0

    @property
    def roles(self) -> dict[str, LlmConfig]:
        return {"llm": self.llm}

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the model takes no images."""
        if not capabilities_of(self.llm).images:
            raise UserError(
                f"people.llm={self.llm!r} takes no images: set people/llm= to a model "
                "that does, or diversity.strata=[]"
            )

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return (PROMPT,)

    def open(self, run: RunContext) -> Opened:
        asker = self.open_asker(self.llm, run)

        async def look(video: Video) -> Video:
            requests = RequestTally()
            people = await perceive_people(
                video, asker, requests, frames=self.frames, seed=self.seed
            )
            return replace(
                video,
                perceived_age=people.age,
                perceived_gender=people.gender,
                perceived_by=asker.llm.identity,
                requests=requests.counts,
            )

        return look
