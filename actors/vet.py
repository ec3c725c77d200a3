"""`vet`: filters that ask models about each question of a row, and keep what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors.ask import SAMPLING, prompts_in
from actors.part import LlmConfig, Opened, RunContext
from mustsee.errors import UserError
from mustsee.filters.vetting import QuestionFilter, Vetting, named, vet
from mustsee.llm import Asker, Sampling
from mustsee.records import Video
from mustsee.store import identity


@dataclass(frozen=True, kw_only=True)
class Vet:
    """Filters on the questions that no check has dropped, in their order (`mustsee.filters`).

    The fields below `filters` are roles: the models that filters ask, each set as
    `vet/guesser=openai vet.guesser.model=...`. A question that every filter passes belongs to
    `subset`. `seed`: the first of the runs' seeds. What bears identity: the filters, the texts of
    their prompts, the models of their roles, the sampling.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    filters: Sequence[QuestionFilter]
    guesser: LlmConfig | None = None
    guesser_2: LlmConfig | None = None
    guesser_3: LlmConfig | None = None
    reader: LlmConfig | None = None
    repairer: LlmConfig | None = None
    subset: str | None = None
    seed: int = 0
    prompts: str | None = None
    sampling: Sampling = SAMPLING
    tries: int = 3

    def __post_init__(self) -> None:
        named(self.filters)
        for each in self.filters:
            for role in each.roles:
                if getattr(self, role, None) is None:
                    raise UserError(
                        f"vet.{role}=None, but the filter {each.name!r} asks it: "
                        f"set vet/{role}=openai"
                    )

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("questions", *(c for f in self.filters for c in f.reads))))

    @property
    def roles(self) -> dict[str, LlmConfig]:
        """The models that the filters ask, by role."""
        return {role: getattr(self, role) for f in self.filters for role in f.roles}

    @property
    def identity(self) -> dict[str, Any]:
        prompts = prompts_in(self.prompts)
        return {
            "class": "Vet",
            "version": self.version,
            "filters": identity(list(self.filters)),
            "subset": self.subset,
            "roles": identity(self.roles),
            "seed": self.seed,
            "prompts": [prompts.digest(*f.prompts) for f in self.filters],
            "sampling": identity(self.sampling),
            "tries": self.tries,
        }

    def open(self, run: RunContext) -> Opened:
        askers = {
            role: Asker(
                llm=run.llm(llm),
                prompts=prompts_in(self.prompts),
                sampling=self.sampling,
                tries=self.tries,
            )
            for role, llm in self.roles.items()
        }
        vetting = Vetting(askers=askers, seed=self.seed, count=run.count)

        async def work(video: Video) -> Video:
            return await vet(video, self.filters, vetting, self.subset)

        return work
