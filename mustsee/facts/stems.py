"""The questions that the forms make of a truth table, before options are drawn.

Some videos explain how something is done step by step, as recipes and tutorials do. Their on-screen
words and their lines follow a course that can be told without the video. Of the questions that
rules made of words and lines alone of two such videos, a strong reader who had not seen them
answered all 11 right, and 3 of the 6 about what is seen. So none of the former is asked. The words
of a step are English: in other languages no video explains steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from mustsee.facts.cases import shared_seconds
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.orders import SEPARATOR
from mustsee.records import Fact, Span

# least time between a question's evidence and an event that is a wrong answer
MIN_DECOY_GAP_S = 1.5
MIN_STEPS = 3  # lines with words of a step, at least
MIN_SHARE = 0.15  # share of all lines, at least
_STEP = re.compile(
    r"“(?:and |so |but |okay,? )?(?:first|second|third|next|now|then|after that|finally|lastly)\b"
    r"|.*\b(?:step|(?:first|next|last) (?:job|thing))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?:the words )?“.*”", re.DOTALL)


def make_stems(table: TruthTable, settings: FactSettings) -> list[Stem]:
    """Return all stems of all forms, each question once; none of words alone where the lines
    explain steps.
    """
    stems: dict[str, Stem] = {}
    for name, form in settings.forms.items():
        if form is not None:
            for stem in form.stems(table, Random(f"{settings.seed}/{name}")):
                stems.setdefault(stem.question, replace(stem, key=name, traits=form.traits))
    steps = explains_steps(table.facts)
    return [stem for stem in stems.values() if not (steps and is_of_words_alone(stem))]


def drop_twins(stems: Sequence[Stem], table: TruthTable) -> list[Stem]:
    """Return the stems, each without wrong answers that may be another one of it in other words."""
    by_phrase = {fact.phrase: fact for fact in table.facts}

    def are_twins(one: str, other: str) -> bool:
        first, second = by_phrase.get(one), by_phrase.get(other)
        return first is not None and second is not None and table.are_twins(first, second)

    return [
        replace(
            stem,
            pool=tuple(
                phrase
                for n, phrase in enumerate(stem.pool)
                if not any(are_twins(phrase, earlier) for earlier in stem.pool[:n])
            ),
        )
        for stem in stems
    ]


def drop_near_acts(stems: Sequence[Stem], table: TruthTable) -> list[Stem]:
    """Return the stems, each without events as wrong answers that are claimed less than
    `MIN_DECOY_GAP_S` from its evidence: they may reach into it, and looks judge whole moments.
    """
    events = {fact.phrase: fact.spans for fact in table.facts if fact.kind == "event"}

    def is_near(phrase: str, evidence: Sequence[Span]) -> bool:
        spans = events.get(phrase, ())
        return any(
            shared_seconds(one, other) > -MIN_DECOY_GAP_S for one in spans for other in evidence
        )

    return [
        replace(stem, pool=tuple(p for p in stem.pool if not is_near(p, stem.evidence)))
        for stem in stems
    ]


def explains_steps(facts: Sequence[Fact]) -> bool:
    """Whether the lines among the facts of a video have words of a step often enough."""
    lines = [fact.phrase for fact in facts if fact.kind == "line"]
    steps = sum(_STEP.match(line) is not None for line in lines)
    return steps >= max(MIN_STEPS, MIN_SHARE * len(lines))


def is_of_words_alone(stem: Stem) -> bool:
    """Whether a question asks for quoted words, and states no more than quoted words; or for an
    order with two of them, which tell the most of it.
    """
    if stem.traits.lists_order:
        things = stem.answer.split(SEPARATOR)
        return sum(_QUOTED.fullmatch(thing) is not None for thing in things) > 1
    names_none = "“" in stem.question or not stem.traits.names_moment
    return names_none and _QUOTED.fullmatch(stem.answer) is not None
