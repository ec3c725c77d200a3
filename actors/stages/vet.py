"""`vet`: filters that ask models about each question of a row, and keep what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors.judge.seat import ConfiguredJudge
from actors.part import LlmConfig, Opened, RunContext
from actors.stages.ask import SAMPLING, asker_of, prompts_in
from actors.video_input import TakesImages, video_input_of
from mustsee.calls.llm import Asker, Sampling
from mustsee.errors import UserError
from mustsee.judge.judge import JudgeConfig
from mustsee.prompts import ENGLISH
from mustsee.records import Video
from mustsee.store import Store, identity
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.conditions.watch import VideoPreparer
from mustsee.verify.repair import RepairRule
from mustsee.verify.sight import NOT_LOOKED_AT
from mustsee.verify.vetting import QuestionFilter, VettingContext, ordered_filters, vet


@dataclass(frozen=True, kw_only=True)
class Vet:
    """Filters on the questions that no check has dropped (`mustsee.verify`).

    `filters`: by name, worked through as listed; null turns one off. `order`: the names that come
    first instead.

    The roles are the models that filters ask, each set as `vet/guesser=openai
    vet.guesser.model=...`; filters of a `verifier` that takes no pictures are left out, and that is
    counted. `repair`: how what falls is mended, by `repairer`; null: not. A question that every
    filter passes belongs to `subset`. `watch`: models that take videos are shown them;
    else pictures. `judge`: says of questions without options
    whether an answer is the known one; null: nobody looks at those. `seed`: the first of the runs'
    seeds. What bears identity: the filters, the texts of their prompts, the models of their roles,
    the judge, the sampling.
    """

    version: ClassVar[str] = "5"
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    filters: Mapping[str, QuestionFilter | None]
    order: Sequence[str] = ()
    repair: RepairRule | None = None
    guesser: LlmConfig | None = None
    guesser_2: LlmConfig | None = None
    guesser_3: LlmConfig | None = None
    reader: LlmConfig | None = None
    verifier: LlmConfig | None = None
    repairer: LlmConfig | None = None
    judge: JudgeConfig | None = None
    watch: bool = True
    subset: str | None = None
    seed: int = 0
    prompts: str | None = None
    language: str = ENGLISH
    sampling: Sampling = SAMPLING
    tries: int = 3

    def __post_init__(self) -> None:
        asked = {role: f.name for f in self.chosen_filters for role in f.roles}
        if self.repair:
            asked["repairer"] = "repair"
        for role, name in asked.items():
            if getattr(self, role, None) is None:
                raise UserError(f"vet.{role}=None, but {name!r} asks it: set vet/{role}=openai")

    @property
    def chosen_filters(self) -> tuple[QuestionFilter, ...]:
        """The filters that are not turned off, in their order."""
        return ordered_filters(self.filters, self.order)

    @property
    def runnable_filters(self) -> tuple[QuestionFilter, ...]:
        """The filters whose models can do what they are asked."""
        blind = isinstance(self.verifier, TakesImages) and not self.verifier.looks
        return tuple(f for f in self.chosen_filters if not (blind and "verifier" in f.roles))

    @property
    def reads(self) -> tuple[str, ...]:
        mending = ("lines", "segments", "scene", "start", "end", "digest") if self.repair else ()
        columns = ("questions", *(c for f in self.runnable_filters for c in f.reads), *mending)
        return tuple(dict.fromkeys(columns))

    @property
    def roles(self) -> dict[str, LlmConfig]:
        """The models that are asked, by role."""
        names = [role for f in self.runnable_filters for role in f.roles]
        if self.repair:
            names.append("repairer")
        return {role: getattr(self, role) for role in names}

    @property
    def identity(self) -> dict[str, Any]:
        prompts = prompts_in(self.prompts, self.language)
        mends = (self.repair,) if self.repair else ()
        return {
            "class": "Vet",
            "version": self.version,
            "filters": identity(list(self.runnable_filters)),
            "repair": identity(self.repair),
            "subset": self.subset,
            "roles": identity(self.roles),
            "watch": {role: identity(self._watch(llm)) for role, llm in self.roles.items()},
            "judge": identity(self.judge),
            "seed": self.seed,
            "prompts": [prompts.digest(*f.prompts) for f in (*self.runnable_filters, *mends)],
            "sampling": identity(self.sampling),
            "tries": self.tries,
        }

    def _watch(self, llm: LlmConfig, store: Store | None = None) -> VideoPreparer | None:
        return video_input_of(llm, store) if self.watch else None

    def asker(self, llm: LlmConfig, run: RunContext) -> Asker:
        """A model of this part, with its manner of asking."""
        return asker_of(self, llm, run, self._watch(llm, run.store))

    def open(self, run: RunContext) -> Opened:
        askers = {role: self.asker(llm, run) for role, llm in self.roles.items()}
        filters = self.runnable_filters
        judge = ConfiguredJudge(self.judge, run).equivalent if self.judge else None

        async def work(video: Video) -> Video:
            seen = {role: asker.with_provenance() for role, asker in askers.items()}
            vetting = VettingContext(
                askers=seen,
                video_frames=VideoFrames(video),
                seed=self.seed,
                count=run.count,
                judge=judge,
            )
            if len(filters) < len(self.chosen_filters):
                run.count(NOT_LOOKED_AT, len(video.questions or ()))
            return await vet(video, filters, vetting, self.subset, self.repair)

        return work
