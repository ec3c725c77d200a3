"""What a question filter is, and how filters work on a question.

A filter asks the models of its roles about one question and gives the question back with its
verdicts, and with the reason in `drop` where it does not pass. Filters work one after the other:
what one has dropped, no later one is paid for, and what one does not pass is mended, where the run
mends, before the next is. A new one is a class with these members, in a module of its own, and an
entry under `filters` of a `conf/vet/*.yaml`.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from mustsee.calls.llm import Asker
from mustsee.errors import UserError
from mustsee.records import UNVERIFIED, Question, Video
from mustsee.text import length
from mustsee.verify.conditions.video_frames import VideoFrames

GRADED = ("subPlot", "summary")  # kinds of questions, by rubrics (MLVU)
MAX_JUDGED_WORDS = 60  # words of a known answer at most
ROUND_SEED_STEP = 100_000  # added to the seed for each round of repair: everything is drawn anew


Judges = Callable[[str, str, tuple[str, ...]], Awaitable[bool | None]]
"""Of a question, a candidate and the known answers: is it as good as any? Null: not to be judged.
"""


def mark_unverified(question: Question, name: str) -> Question:
    """The question of which a filter can tell nothing, because nothing could be read or looked at:
    neither dropped nor passed, and in no subset that says that it passed.
    """
    return replace(question, metrics={**question.metrics, f"{name}{UNVERIFIED}": 1.0})


def ignore_count(name: str, n: int) -> None:
    """A counter that nobody reads."""


@dataclass(frozen=True, kw_only=True)
class VettingContext:
    """What a filter may use: a model for each role, the row's video, the seed that its randomness
    begins with, a counter that ends up in `run.json`, and who judges answers in words.
    """

    askers: Mapping[str, Asker]
    video_frames: VideoFrames
    seed: int = 0
    count: Callable[[str, int], None] = ignore_count
    judge: Judges | None = None


def judgeable(question: Question, vetting: VettingContext) -> bool:
    """Whether a judge can compare an answer in words with the known one: long answers, and those
    that are graded by points or rubrics, are for raters.
    """
    words = length(question.answer)
    graded = question.scoring_points or question.question_type in GRADED
    return vetting.judge is not None and not graded and 0 < words <= MAX_JUDGED_WORDS


@runtime_checkable
class QuestionFilter(Protocol):
    """`name`: how verdicts and drops name it. `roles`: the models that it asks. `prompts`: the
    prompts (or folders of them) that it uses. `reads`: the row's columns that decide what it says,
    besides `questions`.
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
        """The question with this filter's verdicts, and `metrics["<name>_passed"]` 0 where it does
        not pass; `mark_unverified` where nothing could be read. Raises Transient.
        """
        ...


class RepairsQuestions(Protocol):
    """What rewrites a question that fell (`mustsee.verify.repair`)."""

    @property
    def rounds(self) -> int: ...

    async def __call__(
        self, question: Question, video: Video, vetting: VettingContext, fallen_by: str
    ) -> Question | None:
        """The question mended, to be vetted anew; null where it cannot be."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Version:
    """One wording of a question, as far as it was vetted: `fallen_by` names the filter that dropped
    it, else the first that it did not pass; `left`: those that were not asked yet.
    """

    question: Question
    vetting: VettingContext
    fallen_by: str | None = None
    left: tuple[QuestionFilter, ...] = ()

    @property
    def passed_all_filters(self) -> bool:
        """Whether every filter that was asked said so."""
        return self.fallen_by is None and not self.question.unverified_by


def ordered_filters(
    filters: Mapping[str, QuestionFilter | None], order: Sequence[str] = ()
) -> tuple[QuestionFilter, ...]:
    """Return the filters that are not null: those that `order` names first, then the others as they
    are listed. Raises UserError for a key that is not its filter's name, and for an unknown name in
    `order`.
    """
    for key, each in filters.items():
        if each is not None and each.name != key:
            raise UserError(f"vet.filters.{key}: the filter's name is {each.name!r}; use one name")
    if unknown := [name for name in order if name not in filters]:
        raise UserError(f"vet.order={unknown!r}: expected names of {', '.join(filters)}")
    names = dict.fromkeys((*order, *filters))
    return tuple(each for name in names if (each := filters[name]) is not None)


async def vet(
    video: Video,
    filters: Sequence[QuestionFilter],
    vetting: VettingContext,
    subset: str | None = None,
    repair: RepairsQuestions | None = None,
) -> Video:
    """The video whose questions carry the filters' verdicts. A question that every filter passes
    belongs to `subset`; one that a filter drops is asked about no further, unless it is mended.

    What a filter does not pass is mended before the next is paid for, and the new wording is vetted
    from the beginning, by that filter first. Of versions that none passed whole the earliest stays
    that no filter drops: a repair that did not help, or of which that cannot be told, takes no
    question's place.
    """

    async def vet_question(question: Question) -> Question:
        unknown = question.answer_index is None and (question.options or not question.answer)
        if question.drop is not None or unknown:
            return question
        versions = await _versions(question, video, filters, vetting, repair)
        best = await _best(versions, video)
        if len(versions) > 1:
            metrics = {**best.question.metrics, "rewrites": float(len(versions) - 1)}
            best = replace(best, question=replace(best.question, metrics=metrics))
        found = best.question
        if best.passed_all_filters and subset is not None and found.options:
            return replace(found, subsets=(*found.subsets, subset))
        return found

    return replace(video, questions=tuple(await gather(*map(vet_question, video.questions or ()))))


async def _versions(
    question: Question,
    video: Video,
    filters: Sequence[QuestionFilter],
    vetting: VettingContext,
    repair: RepairsQuestions | None,
) -> list[_Version]:
    """The question as it was asked, and its rewrites, until one passes or no more is to be had."""
    left = repair.rounds if repair and question.options else 0
    asked = _Version(question=question, vetting=vetting, left=tuple(filters))
    versions = [await _on(asked, video, to_the_end=not left)]
    for number in range(1, left + 1):
        latest = versions[-1]
        if latest.fallen_by is None:
            break
        assert repair is not None
        again = replace(vetting, seed=vetting.seed + ROUND_SEED_STEP * number)
        mended = await repair(latest.question, video, again, latest.fallen_by)
        if mended is None:
            break
        order = sorted(filters, key=lambda f: f.name != latest.fallen_by)
        new = replace(mended, subsets=question.subsets)
        asked = _Version(question=new, vetting=again, left=tuple(order))
        versions.append(await _on(asked, video, to_the_end=False))
    return versions


async def _best(versions: Sequence[_Version], video: Video) -> _Version:
    """The version that stays, vetted to the end."""
    if versions[-1].passed_all_filters:
        return versions[-1]
    fallen = versions[0]
    for number, version in enumerate(versions):
        whole = await _on(version, video, to_the_end=True)
        if whole.question.drop is not None:
            fallen = whole
        elif not number or not whole.question.unverified_by:
            return whole
    return fallen


async def _on(version: _Version, video: Video, *, to_the_end: bool) -> _Version:
    """The version after the filters that are left: until one drops it, and, unless it is vetted to
    the end, until one does not pass it.
    """
    question, fallen_by, left = version.question, version.fallen_by, version.left
    while left and question.drop is None and (to_the_end or fallen_by is None):
        each, *rest = left
        left = tuple(rest)
        question = await each(question, video, version.vetting)
        marked = question.metrics.get(f"{each.name}_passed") == 0 and fallen_by is None
        if marked or question.drop is not None:
            fallen_by = each.name
    return replace(version, question=question, fallen_by=fallen_by, left=left)
