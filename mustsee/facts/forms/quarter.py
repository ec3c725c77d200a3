"""In which quarter of the video is X seen first, or last?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mustsee.facts.cases import by_chance
from mustsee.facts.stem import FormTraits, QuestionForm, Stem
from mustsee.facts.table import TruthTable, fills_picture, is_written
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Fact, Span

QUESTION = QuestionTemplate(
    "In which quarter of the video {verb} {clause} seen {end}?",
    {"verb": ("is", "are"), "end": ("first", "last")},
)
QUARTERS = ("the first quarter", "the second quarter", "the third quarter", "the last quarter")
MARGIN_S = 0.5  # seconds from the border of a quarter that its appearance lies, at least
EDGE = 0.1  # share of the video at either end in which a text may be a title or a credit


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
        for fact in by_chance(rng.random(), table.of_kind(self.of), lambda fact: fact.fact_id):
            if not (fills_picture(fact) or _is_unmarked_text(table, fact)):
                continue
            moment = _find_first(table, fact, moments)
            if moment is None:
                continue
            without = table.stretch(*sorted((moments[0], moment - moments.step)))
            seen = table.span(fact, moment)
            quarter = _find_quarter(table, self._appearance(table.moments[moment], seen))
            if quarter is None:
                continue
            yield Stem(
                form=self.name,
                question=QUESTION.fill(
                    verb="are" if is_written(fact) else "is", clause=fact.phrase, end=self.end
                ),
                question_type="Temporal Ordering",
                answer=QUARTERS[quarter],
                options=QUARTERS,
                evidence=(without, seen) if self.end == "first" else (seen, without),
                needs=table.absence(fact, range(moments[0], moment + moments.step, moments.step)),
                about=frozenset(
                    {
                        fact.fact_id,
                        f"{self.name}/{fact.fact_id}",
                        f"{self.name}/{quarter}",
                    }
                ),
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
    whole = table.stretch(0, len(table.moments) - 1)
    edge = EDGE * whole.seconds
    return (
        is_written(fact)
        and fact.fact_id not in table.known_places
        and fact.spans[0].start >= whole.start + edge
        and fact.spans[-1].end <= whole.end - edge
    )


def _find_first(table: TruthTable, fact: Fact, moments: Sequence[int]) -> int | None:
    """Return the first of the moments at which a fact holds; null if it holds or may hold at none,
    at the very first one, or if it may hold at one before.
    """
    facts = table.alike[fact.fact_id]
    moment = next((n for n in moments if not table.none_hold(facts, n)), moments[0])
    return moment if moment != moments[0] and table.holds(fact, moment) else None


def _find_quarter(table: TruthTable, appearance: Span) -> int | None:
    """Return the number of the quarter in which a span lies, away from its borders."""
    whole = table.stretch(0, len(table.moments) - 1)
    quarter = whole.seconds / len(QUARTERS)
    for number in range(len(QUARTERS)):
        start = whole.start + number * quarter
        if start + MARGIN_S <= appearance.start and appearance.end <= start + quarter - MARGIN_S:
            return number
    return None
