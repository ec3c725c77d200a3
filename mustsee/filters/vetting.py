"""What a question filter is, and how a list of them works on a question.

A filter asks the models of its roles about one question and gives the question back with its
verdicts, and with the reason in `drop` where it does not pass. Filters work one after the other:
what one has dropped, no later one is paid for. A new one is a class with these members, in a module
of its own, and an entry under `filters` of a `conf/vet/*.yaml`.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from mustsee.errors import UserError
from mustsee.llm import Asker
from mustsee.records import Question, Video


def uncounted(name: str, n: int) -> None:
    """A counter that nobody reads."""


@dataclass(frozen=True, kw_only=True)
class Vetting:
    """What a filter may use: a model for each role, the seed that its randomness begins with, and a
    counter that ends up in `run.json`.
    """

    askers: Mapping[str, Asker]
    seed: int = 0
    count: Callable[[str, int], None] = uncounted


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
        """The question with this filter's verdicts and metrics. Raises Transient."""
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
) -> Video:
    """The video whose questions carry the filters' verdicts. A question that every filter passes
    belongs to `subset`; one that a filter drops is asked about no further.
    """

    async def one(question: Question) -> Question:
        for each in filters:
            if question.drop is not None or question.answer_index is None:
                return question
            question = await each(question, video, vetting)
        failed = any(question.metrics.get(f"{f.name}_passed") == 0 for f in filters)
        if question.drop is None and not failed and subset is not None and question.options:
            question = replace(question, subsets=(*question.subsets, subset))
        return question

    return replace(video, questions=tuple(await gather(*map(one, video.questions or ()))))
