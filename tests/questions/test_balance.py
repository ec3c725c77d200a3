"""Shortcuts of guessers are found, and drops bring them back to chance."""

import random

import pytest

from mustsee.questions import balance
from mustsee.records import Question


def question(number, options, index, task="t", text="What is it?") -> Question:
    return Question(
        question_id=f"{task}{number:04}",
        video_id="v",
        recipe="mlvu",
        question=text,
        question_type=task,
        options=tuple(options),
        answer_index=index,
        answer=options[index],
    )


def biased(n=400, share=0.6, task="t", seed=1) -> list[Question]:
    """In `share` of the questions the longest option is right."""
    rng = random.Random(f"{seed}/{task}")
    made = []
    for number in range(n):
        lengths = rng.sample(range(5, 40), 4)
        index = rng.randrange(4)
        if rng.random() < share:
            top = lengths.index(max(lengths))
            lengths[top], lengths[index] = lengths[index], lengths[top]
        letters = [rng.choice("abcdefghij") for _ in range(4)]
        options = [letters[k] * lengths[k] + str(k) for k in range(4)]
        made.append(question(number, options, index, task))
    return made


def unfair(questions):
    return {(f.task, f.name) for f in balance.report(questions) if not f.fair}


def test_a_bias_is_reported_and_removed() -> None:
    questions = biased(share=0.4) + biased(task="fair", share=0.0, seed=3)
    before = {(f.task, f.name): f for f in balance.report(questions)}
    longest = before["t", "longest"]
    assert longest.accuracy > 0.45
    assert longest.low > longest.chance == 0.25
    assert ("t", "longest") in unfair(questions)
    done = balance.balance_questions(questions)
    assert not unfair(done)
    assert done == balance.balance_questions(questions)
    gone = [q for q in done if q.drop]
    assert all(q.drop.startswith("balance: ") for q in gone)
    assert 0 < sum(q.question_type == "t" for q in gone) < 230
    assert sum(q.question_type == "fair" for q in gone) < 30
    assert [q.question_id for q in done] == [q.question_id for q in questions]


def test_a_set_that_cannot_be_balanced_keeps_its_least_share() -> None:
    done = balance.balance_questions(biased(200, share=1.0), least=0.7)
    assert sum(q.drop is None for q in done) == 140


def test_accuracy_below_chance_is_a_bias() -> None:
    never = [question(n, ["a", "bb", "ccc", "dddd"], n % 3) for n in range(120)]
    assert {"longest", "D"} <= {name for _, name in unfair(never)}


def test_an_answer_that_is_right_too_often_is_a_bias() -> None:
    rng = random.Random(5)
    made = []
    for number in range(300):
        answer = "3" if rng.random() < 0.5 else rng.choice("1245")
        options = [answer, *rng.sample([x for x in "12345" if x != answer], 3)]
        rng.shuffle(options)
        made.append(question(number, options, options.index(answer), "count"))
    assert ("count", "3") in unfair(made)
    assert not unfair(balance.balance_questions(made, least=0.3))


def test_variations_of_the_answer_make_it_central() -> None:
    made = []
    for number in range(80):
        base = [f"w{number}{k}" for k in range(6)]
        decoys = [[*base[:k], f"x{number}{k}", *base[k + 1 :]] for k in range(3)]
        options = [" ".join(w) for w in (base, *decoys)]
        random.Random(number).shuffle(options)
        made.append(question(number, options, options.index(" ".join(base))))
    found = {f.name: f for f in balance.report(made)}
    assert found["central"].accuracy > 0.95
    assert not found["central"].fair


def test_a_guess_among_equal_scores_counts_its_share() -> None:
    same = question(0, ["aa", "bb", "c"], 0)
    assert balance.hit(same, balance.longest(same)) == 0.5
    assert balance.hit(same, balance.shortest(same)) == 0.0
    with pytest.raises(ValueError, match="max"):
        balance.hit(same, [])


def test_dropped_and_open_ended_questions_are_ignored() -> None:
    from dataclasses import replace

    made = biased(40)
    gone = [replace(q, drop="x") for q in made]
    opened = [replace(q, options=(), answer_index=None) for q in made]
    assert balance.report([*gone, *opened]) == []
    assert balance.balance_questions(gone) == gone
