"""Which of these happens first?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import MAX_CANDIDATES, by_chance, compose_alone, is_marked, is_wrong, verb
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.records import Fact, Span

QUESTION = "Which of these {verb} {place}?"


@dataclass(frozen=True, kw_only=True)
class FirstForm(QuestionForm):
    """`of`: the kind of the answers. The others begin at least `apart` moments after the answer
    does.
    """

    name: ClassVar[str] = "first"
    of: str = "event"
    apart: int = 2
    pool: int = MAX_CANDIDATES

    @property
    def traits(self) -> FormTraits:
        return FormTraits(names_moment=False)

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.of)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        facts = [
            fact
            for fact in table.of_kind(self.of)
            if len(table.alike[fact.fact_id]) == 1
            and table.places(fact)
            and not is_marked(table, fact)
        ]
        for answer in by_chance(seed, facts, lambda fact: fact.fact_id):
            place = self._place(table.places(answer))
            yield from compose_alone(
                self.name,
                "Temporal Ordering",
                QUESTION.format(verb=verb(self.of), place=self.name),
                answer,
                [
                    fact
                    for fact in facts
                    if self._gap(place, self._place(table.possible(fact))) >= self.apart
                    and is_wrong(table, fact, self._until(table, place))
                ],
                (self._stretch(table, place),),
                about=[f"{self.name}/{self.of}"],
                seed=seed,
                size=self.pool,
                needs=lambda fact, place=place: table.absence(fact, self._until(table, place)),
            )

    def _place(self, places: tuple[int, ...]) -> int:
        return places[0]

    def _gap(self, place: int, other: int) -> int:
        return other - place

    def _until(self, table: TruthTable, place: int) -> range:
        """Return the moments that one must know: the answer's and all earlier ones."""
        return range(place + 1)

    def _stretch(self, table: TruthTable, place: int) -> Span:
        known = self._until(table, place)
        return table.stretch(known[0], known[-1])
