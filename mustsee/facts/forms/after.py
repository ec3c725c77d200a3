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
    Stretch,
    clause,
    compose,
    find_span,
    find_stretches,
    is_marked,
    is_wrong,
)
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable, find_touched
from mustsee.records import Fact

QUESTION = "{asks} right {side} this: {clause}?"
MAX_GAP_S = 3.0  # seconds between a fact and what comes right after it, at most


@dataclass(frozen=True, kw_only=True)
class AfterForm:
    """`given`: the kind of the fact that the question names, which holds in one stretch of at most
    `moments` moments. `of`: the kind of the answers. The answer holds at the next moment and not
    yet before it, the others neither then nor at the moment after it. The same goes for moments at
    which it is unknown whether the fact holds. At most `MAX_GAP_S` seconds lie between the two, and
    no other fact of that kind is claimed there, not even within one of these moments.
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
        for fact, stretch in find_stretches(table, self.given, self.moments):
            own = stretch.moments
            beside = (stretch.last if self.step > 0 else stretch.first) + self.step
            if beside in stretch.doubts:
                continue
            near = {n + k * self.step for n in (*own, *stretch.doubts) for k in (0, 1, 2)}
            for answer in table.of_kind(self.of):
                if (
                    answer == fact
                    or not table.holds(answer, beside)
                    or not is_wrong(table, answer, own)
                    or is_marked(table, answer)
                    or self._are_parted(table, fact, answer, stretch, beside)
                ):
                    continue
                yield Case(
                    question=QUESTION.format(
                        asks=ASKS[self.of], side=self.name, clause=clause(fact)
                    ),
                    given=fact.phrase,
                    answer=answer,
                    wrong_at=tuple(sorted(near)),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(
                        find_span(table, fact, stretch),
                        table.span(answer, beside),
                    ),
                    about=frozenset({fact.fact_id}),
                )

    def _are_parted(
        self, table: TruthTable, given: Fact, answer: Fact, stretch: Stretch, beside: int
    ) -> bool:
        """Whether a fact and its answer lie too far apart, or another fact of the answer's kind
        comes between them: it begins between their starts or, of what comes before, ends between
        their ends.
        """
        named, own = find_span(table, given, stretch), table.span(answer, beside)
        earlier, later = sorted((named, own), key=lambda span: span.start)
        if later.start - earlier.end > MAX_GAP_S:
            return True
        first, last = earlier.start, later.start
        same = {*table.alike[answer.fact_id], *table.alike[given.fact_id]}
        return any(
            (first < span.start < last or (self.step < 0 and own.end < span.end < named.end))
            and any(table.holds(other, n) is not False for n in find_touched([span], table.moments))
            for other in table.of_kind(self.of)
            if other not in same
            for span in other.spans
        )
