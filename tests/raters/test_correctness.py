"""Agreement, samples and bounds come to what was computed by hand; votes go back into the data."""

import math
from collections import Counter

import pytest

from mustsee.errors import UserError
from mustsee.raters.agreement import agreement
from mustsee.raters.ballots import Cast
from mustsee.raters.correctness import bound, checked, decided, evidence, sample
from mustsee.raters.form import Field, Form
from mustsee.raters.results import rated, results
from mustsee.records import Question, Verdict

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", C: four observers, twelve
# units, missing values; nominal alpha 0.743.
UNITS = (
    "111", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", "555", "11", "3",
)  # fmt: skip


def test_alpha_of_the_published_example() -> None:
    found = agreement([list(unit) for unit in UNITS])
    assert found.alpha is not None
    assert found.units == 11  # one answer pairs with nothing
    assert found.alpha.value == pytest.approx(0.743, abs=5e-4)
    assert found.alpha.low is not None
    assert found.alpha.low < 0.743 < found.alpha.high


def test_alpha_by_hand() -> None:
    # aa ab bb: a 3, b 3; observed disagreement 2/6; expected 2*3*3/(6*5) = 0.6; alpha 1 - 5/9
    found = agreement([["a", "a"], ["a", "b"], ["b", "b"]])
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(4 / 9)
    assert found.same == pytest.approx(2 / 3)


def test_nothing_to_tell_agreement_by() -> None:
    assert agreement([["a", "a"], ["a", "a"]]).alpha is None
    assert agreement([["a", "a"], ["a", "a"]]).same == 1.0
    assert agreement([["a"], []]).same is None


def question(name: str, kind: str, video: str) -> Question:
    return Question(
        question_id=name, video_id=video, recipe="r", question="?", question_type=kind, answer="a"
    )


def test_a_sample_has_each_type_and_film_in_its_share() -> None:
    some = [question(f"{k}{v}{i}", k, v) for k in "xyz" for v in "ab" for i in range(50)]
    some += [question(f"rare{i}", "rare", "a") for i in range(30)]
    drawn = sample(some, 66, seed=4)  # one in five
    assert len({q.question_id for q in drawn}) == 66
    assert drawn == sample(list(reversed(some)), 66, seed=4)
    counts = Counter((q.question_type, q.video_id) for q in drawn)
    assert all(abs(counts[k, v] - 10) <= 1 for k in "xyz" for v in "ab")
    assert abs(counts["rare", "a"] - 6) <= 1
    assert sorted(q.question_id for q in sample(some, None)) == sorted(q.question_id for q in some)
    assert len({q.question_type for q in drawn[:20]}) > 1  # those seen first are a sample too


def test_evidence_by_hand() -> None:
    # all n right: 1 / ((n + 1) share^n) must reach 20
    assert evidence(3, 3, 0.5) == pytest.approx(math.log(1 / 4 / 0.125))
    assert evidence(1, 2, 0.5) == pytest.approx(math.log((1 / 6) / 0.25))
    first = next(n for n in range(1, 1000) if decided(n, n, 0.95))
    assert (first + 1) * 0.95**first <= 0.05 < first * 0.95 ** (first - 1)
    assert decided(first, first, 0.95) == "above"
    assert decided(5, 10, 0.95) == "below"
    assert decided(95, 100, 0.95) is None
    assert decided(0, 0, 0.95) is None


@pytest.mark.parametrize(("right", "n"), [(10, 10), (95, 100), (0, 5), (180, 200)])
def test_the_bound_is_where_the_evidence_is(right: int, n: int) -> None:
    low = bound(right, n)
    assert low <= right / n
    if right:
        assert evidence(right, n, low) == pytest.approx(math.log(20), abs=1e-6)


def test_looking_after_every_question_misleads_at_most_one_time_in_twenty() -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        hits = np.cumsum(rng.random(300) < 0.9)
        wrong += any(evidence(int(h), i + 1, 0.9) >= math.log(20) for i, h in enumerate(hits))
    assert wrong / 400 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


