"""Which of these happens next after X, and which last before X?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    ALL_VERBS,
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
    verb,
)
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact, Span

QUESTION = QuestionTemplate(
    "Which of these {verb} {nearest} {side} {clause}?",
    {"verb": ALL_VERBS, "nearest": ("next", "last"), "side": ("after", "before")},
)


@dataclass(frozen=True, kw_only=True)
class AfterForm(QuestionForm):
    """`given`: the kind of the fact that the question names. It holds in one stretch of at most
    `moments` moments, and is known not to hold later. `of`: the kind of the answers. The right one
    does not hold in that stretch, and holds at one of the next `within` moments. A wrong one is
    known not to hold from the start of the stretch to the moment after the right one's. If the
    fact may hold earlier, too, it is known not to hold from there on.
    """

    name: ClassVar[str] = "after"
    nearest: ClassVar[str] = "next"
    step: ClassVar[int] = 1
    given: str = "event"
    of: str = "event"
    within: int = 5
    moments: int = MAX_MOMENTS
    pool: int = MAX_CANDIDATES

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given, self.of)

    def stems(self, table: TruthTable, rng: Random) -> Iterable[Stem]:
        return compose(self.name, "Temporal Ordering", self.cases, table, rng, size=self.pool)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        for fact, stretch in find_stretches(table, self.given, self.moments):
            own = stretch.moments
            if any((n - own[0]) * self.step > 0 for n in stretch.doubts):
                continue
            for answer in table.of_kind(self.of):
                if answer == fact or is_marked(table, answer) or not is_wrong(table, answer, own):
                    continue
                moment = self._find_next(table, answer, stretch)
                if moment is None:
                    continue
                known = (*stretch.reach, moment, moment + self.step)
                yield Case(
                    question=QUESTION.fill(
                        verb=verb(self.of),
                        nearest=self.nearest,
                        side=self.name,
                        clause=clause(fact),
                    ),
                    given=fact.phrase,
                    answer=answer,
                    wrong_at=tuple(range(min(known), max(known) + 1)),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=_add_between(
                        find_span(table, fact, stretch), table.span(answer, moment)
                    ),
                    about=frozenset({fact.fact_id}),
                    needs=table.absence(answer, own),
                )

    def _find_next(self, table: TruthTable, answer: Fact, stretch: Stretch) -> int | None:
        """Return the moment at which an answer holds next, seen from a stretch; null if it is not
        within reach.
        """
        edge = stretch.last if self.step > 0 else stretch.first
        ahead = (edge + n * self.step for n in range(1, self.within + 1))
        return next((moment for moment in ahead if table.holds(answer, moment)), None)


@dataclass(frozen=True, kw_only=True)
class BeforeForm(AfterForm):
    """As `AfterForm`, with the moments before in place of the next ones."""

    name: ClassVar[str] = "before"
    nearest: ClassVar[str] = "last"
    step: ClassVar[int] = -1


def _add_between(one: Span, other: Span) -> tuple[Span, ...]:
    """Return the spans of two facts, and what lies between: one must see that nothing else comes
    there.
    """
    earlier, later = sorted((one, other), key=lambda span: span.start)
    between = Span(earlier.end, later.start)
    return (one, between, other) if between.start < between.end else (one, other)
