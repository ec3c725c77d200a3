"""What a run did: the coordinator's snapshot while it works, and in the end the record `run.json`.

`RunRecord.plain` is the one place that says how `run.json` looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mustsee.calls.call_log import Spent
from mustsee.calls.llm import untested_note
from mustsee.calls.usage import CallCounts, UsageTotals
from mustsee.errors import MustseeError, UserError
from mustsee.run import pace

RowOutcome = Literal["computed", "reused", "dropped", "problem", "started"]


@dataclass(frozen=True, kw_only=True)
class WorkTimes:
    """What work took, in seconds. `busy`: by the clock of its worker, of which rows that are there
    together get a share each; `cpu`: CPU time, shared likewise; `residence`: by the clock, from
    where the row came to the worker, with its waits.
    """

    busy: float = 0.0
    cpu: float = 0.0
    residence: float = 0.0


NOTHING = WorkTimes()


@dataclass(frozen=True, kw_only=True)
class StageCounts:
    """Rows of one stage by what became of them, and what the work on them took: `seconds` in which
    workers were busy, `cpu_seconds`, `residence` (as `WorkTimes`). A row that is computed or reused
    may be dropped by the stage's filters as well. `started`: no rows, but the workers that have
    come up.
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
        """The counts with so many rows more."""
        return StageCounts(
            computed=self.computed + rows * (outcome == "computed"),
            reused=self.reused + rows * (outcome == "reused"),
            dropped=self.dropped + rows * (outcome == "dropped"),
            problem=self.problem + rows * (outcome == "problem"),
            started=self.started + rows * (outcome == "started"),
            seconds=self.seconds + took.busy,
            cpu_seconds=self.cpu_seconds + took.cpu,
            residence=self.residence + took.residence,
        )

    @property
    def finished_rows(self) -> int:
        """Rows that the stage is done with."""
        return self.computed + self.reused + self.problem


@dataclass(frozen=True, kw_only=True)
class RunAbort:
    """The error of a worker that ended the run: its class name and its text."""

    error: str
    message: str

    def to_error(self) -> MustseeError:
        """The error, to be raised where the run ends."""
        kind = UserError if self.error == "UserError" else MustseeError
        return kind(self.message)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The coordinator's counters at one moment: by stage, by name, and of the model calls, of this
    run and (`spent`) of all runs of its output folder. `in_batches`: calls that wait for a batch.
    `held`: seconds in which calls had to wait for a limit of conf, or one that the endpoint told,
    by `name=value`. `damaged`: objects of the store that were not what had been written, and what
    is wrong with each. `trouble`: by account, what an endpoint says that answers nothing, or
    refuses most calls.
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
        """The counts of a stage; zeros before its first row."""
        return self.stages.get(name, StageCounts())


@dataclass(frozen=True, kw_only=True)
class FunnelStep:
    """One stage of the funnel: rows in and out, drops by reason, rows that failed there."""

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
    """What a filter did: questions that it could tell about, those that it dropped, those that it
    only marked, and why it most often dropped; those that it could tell nothing of, and how many
    for which reason. `models`: the identities of those whom it asked.
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
    """Questions made, kept, and dropped by reason; the kept ones by subset, by type, and by the
    filters that they did not pass; what each filter did. `without`: by id the first videos that
    were used and keep no question, and why.
    """

    made: int = 0
    kept: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    subsets: Mapping[str, int] = field(default_factory=dict[str, int])
    types: Mapping[str, int] = field(default_factory=dict[str, int])
    filters: Mapping[str, FilterCounts] = field(default_factory=dict[str, FilterCounts])
    failed: Mapping[str, int] = field(default_factory=dict[str, int])
    without: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def untested_note(self) -> str:
        """What is to be said where rules stood in for a language model; else empty."""
        return untested_note({name: sieve.models for name, sieve in self.filters.items()})


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A finished run. `stages`: in their order. `total_seconds`: of the whole job, driver included;
    None until all is written. `spent`: by all runs of the output folder. `video_seconds`: of all
    rows together; `cores`: of the cluster; `watched`: what was seen of each stage while rows were
    streaming; `allowed`: by stage, by the endpoint that it asks; `held`, `damaged`: as in
    `Snapshot`. `extra`: what the recipe adds, at the top level of `run.json`.
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
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def with_seconds(self, seconds: float) -> RunRecord:
        """The record of a job that took so many seconds in all."""
        return replace(self, total_seconds=round(seconds, 3))

    @property
    def usd_per_kept_question(self) -> float | None:
        """What all runs paid: this one may have found most of it in the store."""
        kept = self.questions.kept
        return self.spent.plain()["usd"] / kept if kept else None

    def pace(self) -> dict[str, Any]:
        """Hours of video that this run worked on, by hour of the clock and of each core; by stage,
        beside what it could have done and what it paid (`mustsee.run.pace`).

        Rows are taken to be of one length: a run that found some in the store counts the others.
        """
        rows = self.funnel[0].entered if self.funnel else 0
        hours = self.video_seconds / 3600 / rows if rows else 0.0
        paid = self.spent.by_stage
        did = [
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
        return pace.plain(did, kept=self.questions.kept, seconds=seconds, cores=self.cores)

    @property
    def notes(self) -> Sequence[str]:
        """Lines that the recipe wants said at the end."""
        return self.extra.get("notes", ())

    def plain(self) -> dict[str, Any]:
        """The content of `run.json`."""
        seconds = {name: round(counts.seconds, 3) for name, counts in self.stages.items()}
        if self.total_seconds is not None:
            seconds["total"] = self.total_seconds
        counted = self.questions
        return {
            "recipe": self.recipe,
            "config": self.config,
            "git": self.git,
            "versions": dict(self.versions),
            "prompts": dict(self.prompts),
            "funnel": [step.plain() for step in self.funnel],
            "questions": {
                "made": counted.made,
                "kept": counted.kept,
                "dropped": dict(counted.dropped),
                "subsets": dict(counted.subsets),
                "types": dict(counted.types),
                "failed": dict(counted.failed),
                "untested": counted.untested_note,
                "filters": {name: dict(vars(sieve)) for name, sieve in counted.filters.items()},
            },
            "without_questions": dict(counted.without),
            "transcribed_by": dict(self.transcribed_by),
            "computed": {name: counts.computed for name, counts in self.stages.items()},
            "reused": {name: counts.reused for name, counts in self.stages.items()},
            "llm": {
                **self.llm.summary(),
                "held_seconds": {limit: round(seconds, 1) for limit, seconds in self.held.items()},
                "all_runs": self.spent.plain(),
                "kept_questions": counted.kept,
                "usd_per_kept_question": self.usd_per_kept_question,
            },
            "counts": dict(self.counts),
            "damaged": dict(sorted(self.damaged.items())),
            "seconds": seconds,
            "cpu_seconds": {n: round(each.cpu_seconds, 3) for n, each in self.stages.items()},
            "pace": self.pace(),
            **self.extra,
        }
