"""Which of these happens after X but before Y?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    ALL_VERBS,
    MAX_CANDIDATES,
    MAX_MOMENTS,
    Case,
    by_chance,
    clause,
    compose,
    find_span,
    find_stretches,
    is_marked,
    seconds_between,
    verb,
)
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact

NEAR = 40  # facts before an answer, and after it, among which the two given ones are looked for
NARROW = 3  # pairs of given facts from which one is drawn
QUESTION = QuestionTemplate(
    "Which of these {verb} after {earlier} but before {later}?", {"verb": ALL_VERBS}
)


@dataclass(frozen=True, kw_only=True)
class BetweenForm(QuestionForm):
    """`given`: the kind of the two facts that the question names, at least `apart` seconds from
    each other. `of`: the kind of the answers. The answer holds between them only, the others before
    or after them only. `pairs`: of given facts for an answer, at most.
    """

    name: ClassVar[str] = "between"
    given: str = "event"
    of: str = "event"
    apart: float = 60
    pairs: int = 6
    moments: int = MAX_MOMENTS
    pool: int = MAX_CANDIDATES

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given, self.of)

    def stems(self, table: TruthTable, rng: Random) -> Iterable[Stem]:
        return compose(self.name, "Temporal Ordering", self.cases, table, rng, size=self.pool)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        given = sorted(
            find_stretches(table, self.given, self.moments),
            key=lambda item: (item[1].first, item[1].last),
        )
        for answer, stretch in find_stretches(table, self.of, len(table.moments)):
            if is_marked(table, answer):
                continue
            place = stretch.reach
            before = [one for one in given if one[1].reach[-1] < place[0]][-NEAR:]
            after = [one for one in given if one[1].reach[0] > place[-1]][:NEAR]
            around = [
                pair
                for pair in product(before, after)
                if seconds_between(table, pair[0][1].reach, pair[1][1].reach) >= self.apart
            ]
            # The closer the two lie, the more happens outside of them.
            around.sort(key=lambda p: p[1][1].reach[0] - p[0][1].reach[-1])
            narrow = around[: NARROW * self.pairs]
            chosen = by_chance(0, narrow, lambda p: f"{p[0][0].fact_id}/{p[1][0].fact_id}")
            for (earlier, first), (later, last) in chosen[: self.pairs]:
                own = (*first.reach, *last.reach)
                yield Case(
                    question=QUESTION.fill(
                        verb=verb(self.of), earlier=clause(earlier), later=clause(later)
                    ),
                    given=f"{earlier.phrase}; {later.phrase}",
                    answer=answer,
                    wrong_at=own,
                    outside=range(own[0], own[-1] + 1),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(
                        find_span(table, earlier, first),
                        find_span(table, answer, stretch),
                        find_span(table, later, last),
                    ),
                    about=frozenset({earlier.fact_id, later.fact_id}),
                )
