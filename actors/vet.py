"""`vet`: filters that ask a model about each question of a row, and keep what it said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors.ask import SAMPLING, prompts_in
from actors.part import LlmConfig, Opened, RunContext
from mustsee.errors import UserError
from mustsee.filters.blind import Guess, guess
from mustsee.llm import Asker, Sampling
from mustsee.records import Video
from mustsee.store import identity


@dataclass(frozen=True, kw_only=True)
class Vet:
    """Each filter is asked about each question that no check has dropped; the verdicts of all its
    runs stay with the question; one that passes all of them belongs to `subset`.

    `seed`: the first of the runs' seeds. What bears identity: the filters, the texts of their
    prompts, the model, the sampling.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("questions", "lines")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    filters: Sequence[Guess]
    llm: LlmConfig
    subset: str | None = None
    seed: int = 0
    prompts: str | None = None
    sampling: Sampling = SAMPLING
    tries: int = 3

    def __post_init__(self) -> None:
        names = [f.name for f in self.filters]
        if len(set(names)) != len(names):
            raise UserError(f"vet.filters={names!r}: each filter needs a name of its own")

    @property
    def identity(self) -> dict[str, Any]:
        prompts = prompts_in(self.prompts)
        return {
            "class": "Vet",
            "version": self.version,
            "filters": identity(list(self.filters)),
            "subset": self.subset,
            "llm": identity(self.llm),
            "seed": self.seed,
            "prompts": [prompts.digest(f.prompt, "filters/_options") for f in self.filters],
            "sampling": identity(self.sampling),
            "tries": self.tries,
        }

    def open(self, run: RunContext) -> Opened:
        asker = Asker(
            llm=run.llm(self.llm),
            prompts=prompts_in(self.prompts),
            sampling=self.sampling,
            tries=self.tries,
        )

        async def vet(video: Video) -> Video:
            return await guess(video, asker, self.filters, self.seed, self.subset)

        return vet
