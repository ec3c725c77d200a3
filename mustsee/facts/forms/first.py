"""Which of these happens first, and which last?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    ALL_VERBS,
    MAX_CANDIDATES,
    by_chance,
    compose_alone,
    is_marked,
    is_wrong,
    verb,
)
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact

QUESTION = QuestionTemplate(
    "Which of these {verb} {place}?", {"verb": ALL_VERBS, "place": ("first", "last")}
)


@dataclass(frozen=True, kw_only=True)
class FirstForm(QuestionForm):
    """`of`: the kind of the answers. The others begin at least `apart` moments after the answer
    does.
    """

    name: ClassVar[str] = "first"
    step: ClassVar[int] = 1
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
            until = self._until(table, place)
            yield from compose_alone(
                self.name,
                "Temporal Ordering",
                QUESTION.fill(verb=verb(self.of), place=self.name),
                answer,
                [
                    fact
                    for fact in facts
                    if (self._place(table.possible(fact)) - place) * self.step >= self.apart
                    and is_wrong(table, fact, until)
                ],
                (table.stretch(until[0], until[-1]),),
                about=[f"{self.name}/{self.of}"],
                seed=seed,
                size=self.pool,
                needs=lambda fact, until=until: table.absence(fact, until),
            )

    def _place(self, places: tuple[int, ...]) -> int:
        return places[0 if self.step > 0 else -1]

    def _until(self, table: TruthTable, place: int) -> range:
        """Return the moments that one must know: from that end of the video to the answer's."""
        return range(place + 1) if self.step > 0 else range(place, len(table.moments))


@dataclass(frozen=True, kw_only=True)
class LastForm(FirstForm):
    """As `FirstForm`, from the end: the others end at least `apart` moments before the answer."""

    name: ClassVar[str] = "last"
    step: ClassVar[int] = -1
