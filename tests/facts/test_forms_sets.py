"""Questions whose wrong answers are other facts: each answer right, each wrong answer wrong, by a
reading of the table that shares nothing with the forms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.facts.cases import shared_seconds
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.at import AtForm
from mustsee.facts.forms.before import BeforeForm
from mustsee.facts.forms.between import BetweenForm
from mustsee.facts.forms.next_time import NextTimeForm
from mustsee.facts.forms.spoken import SaidForm, WhileForm
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.records import Fact, Span
from mustsee.text import terms
from tests.facts.tables import MOMENT_S, complete, fact_of, random_table, table_of

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
    """After one of the times at which the fact of the question holds."""
    (fact,) = named(table, stem.question)
    own, other = true_at(table, fact.phrase), true_at(table, answer)
    return any(n + 1 in other - own and n not in other for n in own)


def before(table: TruthTable, stem: Stem, answer: str) -> bool:
    (fact,) = named(table, stem.question)
    own, other = true_at(table, fact.phrase), true_at(table, answer)
    return any(n - 1 in other - own and n not in other for n in own)


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
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), unknown=st.sampled_from((0.0, 0.0, 0.02, 0.1)))
def test_the_answer_is_right_and_the_others_are_wrong(
    form: QuestionForm, reader: Reader, seed: int, unknown: float
) -> None:
    """Whatever the unknown entries are in truth."""
    table = with_short_lines(random_table(Random(seed), KINDS, unknown=unknown))
    for stem in form.stems(table, Random(seed)):
        assert stem.form == form.name
        for truth in (complete(table, unknown=True), complete(table, unknown=False)):
            assert reader(truth, stem, stem.answer), stem
            for other in stem.pool:
                assert not reader(truth, stem, other), (stem, other)
                assert true_at(truth, other), "a wrong answer is true elsewhere"


@each_form
def test_random_tables_give_questions(form: QuestionForm, reader: Reader) -> None:
    """So the properties here are of something."""
    stems = [
        stem
        for seed in range(30)
        for stem in form.stems(with_short_lines(random_table(Random(seed), KINDS)), Random(seed))
    ]
    assert len(stems) >= 10
    assert len({stem.list_name for stem in stems}) >= 2


@each_form
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_words_and_scene_do_not_tell_the_answer(
    form: QuestionForm, reader: Reader, seed: int
) -> None:
    table = with_short_lines(random_table(Random(seed), KINDS))
    for stem in form.stems(table, Random(seed)):
        stated = {t for f in named(table, stem.question) for t in terms(f.phrase)}
        shared = {text: len(stated & set(terms(text))) for text in (stem.answer, *stem.pool)}
        assert all(shared[stem.answer] <= shared[text] for text in stem.pool), stem
        assert len(set(stem.pool)) == len(stem.pool) <= 13
        for one in (stem.answer, *stem.pool):
            for other in (stem.answer, *stem.pool):
                assert one == other or not set(terms(one)) <= set(terms(other))
        if stem.scene >= 0:
            inside = [stem.scenes[text] == stem.scene for text in (stem.answer, *stem.pool)]
            assert len(set(inside)) == 1, stem
            assert inside[0] == ("/within/" in stem.list_name)


@each_form
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_a_draft_reads_all_that_the_final_run_needs(
    form: QuestionForm, reader: Reader, seed: int
) -> None:
    """Only what the draft counted is looked at, and all claims are true: the questions are the
    same.
    """
    full = with_short_lines(random_table(Random(seed), KINDS))
    draft = replace(full, truth={}, wanted=Counter())
    drafts = list(form.stems(draft, Random(seed)))
    assert draft.wanted is not None
    looked = {(name, n): n in full.claims[name] for name, n in draft.wanted}
    assert drafts == list(form.stems(replace(full, truth=looked), Random(seed)))


@each_form
@settings(max_examples=25)
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
    question = "What happens right after this: a baker lifts the green barrel?"
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


def test_what_comes_at_the_moment_after_the_next_is_no_wrong_answer() -> None:
    """It could be said to come right after, too."""
    names = ("fox", "cow", "bee", "ant", "owl", "cat")
    facts = [("event", f"a {name} moves", [n + 3]) for n, name in enumerate(names)]
    stems = {s.answer: s for s in AfterForm().stems(table_of(facts, [0] * 12), Random(0))}
    assert set(stems["a bee moves"].pool) == {"a fox moves", "a owl moves", "a cat moves"}
    stems = {s.answer: s for s in BeforeForm().stems(table_of(facts, [0] * 12), Random(0))}
    assert set(stems["a ant moves"].pool) == {"a fox moves", "a cow moves", "a cat moves"}


@pytest.mark.parametrize(
    ("form", "between", "asked"),
    [
        (AfterForm(), Span(20.0, 22.0), False),
        (AfterForm(), Span(24.5, 27.0), False),
        (AfterForm(), Span(13.0, 15.0), True),
        (AfterForm(), Span(28.0, 30.0), True),
        (BeforeForm(), Span(14.0, 17.0), False),
        (BeforeForm(), Span(9.5, 16.5), False),
        (BeforeForm(), Span(0.5, 5.0), True),
        (BeforeForm(), Span(19.0, 23.0), True),
    ],
)
def test_what_comes_between_two_facts_within_a_moment_parts_them(
    form: AfterForm, between: Span, *, asked: bool
) -> None:
    """The bee is the fox's neighbour before it, the ant the one after it."""
    names = ("yak", "bee", "fox", "ant", "owl", "cat", "rat")
    table = table_of(
        [("event", f"a {name} moves", [n + 1]) for n, name in enumerate(names)], [0] * 9
    )
    exact = {"a bee moves": Span(12.0, 16.0), "a fox moves": Span(18.0, 22.5)}
    exact |= {"a ant moves": Span(25.0, 29.0)}
    facts = [replace(f, spans=(exact.get(f.phrase, f.spans[0]),)) for f in table.facts]
    facts.append(replace(facts[0], fact_id="elk", phrase="a elk eats", spans=(between,)))
    truth = {**table.truth}
    for n, moment in enumerate(table.moments):
        truth["elk", n] = moment.start <= between.start < moment.end
    stems = list(form.stems(replace(table, facts=tuple(facts), truth=truth), Random(0)))
    pair = (
        f"What happens right {form.name} this: a fox moves?",
        f"a {'bee' if form.step < 0 else 'ant'} moves",
    )
    assert (pair in {(stem.question, stem.answer) for stem in stems}) is asked
    truth.update((("elk", n), False) for n in range(9))
    stems = list(form.stems(replace(table, facts=tuple(facts), truth=truth), Random(0)))
    assert pair in {(stem.question, stem.answer) for stem in stems}


