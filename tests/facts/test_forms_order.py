"""Orders: right, of one scene or of different ones, and with nothing in them to be counted. Counts
of what comes before something: right, and each as likely.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.facts.forms.order import CountBeforeForm, OrderForm
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import TruthTable
from mustsee.questions.checks import is_order
from tests.facts.tables import complete, fact_of, lost_drafts, random_table, table_of

SIZES = pytest.mark.parametrize("things", [4, 5])
FEW = 8  # orders of each scene: most of what makes them is draws for more


def table(seed: int, unknown: float = 0.0) -> TruthTable:
    return random_table(Random(seed), {"event": 20}, moments=32, unknown=unknown)


def places(table: TruthTable, phrase: str) -> list[int]:
    (fact,) = [f for f in table.facts if f.phrase == phrase]
    return [m for m in range(len(table.moments)) if table.truth[fact.fact_id, m]]


def parts(option: str) -> list[str]:
    return option.split("; ")


def shown(stem: Stem) -> list[str]:
    return parts(stem.question.removeprefix("In which order do these happen? "))


@SIZES
@given(seed=st.integers(0, 10_000), unknown=st.sampled_from((0.0, 0.02, 0.1)))
def test_the_order_is_right(things: int, seed: int, unknown: float) -> None:
    """Whatever the unknown entries are in truth."""
    claimed = table(seed, unknown)
    for stem in OrderForm(things=things, most=FEW).stems(claimed, Random(seed)):
        for full in (complete(claimed, unknown=True), complete(claimed, unknown=False)):
            runs = [places(full, phrase) for phrase in parts(stem.answer)]
            assert len(runs) == things
            assert all(0 not in r and 31 not in r for r in runs)
            for one, other in pairwise(runs):
                assert other[0] >= one[0] + 2
                assert other[0] > one[-1]
            scenes = [{full.scenes[m] for m in run} for run in runs]
            if stem.scene >= 0:
                assert scenes == [{stem.scene}] * things
            else:
                assert sum(map(len, scenes)) == len(set().union(*scenes))


@SIZES
@given(seed=st.integers(0, 10_000))
def test_nothing_in_the_options_can_be_counted(things: int, seed: int) -> None:
    for stem in OrderForm(things=things, most=FEW).stems(table(seed), Random(seed)):
        orders = [parts(option) for option in stem.options]
        assert stem.answer in stem.options
        assert len(orders) == things
        assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(shown(stem)))}
        for place in range(things):
            assert len({order[place] for order in orders}) == things
        beside = Counter(frozenset(pair) for order in orders for pair in pairwise(order))
        assert set(beside.values()) == {2}
        assert shown(stem) not in orders
        assert is_order(stem.question, stem.answer)


def test_random_tables_give_orders_of_both_sorts() -> None:
    stems = [s for seed in range(30) for s in OrderForm(most=20).stems(table(seed), Random(seed))]
    assert sum(stem.scene >= 0 for stem in stems) >= 20
    assert sum(stem.scene < 0 for stem in stems) >= 20
    firsts = Counter(stem.options.index(stem.answer) for stem in stems)
    assert min(firsts[n] for n in range(4)) > len(stems) / 8, "the right one stands at each place"


@pytest.mark.parametrize(
    "form", [OrderForm(most=FEW), CountBeforeForm()], ids=lambda form: form.name
)
@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_a_draft_names_all_that_the_final_run_needs(form: QuestionForm, seed: int) -> None:
    full = table(seed)
    assert lost_drafts(form, full, seed) == []


@given(seed=st.integers(0, 10_000), unknown=st.sampled_from((0.0, 0.02, 0.1)))
def test_the_number_of_what_comes_before_is_right(seed: int, unknown: float) -> None:
    """Whatever the unknown entries are in truth."""
    claimed = table(seed, unknown)
    for stem in CountBeforeForm().stems(claimed, Random(seed)):
        named, things = stem.question.removeprefix("How many of these happen before ").split("? ")
        for full in (complete(claimed, unknown=True), complete(claimed, unknown=False)):
            own = places(full, named)
            runs = [places(full, phrase) for phrase in parts(things)]
            before = [run[0] <= own[0] - 2 and run[-1] < own[0] for run in runs]
            after = [run[0] >= own[0] + 2 and run[0] > own[-1] for run in runs]
            assert all(a != b for a, b in zip(before, after, strict=True))
            assert stem.answer == str(sum(before))
        assert len({*parts(things), named}) == 5
        assert stem.options == ("0", "1", "2", "3", "4")


def test_all_numbers_are_asked_for() -> None:
    stems = [s for seed in range(30) for s in CountBeforeForm().stems(table(seed), Random(seed))]
    numbers = Counter(stem.answer for stem in stems)
    assert min(numbers[n] for n in "01234") > len(stems) / 8


def steps(phrases: list[str]) -> TruthTable:
    events = [("event", phrase, [2 * n + 1]) for n, phrase in enumerate(phrases)]
    return table_of(events, [0] * (2 * len(phrases) + 1))


GOOD = ["a fox jumps", "a cow eats", "a bee hums", "an ant digs"]


def test_four_events_of_one_scene_make_one_order() -> None:
    (stem,) = OrderForm().stems(steps(GOOD), Random(1))
    assert stem.answer == "a fox jumps; a cow eats; a bee hums; an ant digs"
    assert [(span.start, span.end) for span in stem.evidence] == [
        (6, 12),
        (18, 24),
        (30, 36),
        (42, 48),
    ]
    assert stem.about == set(GOOD)
    assert stem.scene == 0


@pytest.mark.parametrize(
    "phrases",
    [
        ["a fox jumps; it falls", *GOOD[1:]],  # could be read as two things
        ["a fox jumps", "a fox jumps high", *GOOD[2:]],  # one contains the other
        ["step 1 is shown", "step 2 is shown", *GOOD[2:]],  # numbers tell the order
    ],
)
def test_things_that_tell_the_order_or_confuse_are_left_out(phrases: list[str]) -> None:
    assert not list(OrderForm().stems(steps(phrases), Random(1)))


def test_an_event_that_comes_again_is_no_thing_of_an_order() -> None:
    known = steps(GOOD)
    again = replace(known, truth={**known.truth, ("a fox jumps", 5): True})
    assert not list(OrderForm().stems(again, Random(1)))
    title = fact_of("event", "a fox jumps", [0])
    others = [fact for fact in known.facts if fact.fact_id != title.fact_id]
    truth = {**known.truth, ("a fox jumps", 0): True, ("a fox jumps", 1): False}
    first = replace(known, facts=(title, *others), truth=truth)
    assert not list(OrderForm().stems(first, Random(1)))
