"""Which of these is first, last, longest, or in one third of the video, and in which quarter of it
is X seen first, or last?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts import cases
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable, fills_picture, is_written
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact, Span

AT_END = QuestionTemplate(
    "Which of these {verb} {place}?", {"verb": cases.ALL_VERBS, "place": ("first", "last")}
)
LONGEST = QuestionTemplate("Which of these is on the screen longest in all?")
PARTS = ("first", "second", "last")
IN_PART = QuestionTemplate(
    "Which of these {verb} in the {part} third of the video?",
    {"verb": cases.ALL_VERBS, "part": PARTS},
)
IN_QUARTER = QuestionTemplate(
    "In which quarter of the video {verb} {clause} seen {end}?",
    {"verb": ("is", "are"), "end": ("first", "last")},
)
QUARTERS = ("the first quarter", "the second quarter", "the third quarter", "the last quarter")
MARGIN_S = 0.5  # seconds from the border of a quarter that its appearance lies, at least
EDGE = 0.1  # share of the video at either end in which a text may be a title or a credit


@dataclass(frozen=True, kw_only=True)
class WholeForm(QuestionForm):
    """A form that asks which fact of a kind (`of`) stands out in the whole video."""

    of: str = "event"
    pool: int = cases.MAX_CANDIDATES

    @property
    def traits(self) -> FormTraits:
        return FormTraits(names_moment=False)

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.of)

    def held_facts(self, table: TruthTable) -> list[Fact]:
        """Return the facts of the kind that hold somewhere, and that no other one repeats."""
        facts = table.of_kind(self.of)
        return [f for f in facts if len(table.alike[f.fact_id]) == 1 and table.places(f)]


@dataclass(frozen=True, kw_only=True)
class FirstForm(WholeForm):
    """`of`: the kind of the answers. The others begin at least `apart` moments after the answer
    does.
    """

    name: ClassVar[str] = "first"
    step: ClassVar[int] = 1
    apart: int = 2

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        facts = [fact for fact in self.held_facts(table) if not cases.is_marked(table, fact)]
        for answer in cases.by_chance(seed, facts, lambda fact: fact.fact_id):
            place = self._place(table.places(answer))
            until = self._until(table, place)
            yield from cases.compose_alone(
                self.name,
                "Temporal Ordering",
                AT_END.fill(verb=cases.verb(self.of), place=self.name),
                answer,
                [
                    fact
                    for fact in facts
                    if (self._place(table.possible(fact)) - place) * self.step >= self.apart
                    and cases.is_wrong(table, fact, until)
                ],
                (table.stretch(until[0], until[-1]),),
                about=[f"{self.name}/{self.of}"],
                seed=seed,
                size=self.pool,
                needs=lambda fact, until=until: table.absence(fact, until),
            )

    def _place(self, places: tuple[int, ...]) -> int:
        return places[0 if self.step > 0 else -1]

    def _until(self, table: TruthTable, place: int) -> range:
        """Return the moments that one must know: from that end of the video to the answer's."""
        return range(place + 1) if self.step > 0 else range(place, len(table.moments))


@dataclass(frozen=True, kw_only=True)
class LastForm(FirstForm):
    """As `FirstForm`, from the end: the others end at least `apart` moments before the answer."""

    name: ClassVar[str] = "last"
    step: ClassVar[int] = -1


@dataclass(frozen=True, kw_only=True)
class LongestForm(WholeForm):
    """`of`: the kind of the answers. The answer is seen at least `margin` times as long as each of
    the others are or may be, both by whole moments and by what is claimed of them.
    """

    name: ClassVar[str] = "longest"
    of: str = "person"
    margin: float = 1.5

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed, facts = rng.random(), self.held_facts(table)
        seconds = [(fact, *_measure(table, fact, table.possible(fact))) for fact in facts]
        for answer in cases.by_chance(seed, facts, lambda fact: fact.fact_id):
            whole, claimed = _measure(table, answer, table.places(answer))
            yield from cases.compose_alone(
                self.name,
                "Comparison",
                LONGEST.text,
                answer,
                [
                    fact
                    for fact, all_moments, all_claims in seconds
                    if self.margin * all_moments <= whole and self.margin * all_claims <= claimed
                ],
                (table.whole,),
                about=[f"{self.name}/{self.of}"],
                seed=seed,
                size=self.pool,
            )


def _measure(table: TruthTable, fact: Fact, places: tuple[int, ...]) -> tuple[float, float]:
    """Return the seconds of a fact: of its moments, and of what is claimed of them."""
    whole = sum(table.moments[n].seconds for n in places)
    return whole, sum(table.span(fact, n).seconds for n in places)


