"""The counters of a run: the coordinator's snapshot while it works, and the record `run.json`.

`RunRecord.plain` alone defines the content of `run.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from mustsee import errors
from mustsee.calls.call_log import Spent
from mustsee.calls.usage import CallCounts, UsageTotals
from mustsee.errors import MustseeError, UserError
from mustsee.questions.fact_funnel import RunFunnel
from mustsee.records import untested_note
from mustsee.run import pace

if TYPE_CHECKING:  # Every worker imports this module, and few of them the filters.
    from mustsee.stats import Estimate
    from mustsee.verify.guess.counts import GuessCounts
    from mustsee.verify.worth import WorthCounts

# Share of the sample that `sight` found right, below which it should look at all.
MIN_RIGHT_SHARE = 0.95
RowOutcome = Literal["computed", "reused", "dropped", "problem", "started"]


@dataclass(frozen=True, kw_only=True)
class WorkTimes:
    """Seconds of the work on a row.

    `busy`: the worker's time; rows that it works on together get a share each.
    `cpu`: CPU time, shared likewise.
    `residence`: time since the row came to the worker, with its waits.
    """

    busy: float = 0.0
    cpu: float = 0.0
    residence: float = 0.0


NOTHING = WorkTimes()


@dataclass(frozen=True, kw_only=True)
class StageCounts:
    """Rows of one stage by their outcome, and the times of the work on them (as `WorkTimes`).

    A row that is computed or reused may also be dropped by the stage's filters. `started` counts
    workers that started, not rows.
    """

    computed: int = 0
    reused: int = 0
    dropped: int = 0
    problem: int = 0
    started: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    residence: float = 0.0

    def plus(self, outcome: RowOutcome, took: WorkTimes = NOTHING, rows: int = 1) -> StageCounts:
        """Return the counts with `rows` rows added."""
        more: dict[str, Any] = {outcome: rows}
        added = StageCounts(
            **more, seconds=took.busy, cpu_seconds=took.cpu, residence=took.residence
        )
        return self.merged_with(added)

    def merged_with(self, other: StageCounts) -> StageCounts:
        """Return the sums of these counts and of `other`."""
        names = [f.name for f in fields(self)]
        return StageCounts(**{n: getattr(self, n) + getattr(other, n) for n in names})

    @property
    def finished_rows(self) -> int:
        """Rows that the stage has finished."""
        return self.computed + self.reused + self.problem


@dataclass(frozen=True, kw_only=True)
class RunAbort:
    """The error of a worker that ended the run: its class name and its text."""

    error: str
    message: str

    def to_error(self) -> MustseeError:
        """Return the exception to raise when the run ends."""
        kind = getattr(errors, self.error, MustseeError)
        is_users = isinstance(kind, type) and issubclass(kind, UserError)
        return (UserError if is_users else MustseeError)(self.message)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The coordinator's counters at one moment.

    `stages`: counts by stage.
    `counts`: other counters by name.
    `llm`: model calls of this run.
    `spent`: money of all runs of the output folder.
    `in_batches`: calls that wait for a batch.
    `held`: seconds in which calls waited for a configured or reported limit, by `name=value`.
    `damaged`: damaged objects of the store, and what is wrong with each.
    `trouble`: by account, the message of an endpoint that is silent or refuses most calls.
    """

    stages: Mapping[str, StageCounts]
    counts: Mapping[str, int]
    llm: UsageTotals
    spent: Spent = field(default_factory=Spent)
    in_batches: int = 0
    held: Mapping[str, float] = field(default_factory=dict[str, float])
    damaged: Mapping[str, str] = field(default_factory=dict[str, str])
    trouble: Mapping[str, str] = field(default_factory=dict[str, str])
    aborted: RunAbort | None = None

    def stage(self, name: str) -> StageCounts:
        """Return the counts of a stage; zeros before its first row."""
        return self.stages.get(name, StageCounts())

    def with_lookups(self, found: Snapshot) -> Snapshot:
        """Return the counters with the rows and the damaged objects of look-ups added."""
        names = dict.fromkeys((*found.stages, *self.stages))
        return replace(
            self,
            stages={name: found.stage(name).merged_with(self.stage(name)) for name in names},
            damaged={**found.damaged, **self.damaged},
        )


