"""Which of these happens next after X, which last before X, which after X but before Y, and which
when something that is seen at X is seen the next time after that?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product, takewhile
from typing import ClassVar

from mustsee.facts.cases import (
    ALL_VERBS,
    MAX_MOMENTS,
    Case,
    CaseForm,
    Stretch,
    by_chance,
    clause,
    find_span,
    find_stretches,
    is_marked,
    is_wrong,
    seconds_between,
    verb,
)
from mustsee.facts.table import TruthTable
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact, Span

AFTER = QuestionTemplate(
    "Which of these {verb} {nearest} {side} {clause}?",
    {"verb": ALL_VERBS, "nearest": ("next", "last"), "side": ("after", "before")},
)
NEAR = 40  # facts before an answer, and after it, among which the two given ones are looked for
NARROW = 3  # pairs of given facts from which one is drawn
BETWEEN = QuestionTemplate(
    "Which of these {verb} after {earlier} but before {later}?", {"verb": ALL_VERBS}
)
_ENDING = ". When {again} the next time after that, which of these {verb}?"
NEXT_TIME = QuestionTemplate(f"First {{clause}}{_ENDING}", {"verb": ALL_VERBS})
NEXT_AFTER_EVENT = QuestionTemplate(f"This happens: {{clause}}{_ENDING}", {"verb": ALL_VERBS})
AGAIN = {
    "place": "the same place ({}) is seen",
    "person": "the same person ({}) is seen",
    "text": "{} are seen",
    "line": "{} is said",
    "sound": "{} can be heard",
    "state": "{}",
}


@dataclass(frozen=True, kw_only=True)
class AfterForm(CaseForm):
    """`given`: the kind of the fact that the question names. It holds in one stretch of at most
    `moments` moments, and is known not to hold later. `of`: the kind of the answers. The right one
    does not hold in that stretch, and holds at one of the next `within` moments. A wrong one is
    known not to hold from the start of the stretch to the moment after the right one's. If the
    fact may hold earlier, too, it is known not to hold from there on.
    """

    form: ClassVar[str] = "after"
    nearest: ClassVar[str] = "next"
    step: ClassVar[int] = 1
    given: str = "event"
    of: str = "event"
    within: int = 5
    moments: int = MAX_MOMENTS

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given, self.of)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        for fact, stretch in find_stretches(table, self.given, self.moments):
            own = stretch.moments
            if any((n - own[0]) * self.step > 0 for n in stretch.doubts):
                continue
            for answer in table.of_kind(self.of):
                if answer == fact or is_marked(table, answer) or not is_wrong(table, answer, own):
                    continue
                moment = self._find_next(table, answer, stretch)
                if moment is None:
                    continue
                known = (*stretch.reach, moment, moment + self.step)
                yield Case(
                    question_type="Temporal Ordering",
                    question=AFTER.fill(
                        verb=verb(self.of),
                        nearest=self.nearest,
                        side=self.name,
                        clause=clause(fact),
                    ),
                    given=fact.phrase,
                    answer=answer,
                    wrong_at=tuple(range(min(known), max(known) + 1)),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=_add_between(
                        find_span(table, fact, stretch), table.span(answer, moment)
                    ),
                    about=frozenset({fact.fact_id}),
                    needs=table.absence(answer, own),
                )

    def _find_next(self, table: TruthTable, answer: Fact, stretch: Stretch) -> int | None:
        """Return the moment at which an answer holds next, seen from a stretch; null if it is not
        within reach.
        """
        edge = stretch.last if self.step > 0 else stretch.first
        ahead = (edge + n * self.step for n in range(1, self.within + 1))
        return next((moment for moment in ahead if table.holds(answer, moment)), None)


@dataclass(frozen=True, kw_only=True)
class BeforeForm(AfterForm):
    """As `AfterForm`, with the moments before in place of the next ones."""

    form: ClassVar[str] = "before"
    nearest: ClassVar[str] = "last"
    step: ClassVar[int] = -1


def _add_between(one: Span, other: Span) -> tuple[Span, ...]:
    """Return the spans of two facts, and what lies between: one must see that nothing else comes
    there.
    """
    earlier, later = sorted((one, other), key=lambda span: span.start)
    between = Span(earlier.end, later.start)
    return (one, between, other) if between.start < between.end else (one, other)


@dataclass(frozen=True, kw_only=True)
class BetweenForm(CaseForm):
    """`given`: the kind of the two facts that the question names, at least `apart` seconds from
    each other. `of`: the kind of the answers. The answer holds between them only, the others before
    or after them only. `pairs`: of given facts for an answer, at most.
    """

    form: ClassVar[str] = "between"
    given: str = "event"
    of: str = "event"
    apart: float = 60
    pairs: int = 6
    moments: int = MAX_MOMENTS

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given, self.of)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        given = sorted(
            find_stretches(table, self.given, self.moments),
            key=lambda item: (item[1].first, item[1].last),
        )
        for answer, stretch in find_stretches(table, self.of, len(table.moments)):
            if is_marked(table, answer):
                continue
            place = stretch.reach
            before = [one for one in given if one[1].reach[-1] < place[0]][-NEAR:]
            after = [one for one in given if one[1].reach[0] > place[-1]][:NEAR]
            around = [
                pair
                for pair in product(before, after)
                if seconds_between(table, pair[0][1].reach, pair[1][1].reach) >= self.apart
            ]
            # The closer the two lie, the more happens outside of them.
            around.sort(key=lambda p: p[1][1].reach[0] - p[0][1].reach[-1])
            narrow = around[: NARROW * self.pairs]
            chosen = by_chance(0, narrow, lambda p: f"{p[0][0].fact_id}/{p[1][0].fact_id}")
            for (earlier, first), (later, last) in chosen[: self.pairs]:
                own = (*first.reach, *last.reach)
                yield Case(
                    question_type="Temporal Ordering",
                    question=BETWEEN.fill(
                        verb=verb(self.of), earlier=clause(earlier), later=clause(later)
                    ),
                    given=f"{earlier.phrase}; {later.phrase}",
                    answer=answer,
                    wrong_at=own,
                    outside=range(own[0], own[-1] + 1),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(
                        find_span(table, earlier, first),
                        find_span(table, answer, stretch),
                        find_span(table, later, last),
                    ),
                    about=frozenset({earlier.fact_id, later.fact_id}),
                )


@dataclass(frozen=True, kw_only=True)
class NextTimeForm(CaseForm):
    """`given`: the kind of the fact that the question names first. `by`: the kind of what is seen
    then, and again at least `apart` seconds later, but at no moment between. `of`: the kind of the
    answers. The answer begins when it is seen again, the others hold neither then nor before.
    """

    form: ClassVar[str] = "next_time"
    given: str = "event"
    by: str = "place"
    of: str = "event"
    apart: float = 20
    moments: int = MAX_MOMENTS

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given, self.of)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        template = NEXT_AFTER_EVENT if self.given == "event" else NEXT_TIME
        for fact, stretch in find_stretches(table, self.given, self.moments):
            if stretch.doubts:
                continue
            first, last, own = stretch.first, stretch.last, stretch.moments
            for link in table.of_kind(self.by):
                if link == fact or not all(table.holds(link, n) for n in own):
                    continue
                runs = _find_next_run(table, link, last)
                if runs is None:
                    continue
                end, later = runs
                start = later[0]
                if table.moments[start].start - table.moments[last].end < self.apart:
                    continue
                before = range(first, end + 1)
                for answer in table.of_kind(self.of):
                    if (
                        answer in (fact, link)
                        or not table.holds(answer, start)
                        or not is_wrong(table, answer, (*before, start - 1))
                        or is_marked(table, answer)
                    ):
                        continue
                    yield Case(
                        question_type="Temporal Ordering",
                        question=template.fill(
                            clause=clause(fact),
                            again=AGAIN.get(self.by, "{} can be seen").format(link.phrase),
                            verb=verb(self.of),
                        ),
                        given=f"{fact.phrase}; {link.phrase}",
                        answer=answer,
                        wrong_at=(*before, *later),
                        scenes=frozenset(table.scenes[n] for n in (*own, start)),
                        evidence=(find_span(table, fact, stretch), table.span(answer, start)),
                        about=frozenset({fact.fact_id, link.fact_id}),
                        needs=(
                            *table.absence(link, range(last + 1, later[-1] + 2)),
                            *table.absence(answer, (*before, start - 1)),
                        ),
                    )


def _find_next_run(table: TruthTable, fact: Fact, moment: int) -> tuple[int, range] | None:
    """Return the last moment of the run of a fact that begins at or before a moment, and the next
    run; null if there is none, or an entry between is not known.
    """
    facts = table.alike[fact.fact_id]
    after = range(moment + 1, len(table.moments))
    end = moment + sum(1 for _ in takewhile(lambda n: table.holds(fact, n), after))
    gap = sum(1 for _ in takewhile(lambda n: table.none_hold(facts, n), after[end - moment :]))
    start = end + 1 + gap
    if not gap or start >= len(table.moments) or not table.holds(fact, start):
        return None
    seen = sum(1 for _ in takewhile(lambda n: table.holds(fact, n), after[start - moment - 1 :]))
    if table.holds(fact, start + seen) is not False:
        return None
    return end, range(start, start + seen)
