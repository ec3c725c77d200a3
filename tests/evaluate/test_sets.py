"""Sets that share one list of options, and pairs with opposite answers: their scores, with what
guessing gives.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee import stats
from mustsee.evaluate import score, score_show, shared_results
from mustsee.questions.chance import chance_of_all, chance_of_matching, chance_of_square
from mustsee.records import OPEN, PAIR, SET, Question
from tests.evaluate.test_score import ask, right, wrong

THINGS = ("a red cup", "a blue jug", "a green jar", "a grey pan", "a black pot")


def made_set(name: int, count: int = 5, of: int = 5, *, video: str = "v") -> list[Question]:
    """Questions of a set; each has the shared options in another order."""
    questions: list[Question] = []
    for n in range(count):
        options = THINGS[:of][n:] + THINGS[:of][:n]
        questions.append(
            ask(100 * name + n, options=options, answer_index=0, answer=options[0], relation=SET,
                group=f"q{100 * name}", video_id=video, form="after")
        )  # fmt: skip
    return questions


def answered(questions: list[Question], hits: int) -> list[Question]:
    return [(right if n < hits else wrong)(q) for n, q in enumerate(questions)]


@given(st.integers(2, 5).flatmap(lambda of: st.tuples(st.integers(2, of), st.just(of))))
def test_chance_of_a_set_is_that_of_all_ways_to_answer(sizes: tuple[int, int]) -> None:
    count, of = sizes
    questions = made_set(0, count, of)
    for ways, whole, squared in (
        (product(range(of), repeat=count), chance_of_all(questions), chance_of_square(questions)),
        (
            permutations(range(of), count),
            (matching := chance_of_matching(questions)) and matching.whole,
            matching and matching.squared,
        ),
    ):
        hits = [sum(choice == n for n, choice in enumerate(way)) for way in ways]
        assert whole == pytest.approx(hits.count(count) / len(hits))
        assert squared == pytest.approx(sum((h / count) ** 2 for h in hits) / len(hits))


def test_only_a_shared_list_can_be_matched() -> None:
    first, *others = made_set(0)
    assert chance_of_matching([first, *others]) is not None
    assert chance_of_matching([replace(first, options=(*THINGS[:4], "a bowl")), *others]) is None
    assert chance_of_matching([first, *others, replace(first, question_id="again")]) is None
    assert chance_of_matching([replace(first, answer_index=None), *others]) is None


def test_sets_are_scored_beside_their_questions() -> None:
    hits = [5, 5, 3, 0, 5, 4]  # two sets of each of three videos
    sets = [answered(made_set(n, video=f"v{n // 2}"), h) for n, h in enumerate(hits)]
    alone = made_set(9)[:1]  # the only kept question of its set
    dropped = [replace(q, drop="sight: wrong") for q in made_set(9)[1:]]
    questions = [q for some in sets for q in some]
    (found,) = score.score([*questions, right(alone[0]), *dropped])
    videos = [f"v{n // 2}" for n in range(6)]
    assert found.sets is not None
    assert found.sets.whole == stats.mean([float(h == 5) for h in hits], videos)
    assert found.sets.squared == stats.mean([(h / 5) ** 2 for h in hits], videos)
    assert (found.sets.single.n, found.sets.single.clusters) == (30, 3)
    assert found.sets.single_chance == pytest.approx(1 / 5)
    assert found.sets.whole_matching == pytest.approx(1 / 120)
    assert found.sets.squared_matching == pytest.approx(2 / 25)
    assert found.weighted is not None
    assert found.weighted.n == 31  # each question of a set counts one by one, too
    assert found.splits["form after"].asked == 31
    assert (found.pairs, found.groups) == (None, None)
    cells = list(score_show.table([found]).columns[0].cells)
    assert cells.count("  by a random matching") == 2
    (line,) = score_show.headline([found])
    assert "all right in 50.0" in line
    assert "of 6 sets (chance 0.0 %)" in line


def test_a_set_counts_where_all_its_questions_were_answered() -> None:
    whole, torn = answered(made_set(0), 5), answered(made_set(1), 5)[:-1]
    (found,) = score.score([*whole, *torn, made_set(1)[-1]])
    assert found.sets is not None
    assert found.sets.whole.n == 1
    assert found.failed == 1


def pair(number: int, *, both: bool) -> list[Question]:
    first, second = (
        ask(number + n, relation=PAIR, group=f"q{number}", options=("yes", "no", "cannot tell"),
            answer_index=n, video_id=f"v{number}")
        for n in range(2)
    )  # fmt: skip
    return [right(first), (right if both else wrong)(second)]


def test_a_pair_is_right_if_both_are() -> None:
    questions = [q for n in range(4) for q in pair(10 * n, both=n < 3)]
    (found,) = score.score(questions)
    assert found.pairs is not None
    assert found.pairs.whole.value == pytest.approx(3 / 4)
    assert found.pairs.whole_chance == pytest.approx(1 / 9)
    assert found.pairs.single.value == pytest.approx(7 / 8)
    assert found.sets is None
    assert found.weighted is not None
    assert found.weighted.n == 8
    (line,) = score_show.headline([found])
    assert "both right in 75.0" in line
    assert "of 4 pairs (chance 11.1 %)" in line


def test_a_question_without_options_is_no_member_of_its_sibling_s_set() -> None:
    questions = answered(made_set(0), 5)
    spoken = replace(questions[0], question_id="o", options=(), answer_index=None, verdicts=(),
                     sibling_of="q0", relation=OPEN, group=None)  # fmt: skip
    (found,) = score.score([*questions, spoken])
    assert found.sets is not None
    assert found.sets.whole.value == 1


def test_shared_records_have_the_scores_of_sets(tmp_path: Path) -> None:
    questions = [*answered(made_set(0), 5), *answered(made_set(1, video="w"), 3)]
    questions += pair(500, both=True)
    results = score.score(questions)
    about = shared_results.RecordInfo(dataset="d", when=0.0, version="1", asked_with={})
    (path,) = shared_results.write_every_eval_ever(tmp_path, results, questions, about)
    scores = {
        r["evaluation_result_id"]: r["score_details"]["score"]
        for r in json.loads(path.read_text())["evaluation_results"]
    }
    assert scores["sets all right"] == 0.5
    assert scores["sets share right squared"] == pytest.approx((1 + 9 / 25) / 2)
    assert scores["pairs both right"] == 1