@pytest.mark.parametrize(("gap", "asked"), [(2.9, True), (3.1, False)])
def test_what_comes_long_after_does_not_come_right_after(gap: float, *, asked: bool) -> None:
    names = ("yak", "bee", "fox", "ant", "owl", "cat", "rat")
    facts = [("event", f"a {name} moves", [n + 1]) for n, name in enumerate(names)]
    table = table_of(facts, [0] * 9)
    exact = {"a fox moves": Span(18.0, 21.5), "a ant moves": Span(21.5 + gap, 29.0)}
    table = replace(
        table,
        facts=tuple(replace(f, spans=(exact.get(f.phrase, f.spans[0]),)) for f in table.facts),
    )
    for form, fact, answer in ((AfterForm(), "fox", "ant"), (BeforeForm(), "ant", "fox")):
        question = f"What happens right {form.name} this: a {fact} moves?"
        stems = {(s.question, s.answer) for s in form.stems(table, Random(0))}
        assert ((question, f"a {answer} moves") in stems) is asked


@pytest.mark.parametrize(
    ("form", "question"),
    [
        (
            NextTimeForm(),
            "This happens: a fox jumps. When the same place (a dark hall) is seen the next time "
            "after that, which of these happens?",
        ),
        (
            NextTimeForm(given="text", by="state", of="text"),
            "First the words “BREAD” can be seen. When the lamp is lit the next time after that, "
            "which of these is seen?",
        ),
    ],
)
def test_questions_are_sentences(form: QuestionForm, question: str) -> None:
    facts = [
        ("event", "a fox jumps", [1]),
        ("event", "a cow eats", [6]),
        ("event", "a bee hums", [9]),
        ("text", "the words “BREAD”", [1]),
        ("text", "the words “MILK”", [6]),
        ("text", "the words “SALT”", [9]),
        ("place", "a dark hall", [1, 6]),
        ("state", "the lamp is lit", [1, 6]),
    ]
    table = table_of(facts, [0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 9])
    (stem,) = form.stems(table, Random(0))
    assert stem.question == question


