"""Why does X happen?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    MAX_CANDIDATES,
    MAX_MOMENTS,
    Case,
    clause,
    compose,
    find_span,
    find_stretch,
)
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.checks import holds, normal
from mustsee.records import Fact

QUESTION = "Why does this happen: {clause}?"


@dataclass(frozen=True, kw_only=True)
class WhyForm(QuestionForm):
    """The answer is a cause that holds where it is claimed and explains the event of the question.
    The others explain other events, and hold neither where the event does nor where its cause does.
    """

    name: ClassVar[str] = "why"
    moments: int = MAX_MOMENTS
    pool: int = MAX_CANDIDATES

    @property
    def traits(self) -> FormTraits:
        return FormTraits(needs_options=False)

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind("event", "cause")

    def stems(self, table: TruthTable, rng: Random) -> Iterable[Stem]:
        return compose(self.name, "Cause And Effect", self.cases, table, rng, size=self.pool)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        events = {normal(fact.phrase): fact for fact in table.of_kind("event")}
        for cause in table.of_kind("cause"):
            event = events.get(normal(cause.of))
            places = table.places(cause) if event else ()
            stretch = find_stretch(table, event, self.moments) if event else None
            if event is None or stretch is None or not places:
                continue
            own = stretch.moments
            also = [
                other.fact_id
                for other in table.of_kind("cause")
                if holds(other.of, event.phrase) or holds(event.phrase, other.of)
            ]
            yield Case(
                question=QUESTION.format(clause=clause(event)),
                given=event.phrase,
                answer=cause,
                wrong_at=tuple(sorted({*own, *stretch.doubts, *places, *table.doubts(cause)})),
                scenes=frozenset(table.scenes[n] for n in own),
                evidence=(
                    find_span(table, event, stretch),
                    *(table.span(cause, n) for n in places if n not in own),
                ),
                about=frozenset({event.fact_id}),
                excluded=frozenset(also),
                needs_scene=False,
            )