@dataclass(frozen=True, kw_only=True)
class FunnelStep:
    """One stage of the funnel: rows in and out, drops by reason, and failed rows."""

    stage: str
    entered: int
    left: int
    dropped: Mapping[str, int]
    problems: int

    def plain(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "in": self.entered,
            "out": self.left,
            "dropped": dict(self.dropped),
            "problems": self.problems,
        }


@dataclass(frozen=True, kw_only=True)
class FilterCounts:
    """Results of a filter, as numbers of questions.

    `asked`: questions with a result; of these it `dropped` some and `marked` others.
    `reason`: the most frequent reason of its drops.
    `unverified`: questions without a result; `unread`: these by the parsing error.
    `models`: identities of the models that it asked.
    """

    asked: int
    dropped: int
    marked: int
    reason: str = ""
    unverified: int = 0
    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    models: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class QuestionCounts:
    """Numbers of questions.

    `kept`: that no filter drops. `passed`: of these, every filter. `dropped`: by filter.
    `subsets`, `types`: kept questions by subset and type; `first_types`: by the type of their first
    wording, before any repair.
    `failed`: kept questions by filter that they did not pass.
    `filters`: results of each filter.
    `without`: the first videos that were used and have no question that passed, with the reason.
    `guesses`: of the filters by guesses, compared with chance; None without such filters.
    `sampled`: the share of right questions among those that `sight` looked at, where it looked at a
    sample only; else None.
    `worth`: what a rater says of a sample; None where none was asked.
    """

    made: int = 0
    kept: int = 0
    passed: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    subsets: Mapping[str, int] = field(default_factory=dict[str, int])
    types: Mapping[str, int] = field(default_factory=dict[str, int])
    first_types: Mapping[str, int] = field(default_factory=dict[str, int])
    filters: Mapping[str, FilterCounts] = field(default_factory=dict[str, FilterCounts])
    failed: Mapping[str, int] = field(default_factory=dict[str, int])
    without: Mapping[str, str] = field(default_factory=dict[str, str])
    guesses: GuessCounts | None = None
    sampled: Estimate | None = None
    worth: WorthCounts | None = None

    @property
    def untested_note(self) -> str:
        """A note on the filters that only rules answered; empty if there are none."""
        return untested_note({name: counts.models for name, counts in self.filters.items()})

    @property
    def sample_note(self) -> str:
        """How many questions of the sample that `sight` looked at are right, and what to do if
        these are too few; empty where it looked at all.
        """
        if self.sampled is None:
            return ""
        share, count, within = self.sampled.value, self.sampled.n, ""
        if self.sampled.low is not None and self.sampled.high is not None:
            within = f", 95% {self.sampled.low:.0%} to {self.sampled.high:.0%}"
        right = f"{round(share * count)} of {count} right ({share:.0%}{within})"
        note = f"sight looked at a sample: {right}"
        if share < MIN_RIGHT_SHARE:
            note += f"; below {MIN_RIGHT_SHARE:.0%}: look at all (vet.filters.sight.sample=1)"
        return note


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A finished run.

    `stages`: counts, in the order of the stages.
    `spent`: money of all runs of the output folder.
    `total_seconds`: of the whole job, driver included; None until all is written.
    `video_seconds`: length of all rows together.
    `cores`: of the cluster.
    `watched`: seconds of each stage while rows were streaming.
    `allowed`: by stage, the limits of its endpoint.
    `held`, `damaged`: as in `Snapshot`.
    `left_out`: by account, parameters that the endpoint refuses, and their names instead, or "".
    `facts`: what became of the facts, and the requests without a readable reply.
    `extra`: keys that the recipe adds at the top level of `run.json`.
    """

    recipe: str
    config: Mapping[str, Any]
    git: str
    versions: Mapping[str, str]
    prompts: Mapping[str, str]
    funnel: Sequence[FunnelStep]
    questions: QuestionCounts
    transcribed_by: Mapping[str, int]
    stages: Mapping[str, StageCounts]
    llm: UsageTotals
    counts: Mapping[str, int]
    spent: Spent = field(default_factory=Spent)
    total_seconds: float | None = None
    video_seconds: float = 0.0
    cores: float = 0.0
    watched: Mapping[str, pace.StageSeconds] = field(default_factory=dict[str, pace.StageSeconds])
    allowed: Mapping[str, pace.EndpointLimits] = field(
        default_factory=dict[str, pace.EndpointLimits]
    )
    held: Mapping[str, float] = field(default_factory=dict[str, float])
    damaged: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    facts: RunFunnel = field(default_factory=RunFunnel)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def with_seconds(self, seconds: float) -> RunRecord:
        """Return the record with the duration of the whole job."""
        return replace(self, total_seconds=round(seconds, 3))

    @property
    def usd_per_kept_question(self) -> float | None:
        """Dollars of all runs per kept question, as this one may have reused most results."""
        kept = self.questions.kept
        return self.spent.plain()["usd"] / kept if kept else None

    def pace(self) -> dict[str, Any]:
        """Return hours of video per hour of this run and of each core, in total and by stage.

        See `mustsee.run.pace`. All rows count with their mean length, and reused rows do not count.
        """
        rows = self.funnel[0].entered if self.funnel else 0
        hours = self.video_seconds / 3600 / rows if rows else 0.0
        paid = self.spent.by_stage
        stages = [
            pace.StageWork(
                name=name or "job",
                video=hours * counts.computed if counts.seconds else 0.0,
                work=counts.seconds / 3600,
                taken=counts.residence / 3600,
                usd=paid.get(name, 0.0),
                limit=max(self.held, key=lambda limit: self.held[limit], default=""),
                calls=self.llm.by_stage.get(name, CallCounts()),
                allowed=self.allowed.get(name, pace.EndpointLimits()),
                watched=self.watched.get(name, pace.StageSeconds()),
            )
            for name, counts in {**dict.fromkeys(paid, StageCounts()), **self.stages}.items()
        ]
        seconds = self.total_seconds or 0.0
        return pace.plain(stages, kept=self.questions.kept, seconds=seconds, cores=self.cores)

    @property
    def notes(self) -> Sequence[str]:
        """Lines of the recipe that are printed at the end."""
        return self.extra.get("notes", ())

    def plain(self) -> dict[str, Any]:
        """The content of `run.json`."""
        seconds = {name: round(counts.seconds, 3) for name, counts in self.stages.items()}
        if self.total_seconds is not None:
            seconds["total"] = self.total_seconds
        questions = self.questions
        return {
            "recipe": self.recipe,
            "config": self.config,
            "git": self.git,
            "versions": dict(self.versions),
            "prompts": dict(self.prompts),
            "funnel": [step.plain() for step in self.funnel],
            "questions": {
                "made": questions.made,
                "kept": questions.kept,
                "passed": questions.passed,
                **{
                    name: dict(getattr(questions, name))
                    for name in ("dropped", "subsets", "types", "first_types", "failed")
                },
                "untested": questions.untested_note,
                "guesses": questions.guesses.plain() if questions.guesses else None,
                "sampled": questions.sampled
                and {**vars(questions.sampled), "said": questions.sample_note},
                "worth": questions.worth
                and {**vars(questions.worth), "said": questions.worth.summary_line},
                "filters": {name: dict(vars(each)) for name, each in questions.filters.items()},
            },
            "without_questions": dict(questions.without),
            "fact_funnel": self.facts.plain(),
            "requests": [dict(vars(count)) for count in self.facts.requests],
            "incomplete_videos": self.facts.incomplete,
            "transcribed_by": dict(self.transcribed_by),
            "computed": {name: counts.computed for name, counts in self.stages.items()},
            "reused": {name: counts.reused for name, counts in self.stages.items()},
            "llm": {
                **self.llm.summary(),
                "held_seconds": {limit: round(seconds, 1) for limit, seconds in self.held.items()},
                "left_out": {who: dict(changes) for who, changes in self.left_out.items()},
                "all_runs": self.spent.plain(),
                "kept_questions": questions.kept,
                "usd_per_kept_question": self.usd_per_kept_question,
            },
            "counts": dict(self.counts),
            "damaged": dict(sorted(self.damaged.items())),
            "seconds": seconds,
            "cpu_seconds": {n: round(each.cpu_seconds, 3) for n, each in self.stages.items()},
            "pace": self.pace(),
            **self.extra,
        }
