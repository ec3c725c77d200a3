"""At how many separate times is X seen?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import find_runs, find_span
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.checks import fault

QUESTION = (
    "At how many separate times is {phrase} seen, if it is another time whenever {phrase} comes "
    "back after some seconds out of sight?"
)


@dataclass(frozen=True, kw_only=True)
class CountForm(QuestionForm):
    """`of`: the kind of what is counted: seen `fewest` to `most` times, with at least a moment
    known to be without it between two times, and nothing unknown.

    The options are `options` numbers in a row. The place of the right one among them is drawn
    before the count is looked at, and where a number below 1 would be needed there is no question:
    all places are equally likely, but for counts below `options`, which cannot stand high.
    """

    name: ClassVar[str] = "count"
    of: str = "person"
    fewest: int = 2
    most: int = 6
    options: int = 4

    @property
    def traits(self) -> FormTraits:
        return FormTraits(needs_options=False, for_rules=True)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        for fact in table.of_kind(self.of):
            if len(table.alike[fact.fact_id]) > 1 or not self._may_count(
                table.claims[fact.fact_id]
            ):
                continue
            runs = find_runs(table, fact)
            draws = Random(f"{seed}/{fact.fact_id}")
            first = len(runs) - draws.randrange(self.options)
            if not self.fewest <= len(runs) <= self.most or first < 1:
                continue
            options = [str(first + n) for n in range(self.options)]
            question = QUESTION.format(phrase=fact.phrase)
            wrong = [option for option in options if option != str(len(runs))]
            if fault(question, str(len(runs)), wrong, count=len(wrong)):
                continue
            yield Stem(
                form=self.name,
                question=question,
                question_type="Counting",
                answer=str(len(runs)),
                options=tuple(options),
                evidence=tuple(find_span(table, fact, run) for run in runs),
                needs=((fact.fact_id, range(len(table.moments))),),
                about=frozenset({fact.fact_id}),
            )

    def _may_count(self, claims: tuple[int, ...]) -> bool:
        """Whether the claimed moments are of enough separate times, so that a look at all moments
        is worth its price.
        """
        times = sum(n - 1 not in claims for n in claims)
        return self.fewest <= times <= self.most
