"""What filters are, and how what one finds of a question is written into it.

    question = add_outcome(question, FilterOutcome(filter="blind", passed=False, fault=GUESSED))

A question filter asks models about one question, and returns the question with its verdicts. With
its outcome, `metrics["<filter>_passed"]` is 1 or 0, `faults[filter]` says in one word what is
wrong, and `drop` says it in a sentence where the filter drops questions. Repair goes by the fault
(`mustsee.verify.repair`); a filter may bring a fault of its own, which the writer is then told in
the words of the reason. A new filter is a class with the members of `QuestionFilter`, in its own
module, and an entry under `filters` of a `conf/vet/*.yaml`.

A video filter is a rule that drops a row after a stage, with a reason. A new one is a class with
the members of `VideoFilter`, in its own module, and an entry in `conf/filters/*.yaml`. The key that
keeps the video is appended to its reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from mustsee.calls.llm import Asker
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow, UserError
from mustsee.questions.checks import MAX_JUDGED_WORDS
from mustsee.records import Question, Video, passed_metric, unverified_metric
from mustsee.text import length
from mustsee.verify.conditions.video_frames import VideoFrames

GRADED = ("subPlot", "summary")  # question types that are graded by rubrics (MLVU)
GUESSED = "guessed"  # the right answer is picked out without the video
HEARD = "heard"  # it is picked out of what is said alone
WORDED = "worded"  # a sign in the wording points to one option
AMBIGUOUS = "ambiguous"  # more than one option fits
DISPUTED = "disputed"  # those who looked chose another answer
UNTRUE = "untrue"  # what the question takes for granted is not so
UNSHOWN = "unshown"  # the evidence does not show the answer
UNTOLD = "untold"  # it cannot be told from the video
UNNEEDED = "unneeded"  # it is answered without its evidence, or from a moment of it
FAULTS = (
    GUESSED, HEARD, WORDED, AMBIGUOUS, DISPUTED, UNTRUE, UNSHOWN, UNTOLD, UNNEEDED,
)  # fmt: skip


Judges = Callable[[str, str, tuple[str, ...]], Awaitable[bool | None]]
"""Takes a question, a candidate and the references; returns whether the candidate is equivalent to
any of them, or None if it cannot be judged.
"""


def count_unverified(questions: Iterable[Question], vetting: VettingContext) -> None:
    """Count, for each filter, the questions that it tried, and those that it left unverified
    because a reply was refused or could not be read.
    """
    for question in questions:
        for name in question.filter_results:
            vetting.requests.add_sent(f"verdicts by {name}")
        if not question.options and not is_judgeable(question, vetting):
            continue  # No reply was lost: there is no judge for the answer.
        for name in question.unverified_by:
            what = f"verdicts by {name}"
            details = [v.detail for v in question.verdicts if v.filter == name and v.detail]
            vetting.requests.add_sent(what)
            vetting.requests.add_unread(what, BadRow(details[-1] if details else "no reply"))


def ignore_count(name: str, n: int) -> None:
    """A counter that does nothing."""


@dataclass(frozen=True, kw_only=True)
class VettingContext:
    """The resources of a filter.

    `askers`: role -> model. `video_frames`: of the row's video. `seed`: of all random choices.
    `count`: adds to a named count in `run.json`. `requests`: counts what had no readable reply.
    `judge`: of answers in words.
    """

    askers: Mapping[str, Asker]
    video_frames: VideoFrames
    seed: int = 0
    count: Callable[[str, int], None] = ignore_count
    requests: RequestTally = field(default_factory=RequestTally)
    judge: Judges | None = None


def is_judgeable(question: Question, vetting: VettingContext) -> bool:
    """Whether a judge can grade answers to the question. Raters grade long answers, and those with
    scoring points or rubrics.
    """
    words = length(question.answer)
    graded = question.scoring_points or question.question_type in GRADED
    return vetting.judge is not None and not graded and 0 < words <= MAX_JUDGED_WORDS


@runtime_checkable
class QuestionFilter(Protocol):
    """A question filter.

    `name`: of the filter in verdicts and drop reasons. `roles`: of the models that it calls.
    `prompts`: names of its prompts, or of folders of them. `reads`: the row's columns that decide
    its result, besides `questions`.
    """

    @property
    def name(self) -> str: ...

    @property
    def roles(self) -> tuple[str, ...]: ...

    @property
    def prompts(self) -> tuple[str, ...]: ...

    @property
    def reads(self) -> tuple[str, ...]: ...

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question with this filter's verdicts and its outcome
        (`FilterOutcome`); marked by `mark_unverified` if none is reached. Raises
        Transient.
        """
        ...


