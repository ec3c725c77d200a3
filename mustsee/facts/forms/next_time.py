"""What happens when something that is seen at X is seen the next time after that?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from random import Random
from typing import ClassVar

from mustsee.facts.cases import (
    ALL_VERBS,
    MAX_CANDIDATES,
    MAX_MOMENTS,
    Case,
    clause,
    compose,
    find_span,
    find_stretches,
    is_marked,
    is_wrong,
    verb,
)
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact

_ENDING = ". When {again} the next time after that, which of these {verb}?"
QUESTION = QuestionTemplate(f"First {{clause}}{_ENDING}", {"verb": ALL_VERBS})
AFTER_EVENT = QuestionTemplate(f"This happens: {{clause}}{_ENDING}", {"verb": ALL_VERBS})
AGAIN = {
    "place": "the same place ({}) is seen",
    "person": "the same person ({}) is seen",
    "text": "{} are seen",
    "line": "{} is said",
    "sound": "{} can be heard",
    "state": "{}",
}


@dataclass(frozen=True, kw_only=True)
class NextTimeForm(QuestionForm):
    """`given`: the kind of the fact that the question names first. `by`: the kind of what is seen
    then, and again at least `apart` seconds later, but at no moment between. `of`: the kind of the
    answers. The answer begins when it is seen again, the others hold neither then nor before.
    """

    name: ClassVar[str] = "next_time"
    given: str = "event"
    by: str = "place"
    of: str = "event"
    apart: float = 20
    moments: int = MAX_MOMENTS
    pool: int = MAX_CANDIDATES

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        return table.of_kind(self.given, self.of)

    def stems(self, table: TruthTable, rng: Random) -> Iterable[Stem]:
        return compose(self.name, "Temporal Ordering", self.cases, table, rng, size=self.pool)

    def cases(self, table: TruthTable) -> Iterator[Case]:
        template = AFTER_EVENT if self.given == "event" else QUESTION
        for fact, stretch in find_stretches(table, self.given, self.moments):
            if stretch.doubts:
                continue
            first, last, own = stretch.first, stretch.last, stretch.moments
            for link in table.of_kind(self.by):
                if link == fact or not all(table.holds(link, n) for n in own):
                    continue
                runs = _find_next(table, link, last)
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
                        question=template.fill(
                            clause=clause(fact),
                            again=AGAIN.get(self.by, "{} can be seen").format(link.phrase),
                            verb=verb(self.of),
                        ),
                        given=f"{fact.phrase}; {link.phrase}",
                        answer=answer,
                        wrong_at=(*before, *later),
                        scenes=frozenset(table.scenes[n] for n in (*own, start)),
                        evidence=(
                            find_span(table, fact, stretch),
                            table.span(answer, start),
                        ),
                        about=frozenset({fact.fact_id, link.fact_id}),
                        needs=(
                            *table.absence(link, range(last + 1, later[-1] + 2)),
                            *table.absence(answer, (*before, start - 1)),
                        ),
                    )


def _find_next(table: TruthTable, fact: Fact, moment: int) -> tuple[int, range] | None:
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
