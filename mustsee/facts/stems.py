"""The questions that the forms make of a truth table, before options are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from mustsee.facts.cases import shared_seconds
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import Stem
from mustsee.facts.steps import explains_steps, is_of_words_alone
from mustsee.facts.table import TruthTable
from mustsee.records import Span

# least time between a question's evidence and an event that is a wrong answer
MIN_DECOY_GAP_S = 1.5


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
