"""Options made by code: nothing that can be counted tells the right one from the others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.questions.checks import entries, fault, items
from mustsee.questions.drafts import Draft, finish_question
from mustsee.questions.orders import MAX_THINGS, build_options, wrong_orders
from mustsee.verify.giveaways import scores

THINGS = ("the knife", "the torch", "a chopper", "a gas lighter", "the jug", "a bowl", "the lid")
Order = tuple[str, ...]
sizes = st.integers(3, MAX_THINGS)


def drawn(size: int, seed: int) -> list[Order]:
    """A right order of some things, and the wrong orders."""
    rng = random.Random(seed)
    things = tuple(rng.sample(THINGS, size))
    return [things, *wrong_orders(things, rng)]


def order_draft(things: Sequence[str], stem: str = "In which order are these used") -> Draft:
    return Draft(question=f"{stem}?", answer="; ".join(things))


@given(sizes, st.integers())
def test_each_thing_has_each_place_and_each_neighbour_equally_often(size: int, seed: int) -> None:
    orders = drawn(size, seed)
    assert len(set(orders)) == len(orders) == {3: 6, 4: 4, 5: 5, 6: 6}[size]
    assert all(sorted(order) == sorted(orders[0]) for order in orders)
    places = Counter((place, thing) for order in orders for place, thing in enumerate(order))
    beside = Counter(frozenset(pair) for order in orders for pair in pairwise(order))
    assert len(set(places.values())) == 1
    assert len(places) == size * size
    assert len(set(beside.values())) == 1
    assert len(beside) == size * (size - 1) // 2
    followed = {
        Counter(pair for o in orders for pair in pairwise(o))[p] for p in pairwise(orders[0])
    }
    for order in orders:  # and no order stands out by the pairs that it shares with the others
        counts = Counter(pair for o in orders for pair in pairwise(o))
        assert {counts[pair] for pair in pairwise(order)} == followed


@given(st.integers(4, MAX_THINGS), st.integers())
def test_orders_are_no_rotations_and_no_order_alone_has_its_reverse(size: int, seed: int) -> None:
    orders = drawn(size, seed)
    turned = [order[n:] + order[:n] for order in orders for n in range(1, size)]
    assert not set(turned) & set(orders)
    assert sum(order[::-1] in orders for order in orders) in (0, size)


@given(st.integers(3, MAX_THINGS), st.integers(), st.data())
def test_any_order_of_a_set_might_be_the_right_one(
    size: int, seed: int, data: st.DataObject
) -> None:
    """Another order of the set as the right one can give the same options."""
    orders = drawn(size, seed)
    other = data.draw(st.sampled_from(orders))
    made = ({other, *wrong_orders(other, random.Random(n))} for n in range(200))
    assert any(set(orders) == options for options in made)


def shared_pairs(options: Sequence[Order]) -> list[float]:
    counts = Counter(pair for order in options for pair in pairwise(order))
    return [sum(counts[pair] for pair in pairwise(order)) for order in options]


def shared_places(options: Sequence[Order]) -> list[float]:
    counts = Counter(pair for order in options for pair in enumerate(order))
    return [sum(counts[pair] for pair in enumerate(order)) for order in options]


def shared_sides(options: Sequence[Order]) -> list[float]:
    counts = Counter(frozenset(pair) for order in options for pair in pairwise(order))
    return [sum(counts[frozenset(pair)] for pair in pairwise(order)) for order in options]


def shared_sequence(options: Sequence[Order]) -> list[float]:
    """How often what comes before what, at any distance, is as in the other options."""

    def before(order: Order) -> set[tuple[str, str]]:
        return {(a, b) for n, a in enumerate(order) for b in order[n + 1 :]}

    counts = Counter(pair for order in options for pair in before(order))
    return [sum(counts[pair] for pair in before(order)) for order in options]


@pytest.mark.parametrize("size", [3, 4, 5, 6])
@pytest.mark.parametrize("count", [shared_pairs, shared_places, shared_sides, shared_sequence])
def test_a_reader_who_counts_is_at_chance(
    size: int, count: Callable[[Sequence[Order]], list[float]]
) -> None:
    """Whatever is counted, all options have the same count, or the right one is drawn from them."""
    hits = options_count = 0.0
    for seed in range(400):
        orders = drawn(size, seed)
        totals = count(orders)
        best = [n for n, total in enumerate(totals) if total == max(totals)]
        hits += (0 in best) / len(best)
        options_count += 1 / len(orders)
    assert hits == pytest.approx(options_count, rel=0.15)


def test_a_writers_own_orders_are_replaced() -> None:
    """One exchange away from the right one, as writers make them, they give it away."""
    draft = Draft(
        question="In which order are these used: the jug, the pan, the cup, the lid?",
        answer="The pan; the cup; the jug; the lid",
        decoys=("The cup; the pan; the jug; the lid", "The pan; the jug; the cup; the lid",
                "The pan; the cup; the lid; the jug", "The jug; the cup; the pan; the lid"),
    )  # fmt: skip
    made = build_options(draft)
    assert (made.question, made.answer) == (draft.question, draft.answer)
    assert set(made.decoys) == {
        "The cup; the lid; the pan; the jug",
        "The jug; the pan; the lid; the cup",
        "The lid; the jug; the cup; the pan",
    }
    assert fault(made.question, made.answer, made.decoys, count=3) is None
    done = finish_question(
        made, video_id="v", recipe="r", question_type="Temporal Ordering", seed=0, decoys=3
    )
    alike = scores(done, ordered=True)
    assert all(max(values) - min(values) < 1e-9 for values in alike.values())


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        ("Anna's hat; a bowl; a pan", "Anna's hat"),  # spelled so in the question
        ("A bowl; Anna's hat; a pan", "A bowl"),
        ("TURN LEFT; a bowl; a pan", "TURN LEFT"),
        ("Bowl -> pan -> lid", "bowl"),
        ("1. Bowl, 2. pan, and 3. lid", "bowl"),
    ],
)
def test_orders_differ_in_nothing_but_order(answer: str, first: str) -> None:
    stem = "In which order are these seen: a pan, Anna's hat and a bowl"
    made = build_options(order_draft([answer], stem))
    texts = [entries(option) for option in (made.answer, *made.decoys)]
    letters = {tuple(sorted(x.lower() for x in text)) for text in texts}
    assert len(letters) == 1
    assert len(texts) == 6
    beginnings = {option[:1].isupper() for option in (made.answer, *made.decoys)}
    inner = [thing for text in texts for thing in text[1:]]
    assert first in inner
    if first == "bowl":
        assert beginnings == {True}
        assert not any(thing[:1].isupper() for thing in inner)


@given(sizes, st.integers(0, 10_000))
def test_making_the_options_again_changes_nothing(size: int, seed: int) -> None:
    made = build_options(order_draft(drawn(size, seed)[0]))
    assert build_options(made) == made


@pytest.mark.parametrize(
    "answer",
    [
        "oil; tea",
        "b; c; d; e; f; g; h",
        "oil; tea; the oil",
        "A bowl",
        "oil, tea, and then the tea",
    ],
)
def test_what_is_no_order_of_three_to_six_things_stays(answer: str) -> None:
    draft = Draft(question="In which order are these seen?", answer=answer, decoys=("x", "y"))
    assert build_options(draft) == draft


@pytest.mark.parametrize(
    ("decoys", "firsts", "seconds"),
    [
        ("Red; green|Yellow; blue|Yellow; green", "Red Yellow", "blue green"),
        ("Red; green|Yellow; blue", "Red Yellow", "blue green"),
        ("Red; green|Yellow; blue|Yellow; green|Red; pink", "Red Yellow", "blue green pink"),
        ("Grey; green|Yellow; blue|Yellow; green|Pink; green", "Red Yellow Grey", "blue green"),
        ("Grey; pink|Yellow; blue|Yellow; green|Red; green", "Red Yellow", "blue green pink"),
    ],
)
def test_two_parts_are_combined_without_a_lopsided_fifth(
    decoys: str, firsts: str, seconds: str
) -> None:
    stem = "Which colours has the kite, early and late?"
    draft = Draft(question=stem, answer="Red; blue", decoys=tuple(decoys.split("|")))
    made = build_options(draft)
    assert made.answer == "Red; blue"
    options = {f"{a}; {b}" for a in firsts.split() for b in seconds.split()}
    assert sorted((made.answer, *made.decoys)) == sorted(options)
    assert build_options(made) == made


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz")), min_size=1, max_size=5)
)
def test_every_value_stands_in_as_many_combinations(pairs: list[tuple[str, str]]) -> None:
    answer, *decoys = ["; ".join(pair) for pair in pairs]
    draft = Draft(question="What is it, early and late?", answer=answer, decoys=tuple(decoys))
    made = build_options(draft)
    if made is draft:
        assert min(len({pair[place] for pair in pairs}) for place in (0, 1)) < 2
        return
    rows = [items(option) for option in (made.answer, *made.decoys)]
    assert len(set(rows)) == len(rows) in (4, 6)
    for place in (0, 1):
        assert len(set(Counter(row[place] for row in rows).values())) == 1


@pytest.mark.parametrize(
    "decoys",
    [
        (),
        ("Red",),
        ("Red; green; pink",),
        ("Red; green", "Nothing"),
        ("Red; blue",),
        ("Red; green",),
    ],
)
def test_other_options_stay_as_they_are(decoys: tuple[str, ...]) -> None:
    draft = Draft(question="Which colours has the kite?", answer="Red; blue", decoys=decoys)
    assert build_options(draft) is draft


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_the_right_order_stands_at_each_place_over_seeds(size: int) -> None:
    made = build_options(order_draft(THINGS[:size]))
    places = Counter(
        finish_question(
            made, video_id="v", recipe="r", question_type="t", seed=seed, decoys=len(made.decoys)
        ).answer_index
        for seed in range(600)
    )
    count = len(made.decoys) + 1
    assert set(places) == set(range(count))
    assert max(places.values()) < 1.45 * 600 / count
