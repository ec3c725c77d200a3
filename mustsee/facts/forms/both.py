"""What is seen both when X and when Y happens, and what when X, but not when Y?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    MAX_CANDIDATES,
    MAX_MOMENTS,
    Stretch,
    by_chance,
    clause,
    compose_alone,
    find_span,
    find_stretches,
    holds_with,
    is_true_somewhere,
    is_wrong,
    seconds_between,
    shared_words,
    verb,
)
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import Need, TruthTable
from mustsee.records import Fact

Given = tuple[Fact, Stretch]  # that the question names


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
    moments: int = MAX_MOMENTS
    pool: int = MAX_CANDIDATES

    @property
    def traits(self) -> FormTraits:
        return FormTraits(is_beside=True)

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        given = list(find_stretches(table, self.given, self.moments))
        pairs = [
            (one, other)
            for one, other in permutations(given, 2)
            if self._are_apart(table, one[1], other[1])
        ]
        facts = [fact for fact in table.of_kind(self.of) if is_true_somewhere(table, fact)]
        for answer in facts:
            fits = {
                fact.fact_id for fact, _ in given if not shared_words(fact.phrase, answer.phrase)
            }
            right = [
                (one, other)
                for one, other in pairs
                if one[0].fact_id in fits
                and other[0].fact_id in fits
                and self._is_right(table, answer, one, other)
            ]
            chosen = by_chance(
                f"{seed}/{answer.fact_id}",
                right,
                lambda pair: f"{pair[0][0].fact_id}/{pair[1][0].fact_id}",
            )
            for one, other in chosen[: self.pairs]:
                yield from compose_alone(
                    self.name,
                    "Comparison",
                    self.question.format(
                        verb=verb(self.of), one=clause(one[0]), other=clause(other[0])
                    ),
                    answer,
                    [fact for fact in facts if self._is_wrong(table, fact, one, other)],
                    (find_span(table, *one), find_span(table, *other)),
                    about=(one[0].fact_id, other[0].fact_id),
                    seed=seed,
                    size=self.pool,
                    needs=partial(self._needs, table, one[1], other[1]),
                )

    def _are_apart(self, table: TruthTable, one: Stretch, other: Stretch) -> bool:
        """Whether one comes so much before the other: each pair is asked for once."""
        return seconds_between(table, one.reach, other.reach) >= self.apart

    def _needs(
        self, table: TruthTable, one: Stretch, other: Stretch, fact: Fact
    ) -> tuple[Need, ...]:
        """Return the entries by which a fact is absent from one of two stretches, if it is."""
        absent = next((s for s in (one, other) if _is_absent(table, fact, s)), None)
        return table.absence(fact, (*absent.moments, *absent.doubts)) if absent else ()

    def _is_right(self, table: TruthTable, fact: Fact, one: Given, other: Given) -> bool:
        return holds_with(table, fact, *one) and holds_with(table, fact, *other)

    def _is_wrong(self, table: TruthTable, fact: Fact, one: Given, other: Given) -> bool:
        return _is_absent(table, fact, one[1]) or _is_absent(table, fact, other[1])


@dataclass(frozen=True, kw_only=True)
class ButNotForm(BothForm):
    """As `BothForm`, of what holds when the first fact does and not when the second does. Each of
    the others is known not to hold when the first does, or to hold when the second does.
    """

    name: ClassVar[str] = "but_not"
    question: ClassVar[str] = "Which of these {verb} when {one}, but not when {other}?"

    def _are_apart(self, table: TruthTable, one: Stretch, other: Stretch) -> bool:
        return super()._are_apart(table, one, other) or super()._are_apart(table, other, one)

    def _is_right(self, table: TruthTable, fact: Fact, one: Given, other: Given) -> bool:
        return holds_with(table, fact, *one) and _is_absent(table, fact, other[1])

    def _is_wrong(self, table: TruthTable, fact: Fact, one: Given, other: Given) -> bool:
        return _is_absent(table, fact, one[1]) or holds_with(table, fact, *other)


def _is_absent(table: TruthTable, fact: Fact, stretch: Stretch) -> bool:
    """Whether a fact is known not to hold wherever another holds or may hold."""
    return is_wrong(table, fact, (*stretch.moments, *stretch.doubts))
