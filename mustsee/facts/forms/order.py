"""In which order do these happen, and how many of these happen before X?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import ClassVar

from mustsee.facts import cases
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.checks import entries, fault
from mustsee.questions.orders import SEPARATOR, wrong_orders
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact
from mustsee.text import terms

ASKS = {"event": "do these happen", "line": "are these said", "sound": "are these heard"}
ASKS_SEEN = "are these seen"  # how facts of other kinds are asked for
QUESTION = QuestionTemplate(
    "In which order {asks}? {things}", {"asks": (*ASKS.values(), ASKS_SEEN)}
)
TRIES = 8  # draws for each order that is wanted
HOW_MANY = "How many of these {do} before {clause}? {things}"
DO = {"event": "happen", "line": "are said", "sound": "are heard"}
COUNTED_THINGS = 4


@dataclass(frozen=True, kw_only=True)
class OrderForm(QuestionForm):
    """`of`: the kind of the things that are put in order, `things` of them (4 to 6). Each holds in
    one stretch of at most `moments` moments, which begins at least `apart` moments after the one
    before it began, and after all moments at which that one may hold. All are of one scene, or no
    two are of one. `most`: orders of each scene, and of no two of one, at most.
    """

    name: ClassVar[str] = "order"
    of: str = "event"
    things: int = 4
    apart: int = 2
    most: int = 80
    moments: int = cases.MAX_MOMENTS

    @property
    def traits(self) -> FormTraits:
        return FormTraits(lists_order=True)

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.of)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        draws = Random(rng.random())
        events = find_events(table, self.of, self.moments)
        for scene in sorted(set(table.scenes)):
            yield from self._orders(
                table, [e for e in events if e.scenes == frozenset({scene})], draws, scene=scene
            )
        yield from self._orders(table, events, draws, scene=-1)

    def _orders(
        self, table: TruthTable, events: Sequence[Event], draws: Random, *, scene: int
    ) -> Iterator[Stem]:
        """Yield different orders of the events of a scene, or of events of different ones."""
        seen: set[frozenset[str]] = set()
        for _ in range(self.most * TRIES if len(events) >= self.things else 0):
            order = self._draw(events, draws, scene=scene)
            about = frozenset(event.fact.fact_id for event in order)
            if len(order) < self.things or about in seen:
                continue
            seen.add(about)
            if stem := self._stem(table, order, about, draws, scene=scene):
                yield stem
            if len(seen) == self.most:
                return

    def _draw(self, events: Sequence[Event], draws: Random, *, scene: int) -> list[Event]:
        """Return events that can be put in order, in the right one; fewer than `things` if no more
        can be put beside those drawn first.
        """
        order: list[Event] = []
        for event in draws.sample(events, len(events)):
            if len(order) == self.things:
                break
            if all(self._are_apart(event, e, same_scene=scene >= 0) for e in order):
                order.append(event)
        return sorted(order, key=lambda event: event.stretch.first)

    def _are_apart(self, one: Event, other: Event, *, same_scene: bool) -> bool:
        """Whether two events can stand in one order."""
        earlier, later = sorted((one, other), key=lambda event: event.stretch.first)
        return (same_scene or not one.scenes & other.scenes) and are_apart(
            earlier, later, self.apart
        )

    def _stem(
        self,
        table: TruthTable,
        order: Sequence[Event],
        about: frozenset[str],
        draws: Random,
        *,
        scene: int,
    ) -> Stem | None:
        things = tuple(event.fact.phrase for event in order)
        orders = [things, *wrong_orders(things, draws)]
        options = [SEPARATOR.join(order) for order in orders]
        free = [p for p in permutations(things) if p not in orders]
        if len(orders) < self.things or not free or entries(options[0]) != things:
            return None
        question = QUESTION.fill(
            asks=ASKS.get(self.of, ASKS_SEEN), things=SEPARATOR.join(draws.choice(free))
        )
        if fault(question, options[0], options[1:], count=len(options) - 1):
            return None
        return Stem(
            form=self.name,
            question=question,
            question_type="Temporal Ordering",
            answer=options[0],
            options=tuple(draws.sample(options, len(options))),
            evidence=tuple(cases.find_span(table, e.fact, e.stretch) for e in order),
            about=about,
            scene=scene,
        )


@dataclass(frozen=True)
class Event:
    """A fact that holds in one stretch, and the scenes of that."""

    fact: Fact
    stretch: cases.Stretch
    scenes: frozenset[int]


def find_events(table: TruthTable, kind: str, moments: int) -> list[Event]:
    """Return the facts of a kind that hold in one stretch of at most `moments` moments, without
    those whose place is given away.
    """
    return [
        Event(
            fact, stretch, frozenset(table.scenes[n] for n in (*stretch.moments, *stretch.doubts))
        )
        for fact, stretch in cases.find_stretches(table, kind, moments)
        if not cases.is_marked(table, fact)
    ]


def are_apart(earlier: Event, later: Event, apart: int) -> bool:
    """Whether one event surely begins after another, by at least `apart` moments, and after all
    moments at which that one may hold, and both may stand in one question.
    """
    start = later.stretch.reach[0]
    return (
        start >= earlier.stretch.first + apart
        and start > earlier.stretch.reach[-1]
        and cases.are_distinct(earlier.fact.phrase, later.fact.phrase)
        and not (_has_number(earlier.fact) and _has_number(later.fact))
    )


def _has_number(fact: Fact) -> bool:
    return any(term.isdigit() for term in terms(fact.phrase))


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
    moments: int = cases.MAX_MOMENTS

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
                number = draws.randrange(COUNTED_THINGS + 1)
                drawn = [*_draw_events(before, number, [], draws)]
                drawn += _draw_events(after, COUNTED_THINGS - number, drawn, draws)
                if len(drawn) == COUNTED_THINGS and (
                    stem := self._stem(table, named, drawn, number)
                ):
                    yield stem

    def _stem(
        self, table: TruthTable, named: Event, drawn: list[Event], number: int
    ) -> Stem | None:
        shown = cases.by_chance(named.fact.fact_id, (event.fact.phrase for event in drawn), str)
        question = HOW_MANY.format(
            do=DO.get(self.of, "are seen"),
            clause=cases.clause(named.fact),
            things=SEPARATOR.join(shown),
        )
        options = tuple(str(n) for n in range(COUNTED_THINGS + 1))
        wrong = [option for option in options if option != str(number)]
        if fault(question, str(number), wrong, count=COUNTED_THINGS):
            return None
        events = sorted((named, *drawn), key=lambda event: event.stretch.first)
        return Stem(
            form=self.name,
            question=question,
            question_type="Counting",
            answer=str(number),
            options=options,
            evidence=tuple(cases.find_span(table, e.fact, e.stretch) for e in events),
            about=frozenset(event.fact.fact_id for event in events),
            centre=named.fact.fact_id,
        )


def _draw_events(
    events: list[Event], number: int, beside: list[Event], draws: Random
) -> list[Event]:
    """Return as many of the events, distinct from each other and from those beside; fewer if there
    are no more.
    """
    drawn: list[Event] = []
    for event in draws.sample(events, len(events)):
        phrases = [e.fact.phrase for e in (*beside, *drawn)]
        if len(drawn) < number and all(cases.are_distinct(event.fact.phrase, p) for p in phrases):
            drawn.append(event)
    return drawn
