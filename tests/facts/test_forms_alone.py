"""Questions that stand alone: each answer right, each other option wrong, by a reading of the table
that shares nothing with the forms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.facts.forms.at import WhyForm
from mustsee.facts.forms.both import BothForm, ButNotForm
from mustsee.facts.forms.whole import FirstForm, LastForm, LongestForm, PartForm
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.records import Span
from tests.facts.tables import complete, fact_of, lost_drafts, random_table, table_of

MOMENTS = 24
Reader = Callable[[TruthTable, Stem, list[str]], list[str]]


def true_at(table: TruthTable, phrase: str) -> list[int]:
    (fact,) = [f for f in table.facts if f.phrase == phrase]
    return [m for m in range(len(table.moments)) if table.truth[fact.fact_id, m]]


def longest(table: TruthTable, stem: Stem, options: list[str]) -> list[str]:
    seconds = {o: sum(table.moments[n].seconds for n in true_at(table, o)) for o in options}
    best = max(seconds, key=seconds.__getitem__)
    assert all(seconds[o] * 1.5 <= seconds[best] for o in options if o != best)
    return [best]


def first(table: TruthTable, stem: Stem, options: list[str]) -> list[str]:
    starts = {option: min(true_at(table, option)) for option in options}
    best = min(starts, key=starts.__getitem__)
    assert starts[best] > 0
    assert all(starts[best] + 2 <= starts[o] for o in options if o != best)
    return [best]


def last(table: TruthTable, stem: Stem, options: list[str]) -> list[str]:
    ends = {option: max(true_at(table, option)) for option in options}
    best = max(ends, key=ends.__getitem__)
    assert ends[best] < MOMENTS - 1
    assert all(ends[best] - 2 >= ends[o] for o in options if o != best)
    return [best]


def part(table: TruthTable, stem: Stem, options: list[str]) -> list[str]:
    start = 8 * next(n for n, p in enumerate(("first", "second", "last")) if p in stem.question)
    third = set(range(start, start + 8))
    right = [o for o in options if third & set(true_at(table, o))]
    assert all(third >= set(true_at(table, o)) for o in right)
    return right


def both(table: TruthTable, stem: Stem, options: list[str]) -> list[str]:
    one, other = [set(true_at(table, phrase)) for phrase in events_of(table, stem)]
    return [o for o in options if one & {*true_at(table, o)} and other & {*true_at(table, o)}]


def but_not(table: TruthTable, stem: Stem, options: list[str]) -> list[str]:
    one, other = [set(true_at(table, phrase)) for phrase in events_of(table, stem)]
    return [o for o in options if one & {*true_at(table, o)} and not other & {*true_at(table, o)}]


def events_of(table: TruthTable, stem: Stem) -> list[str]:
    """The two events of the question, in the order in which it names them."""
    phrases = [f.phrase for f in table.facts if f.kind == "event" and f.phrase in stem.question]
    assert len(phrases) == 2
    return sorted(phrases, key=stem.question.index)


def why(table: TruthTable, stem: Stem, options: list[str]) -> list[str]:
    (event,) = [f for f in table.facts if f.phrase in stem.question and f.kind == "event"]
    own = set(true_at(table, event.phrase))
    causes = [f for f in table.facts if f.phrase in options]
    right = [f.phrase for f in causes if f.of == event.phrase]
    assert not [f for f in causes if f.phrase not in right and own & {*true_at(table, f.phrase)}]
    return right


FORMS: list[tuple[QuestionForm, Reader]] = [
    (LongestForm(), longest),
    (FirstForm(), first),
    (FirstForm(of="text"), first),
    (LastForm(), last),
    (PartForm(), part),
    (BothForm(of="person"), both),
    (ButNotForm(of="person"), but_not),
    (ButNotForm(of="place"), but_not),
    (WhyForm(), why),
]
KINDS = {"event": 12, "place": 5, "person": 8, "text": 8, "cause": 6}
each_form = pytest.mark.parametrize(
    ("form", "reader"), FORMS, ids=lambda x: repr(x) if hasattr(x, "stems") else ""
)
seeds = st.integers(0, 10_000)


def table(seed: int, unknown: float = 0.0) -> TruthTable:
    return random_table(Random(seed), KINDS, moments=MOMENTS, unknown=unknown)


@each_form
@settings(max_examples=30)
@given(seed=seeds, unknown=st.sampled_from((0.0, 0.02, 0.1)))
def test_the_answer_is_right_and_the_others_are_wrong(
    form: QuestionForm, reader: Reader, seed: int, unknown: float
) -> None:
    """Whatever the unknown entries are in truth."""
    claimed = table(seed, unknown)
    for stem in form.stems(claimed, Random(seed)):
        options = list(stem.options or (stem.answer, *stem.pool))
        assert len(set(options)) == len(options)
        assert stem.answer in options
        for full in (complete(claimed, unknown=True), complete(claimed, unknown=False)):
            assert reader(full, stem, options) == [stem.answer], stem


@each_form
def test_random_tables_give_questions(form: QuestionForm, reader: Reader) -> None:
    """So the properties here are of something: fifteen, of 25 tables or fewer."""
    stems: list[Stem] = []
    for seed in range(25):
        stems += form.stems(table(seed), Random(seed))
        if len(stems) >= 15:
            break
    assert len(stems) >= 15
    assert all(stem.form == form.name for stem in stems)


@each_form
@settings(max_examples=15)
@given(seed=seeds)
def test_a_draft_names_all_that_the_final_run_needs(
    form: QuestionForm, reader: Reader, seed: int
) -> None:
    full = table(seed)
    assert lost_drafts(form, full, seed) == []


@each_form
@settings(max_examples=15)
@given(seed=seeds, data=st.data())
def test_a_question_needs_each_entry_that_it_joins(
    form: QuestionForm, reader: Reader, seed: int, data: st.DataObject
) -> None:
    full = table(seed)
    stems = list(form.stems(full, Random(seed)))
    if not stems:
        return
    stem = data.draw(st.sampled_from(stems))
    answer = [f for f in full.facts if f.phrase == stem.answer and f.fact_id in stem.about]
    fact = (answer or [full.by_id[min(stem.about & full.by_id.keys())]])[0]
    unknown = {(fact.fact_id, moment): None for moment in range(MOMENTS)}
    hidden = replace(full, truth={**full.truth, **unknown})
    again = {(s.question, s.answer) for s in form.stems(hidden, Random(seed))}
    assert (stem.question, stem.answer) not in again


def test_the_margin_holds_for_what_is_claimed_too() -> None:
    """Three moments, of which she is claimed for five seconds in all, are not longer than two."""
    facts = [
        ("person", "the woman in grey", [1, 3, 5]),
        ("person", "a tall man", [7, 9]),
        ("person", "a red clown", [8]),
        ("person", "a young nurse", [10]),
    ]
    known = table_of(facts, [0] * 12)
    (stem,) = LongestForm().stems(known, Random(0))
    assert stem.answer == "the woman in grey"
    assert sorted(stem.pool) == ["a red clown", "a tall man", "a young nurse"]
    short = tuple(Span(6.0 * n, 6.0 * n + 1.7) for n in (1, 3, 5))
    woman = replace(fact_of(*facts[0]), spans=short)
    assert not list(LongestForm().stems(replace(known, facts=(woman, *known.facts[1:])), Random(0)))


def test_a_cause_of_an_unknown_event_is_not_asked_for() -> None:
    facts = (
        fact_of("event", "a man cuts the screw", [2]),
        fact_of("cause", "because it was too long", [3], of="a man cuts the screw"),
        fact_of("cause", "because the paint was wet", [6], of="a boy waits"),
        fact_of("cause", "because the bell rang loudly", [8], of="a man cuts the screw"),
    )
    known = table_of([(f.kind, f.phrase, [int(f.spans[0].start // 6)]) for f in facts], [0] * 10)
    stems = list(WhyForm().stems(replace(known, facts=facts), Random(0)))
    assert {stem.question for stem in stems} == {"Why does this happen: a man cuts the screw?"}
    for stem in stems:
        assert stem.pool == ("because the paint was wet",), "both causes explain the same"
