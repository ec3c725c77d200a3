"""Which of these happens after X but before Y?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    MAX_CANDIDATES,
    MAX_MOMENTS,
    Case,
    by_chance,
    clause,
    compose,
    find_span,
    find_stretch,
    is_marked,
    verb,
)
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable

QUESTION = "Which of these {verb} after {earlier} but before {later}?"


@dataclass(frozen=True, kw_only=True)
class BetweenForm:
    """`given`: the kind of the two facts that the question names, at least `apart` seconds from
    each other. `of`: the kind of the answers. The answer holds between them only, the others before
    or after them only. `pairs`: of given facts for an answer, at most.
    """

    name: ClassVar[str] = "between"
    given: str = "event"
    of: str = "event"
    apart: float = 60
    pairs: int = 3
    moments: int = MAX_MOMENTS
    pool: int = MAX_CANDIDATES

    def stems(self, table: TruthTable, rng: Random) -> Iterable[Stem]:
        return compose(self.name, "Temporal Ordering", self.cases, table, rng, size=self.pool)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        given = [
            (*stretch, fact)
            for fact in table.of_kind(self.given)
            if (stretch := find_stretch(table, fact, self.moments))
        ]
        given.sort(key=lambda item: item[:2])
        pairs = [
            (earlier, later)
            for earlier, later in combinations(given, 2)
            if table.moments[later[0]].start - table.moments[earlier[1]].end >= self.apart
        ]
        for answer in table.of_kind(self.of):
            stretch = find_stretch(table, answer, len(table.moments))
            if stretch is None or is_marked(table, answer):
                continue
            around = [p for p in pairs if p[0][1] < stretch[0] and stretch[1] < p[1][0]]
            chosen = by_chance(0, around, lambda p: f"{p[0][2].fact_id}/{p[1][2].fact_id}")
            for (first, before, earlier), (after, last, later) in chosen[: self.pairs]:
                own = (*range(first, before + 1), *range(after, last + 1))
                yield Case(
                    question=QUESTION.format(
                        verb=verb(self.of), earlier=clause(earlier), later=clause(later)
                    ),
                    given=f"{earlier.phrase}; {later.phrase}",
                    answer=answer,
                    wrong_at=own,
                    outside=range(first, last + 1),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(
                        find_span(table, earlier, first, before),
                        find_span(table, answer, *stretch),
                        find_span(table, later, after, last),
                    ),
                    about=frozenset({earlier.fact_id, later.fact_id}),
                )
