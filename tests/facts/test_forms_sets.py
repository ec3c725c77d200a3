"""Questions whose wrong answers are other facts: each answer right, each wrong answer wrong, by a
reading of the table that shares nothing with the forms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.facts.cases import shared_seconds, shared_words
from mustsee.facts.forms.after import AfterForm, BeforeForm, BetweenForm, NextTimeForm
from mustsee.facts.forms.at import AtForm, SaidForm, WhileForm
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.records import Fact, Span
from mustsee.text import terms
from tests.facts.tables import MOMENT_S, complete, lost_drafts, random_table, table_of

Reader = Callable[[TruthTable, Stem, str], bool]


def named(table: TruthTable, text: str) -> list[Fact]:
    """The facts whose phrases stand in a text, in the order in which they stand there."""
    found = [f for f in table.facts if f.phrase in text]
    found = [f for f in found if not any(f.phrase in g.phrase and f != g for g in found)]
    return sorted(found, key=lambda f: text.index(f.phrase))


def true_at(table: TruthTable, phrase: str) -> set[int]:
    """The moments at which a phrase is true."""
    (fact,) = [f for f in table.facts if f.phrase == phrase]
    return {m for m in range(len(table.moments)) if table.truth[fact.fact_id, m]}


def whole(moments: set[int]) -> bool:
    return bool(moments) and max(moments) - min(moments) + 1 == len(moments)


def after(table: TruthTable, stem: Stem, answer: str) -> bool:
    """The first of all after one of the times at which the fact of the question holds, or then."""
    (fact,) = named(table, stem.question)
    own = true_at(table, fact.phrase)
    options = {o: true_at(table, o) for o in (stem.answer, *stem.pool)}
    firsts = [
        {o: min((n for n in places if n >= start), default=99) for o, places in options.items()}
        for start in (min(own), max(own))
    ]
    return any(first[answer] == min(first.values()) for first in firsts)


def before(table: TruthTable, stem: Stem, answer: str) -> bool:
    (fact,) = named(table, stem.question)
    own = true_at(table, fact.phrase)
    options = {o: true_at(table, o) for o in (stem.answer, *stem.pool)}
    lasts = [
        {o: max((n for n in places if n <= start), default=-1) for o, places in options.items()}
        for start in (min(own), max(own))
    ]
    return any(last[answer] == max(last.values()) for last in lasts)


def at(table: TruthTable, stem: Stem, answer: str) -> bool:
    (fact,) = named(table, stem.question)
    return bool(true_at(table, fact.phrase) & true_at(table, answer))


def between(table: TruthTable, stem: Stem, answer: str) -> bool:
    earlier, later = named(table, stem.question)
    start, end = max(true_at(table, earlier.phrase)), min(true_at(table, later.phrase))
    assert (end - start - 1) * MOMENT_S >= 60
    return any(start < n < end for n in true_at(table, answer))


def next_time(table: TruthTable, stem: Stem, answer: str) -> bool:
    fact, link = named(table, stem.question)
    own, seen = true_at(table, fact.phrase), true_at(table, link.phrase)
    assert whole(own)
    assert own <= seen
    left = min(n for n in range(max(own), 99) if n not in seen)
    start = min(n for n in seen if n > left)
    assert (start - max(own) - 1) * MOMENT_S >= 20
    end = min(n for n in range(start, 99) if n not in seen)
    return any(start <= n < end for n in true_at(table, answer))


def spoken(table: TruthTable, stem: Stem, answer: str) -> bool:
    both = [*named(table, stem.question), *named(table, answer)]
    (line,) = [fact for fact in both if fact.kind == "line"]
    (seen,) = [fact for fact in both if fact.kind != "line"]
    (span,) = line.spans
    times = [table.moments[n] for n in true_at(table, seen.phrase)]
    return any(span.start < time.end and time.start < span.end for time in times)


FORMS: list[tuple[QuestionForm, Reader]] = [
    (AfterForm(), after),
    (AfterForm(of="text"), after),
    (AfterForm(given="text"), after),
    (BeforeForm(), before),
    (AtForm(of="place"), at),
    (AtForm(of="person"), at),
    (AtForm(of="object"), at),
    (AtForm(of="state"), at),
    (AtForm(of="text", given="person"), at),
    (BetweenForm(), between),
    (NextTimeForm(), next_time),
    (NextTimeForm(by="person"), next_time),
    (WhileForm(), spoken),
    (WhileForm(of="text"), spoken),
    (SaidForm(), spoken),
]
KINDS = dict.fromkeys(("place", "person", "object", "state", "text"), 7) | {"event": 12, "line": 7}
each_form = pytest.mark.parametrize(
    ("form", "reader"), FORMS, ids=lambda x: repr(x) if hasattr(x, "stems") else ""
)


def with_short_lines(table: TruthTable) -> TruthTable:
    """Lines that last two seconds somewhere in a moment or over its end."""
    rng = Random(len(table.facts))
    facts: list[Fact] = []
    for fact in table.facts:
        if fact.kind == "line":
            start = fact.spans[0].start + rng.uniform(0, 5.5)
            fact = replace(fact, spans=(Span(start, start + 2),))
        facts.append(fact)
    truth = {entry: yes for entry, yes in table.truth.items() if not entry[0].startswith("line")}
    lines = replace(table, facts=tuple(facts))
    truth |= {
        (f.fact_id, n): n in lines.claims[f.fact_id]
        for f in facts
        if f.kind == "line"
        for n in range(len(table.moments))
    }
    return replace(lines, truth=truth)


@each_form
@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), unknown=st.sampled_from((0.0, 0.0, 0.02, 0.1)))
def test_only_the_answer_is_right_and_words_and_scene_do_not_tell_it(
    form: QuestionForm, reader: Reader, seed: int, unknown: float
) -> None:
    """Whatever the unknown entries are in truth."""
    table = with_short_lines(random_table(Random(seed), KINDS, unknown=unknown))
    full = [complete(table, unknown=truth) for truth in (True, False)]
    for stem in form.stems(table, Random(seed)):
        assert stem.form == form.name
        for truth in full:
            assert reader(truth, stem, stem.answer), stem
            for other in stem.pool:
                assert not reader(truth, stem, other), (stem, other)
                assert true_at(truth, other), "a wrong answer is true elsewhere"
        stated = {t for f in named(table, stem.question) for t in terms(f.phrase)}
        words = {text: set(terms(text)) for text in (stem.answer, *stem.pool)}
        shared = {text: len(stated & of_text) for text, of_text in words.items()}
        assert all(shared[stem.answer] <= shared[text] for text in stem.pool), stem
        assert len(set(stem.pool)) == len(stem.pool) <= 13
        assert not [pair for pair in permutations(words, 2) if words[pair[0]] <= words[pair[1]]]
        if stem.scene >= 0:
            inside = [stem.scenes[text] == stem.scene for text in (stem.answer, *stem.pool)]
            assert len(set(inside)) == 1, stem
            assert inside[0] == ("/within/" in stem.list_name)


@each_form
def test_random_tables_give_questions(form: QuestionForm, reader: Reader) -> None:
    """So the properties here are of something: ten of two lists, of thirty tables or fewer."""
    lists: list[str] = []
    for seed in range(30):
        table = with_short_lines(random_table(Random(seed), KINDS))
        lists += [stem.list_name for stem in form.stems(table, Random(seed))]
        if len(lists) >= 10 and len(set(lists)) >= 2:
            return
    pytest.fail(f"of thirty tables: {lists}")


@each_form
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_a_draft_names_all_that_the_final_run_needs(
    form: QuestionForm, reader: Reader, seed: int
) -> None:
    """Only what the draft needs is looked at, and all claims are true: its questions are made."""
    full = with_short_lines(random_table(Random(seed), KINDS))
    assert lost_drafts(form, full, seed) == []


@each_form
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_question_needs_each_entry_that_it_joins(
    form: QuestionForm, reader: Reader, seed: int, data: st.DataObject
) -> None:
    table = with_short_lines(random_table(Random(seed), KINDS))
    stems = list(form.stems(table, Random(seed)))
    if not stems:
        return
    stem = data.draw(st.sampled_from(stems))
    name = data.draw(st.sampled_from(sorted(stem.about)))
    needed = [
        n
        for n in table.claims[name]
        if any(shared_seconds(s, table.moments[n]) > 0 for s in stem.evidence)
    ]
    if reader is not spoken:  # there one moment of the line is enough
        needed = [data.draw(st.sampled_from(needed))] if needed else []
    hidden = replace(table, truth={**table.truth, **{(name, n): None for n in needed}})
    again = {(s.question, s.answer, s.evidence) for s in form.stems(hidden, Random(seed))}
    assert not needed or (stem.question, stem.answer, stem.evidence) not in again


def test_who_shares_the_words_of_an_answer_stands_beside_it() -> None:
    """The answer says "baker" as the question does, so the others do too."""
    table = table_of(
        [
            ("event", "a baker lifts the green barrel", [1]),
            ("event", "a baker paints the rusty window", [2]),
            ("event", "a baker drops the wooden piano", [6]),
            ("event", "a sailor opens the golden box", [8]),
        ],
        [0] * 12,
    )
    stems = {(s.question, s.answer): s for s in AfterForm().stems(table, Random(0))}
    question = "Which of these happens next after a baker lifts the green barrel?"
    stem = stems[question, "a baker paints the rusty window"]
    assert stem.pool == ("a baker drops the wooden piano",)
    assert stem.list_name == "after/event/within/0"
    assert stem.evidence == (Span(6.0, 12.0), Span(12.0, 18.0))


def test_titles_and_goodbyes_are_no_answers() -> None:
    names = ("fox", "cow", "bee", "ant", "owl", "cat")
    facts = [("event", f"a {name} moves", [n]) for n, name in enumerate(names)]
    table = table_of(facts, [0] * 6)
    for form in (AfterForm(), BeforeForm()):
        stems = list(form.stems(table, Random(0)))
        assert {stem.answer for stem in stems} == {f"a {name} moves" for name in names[1:-1]}


def test_the_nearest_is_the_answer_and_what_follows_it_at_once_is_no_wrong_one() -> None:
    """Of neighbouring moments it may be unclear which comes first; those behind are wrong."""
    names = ("fox", "cow", "bee", "ant", "owl", "cat")
    facts = [("event", f"a {name} moves", [n + 3]) for n, name in enumerate(names)]
    table = table_of(facts, [0] * 12)
    question = "Which of these happens {} {} a {} moves?"
    pools = {(s.question, s.answer): {*s.pool} for s in AfterForm().stems(table, Random(0))}
    bee = question.format("next", "after", "bee")
    assert pools[bee, "a ant moves"] == {"a fox moves", "a cow moves", "a cat moves"}
    cow = question.format("next", "after", "cow")
    assert (cow, "a owl moves") in pools  # three moments later, if no option comes between
    assert pools[cow, "a owl moves"] == {"a fox moves"}
    pools = {(s.question, s.answer): {*s.pool} for s in BeforeForm().stems(table, Random(0))}
    ant = question.format("last", "before", "ant")
    assert pools[ant, "a bee moves"] == {"a fox moves", "a owl moves", "a cat moves"}


def test_one_must_see_what_lies_between() -> None:
    table = table_of([("event", "a fox moves", [2]), ("event", "a bee moves", [5]),
                      ("event", "a cow moves", [8])], [0] * 12)  # fmt: skip
    (stem,) = [s for s in AfterForm().stems(table, Random(0)) if "fox" in s.question]
    assert stem.evidence == (Span(12.0, 18.0), Span(18.0, 30.0), Span(30.0, 36.0))


def test_a_fact_that_may_come_again_has_nothing_after_it() -> None:
    facts = [("event", f"a {name} moves", [n]) for name, n in (("fox", 2), ("bee", 5), ("cow", 8))]
    table = table_of(facts, [0] * 12)
    (fox,) = [f for f in table.facts if f.phrase == "a fox moves"]
    later = replace(table, truth={**table.truth, (fox.fact_id, 9): None})
    assert [s for s in AfterForm().stems(table, Random(0)) if "fox" in s.question]
    assert not [s for s in AfterForm().stems(later, Random(0)) if "fox" in s.question]


@pytest.mark.parametrize(("kind", "share"), [("event", 0.5), ("text", 0.25)])
def test_an_act_and_a_line_share_half_of_the_shorter_one(kind: str, share: float) -> None:
    """What is written stays; when an act is done, a look tells only roughly."""
    table = random_table(Random(2), KINDS)
    lines = {f.fact_id: replace(f, spans=(Span(31, 33),)) for f in table.facts if f.kind == "line"}
    line = next(iter(lines.values()))

    def has_questions(shared_s: float) -> bool:
        seen = {
            f.fact_id: replace(f, spans=(Span(33 - shared_s, 35),))
            for f in table.facts
            if f.kind == kind
        }
        answer = next(f for f in seen.values() if not shared_words(line.phrase, f.phrase))
        facts = [line, *seen.values()]
        truth = {(f.fact_id, n): f in (line, answer) and n == 5 for f in facts for n in range(40)}
        one = replace(table, facts=tuple(facts), truth=truth)
        cases = WhileForm(of=kind).cases(one)
        return any(case.answer == answer for case in cases)

    assert has_questions(2 * share + 0.1)
    assert not has_questions(2 * share - 0.1)
