"""What happens right after X?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    ASKS,
    MAX_CANDIDATES,
    MAX_MOMENTS,
    Case,
    clause,
    compose,
    find_span,
    find_stretch,
    is_marked,
    is_wrong,
)
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable

QUESTION = "{asks} right {side} this: {clause}?"


@dataclass(frozen=True, kw_only=True)
class AfterForm:
    """`given`: the kind of the fact that the question names, which holds in one stretch of at most
    `moments` moments. `of`: the kind of the answers. The answer holds at the next moment and not
    yet before it, the others neither then nor at the moment after it.
    """

    name: ClassVar[str] = "after"
    step: ClassVar[int] = 1
    given: str = "event"
    of: str = "event"
    moments: int = MAX_MOMENTS
    pool: int = MAX_CANDIDATES

    def stems(self, table: TruthTable, rng: Random) -> Iterable[Stem]:
        return compose(self.name, "Temporal Ordering", self.cases, table, rng, size=self.pool)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        for fact in table.of_kind(self.given):
            stretch = find_stretch(table, fact, self.moments)
            if stretch is None:
                continue
            first, last = stretch
            beside = (last if self.step > 0 else first) + self.step
            own = range(first, last + 1)
            for answer in table.of_kind(self.of):
                if (
                    answer == fact
                    or not table.holds(answer, beside)
                    or not is_wrong(table, answer, own)
                    or is_marked(table, answer)
                ):
                    continue
                yield Case(
                    question=QUESTION.format(
                        asks=ASKS[self.of], side=self.name, clause=clause(fact)
                    ),
                    given=fact.phrase,
                    answer=answer,
                    wrong_at=(*own, beside, beside + self.step),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(
                        find_span(table, fact, first, last),
                        table.span(answer, beside),
                    ),
                    about=frozenset({fact.fact_id}),
                )
