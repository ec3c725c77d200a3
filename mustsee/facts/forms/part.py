"""Which of these happens in one third of the video?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import ALL_VERBS, MAX_CANDIDATES, by_chance, compose_alone, is_marked, verb
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact

PARTS = ("first", "second", "last")
QUESTION = QuestionTemplate(
    "Which of these {verb} in the {part} third of the video?", {"verb": ALL_VERBS, "part": PARTS}
)


@dataclass(frozen=True, kw_only=True)
class PartForm(QuestionForm):
    """`of`: the kind of the answers. The answer holds in one third only, and each of the others
    only in another.
    """

    name: ClassVar[str] = "part"
    of: str = "event"
    pool: int = MAX_CANDIDATES

    @property
    def traits(self) -> FormTraits:
        return FormTraits(names_moment=False)

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.of)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        parts = [
            (fact, part)
            for fact in table.of_kind(self.of)
            if len(table.alike[fact.fact_id]) == 1
            and not is_marked(table, fact)
            and (part := _find_part(table, fact)) is not None
        ]
        for answer, part in by_chance(seed, parts, lambda item: item[0].fact_id):
            yield from compose_alone(
                self.name,
                "Temporal Ordering",
                QUESTION.fill(verb=verb(self.of), part=PARTS[part]),
                answer,
                [fact for fact, other in parts if other != part],
                tuple(table.span(answer, n) for n in table.places(answer)),
                about=[f"{self.name}/{self.of}/{part}"],
                seed=seed,
                size=self.pool,
            )


def _find_part(table: TruthTable, fact: Fact) -> int | None:
    """Return the number of the third of the video in which a fact holds, if it is the only one in
    which it may hold; else null.
    """
    places = sorted((*table.places(fact), *table.doubts(fact)))
    if not table.places(fact):
        return None
    whole = table.stretch(0, len(table.moments) - 1)
    third = whole.seconds / len(PARTS)
    held = table.stretch(places[0], places[-1])
    for part in range(len(PARTS)):
        start = whole.start + part * third
        if start <= held.start and held.end <= start + third:
            return part
    return None
