"""`vet`: filters that ask models about each question of a row, and keep the replies as verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from actors.part import (
    AskOptions,
    ConfiguredJudge,
    LlmConfig,
    Opened,
    RunContext,
    capabilities_of,
    video_input_of,
)
from mustsee.calls.llm import Asker
from mustsee.errors import UserError
from mustsee.files.store import Store, hardware, identity, keyed_by
from mustsee.judge.judge import JudgeConfig
from mustsee.questions.fact_funnel import sum_requests
from mustsee.records import Video, is_rules
from mustsee.verify.conditions.video_frames import VideoPreparer
from mustsee.verify.filters import QuestionFilter, VettingContext, count_unverified
from mustsee.verify.guess.counts import GuessRule
from mustsee.verify.guess.filters import BlindGuess, Glimpse, SetGuess
from mustsee.verify.repair import RepairRule
from mustsee.verify.sight import NOT_LOOKED_AT
from mustsee.verify.vetting import ordered_filters, vet
from mustsee.verify.worth import CONDITIONS_PROMPT, PROMPT, WorthRules, rate_worth

NAME = "vet"  # name of the stage in jobs, by which rows keep their counts of requests
FURTHER_GUESSERS = ("guesser_2", "guesser_3")  # roles that may be null


def _role_key(name: str) -> Callable[[Any], Any]:
    return lambda part: part.role_identity(name)


@dataclass(frozen=True, kw_only=True)
class Vet(AskOptions):
    """Runs filters on the questions that no check has dropped (`mustsee.verify`).

    The roles are the models that filters ask, each set as `vet/guesser=openai
    vet.guesser.model=...`. Filters of a `verifier` that takes no images are left out, and counted;
    guesses (`BlindGuess`) of a `guesser_2` or `guesser_3` that is null are left out, too.
    """

    version: ClassVar[str] = "10"
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    filters: Mapping[str, QuestionFilter | None] = keyed_by(lambda part: part.runnable_filters)
    """Question filters by name, in this order; NAME=null turns one off."""
    order: Sequence[str] = hardware(default=())  # `runnable_filters` are in this order
    """Names of filters that come first; the others follow as listed."""
    repair: RepairRule | None = None
    """Composed questions are not rewritten: others are drawn."""
    guesser: LlmConfig | None = keyed_by(_role_key("guesser"), default=None)
    """Model that guesses; another one than selected the options (ask.guesser) measures more."""
    guesser_2: LlmConfig | None = keyed_by(_role_key("guesser_2"), default=None)
    """Second model of the degeneracy test (the paper: Gemini, GPT-3.5 and Phi-1.5)."""
    guesser_3: LlmConfig | None = keyed_by(_role_key("guesser_3"), default=None)
    """Third model of the degeneracy test."""
    reader: LlmConfig | None = keyed_by(_role_key("reader"), default=None)
    """Model that answers from the dialogue and from the scene (the paper: Gemini), and names
    the fitting options."""
    verifier: LlmConfig | None = keyed_by(_role_key("verifier"), default=None)
    """Vision model that verifies answers."""
    repairer: LlmConfig | None = keyed_by(_role_key("repairer"), default=None)
    """Model that rewrites weak questions (the authors: GPT-4o)."""
    rater: LlmConfig | None = keyed_by(_role_key("rater"), default=None)
    """Model that rates; another one than wrote and examined the questions is fairer. Rules rate
    nothing."""
    worth: WorthRules | None = keyed_by(lambda part: part.used_worth, default=None)
    """Ratings of some kept questions by a model; printed, and nothing is selected by them;
    null: none."""
    judge: JudgeConfig | None = None
    """Judge of questions without options: compares the verifier's answer with the known one."""
    watch: bool = hardware(default=True)  # `role_identity` says which models are shown videos
    """Show the video itself to a model that takes videos (llm.watches); false: frames."""
    subset: str | None = None
    """Subset of the questions that pass every filter."""
    spare: float = 1
    """Times as many questions as are wanted; 1: all are wanted."""
    only: Sequence[str] | None = None
    """Ids of the questions to vet, and the others stay as they are; null: all."""
    seed: int = 0
    """Seed of the first run."""

    def __post_init__(self) -> None:
        users = {role: f.name for f in self.chosen_filters for role in f.roles}
        if self.repair:
            users["repairer"] = "repair"
        for role, name in users.items():
            if getattr(self, role, None) is None:
                raise UserError(f"vet.{role}=None, but {name!r} asks it: set vet/{role}=openai")

    @property
    def chosen_filters(self) -> tuple[QuestionFilter, ...]:
        """The filters that are not turned off, in their order."""
        filters = ordered_filters(self.filters, self.order)
        return tuple(f for f in filters if not self._has_no_guesser(f))

    def _has_no_guesser(self, each: QuestionFilter) -> bool:
        """Whether it is the guess of a further model, and there is none."""
        if not isinstance(each, BlindGuess) or each.guesser not in FURTHER_GUESSERS:
            return False
        return getattr(self, each.guesser) is None

    @property
    def guess_rule(self) -> GuessRule:
        """How many lucky guesses the filters let pass."""
        filters = self.runnable_filters
        guesses = [f for f in filters if isinstance(f, BlindGuess)]
        glimpses = [f for f in filters if isinstance(f, Glimpse)]
        repaired = self.repair is not None and (
            self.repair.of is None or any(f.name in self.repair.of for f in guesses)
        )
        return GuessRule(
            filters={f.name: (f.runs, f.min_failures) for f in guesses}
            | {f.name: (1, 0) for f in glimpses},  # they need not guess
            sets={f.name: f.most for f in filters if isinstance(f, SetGuess)},
            rewrites=self.repair.rounds if self.repair and repaired else 0,
            subset=self.subset,
        )

    @property
    def runnable_filters(self) -> tuple[QuestionFilter, ...]:
        """The filters whose models can do their task."""
        blind = self.verifier is not None and not capabilities_of(self.verifier).images
        return tuple(f for f in self.chosen_filters if not (blind and "verifier" in f.roles))

    @property
    def used_worth(self) -> WorthRules | None:
        """How the rater rates questions; None without a model that can."""
        return None if self.rater is None or is_rules(self.rater.identity) else self.worth

    @property
    def crops_bars(self) -> bool:
        """Whether frames are shown without their black bars: not to rules, which measure bars."""
        return self.verifier is None or not is_rules(self.verifier.identity)

    @property
    def reads(self) -> tuple[str, ...]:
        for_repair = ("lines", "segments", "scene", "start", "end", "digest") if self.repair else ()
        for_worth = ("lines", "start", "end", "digest") if self.used_worth else ()
        columns = (
            "questions", *(c for f in self.runnable_filters for c in f.reads), *for_repair,
            *for_worth, *(("requests",) if self.only is not None else ()),
        )  # fmt: skip
        return tuple(dict.fromkeys(columns))

    @property
    def roles(self) -> dict[str, LlmConfig]:
        """The models that filters and repair ask, by role."""
        names = [role for f in self.runnable_filters for role in f.roles]
        if self.repair:
            names.append("repairer")
        if self.used_worth is not None:
            names.append("rater")
        return {role: getattr(self, role) for role in names}

    @property
    def prompt_names(self) -> tuple[str, ...]:
        asking = (*self.runnable_filters, *((self.repair,) if self.repair else ()))
        names = [name for asker in asking for name in asker.prompts]
        if self.used_worth is not None:
            names += [PROMPT, CONDITIONS_PROMPT]
        return tuple(names)

    def role_identity(self, role: str) -> list[Any] | None:
        """What counts in the store's key of a role's model; None where no filter asks it."""
        if (llm := self.roles.get(role)) is None:
            return None
        return [llm.identity, identity(self._watch(llm))]

    def _watch(self, llm: LlmConfig, store: Store | None = None) -> VideoPreparer | None:
        return video_input_of(llm, store) if self.watch else None

    def asker(self, llm: LlmConfig, run: RunContext) -> Asker:
        """A model of this part, connected and asked with its options."""
        return self.open_asker(llm, run, self._watch(llm, run.store))

    def open(self, run: RunContext) -> Opened:
        askers = {role: self.asker(llm, run) for role, llm in self.roles.items()}
        filters = self.runnable_filters
        judge = ConfiguredJudge(self.judge, run).equivalent if self.judge else None
        worth = self.used_worth

        async def work(video: Video) -> Video:
            vetting = VettingContext(
                askers={role: asker.with_provenance() for role, asker in askers.items()},
                video_frames=run.frames(video, crop=self.crops_bars),
                seed=self.seed,
                count=run.count,
                judge=judge,
            )
            mine = video.questions or ()
            if self.only is not None:
                mine = tuple(q for q in mine if q.question_id in self.only)
            if len(filters) < len(self.chosen_filters):
                run.count(NOT_LOOKED_AT, len(mine))
            due = replace(video, questions=mine)
            done = await vet(due, filters, vetting, self.subset, self.repair, self.spare)
            count_unverified(done.questions or (), vetting)
            if worth is not None and self.rater is not None:
                done = await rate_worth(
                    done, vetting.askers["rater"], vetting.video_frames, worth, vetting.requests,
                    seed=self.seed, looks=capabilities_of(self.rater).images,
                )  # fmt: skip
            requests = vetting.requests.counts
            if self.only is None:
                return replace(done, requests=requests)
            vetted = {q.question_id: q for q in done.questions or ()}
            questions = tuple(vetted.get(q.question_id, q) for q in video.questions or ())
            earlier = (count for count in video.requests if count.stage == NAME)
            requests = sum_requests((*earlier, *(replace(c, stage=NAME) for c in requests)))
            return replace(done, questions=questions, requests=tuple(requests))

        return work
