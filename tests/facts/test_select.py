"""Questions are selected so that words do not decide them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from mustsee.errors import UserError
from mustsee.facts.blind_exam import drop_guessed
from mustsee.facts.draw import count_matched, draw_groups, is_coherent
from mustsee.facts.select import (
    MAX_RANK_FACTOR,
    MIN_BESIDE,
    Chosen,
    ChosenGroup,
    SelectRules,
    choose,
    limit_beside,
)
from mustsee.facts.stem import FormTraits, Stem
from mustsee.records import PAIR, SET, Span

RULES = SelectRules(of_form=1.0, questions=400, least_questions=400, near_least=400)


def stems(count: int, rng: Random, *, apart: float = 10.0) -> list[Stem]:
    """Stems of one list, each answer wrong for all others."""
    answers = [f"answer {n}" for n in range(count)]
    return [
        Stem(
            form="after",
            question=f"question {n}",
            question_type="Other",
            answer=answer,
            pool=tuple(a for a in answers if a != answer),
            list_name=f"list {n % 3}" if count > 30 else "list",
            evidence=(Span(n, n + 1.0), Span(n + apart, n + apart + 1)),
            about=frozenset({f"fact {n}", f"fact {n + 1}"}),
        )
        for n, answer in enumerate(answers)
    ]


def rank_by(strength: float, some: Sequence[Stem], rng: Random) -> dict[int, tuple[str, ...]]:
    """Rankings of a guesser for whom the truth scores higher by `strength` than the others."""
    rankings: dict[int, tuple[str, ...]] = {}
    for number, stem in enumerate(some):
        answers = [stem.answer, *rng.sample(stem.pool, min(13, len(stem.pool)))]
        score = {a: rng.gauss(strength if a == stem.answer else 0.0, 1.0) for a in answers}
        rankings[number] = tuple(sorted(answers, key=lambda a: -score[a]))
    return rankings


def even(question: str, answers: Sequence[str]) -> list[float]:
    return [0.0] * len(answers)


def members(groups: Sequence[ChosenGroup]) -> list[tuple[Stem, tuple[str, ...], int]]:
    return [(m.stem, m.options, m.rank) for g in groups for m in g.members]


@pytest.mark.parametrize("strength", [0.0, 1.0, 2.0])
def test_a_guesser_who_knows_much_is_at_chance_on_what_is_selected(strength: float) -> None:
    rng = Random(1)
    some = stems(300, rng)
    rankings = rank_by(strength, some, rng)
    groups = draw_groups(some, rankings, even, RULES, seconds=3000, seed=0)
    chosen = members(groups)
    assert len(chosen) >= 60
    firsts = sum(rank == 0 for _, _, rank in chosen)
    assert firsts <= RULES.first * len(chosen)
    places = Counter(rank for _, options, rank in chosen if len(options) == 5 and rank)
    assert max(places.values()) <= 1.1 * MAX_RANK_FACTOR * places.total() / 4, places
    for stem, options, rank in chosen:
        number = some.index(stem)
        order = [a for a in rankings[number] if a in options]
        assert options.count(stem.answer) == 1
        assert set(options) <= {stem.answer, *stem.pool}
        if set(options) <= set(order):
            assert order.index(stem.answer) == rank


def test_a_set_shares_its_list_and_every_option_is_the_answer_to_one() -> None:
    rng = Random(2)
    some = stems(12, rng)
    full = {n: tuple(rng.sample([s.answer, *s.pool], 12)) for n, s in enumerate(some)}
    groups = draw_groups(some, full, even, RULES, seconds=100, seed=0)
    sets = [g for g in groups if g.relation == SET]
    assert sets
    for group in sets:
        options = {m.options for m in group.members}
        assert len(options) == 1
        assert {m.stem.answer for m in group.members} == set(options.pop())
        ranks = [
            [[a for a in full[some.index(m.stem)] if a in m.options].index(o) for o in
             (x.stem.answer for x in group.members)]
            for m in group.members
        ]  # fmt: skip
        assert count_matched(np.array(ranks)) <= 1


def two_and_more(form: str = "where") -> list[Stem]:
    """Two stems of different lists whose answers are wrong for each other."""
    more = [f"other {n}" for n in range(6)]
    return [
        Stem(
            form=form,
            question=f"question {n}",
            question_type="Other",
            answer=f"answer {n}",
            pool=(f"answer {1 - n}", *more, f"only {n}"),
            list_name=f"list {n}",
            evidence=(Span(10.0 * n, 10.0 * n + 1),),
            about=frozenset({f"fact {n}"}),
        )
        for n in range(2)
    ]


def pairs(some: Sequence[Stem], rng: Random, *, alike: bool = True) -> list[ChosenGroup]:
    full = {n: tuple(rng.sample([s.answer, *s.pool], 9)) for n, s in enumerate(some)}
    groups = draw_groups(some, full, even, RULES, seconds=100, seed=0, alike=lambda *_: alike)
    return [g for g in groups if g.relation == PAIR]


def test_two_questions_whose_moments_look_alike_share_options_that_hold_both_answers() -> None:
    rng, made = Random(7), 0
    for _ in range(50):
        for pair in pairs(two_and_more(), rng):
            made += 1
            (options,) = {m.options for m in pair.members}
            assert len(options) == 5
            assert {m.stem.answer for m in pair.members} == {"answer 0", "answer 1"}
            for member in pair.members:
                assert set(options) <= {member.stem.answer, *member.stem.pool}
    assert made >= 10


def test_moments_that_differ_and_forms_that_differ_make_no_pair() -> None:
    rng = Random(8)
    mixed = [two_and_more()[0], two_and_more("with")[1]]
    for _ in range(50):
        assert not pairs(two_and_more(), rng, alike=False)
        assert not pairs(mixed, rng)


def test_an_answer_that_may_be_right_for_the_other_question_makes_no_pair() -> None:
    first, second = two_and_more()
    may_be = replace(second, pool=second.pool[1:])
    rng = Random(9)
    some = [first, may_be]
    for _ in range(50):
        full = {n: tuple(rng.sample([s.answer, *s.pool], len(s.pool) + 1))
                for n, s in enumerate(some)}  # fmt: skip
        groups = draw_groups(some, full, even, RULES, seconds=9, seed=0, alike=lambda *_: True)
        assert all(g.relation is None for g in groups)


def test_a_pair_that_a_matching_finds_is_not_taken() -> None:
    some = two_and_more()
    other = [a for a in some[0].pool if a.startswith("other")]
    second = {
        n: (*other[:1], s.answer, *other[1:], *(a for a in s.pool if a not in other))
        for n, s in enumerate(some)
    }
    for matched, relation in [(1, PAIR), (0, None)]:
        rules = SelectRules(of_form=1.0, matched=matched)
        groups = draw_groups(some, second, even, rules, seconds=9, seed=0, alike=lambda *_: True)
        assert groups[0].relation == relation


def test_a_stem_whose_truth_can_only_be_first_is_left_out() -> None:
    some = stems(12, Random(3))
    first = {n: (s.answer, *s.pool) for n, s in enumerate(some)}
    assert draw_groups(some, first, even, RULES, seconds=100, seed=0) == []


def test_no_fact_has_more_questions_than_allowed() -> None:
    rng = Random(4)
    some = stems(60, rng)
    rules = SelectRules(of_fact=1, of_form=1.0, questions=400, least_questions=400)
    groups = draw_groups(some, rank_by(0.0, some, rng), even, rules, seconds=1000, seed=0)
    counts = Counter(name for stem, _, _ in members(groups) for name in stem.about)
    assert max(counts.values()) == 1


def test_the_answer_most_like_its_question_is_not_the_truth() -> None:
    rng = Random(5)
    some = stems(12, rng)

    def tells(question: str, answers: Sequence[str]) -> list[float]:
        return [1.0 if a.split()[1] == question.split()[1] else 0.0 for a in answers]

    groups = draw_groups(some, rank_by(0.0, some, rng), tells, RULES, seconds=100, seed=0)
    assert groups == []


def test_options_are_all_of_the_scene_or_none() -> None:
    stem = stems(3, Random(0))[0]
    a, b, c = stem.answer, *stem.pool
    for scenes, fits in [
        ({a: 1, b: 1, c: 1}, True),
        ({a: 2, b: 3, c: 2}, True),
        ({a: 1, b: 2, c: 2}, False),
        ({a: 2, b: 1, c: 2}, False),
    ]:
        of_scene = Stem(**{**vars(stem), "scene": 1, "scenes": scenes})
        assert is_coherent(of_scene, (a, b, c)) is fits


def test_far_questions_come_first_and_the_forms_in_turns() -> None:
    rng = Random(6)
    near = stems(60, rng, apart=5.0)
    far = [
        Stem(**{**vars(s), "form": "between", "question": f"far {s.question}", "list_name": "",
                "evidence": (Span(0, 1), Span(100, 101)), "about": frozenset({f"o{n}"})})
        for n, s in enumerate(stems(60, rng))
    ]  # fmt: skip
    rules = SelectRules(questions=20, least_questions=20, of_form=0.6)
    some = [*near, *far]
    groups = draw_groups(some, rank_by(0.0, some, rng), even, rules, seconds=100, seed=0)
    forms = Counter(stem.form for stem, _, _ in members(groups))
    assert sum(forms.values()) <= 20
    assert forms["between"] >= 10


def test_options_given_by_the_form_are_kept() -> None:
    options = ("one", "two", "three", "four")
    stem = Stem(form="count", question="How often?", question_type="Counting", answer="two",
                options=options, evidence=(Span(0, 1),))  # fmt: skip
    (group,) = draw_groups(
        [stem], {0: ("one", "three", "two", "four")}, even, RULES, seconds=9, seed=0
    )
    assert members([group]) == [(stem, options, 2)]
    assert (
        draw_groups([stem], {0: ("two", "one", "three", "four")}, even, RULES, seconds=9, seed=0)
        == []
    )


def test_the_fewest_options_are_checked() -> None:
    with pytest.raises(UserError, match="least_options"):
        SelectRules(options=4, least_options=5)


def test_a_fifth_at_most_asks_what_is_seen_beside_something() -> None:
    def group(form: str, number: int) -> ChosenGroup:
        stem = Stem(
            form=form, question=f"{form} {number}?", question_type="", answer="a", pool=("b",),
            evidence=(Span(0, 1),), traits=FormTraits(is_beside=form == "where"),
        )  # fmt: skip
        return ChosenGroup(members=(Chosen(stem=stem, options=("a", "b"), rank=1),))

    groups = [group(form, n) for n in range(16) for form in ("where", "after")]
    kept = [g.form for g in limit_beside(groups, SelectRules())]
    assert (kept.count("after"), kept.count("where")) == (16, 4)
    assert len(limit_beside(groups, SelectRules(beside_share=1.0))) == 32
    assert len(limit_beside(groups[::2], SelectRules())) == MIN_BESIDE


def group_of(count: int, *, form: str = "after") -> ChosenGroup:
    """A set of as many questions as it has options."""
    options = tuple(f"{form} {n}" for n in range(count))
    return ChosenGroup(members=tuple(
        Chosen(
            stem=Stem(
                form=form, question=f"{form} {n}?", question_type="", answer=options[n],
                pool=options, evidence=(Span(n, n + 1.0),), about=frozenset({f"{form} {n}"}),
                traits=FormTraits(lists_order=form == "order"),
            ),
            options=options, rank=0,
        )
        for n in range(count)
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("guessed", "left"),
    [((), [5]), ((2,), [5]), ((2, 3), [1, 1, 1]), (range(5), [])],
)
def test_a_set_that_is_guessed_leaves_the_questions_that_are_not(
    guessed: Sequence[int], left: list[int]
) -> None:
    ranks = {f"after {n}?": 0 if n in guessed else 3 for n in range(5)}
    groups = list(drop_guessed(group_of(5), ranks, 1))
    assert [len(group.members) for group in groups] == left
    assert all(one.rank == ranks[one.stem.question] for g in groups for one in g.members)
    if len(left) != 1:
        assert {one.stem.question for g in groups for one in g.members} == {
            question for question, rank in ranks.items() if rank
        }


def test_a_set_of_which_a_question_could_not_be_read_leaves_the_others() -> None:
    ranks = {f"after {n}?": 3 for n in range(4)}
    groups = list(drop_guessed(group_of(5), ranks, 1))
    assert [[one.stem.question for one in g.members] for g in groups] == [[q] for q in ranks]


def test_the_ranks_of_what_is_chosen_are_even() -> None:
    """A question answered right is taken only beside nine that are not."""
    rng = Random(3)
    groups = [
        replace(group, members=(replace(one, rank=rng.choices(range(5), (5, 8, 4, 3, 1))[0]),))
        for n in range(120)
        for group in [group_of(1, form=f"{'abcdef'[n % 6]} {n}")]
        for one in group.members
    ]
    rules = replace(RULES, of_form=1.0, first=0.1)
    ranks = Counter(one.rank for g in choose(groups, (), rules, seconds=9) for one in g.members)
    assert ranks.total() >= 30
    assert ranks[0] <= 0.1 * ranks.total()
    assert max(n for rank, n in ranks.items() if rank) <= MAX_RANK_FACTOR * ranks.total() / 4


def test_drafts_are_many_and_the_chosen_keep_the_limits_of_facts() -> None:
    rng = Random(4)
    some = stems(60, rng)
    rules = SelectRules(of_fact=1, of_form=1.0, questions=20, least_questions=20)
    drafts = draw_groups(
        some, rank_by(0.0, some, rng), even, rules.for_drafts(3), seconds=100, seed=0
    )
    assert len(members(drafts)) > 20
    assert max(Counter(name for stem, _, _ in members(drafts) for name in stem.about).values()) == 2
    ranked = [replace(g, members=tuple(replace(m, rank=1 + n % 4) for m in g.members))
              for n, g in enumerate(drafts)]  # fmt: skip
    chosen = members(choose(ranked, (), rules, seconds=100))
    assert 8 <= len(chosen) <= 20
    assert max(Counter(name for stem, _, _ in chosen for name in stem.about).values()) == 1


def test_few_questions_ask_for_an_order() -> None:
    """Together they tell the course of the video."""
    groups = [
        replace(group, members=(replace(one, rank=1 + n % 4),))
        for n in range(80)
        for group in [group_of(1, form="order" if n < 40 else f"form {n % 4}")]
        for one in group.members
    ]
    for n, group in enumerate(groups):
        (one,) = group.members
        about = frozenset({f"fact {n}"})
        stem = replace(one.stem, question=f"{n}?", answer=f"answer {n}", about=about)
        groups[n] = replace(group, members=(replace(one, stem=stem),))
    chosen = choose(
        groups, (), replace(RULES, questions=36, least_questions=36, single_share=1.0), seconds=9
    )
    forms = Counter(group.form for group in chosen)
    assert forms["order"] == 3
    assert forms.total() == 36


def alone(stem: Stem, rank: int) -> ChosenGroup:
    options = (stem.answer, "other one", "other two", "other three", "other four")
    return ChosenGroup(members=(Chosen(stem=stem, options=options, rank=rank),))


def test_an_answer_is_that_of_two_questions_at_most_but_a_number() -> None:
    same = [replace(stem, answer="a red car") for stem in stems(8, Random(7))]
    groups = [alone(stem, 1 + n % 4) for n, stem in enumerate(same)]
    assert len(choose(groups, (), RULES, seconds=9)) == 2
    numbers = [replace(stem, answer="2", options=("0", "1", "2", "3", "4")) for stem in same]
    groups = [alone(stem, 1 + n % 4) for n, stem in enumerate(numbers)]
    rules = replace(RULES, single_share=1.0, of_pair=8)
    assert len(choose(groups, (), rules, seconds=9)) == 8


def test_of_a_long_video_half_the_questions_join_far_moments_if_there_are_enough() -> None:
    far = [
        replace(stem, question=f"far {n}?", answer=f"far {n}", about=frozenset({f"far {n}"}))
        for n, stem in enumerate(stems(12, Random(7), apart=90))
    ]
    near = [
        replace(stem, form=f"form {n % 8}", about=frozenset({f"near {n}"}))
        for n, stem in enumerate(stems(60, Random(8)))
    ]
    groups = [alone(stem, 1 + n % 4) for n, stem in enumerate([*far, *near])]
    rules = SelectRules(of_form=1.0, near_least=10)
    assert len(choose(groups, (), rules, seconds=200)) == 24
    assert len(choose(groups, (), replace(rules, near_least=30), seconds=200)) == 30
    assert len(choose(groups, (), rules, seconds=100)) == 36


def test_of_many_orders_the_one_that_leaves_most_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(9)
    some = [
        replace(stem, about=frozenset(f"fact {n}" for n in rng.sample(range(40), 2)))
        for stem in stems(60, rng)
    ]
    groups = [alone(stem, 1 + n % 4) for n, stem in enumerate(some)]
    rules = replace(RULES, of_fact=1)
    best = choose(groups, (), rules, seconds=9)
    assert best == choose(groups, (), rules, seconds=9)
    monkeypatch.setattr("mustsee.facts.select.SELECTION_TRIES", 1)
    assert len(best) > len(choose(groups, (), rules, seconds=9))


def test_a_question_relates_its_facts_to_the_centre_alone() -> None:
    """How many of X and Y happen before Z does not tell how X and Y follow each other."""
    first, second = (
        replace(stem, about=frozenset({"X", "Y", name}), centre=name, answer=name)
        for stem, name in zip(stems(2, Random(7)), "ZW", strict=True)
    )
    assert len(choose([alone(first, 1), alone(second, 2)], (), RULES, seconds=9)) == 2
    each = [alone(replace(stem, centre=""), n + 1) for n, stem in enumerate((first, second))]
    assert len(choose(each, (), RULES, seconds=9)) == 1


def test_of_questions_on_one_pair_of_facts_the_far_one_is_chosen() -> None:
    (near,) = group_of(1).members
    far = replace(
        near, stem=replace(near.stem, question="far?", evidence=(Span(0, 1), Span(90, 91)))
    )
    for pair in ((near, far), (far, near)):
        groups = [ChosenGroup(members=(replace(one, rank=1),)) for one in pair]
        chosen = choose(groups, (), replace(RULES, of_fact=1), seconds=9)
        assert [g.members[0].stem.question for g in chosen] == ["far?"]


def test_a_set_that_would_make_the_ranks_uneven_leaves_the_questions_that_are_not_guessed() -> None:
    group = group_of(5)
    ranked = [replace(one, rank=n) for n, one in enumerate(group.members)]
    chosen = choose([ChosenGroup(members=tuple(ranked))], (), RULES, seconds=9)
    assert [[one.rank for one in g.members] for g in chosen] == [[1], [2], [3], [4]]
    even_ranks = [replace(one, rank=1 + n % 4) for n, one in enumerate(group.members)]
    (whole,) = choose([ChosenGroup(members=tuple(even_ranks))], (), RULES, seconds=9)
    assert whole.relation == SET


def test_a_share_of_what_is_guessed_is_taken() -> None:
    def groups_of(form: str, rank: int) -> list[ChosenGroup]:
        groups = [group_of(1, form=f"{form} {n}") for n in range(40)]
        return [replace(g, members=(replace(g.members[0], rank=rank),)) for g in groups]

    unguessed = [g for rank in (1, 2, 3, 4) for g in groups_of(f"rank {rank}", rank)[:9]]
    chosen = choose(unguessed, groups_of("guessed", 0), replace(RULES, first=0.2), seconds=9)
    ranks = Counter(one.rank for group in chosen for one in group.members)
    assert ranks == {0: 9, 1: 9, 2: 9, 3: 9, 4: 9}
    assert not choose((), groups_of("guessed", 0), RULES, seconds=9)
