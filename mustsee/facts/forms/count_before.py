"""How many of these happen before X?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import MAX_MOMENTS, are_distinct, by_chance, clause, find_span
from mustsee.facts.forms.order import Event, are_apart, find_events
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.checks import fault
from mustsee.questions.orders import SEPARATOR
from mustsee.records import Fact

QUESTION = "How many of these {do} before {clause}? {things}"
DO = {"event": "happen", "line": "are said", "sound": "are heard"}
THINGS = 4


@dataclass(frozen=True, kw_only=True)
class CountBeforeForm(QuestionForm):
    """`of`: the kind of the things that are counted, and of what the question names. Each holds in
    one stretch of at most `moments` moments. Each of the four begins at least `apart` moments
    before the named one does, and ends before it; or it begins at least `apart` moments after it.
    The right number is drawn first, then the things. `each`: questions on one named fact, at most.
    """

    name: ClassVar[str] = "count_before"
    of: str = "event"
    apart: int = 2
    each: int = 3
    moments: int = MAX_MOMENTS

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.of)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        events = find_events(table, self.of, self.moments)
        for named in events:
            before = [e for e in events if are_apart(e, named, self.apart)]
            after = [e for e in events if are_apart(named, e, self.apart)]
            for n in range(self.each):
                draws = Random(f"{seed}/{named.fact.fact_id}/{n}")
                number = draws.randrange(THINGS + 1)
                drawn = [*_draw(before, number, [], draws)]
                drawn += _draw(after, THINGS - number, drawn, draws)
                if len(drawn) == THINGS and (stem := self._stem(table, named, drawn, number)):
                    yield stem

    def _stem(
        self, table: TruthTable, named: Event, drawn: list[Event], number: int
    ) -> Stem | None:
        shown = by_chance(named.fact.fact_id, (event.fact.phrase for event in drawn), str)
        question = QUESTION.format(
            do=DO.get(self.of, "are seen"),
            clause=clause(named.fact),
            things=SEPARATOR.join(shown),
        )
        options = tuple(str(n) for n in range(THINGS + 1))
        wrong = [option for option in options if option != str(number)]
        if fault(question, str(number), wrong, count=THINGS):
            return None
        events = sorted((named, *drawn), key=lambda event: event.stretch.first)
        return Stem(
            form=self.name,
            question=question,
            question_type="Counting",
            answer=str(number),
            options=options,
            evidence=tuple(find_span(table, e.fact, e.stretch) for e in events),
            about=frozenset(event.fact.fact_id for event in events),
            centre=named.fact.fact_id,
        )


def _draw(events: list[Event], number: int, beside: list[Event], draws: Random) -> list[Event]:
    """Return as many of the events, distinct from each other and from those beside; fewer if there
    are no more.
    """
    drawn: list[Event] = []
    for event in draws.sample(events, len(events)):
        phrases = [e.fact.phrase for e in (*beside, *drawn)]
        if len(drawn) < number and all(are_distinct(event.fact.phrase, p) for p in phrases):
            drawn.append(event)
    return drawn