def test_a_person_whom_the_question_may_name_is_not_asked_for() -> None:
    facts = [
        ("event", "a woman in grey opens a box", [2]),
        ("person", "the woman in the grey coat", [2]),
        ("person", "the boy with a drum", [2]),
        ("person", "the tall grey woman", [6]),
        ("person", "the clown on stilts", [8]),
    ]
    stems = list(AtForm(of="person").stems(table_of(facts, [0] * 10), Random(0)))
    assert [stem.answer for stem in stems] == ["the boy with a drum"]
    assert set(stems[0].pool) == {"the tall grey woman", "the clown on stilts"}


def test_a_run_whose_end_is_unknown_is_not_the_next_time() -> None:
    """A wrong answer could hold in the rest of it."""
    facts = [
        ("event", "a fox jumps", [1]),
        ("event", "a cow eats", [6]),
        ("event", "a bee hums", [7]),
        ("event", "an ant digs", [9]),
        ("place", "a dark hall", [1, 6]),
    ]
    known = table_of(facts, [0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 9, 0, 2])
    assert len(list(NextTimeForm().stems(known, Random(0)))) == 1
    for moment in (2, 4, 7):
        truth = {**known.truth, ("a dark hall", moment): None}
        assert not list(NextTimeForm().stems(replace(known, truth=truth), Random(0)))


LINES = [
    ("event", "a baker lifts the green barrel", [4]),
    ("event", "a sailor paints the big barrel", [5]),
    ("event", "a nurse drops the last barrel", [7]),
    ("line", "“my old boat sinks”", [4]),
    ("line", "“seven grey cats sleep”", [5]),
    ("line", "“bring three heavy stones”", [7]),
]


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("“my old boat sinks”", 3),
        ("“that barrel sinks”", 2),  # a word of all that is seen
        ("“oh no”", 2),  # says nothing
        ("“seven grey cats sleep again”", 1),  # contains another line
    ],
)
def test_lines_that_say_what_is_seen_or_nothing_or_the_same_are_left_out(
    line: str, answers: int
) -> None:
    facts = [(kind, line if text == LINES[3][1] else text, at) for kind, text, at in LINES]
    table = table_of(facts, [0] * 9)
    for form in (WhileForm(), SaidForm()):
        assert len(list(form.stems(table, Random(0)))) == answers


def test_alike_phrases_are_one_fact() -> None:
    """ "a man opens a door" may be said of the moment where "a man opens a door slowly" holds."""
    table = table_of(
        [
            ("event", "a man opens a door", [1]),
            ("event", "a fox jumps over", [2]),
            ("event", "a man opens a door slowly", [6]),
            ("event", "a cow eats grass", [8]),
        ],
        [0] * 12,
    )
    questions = {stem.question for stem in AfterForm().stems(table, Random(0))}
    assert not [q for q in questions if "door" in q]


def test_a_list_is_shared_by_parts_of_fitting_size() -> None:
    """Of thirty questions that could share one list, the candidates of a part are the same."""
    names = [f"{w} {c}{v}n" for w in ("red", "blue", "pink") for c in "bdfgklmprt" for v in "a"]
    facts = [("event", f"{n} zips", [2 * k + 1]) for k, n in enumerate(names)]
    table = table_of(facts, [0] * 64)
    form = AtForm(of="text")
    texts = [("text", f"words of {n[::-1]} y", [2 * k + 1]) for k, n in enumerate(names)]
    stems = list(form.stems(table_of([*facts, *texts], [0] * 64), Random(0)))
    assert len(stems) == 30
    parts = {
        name: [s for s in stems if s.list_name == name] for name in {s.list_name for s in stems}
    }
    assert sorted(map(len, parts.values())) == [10, 10, 10]
    for part in parts.values():
        answers = {stem.answer for stem in part}
        assert all(answers - {stem.answer} <= set(stem.pool) for stem in part)
    assert table.facts


def test_a_line_over_the_end_of_a_moment_is_no_wrong_answer() -> None:
    """It is hardly said in the second moment, but it can be heard there."""
    table = table_of(
        [
            ("event", "a baker lifts the green barrel", [2]),
            ("line", "“my old boat sinks”", [2]),
            ("line", "“seven grey cats sleep”", [1]),
            ("line", "“bring three heavy stones”", [5]),
        ],
        [0] * 9,
    )
    long = fact_of("line", "“seven grey cats sleep”", [1])
    long = replace(long, spans=(Span(7.0, 12.2),))
    facts = tuple(long if fact.fact_id == long.fact_id else fact for fact in table.facts)
    (stem,) = SaidForm().stems(replace(table, facts=facts), Random(0))
    assert stem.answer == "“my old boat sinks”"
    assert stem.pool == ("“bring three heavy stones”",)
