"""What a question filter is, and how a list of them works on a question.

A filter asks the models of its roles about one question and gives the question back with its
verdicts, and with the reason in `drop` where it does not pass. Filters work one after the other:
what one has dropped, no later one is paid for. A new one is a class with these members, in a module
of its own, and an entry under `filters` of a `conf/vet/*.yaml`.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from mustsee.conditions.film import Film
from mustsee.errors import UserError
from mustsee.llm import Asker
from mustsee.records import Question, Video

ROUND = 100_000  # added to the seed for each round of repair: everything is drawn anew


Judges = Callable[[str, str, str], Awaitable[bool | None]]
"""Of a question, a candidate and the known answer: are they equivalent? Null: not to be judged."""


def uncounted(name: str, n: int) -> None:
    """A counter that nobody reads."""


@dataclass(frozen=True, kw_only=True)
class Vetting:
    """What a filter may use: a model for each role, the row's film, the seed that its randomness
    begins with, a counter that ends up in `run.json`, and who judges answers in words.
    """

    askers: Mapping[str, Asker]
    film: Film
    seed: int = 0
    count: Callable[[str, int], None] = uncounted
    judge: Judges | None = None


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

    async def __call__(self, question: Question, video: Video, vetting: Vetting) -> Question:
        """The question with this filter's verdicts, and `metrics["<name>_passed"]` 0 where it does
        not pass. Raises Transient.
        """
        ...


class Mends(Protocol):
    """What rewrites a question that fell (`mustsee.filters.repair`)."""

    @property
    def rounds(self) -> int: ...

    async def __call__(
        self, question: Question, video: Video, vetting: Vetting, fallen_by: str
    ) -> Question | None:
        """The question mended, to be vetted anew; null where it cannot be."""
        ...


def named(filters: Sequence[QuestionFilter]) -> None:
    """Raises UserError where two filters have one name."""
    names = [f.name for f in filters]
    if len(set(names)) != len(names):
        raise UserError(f"vet.filters={names!r}: each filter needs a name of its own")


async def vet(
    video: Video,
    filters: Sequence[QuestionFilter],
    vetting: Vetting,
    subset: str | None = None,
    repair: Mends | None = None,
) -> Video:
    """The video whose questions carry the filters' verdicts. A question that every filter passes
    belongs to `subset`; one that a filter drops is asked about no further, unless it is mended.
    """

    async def one(question: Question) -> Question:
        unknown = question.answer_index is None and (question.options or not question.answer)
        if question.drop is not None or unknown:
            return question
        best, fallen_by = await _passed(question, video, filters, vetting)
        latest = best
        for number in range(1, 1 + (repair.rounds if repair and question.options else 0)):
            if fallen_by is None:
                break
            assert repair is not None
            again = replace(vetting, seed=vetting.seed + ROUND * number)
            mended = await repair(latest, video, again, fallen_by)
            if mended is None:
                break
            latest, fallen_by = mended, mended.drop and "check"
            if fallen_by is None:
                latest, fallen_by = await _passed(mended, video, filters, again)
            if latest.drop is None or best.drop is not None:
                best = latest
        if fallen_by is None and subset is not None and best.options:
            best = replace(best, subsets=(*best.subsets, subset))
        return best

    return replace(video, questions=tuple(await gather(*map(one, video.questions or ()))))


async def _passed(
    question: Question, video: Video, filters: Sequence[QuestionFilter], vetting: Vetting
) -> tuple[Question, str | None]:
    """The question after the filters, and the name of the one that dropped it, else of the first
    that it did not pass.
    """
    fallen_by = None
    for each in filters:
        question = await each(question, video, vetting)
        if question.drop is not None:
            return question, each.name
        if question.metrics.get(f"{each.name}_passed") == 0 and fallen_by is None:
            fallen_by = each.name
    return question, fallen_by
