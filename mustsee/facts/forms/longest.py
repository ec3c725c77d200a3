"""Which of these is on the screen longest?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import MAX_CANDIDATES, by_chance, compose_alone
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable
from mustsee.records import Fact

QUESTION = "Which of these is on the screen longest in all?"


@dataclass(frozen=True, kw_only=True)
class LongestForm:
    """`of`: the kind of the answers. The answer is seen at least `margin` times as long as each of
    the others, both by whole moments and by what is claimed of them.
    """

    name: ClassVar[str] = "longest"
    of: str = "person"
    margin: float = 1.5
    pool: int = MAX_CANDIDATES

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        seconds = [
            (fact, *_measure(table, fact, places))
            for fact in table.of_kind(self.of)
            if len(table.alike[fact.fact_id]) == 1 and (places := table.places(fact))
        ]
        for answer, whole, claimed in by_chance(seed, seconds, lambda item: item[0].fact_id):
            yield from compose_alone(
                self.name,
                "Comparison",
                QUESTION,
                answer,
                [
                    fact
                    for fact, least, most in seconds
                    if self.margin * least <= whole and self.margin * most <= claimed
                ],
                (table.stretch(0, len(table.moments) - 1),),
                about=[f"{self.name}/{self.of}"],
                seed=seed,
                size=self.pool,
            )


def _measure(table: TruthTable, fact: Fact, places: tuple[int, ...]) -> tuple[float, float]:
    """Return the seconds of a fact: of its moments, and of what is claimed of them."""
    whole = sum(table.moments[n].seconds for n in places)
    return whole, sum(table.span(fact, n).seconds for n in places)
