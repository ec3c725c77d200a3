"""Which of these is on the screen longest?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import MAX_CANDIDATES, by_chance, compose_alone
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact

QUESTION = QuestionTemplate("Which of these is on the screen longest in all?")


@dataclass(frozen=True, kw_only=True)
class LongestForm(QuestionForm):
    """`of`: the kind of the answers. The answer is seen at least `margin` times as long as each of
    the others are or may be, both by whole moments and by what is claimed of them.
    """

    name: ClassVar[str] = "longest"
    of: str = "person"
    margin: float = 1.5
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
            if len(table.alike[fact.fact_id]) == 1 and table.places(fact)
        ]
        seconds = [(fact, *_measure(table, fact, table.possible(fact))) for fact in facts]
        for answer in by_chance(seed, facts, lambda fact: fact.fact_id):
            whole, claimed = _measure(table, answer, table.places(answer))
            yield from compose_alone(
                self.name,
                "Comparison",
                QUESTION.text,
                answer,
                [
                    fact
                    for fact, all_moments, all_claims in seconds
                    if self.margin * all_moments <= whole and self.margin * all_claims <= claimed
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
