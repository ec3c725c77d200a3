"""In which quarter of the video is X so?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import by_chance, find_span, find_stretch
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable, is_written
from mustsee.records import Fact

QUESTION = "In which quarter of the video can {phrase} be seen?"
EDGE_S = 0.1  # seconds by which a moment may reach beyond its quarter
QUARTERS = ("the first quarter", "the second quarter", "the third quarter", "the last quarter")


@dataclass(frozen=True, kw_only=True)
class QuarterForm:
    """`of`: the kind of the fact that the question names, which is no on-screen text. It holds in
    one stretch that lies in one quarter, and is known not to hold at any moment of the others. It
    needs no other facts, so that it asks of videos that have few.
    """

    name: ClassVar[str] = "quarter"
    of: str = "view"

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        for fact in by_chance(rng.random(), table.of_kind(self.of), lambda fact: fact.fact_id):
            stretch = find_stretch(table, fact, len(table.moments))
            quarter = _find_quarter(table, fact)
            if is_written(fact) or stretch is None or quarter is None:
                continue
            yield Stem(
                form=self.name,
                question=QUESTION.format(phrase=fact.phrase),
                question_type="Temporal Ordering",
                answer=QUARTERS[quarter],
                options=QUARTERS,
                evidence=(find_span(table, fact, stretch),),
                about=frozenset({fact.fact_id}),
            )


def _find_quarter(table: TruthTable, fact: Fact) -> int | None:
    """Return the number of the quarter that holds all moments at which a fact holds; null if there
    is none, or if it is unknown of any moment whether it holds.
    """
    entries = [
        [table.holds(other, n) for other in table.alike[fact.fact_id]]
        for n in range(len(table.moments))
    ]
    if any(None in entry for entry in entries):
        return None
    held = [n for n, entry in enumerate(entries) if any(entry)]
    whole = table.stretch(0, len(table.moments) - 1)
    quarter = whole.seconds / len(QUARTERS)
    if not held:
        return None
    start = table.moments[held[0]].start - whole.start + EDGE_S
    end = table.moments[held[-1]].end - whole.start - EDGE_S
    first, last = int(start / quarter), int(end / quarter)
    return first if first == last else None
