"""Where does X happen, who is seen then, which things, words and states? What is seen while a line
is said, which line is said while X happens, and why does X happen?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mustsee.facts.cases import (
    ASKS,
    MAX_MOMENTS,
    Case,
    CaseForm,
    clause,
    find_span,
    find_stretch,
    find_stretches,
    holds_with,
    is_marked,
    shared_seconds,
    shared_words,
)
from mustsee.facts.stem import FormTraits
from mustsee.facts.table import TruthTable
from mustsee.questions.checks import holds, normal
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact, Span
from mustsee.text import terms

WHEN = QuestionTemplate("{asks} when {clause}?", {"asks": tuple(dict.fromkeys(ASKS.values()))})
WHERE = QuestionTemplate("Where does this happen: {clause}?")
NAMES = {
    "place": "where",
    "person": "with",
    "object": "holds",
    "state": "state",
    "view": "shows",
    "text": "reads",
}
WHILE = QuestionTemplate(
    "{asks} while this is said: {clause}?", {"asks": tuple(dict.fromkeys(ASKS.values()))}
)
SAID = QuestionTemplate("Which of these is said while {clause}?")
MIN_TERMS = 2  # content words of a line, at least
MIN_SHARED_S = 0.5  # seconds that a line and what is seen share, at least; less for a shorter line
WHY = "Why does this happen: {clause}?"


@dataclass(frozen=True, kw_only=True)
class AtForm(CaseForm):
    """`given`: the kind of the fact that the question names, which holds in one stretch of at most
    `moments` moments. `of`: the kind of the answers, which gives the form its name: `where`
    (place), `with` (person), `holds` (object), `state`, `shows` (view) or `reads` (text). The
    answer holds at all of these moments, and is claimed while the fact is; the others hold at none
    of them, nor where the fact may hold, too.
    """

    names: ClassVar[Mapping[str, str]] = NAMES
    of: str
    given: str = "event"
    moments: int = MAX_MOMENTS

    @property
    def name(self) -> str:
        return self.names[self.of]

    @property
    def traits(self) -> FormTraits:
        return FormTraits(
            needs_options=self.of not in ("place", "person", "text"),
            is_beside=self.of not in ("text", "view"),
        )

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        template = WHERE if (self.given, self.of) == ("event", "place") else WHEN
        for fact, stretch in find_stretches(table, self.given, self.moments):
            own = stretch.moments
            for answer in table.of_kind(self.of):
                if answer == fact or not holds_with(table, answer, fact, stretch):
                    continue
                if self.of == "person" and shared_words(fact.phrase, answer.phrase):
                    continue  # the fact's phrase may name the person
                yield Case(
                    question_type="State Changes" if self.of == "state" else "Identification",
                    question=template.fill(asks=ASKS[self.of], clause=clause(fact)),
                    given=fact.phrase,
                    answer=answer,
                    wrong_at=(*own, *stretch.doubts),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(find_span(table, fact, stretch),),
                    about=frozenset({fact.fact_id}),
                    needs_scene=False,
                )


@dataclass(frozen=True, kw_only=True)
class WhileForm(CaseForm):
    """`of`: the kind of the answers. The line and the answer share no content word."""

    form: ClassVar[str] = "while"
    of: str = "event"

    @property
    def traits(self) -> FormTraits:
        return FormTraits(needs_options=False)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        for line in _lines(table):
            span = line.spans[0]
            own = [n for n, time in enumerate(table.moments) if shared_seconds(span, time) > 0]
            for answer in table.of_kind(self.of):
                moment = next((n for n in own if _is_seen(table, answer, n, span)), None)
                if moment is None or shared_words(line.phrase, answer.phrase):
                    continue
                yield Case(
                    question=WHILE.fill(asks=ASKS[self.of], clause=line.phrase),
                    given=line.phrase,
                    answer=answer,
                    wrong_at=tuple(own),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(_join(span, table.span(answer, moment)),),
                    about=frozenset({line.fact_id}),
                    needs_scene=False,
                )


@dataclass(frozen=True, kw_only=True)
class SaidForm(CaseForm):
    """`given`: the kind of the fact that the question names, which holds in one stretch of at most
    `moments` moments. It shares no content word with the line that is the answer.
    """

    form: ClassVar[str] = "said"
    given: str = "event"
    moments: int = MAX_MOMENTS

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        lines = _lines(table)
        for fact, stretch in find_stretches(table, self.given, self.moments):
            own = stretch.moments
            for line in lines:
                span = line.spans[0]
                moment = next((n for n in own if _is_seen(table, fact, n, span)), None)
                if moment is None or shared_words(line.phrase, fact.phrase):
                    continue
                yield Case(
                    question=SAID.fill(clause=clause(fact)),
                    given=fact.phrase,
                    answer=line,
                    wrong_at=(*own, *stretch.doubts),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(_join(span, table.span(fact, moment)),),
                    about=frozenset({fact.fact_id}),
                    needs_scene=False,
                )


def _lines(table: TruthTable) -> list[Fact]:
    """Return the lines that are said once and say something, but for greetings and goodbyes."""
    return [
        line
        for line in table.of_kind("line")
        if len(line.spans) == 1
        and len(table.alike[line.fact_id]) == 1
        and len(terms(line.phrase)) >= MIN_TERMS
        and find_stretch(table, line)
        and not is_marked(table, line)
    ]


def _is_seen(table: TruthTable, fact: Fact, moment: int, line: Span) -> bool:
    """Whether a fact is seen at a moment while a line is said. Its claimed span decides, or the
    whole moment if it has none there. An event and the line share half of the shorter one.
    """
    here = table.moments[moment]
    if shared_seconds(line, here) <= 0:
        return False
    spoken = Span(max(line.start, here.start), min(line.end, here.end))
    seen = table.span(fact, moment)
    least = min(MIN_SHARED_S, line.seconds / 2)
    if fact.kind == "event":
        least = max(least, min(line.seconds, seen.seconds) / 2)
    return shared_seconds(spoken, seen) >= least and bool(table.holds(fact, moment))


def _join(one: Span, other: Span) -> Span:
    return Span(min(one.start, other.start), max(one.end, other.end))


@dataclass(frozen=True, kw_only=True)
class WhyForm(CaseForm):
    """The answer is a cause that holds where it is claimed and explains the event of the question.
    The others explain other events, and hold neither where the event does nor where its cause does.
    """

    form: ClassVar[str] = "why"
    moments: int = MAX_MOMENTS

    @property
    def traits(self) -> FormTraits:
        return FormTraits(needs_options=False)

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind("event", "cause")

    def cases(self, table: TruthTable) -> Iterator[Case]:
        events = {normal(fact.phrase): fact for fact in table.of_kind("event")}
        for cause in table.of_kind("cause"):
            event = events.get(normal(cause.of))
            places = table.places(cause) if event else ()
            stretch = find_stretch(table, event, self.moments) if event else None
            if event is None or stretch is None or not places:
                continue
            own = stretch.moments
            also = [
                other.fact_id
                for other in table.of_kind("cause")
                if holds(other.of, event.phrase) or holds(event.phrase, other.of)
            ]
            yield Case(
                question_type="Cause And Effect",
                question=WHY.format(clause=clause(event)),
                given=event.phrase,
                answer=cause,
                wrong_at=tuple(sorted({*own, *stretch.doubts, *places, *table.doubts(cause)})),
                scenes=frozenset(table.scenes[n] for n in own),
                evidence=(
                    find_span(table, event, stretch),
                    *(table.span(cause, n) for n in places if n not in own),
                ),
                about=frozenset({event.fact_id}),
                excluded=frozenset(also),
                needs_scene=False,
            )
