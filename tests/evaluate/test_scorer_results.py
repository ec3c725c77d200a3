"""The counting over rescored replies: both ways of unreadable ones, draws, and differences."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mustsee.evaluate.answers import verdict_on_failure, verdict_on_reply
from mustsee.evaluate.rescore import RescoredReply, rescore
from mustsee.evaluate.scorer_results import Comparer, ScorerDifference, ScorerResult
from mustsee.evaluate.scorers import SCORERS
from mustsee.records import Question

OPTIONS = ("to run", "to hide", "to eat", "to sleep", "to read")


def answered(
    replies: Sequence[str | None], recipe: str = "neptune", types: Sequence[str] = ("",)
) -> list[Question]:
    """Questions whose right option is B, with a reply each; None: a failed call."""
    questions = list[Question]()
    for number, reply in enumerate(replies):
        question = Question(
            question_id=f"q{number}", video_id="v", recipe=recipe, question="Why?",
            question_type=types[number % len(types)], options=OPTIONS, answer_index=1,
            answer=OPTIONS[1],
        )  # fmt: skip
        verdict = (
            verdict_on_failure("timeout", model="m", prompt="p")
            if reply is None
            else verdict_on_reply(question, reply, model="m")
        )
        questions.append(replace(question, verdicts=(verdict,)))
    return questions


def compare(
    questions: Sequence[Question], scorers: Sequence[str], benchmark: str | None = None
) -> tuple[list[ScorerResult], list[ScorerDifference], list[RescoredReply]]:
    comparer, replies = Comparer(scorers, 2), []
    for reply in rescore(questions, scorers, benchmark, Counter()):
        comparer.add(reply)
        replies.append(reply)
    return comparer.results, comparer.differences, replies


def test_unreadable_replies_count_both_ways() -> None:
    (one,), _, _ = compare(answered(["B", "B", "A", "no idea", "none"]), ["ours"])
    assert (one.replies, one.unreadable) == (5, 2)
    assert one.score == one.with_unreadable_wrong == pytest.approx(2 / 5)
    assert one.without_unreadable == pytest.approx(2 / 3)


def test_a_draw_counts_its_expected_value_with_its_spread() -> None:
    replies = ["B"] * 4 + ["no idea"] * 16
    (one,), _, _ = compare(answered(replies, "egoschema"), ["lmms_eval"])
    assert (one.guessed, one.unreadable) == (16, 16)
    assert one.score == pytest.approx((4 + 16 / 5) / 20)
    rng = random.Random(1)
    draws = [(4 + sum(rng.random() < 1 / 5 for _ in range(16))) / 20 for _ in range(4000)]
    mean = sum(draws) / len(draws)
    assert mean == pytest.approx(one.score, abs=0.01)
    assert (sum((d - mean) ** 2 for d in draws) / len(draws)) ** 0.5 == pytest.approx(
        one.spread, rel=0.1
    )
    assert one.with_unreadable_wrong == pytest.approx(4 / 20)
    assert one.without_unreadable == 1


def test_failed_calls_are_neither_right_nor_unreadable_for_us() -> None:
    ours, theirs = compare(answered(["B", None]), ["ours", "lmms_eval"])[0]
    assert (ours.replies, ours.failed, ours.left_out, ours.unreadable) == (1, 1, 1, 0)
    assert (ours.score, theirs.score, theirs.left_out) == (1, 0.5, 0)
    assert theirs.with_unreadable_wrong == 1


POOL = ["B", "b", "(B)", "A", "E", "", " ", "no idea", "to hide", "a man", "Best option: C", None,
        "The answer is clearly B", "Answer: B because", "C and B", "Because", "to eat, to hide",
        "I would not say B or C"]  # fmt: skip


@pytest.mark.parametrize(
    "benchmark", ["mlvu", "mvbench", "videomme", "egoschema", "cinepile", "neptune"]
)
def test_groups_add_up_to_the_difference_of_the_scores(benchmark: str) -> None:
    """So that every difference is traced to replies, or to how they are averaged."""
    rng = random.Random(benchmark)
    types = ("topic_reasoning", "count", "order") if benchmark == "mlvu" else ("",)
    questions = answered(rng.choices(POOL, k=200), types=types)
    scorers = list(SCORERS)
    results, differences, replies = compare(questions, scorers, benchmark)
    reported = {
        one.scorer: one.score if one.own_average is None else one.own_average for one in results
    }
    assert len(differences) >= 6
    for one in differences:
        if not one.replies:
            assert one.difference is None
            continue
        left, right = reported[one.a], reported[one.b]
        assert left is not None
        assert right is not None
        assert one.difference == pytest.approx(left - right)
        assert sum(group.points for group in one.groups) == pytest.approx(one.difference)
        differing = sum(r.readings[one.a].points != r.readings[one.b].points for r in replies)
        assert sum(group.replies for group in one.groups) == differing


def test_mlvu_s_mean_over_types_counts_a_missing_type_as_zero() -> None:
    questions = answered(["B", "A", "B"], "mlvu", ("count", "count", "order"))
    ours, theirs = compare(questions, ["ours", "lmms_eval"])[0]
    assert ours.own_average is None
    assert theirs.score == pytest.approx(2 / 3)
    assert theirs.own_average == pytest.approx((0.5 + 1) / 7)


def test_a_scorer_without_a_rule_says_so() -> None:
    ours, official = compare(answered(["B"]), ["ours", "official"])[0]
    assert (ours.no_rule, official.no_rule, official.score) == (0, 1, None)