@dataclass(frozen=True, kw_only=True)
class PartForm(WholeForm):
    """`of`: the kind of the answers. The answer holds in one third only, and each of the others
    only in another.
    """

    name: ClassVar[str] = "part"

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        parts = [
            (fact, part)
            for fact in self.held_facts(table)
            if not cases.is_marked(table, fact) and (part := _find_part(table, fact)) is not None
        ]
        for answer, part in cases.by_chance(seed, parts, lambda item: item[0].fact_id):
            yield from cases.compose_alone(
                self.name,
                "Temporal Ordering",
                IN_PART.fill(verb=cases.verb(self.of), part=PARTS[part]),
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
    places = table.possible(fact)
    return _find_share(table, table.stretch(places[0], places[-1]), len(PARTS))


def _find_share(table: TruthTable, span: Span, count: int, margin: float = 0.0) -> int | None:
    """Return the number of the one of `count` equal parts of the video in which a span lies,
    `margin` seconds away from its borders; null if there is none.
    """
    seconds = table.whole.seconds / count
    for number in range(count):
        start = table.whole.start + number * seconds
        if start + margin <= span.start and span.end <= start + seconds - margin:
            return number
    return None


@dataclass(frozen=True, kw_only=True)
class QuarterForm(QuestionForm):
    """`of`: the kind of the fact that the question names, one that fills a part of the picture, or
    an on-screen text that is neither title nor credit. It is known not to hold at any moment before
    it first holds (`end`: first), or after it last does (`end`: last), and there is such a moment.
    Its appearance lies within one quarter for certain. The form needs no other facts, so that it
    asks of videos that have few. In a video each quarter is the answer once, whichever `end` is
    asked for, and each fact is asked for once.
    """

    name: ClassVar[str] = "quarter"
    end: str = "first"
    of: str = "view"

    @property
    def traits(self) -> FormTraits:
        return FormTraits(for_rules=True)

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        moments = range(len(table.moments))[:: 1 if self.end == "first" else -1]
        for fact in cases.by_chance(
            rng.random(), table.of_kind(self.of), lambda fact: fact.fact_id
        ):
            if not (fills_picture(fact) or _is_unmarked_text(table, fact)):
                continue
            moment = _find_first(table, fact, moments)
            if moment is None:
                continue
            without = table.stretch(*sorted((moments[0], moment - moments.step)))
            seen = table.span(fact, moment)
            appearance = self._appearance(table.moments[moment], seen)
            quarter = _find_share(table, appearance, len(QUARTERS), MARGIN_S)
            if quarter is None:
                continue
            once = (f"{self.name}/{fact.fact_id}", f"{self.name}/{quarter}")
            yield Stem(
                form=self.name,
                question=IN_QUARTER.fill(
                    verb="are" if is_written(fact) else "is", clause=fact.phrase, end=self.end
                ),
                question_type="Temporal Ordering",
                answer=QUARTERS[quarter],
                options=QUARTERS,
                evidence=(without, seen) if self.end == "first" else (seen, without),
                needs=table.absence(fact, range(moments[0], moment + moments.step, moments.step)),
                about=frozenset({fact.fact_id, *once}),
            )

    def _appearance(self, moment: Span, seen: Span) -> Span:
        """Return the span in which a fact that is seen in a moment, and not before it or not after
        it, appears or disappears.
        """
        if self.end == "first":
            return Span(moment.start, min(moment.end, seen.start + MARGIN_S))
        return Span(max(moment.start, seen.end - MARGIN_S), moment.end)


def _is_unmarked_text(table: TruthTable, fact: Fact) -> bool:
    """Whether a fact is an on-screen text whose words and place in the video do not give away when
    it is seen.
    """
    edge = EDGE * table.whole.seconds
    return (
        is_written(fact)
        and fact.fact_id not in table.known_places
        and fact.spans[0].start >= table.whole.start + edge
        and fact.spans[-1].end <= table.whole.end - edge
    )


def _find_first(table: TruthTable, fact: Fact, moments: Sequence[int]) -> int | None:
    """Return the first of the moments at which a fact holds; null if it holds or may hold at none,
    at the very first one, or if it may hold at one before.
    """
    facts = table.alike[fact.fact_id]
    moment = next((n for n in moments if not table.none_hold(facts, n)), moments[0])
    return moment if moment != moments[0] and table.holds(fact, moment) else None
