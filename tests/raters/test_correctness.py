"""Agreement, samples, bounds and results have the values computed by hand."""

import math
from collections import Counter

import pytest

from mustsee.raters.assignment import items
from mustsee.raters.ballots import CastVote
from mustsee.raters.correctness import bound, decide_bound, evidence, measure_correctness, sample
from mustsee.raters.form import FormField, FormStep, RatingForm, Round
from mustsee.raters.results import agreement, overlap, results
from mustsee.records import Question, Span

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", C: four observers, twelve
# units, missing values; nominal alpha 0.743.
UNITS = (
    "111", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", "555", "11", "3",
)  # fmt: skip


def test_alpha_has_the_value_of_the_published_example() -> None:
    result = agreement([list(unit) for unit in UNITS])
    assert result.alpha is not None
    assert result.units == 11  # the item with one answer is left out
    assert result.alpha.value == pytest.approx(0.743, abs=5e-4)
    assert result.alpha.low is not None
    assert result.alpha.low < 0.743 < result.alpha.high


def test_alpha_has_the_value_computed_by_hand() -> None:
    # aa ab bb: a 3, b 3; observed disagreement 2/6; expected 2*3*3/(6*5) = 0.6; alpha 1 - 5/9
    result = agreement([["a", "a"], ["a", "b"], ["b", "b"]])
    assert result.alpha is not None
    assert result.alpha.value == pytest.approx(4 / 9)
    assert result.same is not None
    assert result.same.value == pytest.approx(2 / 3)


def test_overlap_has_the_value_computed_by_hand() -> None:
    # 0-4 and 2-6 share 2 of 6 seconds; 0-1 and 3-4 merge to 0-4, of which 0-2 is half; no spans of
    # either rater are full agreement.
    spans = [
        [[Span(0, 4)], [Span(2, 6)]], [[Span(0, 1), Span(3, 4)], [Span(0, 2)]], [[], []], [[]],
    ]  # fmt: skip
    result = overlap(spans, ["a", "b", "c", "d"])
    assert result.same is not None
    assert (result.units, result.same.value) == (3, pytest.approx((1 / 3 + 1 / 2 + 1) / 3))


def test_alpha_is_undefined_if_all_answers_are_equal() -> None:
    assert agreement([["a", "a"], ["a", "a"]]).alpha is None
    same = agreement([["a", "a"], ["a", "a"]]).same
    assert same is not None
    assert same.value == 1.0
    assert agreement([["a"], []]).same is None


def question(name: str, kind: str, video: str) -> Question:
    return Question(
        question_id=name, video_id=video, recipe="r", question="?", question_type=kind, answer="a"
    )


def test_a_sample_has_each_type_and_video_in_proportion() -> None:
    questions = [question(f"{k}{v}{i}", k, v) for k in "xyz" for v in "ab" for i in range(50)]
    questions += [question(f"rare{i}", "rare", "a") for i in range(30)]
    drawn = sample(questions, 66, seed=4)  # one in five
    assert len({q.question_id for q in drawn}) == 66
    assert drawn == sample(list(reversed(questions)), 66, seed=4)
    counts = Counter((q.question_type, q.video_id) for q in drawn)
    assert all(abs(counts[k, v] - 10) <= 1 for k in "xyz" for v in "ab")
    assert abs(counts["rare", "a"] - 6) <= 1
    assert sorted(q.question_id for q in sample(questions, None)) == sorted(
        q.question_id for q in questions
    )
    assert len({q.question_type for q in drawn[:20]}) > 1  # the first ones are a sample too


def test_evidence_has_the_value_computed_by_hand() -> None:
    # With all n right, 1 / ((n + 1) share^n) must reach 20.
    assert evidence(3, 3, 0.5) == pytest.approx(math.log(1 / 4 / 0.125))
    assert evidence(1, 2, 0.5) == pytest.approx(math.log((1 / 6) / 0.25))
    first = next(n for n in range(1, 1000) if decide_bound(n, n, 0.95))
    assert (first + 1) * 0.95**first <= 0.05 < first * 0.95 ** (first - 1)
    assert decide_bound(first, first, 0.95) == "above"
    assert decide_bound(5, 10, 0.95) == "below"
    assert decide_bound(95, 100, 0.95) is None
    assert decide_bound(0, 0, 0.95) is None


@pytest.mark.parametrize(("right", "n"), [(10, 10), (95, 100), (0, 5), (180, 200)])
def test_the_bound_is_the_share_at_which_the_evidence_reaches_its_limit(right: int, n: int) -> None:
    low = bound(right, n)
    assert low <= right / n
    if right:
        assert evidence(right, n, low) == pytest.approx(math.log(20), abs=1e-6)


def test_testing_after_every_question_errs_at_most_one_time_in_twenty() -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        hits = np.cumsum(rng.random(300) < 0.9)
        wrong += any(evidence(int(h), i + 1, 0.9) >= math.log(20) for i, h in enumerate(hits))
    assert wrong / 400 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


FORM = RatingForm(
    name="verify",
    title="?",
    rounds=(
        Round(
            name="r",
            steps=(
                FormStep(
                    fields=(
                        FormField(name="ok", ask="ok?", options=("yes", "no")),
                        FormField(name="ticks", ask="which?", kind="ticks", options=("a", "b")),
                        FormField(name="note", ask="note", kind="text", needed=False),
                    )
                ),
            ),
            falls={"ok": ("no",)},
        ),
    ),
    right={"ok": "yes"},
)


def cast(question_id: str, rater: str, ok: str, **more: object) -> CastVote:
    answers = {"ok": ok, **more}
    return CastVote(
        question_id=question_id, round="r", rater=rater, answers=answers, seconds=9.0, at=0.0
    )


def test_results_have_the_values_computed_by_hand() -> None:
    answers = {"q1": "yes yes yes", "q2": "yes no yes", "q3": "no no yes", "q4": "yes yes"}
    votes = [
        cast(name, f"r{i}", ok, ticks=["a", "b"])
        for name, some in answers.items()
        for i, ok in enumerate(some.split())
    ]
    some = {f"q{n}": question(f"q{n}", "k", "abcde"[n - 1]) for n in range(1, 6)}
    outcome = results(FORM, some, items(FORM, [*some], raters=3, people=()), votes, wanted=0.95)
    assert (outcome.complete, outcome.votes, outcome.raters, outcome.asked) == (3, 11, 3, 5)
    assert outcome.checked is not None
    assert (outcome.checked.n, outcome.checked.right, outcome.checked.by) == (3, 2, "people")
    assert outcome.checked.low == pytest.approx(0.2077, abs=1e-4)  # Wilson of 2 in 3
    assert (
        outcome.checked.lower == outcome.checked.low_whenever < outcome.checked.low
    )  # q4 and q5 are incomplete
    # The shares of agreeing pairs are 1, 1/3, 1/3, 1.
    same = outcome.plain()["agreement"]["r.ok"]["same"]
    assert same["value"] == pytest.approx(2 / 3)
    assert same["low"] < 2 / 3 < same["high"]
    assert outcome.plain()["agreement"]["r.ticks"]["same"]["value"] == 1.0
    assert outcome.plain()["said"].startswith("3 checked by people, 2 right (66.7%; lower bound")
    assert (outcome.work["r0"].votes, outcome.work["r0"].median) == (4, 9.0)


def test_there_is_no_figure_without_a_checked_question() -> None:
    assert measure_correctness({}, {}, asked=3, by="people", wanted=0.9) is None
    assert "said" not in results(FORM, {}, [], [], wanted=0.9).plain()
