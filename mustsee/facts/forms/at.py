"""Where does X happen, who is seen then, which things, words and states?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    ASKS,
    MAX_CANDIDATES,
    MAX_MOMENTS,
    Case,
    clause,
    compose,
    find_span,
    find_stretches,
    holds_with,
    shared_words,
)
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact

QUESTION = QuestionTemplate("{asks} when {clause}?", {"asks": tuple(dict.fromkeys(ASKS.values()))})
WHERE = QuestionTemplate("Where does this happen: {clause}?")
NAMES = {
    "place": "where",
    "person": "with",
    "object": "holds",
    "state": "state",
    "view": "shows",
    "text": "reads",
}


@dataclass(frozen=True, kw_only=True)
class AtForm(QuestionForm):
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
    pool: int = MAX_CANDIDATES

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

    def stems(self, table: TruthTable, rng: Random) -> Iterable[Stem]:
        kind = "State Changes" if self.of == "state" else "Identification"
        return compose(self.name, kind, self.cases, table, rng, size=self.pool)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        template = WHERE if (self.given, self.of) == ("event", "place") else QUESTION
        for fact, stretch in find_stretches(table, self.given, self.moments):
            own = stretch.moments
            for answer in table.of_kind(self.of):
                if answer == fact or not holds_with(table, answer, fact, stretch):
                    continue
                if self.of == "person" and shared_words(fact.phrase, answer.phrase):
                    continue  # the fact's phrase may name the person
                yield Case(
                    question=template.fill(asks=ASKS[self.of], clause=clause(fact)),
                    given=fact.phrase,
                    answer=answer,
                    wrong_at=(*own, *stretch.doubts),
                    scenes=frozenset(table.scenes[n] for n in own),
                    evidence=(find_span(table, fact, stretch),),
                    about=frozenset({fact.fact_id}),
                    needs_scene=False,
                )