FORM = Form(
    name="verify",
    title="?",
    fields=(
        Field(name="ok", ask="ok?", options=("yes", "no")),
        Field(name="ticks", ask="which?", options=("a", "b"), many=True, needed=False),
        Field(name="note", ask="note", needed=False),
    ),
    right={"ok": "yes"},
    falls={"ok": "no"},
)


def cast(question_id: str, rater: str, ok: str, **more: str) -> Cast:
    return Cast(
        question_id=question_id, rater=rater, answers={"ok": ok, **more}, seconds=9.0, at=0.0
    )


def test_results_by_hand() -> None:
    said = {"q1": "yes yes yes", "q2": "yes no yes", "q3": "no no yes", "q4": "yes yes"}
    votes = [
        cast(name, f"r{i}", ok, ticks="a,b" if i else "b,a")
        for name, some in said.items()
        for i, ok in enumerate(some.split())
    ]
    films = {"q1": "a", "q2": "b", "q3": "c", "q4": "d", "q5": "e"}
    found = results(FORM, films, [*films], votes, raters=3, wanted=0.95)
    assert (found.complete, found.votes, found.raters, found.asked) == (3, 11, 3, 5)
    assert found.checked is not None
    assert (found.checked.n, found.checked.right, found.checked.by) == (3, 2, "people")
    assert found.checked.low == pytest.approx(0.2077, abs=1e-4)  # Wilson of 2 in 3
    assert found.checked.lower == found.checked.low_whenever < found.checked.low  # q4, q5 to come
    # pairs that agree: 1, 1/3, 1/3, 1
    assert found.fields["ok"].same == pytest.approx(2 / 3)
    assert found.fields["ticks"].same == 1.0  # the order of ticks says nothing
    assert found.plain()["said"].startswith("3 checked by people, 2 right (66.7%; lower bound")


def test_nobody_checked_is_no_figure() -> None:
    assert checked({}, {}, asked=3, by="people", wanted=0.9) is None
    assert "said" not in results(FORM, {}, [], [], raters=3, wanted=0.9).plain()


def test_votes_are_written_once_and_drop_by_most() -> None:
    seen = Verdict(filter="sight", model="m")
    some = [question(n, "k", "v") for n in ("q1", "q2", "q3")]
    some[0] = Question(**{**vars(some[0]), "verdicts": (seen,)})
    votes = [cast("q1", r, "no") for r in "ab"] + [cast("q1", "c", "yes"), cast("q2", "a", "no")]
    once = rated(FORM, some, votes, raters=3)
    assert [len(q.verdicts) for q in once] == [4, 1, 0]
    assert once[0].verdicts[0] == seen
    assert once[0].verdicts[1].model == "rater:a"
    assert [q.drop for q in once] == ["people_verify: ok=no", None, None]
    assert rated(FORM, once, votes, raters=3) == once
    mended = [cast("q1", r, "yes") for r in "abc"]
    assert rated(FORM, once, mended, raters=3)[0].drop is None


@pytest.mark.parametrize(
    ("answers", "faults"),
    [
        ({"ok": "yes"}, 0),
        ({"ok": "yes", "ticks": "a,b", "note": "x"}, 0),
        ({}, 1),
        ({"ok": "yes,no"}, 1),
        ({"ok": "<script>"}, 1),
        ({"ok": "yes", "ticks": "a,a"}, 1),
        ({"ok": "yes", "ticks": "a,c"}, 1),
        ({"ok": "yes", "other": "1"}, 1),
        ({"ok": "yes", "note": "x" * 4001}, 1),
    ],
)
def test_a_form_says_what_is_wrong(answers: dict[str, str], faults: int) -> None:
    assert len(FORM.faults(answers)) == faults


def test_a_form_with_a_rule_for_no_option_is_refused() -> None:
    with pytest.raises(UserError, match="maybe"):
        Form(name="f", title="", fields=FORM.fields, right={"ok": "maybe"})
    with pytest.raises(UserError, match="one name"):
        Form(name="f", title="", fields=(FORM.fields[0], FORM.fields[0]))