@runtime_checkable
class TriesTogether(Protocol):
    """A filter that takes several questions of a video at once, wherever it stands in the order.
    `drops`: whether it drops those that do not pass.
    """

    @property
    def drops(self) -> bool: ...

    async def try_all(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        """Return the questions as `QuestionFilter.__call__` does, in their order."""
        ...


class RepairsQuestions(Protocol):
    """Rewrites dropped questions (`mustsee.verify.repair`), at most `rounds` times each."""

    @property
    def rounds(self) -> int: ...

    async def __call__(
        self, question: Question, video: Video, vetting: VettingContext, failed_filter: str
    ) -> Question | None:
        """Return the repaired question, still to be vetted; None if it cannot be repaired."""
        ...


@dataclass(frozen=True, kw_only=True)
class FilterOutcome:
    """What a filter found of the present wording of a question.

    `fault`: what is wrong, in one word; empty if it passed. `reason`: the same in words. `drops`:
    whether a question that does not pass is dropped. `metrics`: further figures.
    """

    filter: str
    passed: bool
    fault: str = ""
    reason: str = ""
    drops: bool = True
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


def add_outcome(question: Question, outcome: FilterOutcome) -> Question:
    """Return the question with an outcome. An earlier drop reason stays."""
    name = outcome.filter
    faults = {key: fault for key, fault in question.faults.items() if key != name}
    if not outcome.passed:
        faults[name] = outcome.fault
    is_dropped = outcome.drops and not outcome.passed
    return replace(
        question,
        metrics={
            **question.metrics, **outcome.metrics, passed_metric(name): float(outcome.passed)
        },
        faults=faults,
        drop=question.drop or (f"{name}: {outcome.reason}" if is_dropped else None),
    )  # fmt: skip


def mark_unverified(question: Question, name: str) -> Question:
    """Return the question marked as unverified by a filter that reached no verdict: neither dropped
    nor passed, and not in the subset.
    """
    return replace(question, metrics={**question.metrics, unverified_metric(name): 1.0})


class VideoFilter(Protocol):
    """A rule for one row. `after`: the stage whose columns it needs.

    Its result is not stored, so that a changed threshold recomputes no stage.
    """

    @property
    def after(self) -> str: ...

    def __call__(self, video: Video) -> str | None:
        """Return a reason to drop the video, or None."""
        ...


@dataclass(frozen=True)
class NamedVideoFilter:
    """A filter with its name in the configuration, by which its reasons say how to keep a video."""

    name: str
    rule: VideoFilter

    @property
    def after(self) -> str:
        return self.rule.after

    def __call__(self, video: Video) -> str | None:
        reason = self.rule(video)
        return reason and f"{reason}; filters.{self.name}=null keeps it"


def by_stage(
    filters: Mapping[str, VideoFilter | None], stages: Collection[str]
) -> dict[str, Sequence[VideoFilter]]:
    """Return stage -> its filters, in the order of the configuration, without those set to null.
    Raises UserError for a stage that the job does not have.
    """
    grouped: dict[str, list[VideoFilter]] = {stage: [] for stage in stages}
    for name, each in filters.items():
        if each is None:
            continue
        if each.after not in grouped:
            raise UserError(
                f"filters.{name}.after={each.after!r}: expected one of {', '.join(stages)}"
            )
        grouped[each.after].append(NamedVideoFilter(name, each))
    return {stage: tuple(members) for stage, members in grouped.items()}
