"""Who is seen right after X, and where? All combinations of two values each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    MAX_MOMENTS,
    are_distinct,
    by_chance,
    clause,
    find_span,
    find_stretch,
    is_true_somewhere,
    is_wrong,
    shared_words,
)
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.checks import fault
from mustsee.questions.orders import SEPARATOR
from mustsee.records import Fact

QUESTION = "Which {first} and which {second} are seen right after this: {clause}?"
NOUNS = {"object": "thing", "text": "words"}


@dataclass(frozen=True, kw_only=True)
class FactorialForm:
    """`given`: the kind of the fact that the question names. `first`, `second`: the kinds of the
    two values that are asked for. One of each holds at the next moment; the other one of each holds
    elsewhere, and neither at the last moment of the given fact nor at the two that follow. `most`:
    questions about one given fact.
    """

    name: ClassVar[str] = "factorial"
    given: str = "event"
    first: str = "person"
    second: str = "place"
    most: int = 2
    moments: int = MAX_MOMENTS

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        for fact in table.of_kind(self.given):
            stretch = find_stretch(table, fact, self.moments)
            if stretch is None:
                continue
            last = stretch[1]
            firsts = self._draw_values(table, fact, self.first, last, seed)
            seconds = self._draw_values(table, fact, self.second, last, seed)
            for (one, other), (here, there) in list(product(firsts, seconds))[: self.most]:
                right = SEPARATOR.join((one.phrase, here.phrase))
                wrong = [
                    SEPARATOR.join((who.phrase, where.phrase))
                    for who, where in ((one, there), (other, here), (other, there))
                ]
                question = QUESTION.format(
                    first=NOUNS.get(self.first, self.first),
                    second=NOUNS.get(self.second, self.second),
                    clause=clause(fact),
                )
                if fault(question, right, wrong, count=len(wrong)):
                    continue
                yield Stem(
                    form=self.name,
                    question=question,
                    question_type="Identification",
                    answer=right,
                    options=tuple(by_chance(f"{seed}/{fact.fact_id}", [right, *wrong], str)),
                    evidence=(
                        find_span(table, fact, *stretch),
                        table.moments[last + 1],
                    ),
                    about=frozenset(f.fact_id for f in (fact, one, other, here, there)),
                )

    def _draw_values(
        self, table: TruthTable, fact: Fact, kind: str, last: int, seed: float
    ) -> list[tuple[Fact, Fact]]:
        """Return pairs of facts of a kind: one that holds after a moment, and one that does not."""
        right = [f for f in table.of_kind(kind) if f != fact and table.holds(f, last + 1)]
        pairs: list[tuple[Fact, Fact]] = []
        order = f"{seed}/{fact.fact_id}"
        others = by_chance(order, table.of_kind(kind), lambda f: f.fact_id)
        for value in by_chance(order, right, lambda f: f.fact_id):
            least = shared_words(fact.phrase, value.phrase)
            wrong = next(
                (
                    f
                    for f in others
                    if f not in (fact, value)
                    and are_distinct(f.phrase, value.phrase)
                    and shared_words(fact.phrase, f.phrase) >= least
                    and is_wrong(table, f, (last, last + 1, last + 2))
                    and is_true_somewhere(table, f)
                ),
                None,
            )
            if wrong is not None:
                pairs.append((value, wrong))
        return pairs[: self.most]
