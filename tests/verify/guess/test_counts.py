"""Guesses of a run compared with chance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.questions.chance import chance_in_tries, chance_to_pass, correct_for_chance
from mustsee.records import SET, Question, Repair, Verdict
from mustsee.verify.guess.counts import FilterGuesses, GuessRule, count_guesses

PAPER = GuessRule(filters={"blind": (3, 2)}, rewrites=2, subset="mma")


def verdicts(**runs: Sequence[bool | None]) -> tuple[Verdict, ...]:
    return tuple(
        Verdict(filter=name, model="m", seed=n, correct=right)
        for name, of in runs.items()
        for n, right in enumerate(of)
    )


def question(number: int, options: int = 5, **fields: Any) -> Question:
    return Question(
        question_id=f"q{number}", video_id="v", recipe="neptune", question="?",
        question_type="Other", options=tuple("abcdefgh"[:options]), answer_index=0, answer="a",
        **fields,
    )  # fmt: skip


@given(st.integers(2, 6), st.integers(1, 4), st.data())
def test_the_chance_to_pass_counts_every_outcome(
    options: int, runs: int, data: st.DataObject
) -> None:
    least = data.draw(st.integers(0, runs))
    outcomes = list(product([False, *[True] * (options - 1)], repeat=runs))  # True: wrong
    passing = sum(sum(outcome) >= least for outcome in outcomes) / len(outcomes)
    assert chance_to_pass(1 / options, runs, least) == pytest.approx(passing)


def test_the_published_rule_lets_nearly_everything_in_after_two_rewrites() -> None:
    counts = count_guesses([question(0, verdicts=verdicts(blind=[False, False]))], PAPER)
    assert counts.passing == pytest.approx(0.896)
    assert counts.passing_repaired == pytest.approx(1 - 0.104**3)
    (_, line) = counts.lines()
    assert line == (
        "if every guess were luck alone, 90% of the questions would pass the filters by guesses at "
        "once, 100% after 2 rewrites"
    )
    views = GuessRule(filters=dict.fromkeys(("blind", "options", "asr"), (1, 1)))
    counts = count_guesses([question(0, verdicts=verdicts(blind=[False]))], views)
    assert counts.passing == counts.passing_repaired == pytest.approx(0.8**3)
    assert (
        "if every guess were luck alone, 51% of the questions would pass the filters by guesses"
        in list(counts.lines())
    )


def test_questions_count_with_their_own_number_of_options() -> None:
    both = [question(0, 5, verdicts=verdicts(blind=[False])),
            question(1, 2, verdicts=verdicts(blind=[True]))]  # fmt: skip
    counts = count_guesses(both, GuessRule(filters={"blind": (1, 1)}, rewrites=1))
    assert counts.passing == pytest.approx((0.8 + 0.5) / 2)
    assert counts.passing_repaired == pytest.approx((0.96 + 0.75) / 2)
    assert counts.filters["blind"].chance == pytest.approx((0.2 + 0.5) / 2)


def test_the_first_run_at_the_first_wording_counts() -> None:
    before = json.dumps({"question": "?", "options": [*"abcde"], "verdicts": 3})
    repaired = question(
        0,
        options=4,
        repairs=(Repair(kind="wording", reason="blind", by="m", before=before),),
        verdicts=(*verdicts(blind=[None, True, True]), *verdicts(blind=[False, False])),
    )
    others = [
        question(1, verdicts=verdicts(blind=[False, True])),
        question(5, verdicts=verdicts(blind=[False])),
        *(question(n, verdicts=verdicts(blind=[True])) for n in (6, 7)),
        question(2, verdicts=verdicts(sight=[True])),
        question(3, options=0, verdicts=verdicts(blind=[True])),
        question(4, sibling_of="q1", verdicts=verdicts(blind=[True])),
    ]
    counts = count_guesses([repaired, *others], PAPER)
    blind = counts.filters["blind"]
    assert (blind.questions, blind.right) == (5, 3)
    assert blind.above_chance == pytest.approx(correct_for_chance(0.6, 0.2)) == pytest.approx(0.5)
    assert next(iter(counts.lines())) == (
        "guessed right without the video before any rewrite: 3 of 5 (60%, by chance 20%; one "
        "video: no interval)"
    )


@pytest.mark.parametrize(
    ("shares", "line"),
    [
        ([1.0] * 30 + [0.0, 1 / 3, 1 / 3],
         "the repeated guesses without the video were the same in 30 of 33 questions: they say no "
         "more than one guess"),
        ([1.0, 0.0], None),
    ],
)  # fmt: skip
def test_a_guesser_that_always_agrees_with_itself_is_named(
    shares: list[float], line: str | None
) -> None:
    asked = [
        question(n, verdicts=verdicts(blind=[False, False]), metrics={"blind_agreement": share})
        for n, share in enumerate(shares)
    ]
    counts = count_guesses(asked, PAPER)
    said = [text for text in counts.lines() if "repeated" in text]
    assert said == ([line] if line else [])
    plain: Mapping[str, Any] = counts.plain()
    assert plain["said"] == list(counts.lines())
    assert plain["filters"]["blind"]["agreed"] == shares.count(1.0)
    assert json.loads(json.dumps(plain)) == plain


def test_what_chance_lets_pass_counts_sets_as_wholes_and_no_glimpses() -> None:
    rule = GuessRule(
        filters={"blind": (3, 2), "one_frame": (1, 0)},
        sets={"match": 2},
        subset="mma",
    )
    alone = question(0, form="where")
    assert rule.passing_chance(alone) == pytest.approx(0.896)
    of_set = replace(alone, relation=SET, group="q0")
    assert rule.passing_chance(of_set) == pytest.approx(0.896 * 109 / 120)
    assert rule.passing_chance(replace(of_set, options=(*"abcd",))) == pytest.approx(
        (1 - 10 / 64) * 23 / 24
    )


def test_matchings_are_summed_up_and_tested_over_the_run() -> None:
    rule = GuessRule(sets={"match": 2})

    def members(group: str, right: int, count: int = 5) -> list[Question]:
        return [
            question(n, relation=SET, group=group, metrics={"match_right": float(right)},
                     verdicts=verdicts(match=[n < right]))
            for n in range(count)
        ]  # fmt: skip

    counts = count_guesses([*members("a", 1), *members("b", 0), question(9)], rule)
    assert counts.matches["match"][:3] == (2, 10, 1)
    assert counts.passing == pytest.approx(109 / 120)
    line, _ = counts.lines()
    assert line == (
        "matched right without the video: 1 of 10 answers in 2 sets of questions, by chance 2 "
        f"(p={counts.matches['match'].p:.2g})"
    )
    one, _ = count_guesses(members("a", 1), GuessRule(sets={"match": 4})).lines()
    assert "5 answers in 1 set of questions" in one
    known = count_guesses([q for g in "abcd" for q in members(g, 3)], rule)
    assert known.matches["match"].p < 1e-3
    assert "words give sets away" in next(iter(known.lines()))
    assert json.loads(json.dumps(known.plain()))["matches"]["match"]["right"] == 12


def test_the_interval_of_guesses_is_clustered_by_video() -> None:
    def guessed(videos: int) -> FilterGuesses:
        of = [
            replace(question(n, verdicts=verdicts(blind=[n % 2 == 0])), video_id=f"v{n % videos}")
            for n in range(40)
        ]
        return count_guesses(of, GuessRule(filters={"blind": (1, 1)})).filters["blind"]

    apart, together = guessed(40), guessed(4)
    assert apart.low == pytest.approx(0.352, abs=1e-3)
    assert apart.high == pytest.approx(0.648, abs=1e-3)
    assert together.low is not None
    assert together.low < 0.1
    one = count_guesses([question(0, verdicts=verdicts(blind=[True]))],
                        GuessRule(filters={"blind": (1, 1)}))  # fmt: skip
    assert next(iter(one.lines())) == (
        "guessed right without the video: 1 of 1 (100%, by chance 20%; 95% 21% to 100%)"
    )
    few = [replace(question(n, verdicts=verdicts(blind=[n % 2 == 0])), video_id=f"v{n % 2}")
           for n in range(9)]  # fmt: skip
    line = next(iter(count_guesses(few, GuessRule(filters={"blind": (1, 1)})).lines()))
    assert line.endswith("; too few videos for an interval)")


def test_without_guesses_nothing_is_said() -> None:
    counts = count_guesses([question(0)], PAPER)
    assert list(counts.lines()) == []
    assert (counts.passing, counts.passing_repaired) == (None, None)
    assert counts.filters["blind"].above_chance is None


@given(st.floats(0, 1), st.integers(1, 5))
def test_more_tries_never_let_less_through(probability: float, tries: int) -> None:
    assert chance_in_tries(probability, 1) == pytest.approx(probability)
    assert chance_in_tries(probability, tries + 1) >= chance_in_tries(probability, tries) - 1e-12
