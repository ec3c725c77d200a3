"""What is seen both when X and when Y happens, and what when X, but not when Y?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from random import Random
from typing import ClassVar

from mustsee.facts import cases
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import Need, TruthTable
from mustsee.records import Fact

Given = tuple[Fact, cases.Stretch]  # that the question names


@dataclass(frozen=True, kw_only=True)
class BothForm(QuestionForm):
    """`given`: the kind of the two facts that the question names, at least `apart` seconds from
    each other. `of`: the kind of the answers. The answer holds when either does, and shares no word
    with them; each of the others is known not to hold when one of the two does. `pairs`: of given
    facts for an answer, at most.
    """

    name: ClassVar[str] = "both"
    question: ClassVar[str] = "Which of these {verb} both when {one} and when {other}?"
    of: str
    given: str = "event"
    apart: float = 60
    pairs: int = 4
    moments: int = cases.MAX_MOMENTS
    pool: int = cases.MAX_CANDIDATES

    @property
    def traits(self) -> FormTraits:
        return FormTraits(is_beside=True)

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        given = list(cases.find_stretches(table, self.given, self.moments))
        pairs = [
            (one, other)
            for one, other in permutations(given, 2)
            if self._are_apart(table, one[1], other[1])
        ]
        facts = [fact for fact in table.of_kind(self.of) if cases.is_true_somewhere(table, fact)]
        for answer in facts:
            fits = {
                fact.fact_id
                for fact, _ in given
                if not cases.shared_words(fact.phrase, answer.phrase)
            }
            right = [
                (one, other)
                for one, other in pairs
                if one[0].fact_id in fits
                and other[0].fact_id in fits
                and self._is_right(table, answer, one, other)
            ]
            chosen = cases.by_chance(
                f"{seed}/{answer.fact_id}",
                right,
                lambda pair: f"{pair[0][0].fact_id}/{pair[1][0].fact_id}",
            )
            for one, other in chosen[: self.pairs]:
                yield from cases.compose_alone(
                    self.name,
                    "Comparison",
                    self.question.format(
                        verb=cases.verb(self.of),
                        one=cases.clause(one[0]),
                        other=cases.clause(other[0]),
                    ),
                    answer,
                    [fact for fact in facts if self._is_wrong(table, fact, one, other)],
                    (cases.find_span(table, *one), cases.find_span(table, *other)),
                    about=(one[0].fact_id, other[0].fact_id),
                    seed=seed,
                    size=self.pool,
                    needs=partial(self._needs, table, one[1], other[1]),
                )

    def _are_apart(self, table: TruthTable, one: cases.Stretch, other: cases.Stretch) -> bool:
        """Whether one comes so much before the other: each pair is asked for once."""
        return cases.seconds_between(table, one.reach, other.reach) >= self.apart

    def _needs(
        self, table: TruthTable, one: cases.Stretch, other: cases.Stretch, fact: Fact
    ) -> tuple[Need, ...]:
        """Return the entries by which a fact is absent from one of two stretches, if it is."""
        absent = next((s for s in (one, other) if _is_absent(table, fact, s)), None)
        return table.absence(fact, (*absent.moments, *absent.doubts)) if absent else ()

    def _is_right(self, table: TruthTable, fact: Fact, one: Given, other: Given) -> bool:
        return cases.holds_with(table, fact, *one) and cases.holds_with(table, fact, *other)

    def _is_wrong(self, table: TruthTable, fact: Fact, one: Given, other: Given) -> bool:
        return _is_absent(table, fact, one[1]) or _is_absent(table, fact, other[1])


@dataclass(frozen=True, kw_only=True)
class ButNotForm(BothForm):
    """As `BothForm`, of what holds when the first fact does and not when the second does. Each of
    the others is known not to hold when the first does, or to hold when the second does.
    """

    name: ClassVar[str] = "but_not"
    question: ClassVar[str] = "Which of these {verb} when {one}, but not when {other}?"

    def _are_apart(self, table: TruthTable, one: cases.Stretch, other: cases.Stretch) -> bool:
        return super()._are_apart(table, one, other) or super()._are_apart(table, other, one)

    def _is_right(self, table: TruthTable, fact: Fact, one: Given, other: Given) -> bool:
        return cases.holds_with(table, fact, *one) and _is_absent(table, fact, other[1])

    def _is_wrong(self, table: TruthTable, fact: Fact, one: Given, other: Given) -> bool:
        return _is_absent(table, fact, one[1]) or cases.holds_with(table, fact, *other)


def _is_absent(table: TruthTable, fact: Fact, stretch: cases.Stretch) -> bool:
    """Whether a fact is known not to hold wherever another holds or may hold."""
    return cases.is_wrong(table, fact, (*stretch.moments, *stretch.doubts))
