"""Comparisons of evaluations: the numbers beside scripts of their own, clusters, ties, questions
that a model lacks, and measures that are kept apart.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from mustsee.errors import UserError
from mustsee.evaluate import compare, score
from mustsee.evaluate.answers import (
    GRADE,
    NOT_IN_FILE,
    verdict_on_failure,
    verdict_on_reply,
    with_answers,
)
from mustsee.evaluate.compare import (
    ABSENT,
    CHOICE,
    FAILED,
    IOU,
    JUDGED,
    NO_REPLY,
    POINTS,
    RUBRIC,
    UNGRADED,
    ComparedEvaluation,
    ComparisonTable,
    Measure,
    PeopleScores,
    compare_models,
    score_evaluation,
)
from mustsee.evaluate.scorers.official import MLVU_7
from mustsee.records import Point, Question, Verdict, Video
from mustsee.stats import Difference
from tests.evaluate.test_score import TYPES, ask, right, two_models, wrong


def evaluate(questions: Sequence[Question], folder: str = "e", **fields: Any) -> ComparedEvaluation:
    clusters = fields.pop("clusters", {})
    scored = score_evaluation(questions, clusters, fields.pop("names", ()))
    return ComparedEvaluation(folder=folder, dataset=fields.pop("dataset", "d"), **scored, **fields)


def answered(shares: Sequence[float], model: str, seed: int, per_video: int = 3) -> list[Question]:
    """Questions of which a model has a share right, by the type of the question."""
    rng = random.Random(seed)
    return [
        (right if rng.random() < shares[i % 3] else wrong)(
            replace(ask(i, TYPES[i % 3]), video_id=f"v{i // per_video}"), model
        )
        for i in range(120)
    ]


def test_the_numbers_are_those_of_a_script_of_ten_lines() -> None:
    a, b = answered((0.9, 0.7, 0.5), "a", 1), answered((0.6, 0.6, 0.4), "b", 2)
    (table,) = compare_models([evaluate(a, "A"), evaluate(b, "B")])

    hits = {
        m: np.array([q.verdicts[0].correct for q in of], float) for m, of in (("a", a), ("b", b))
    }
    videos = np.array([int(q.video_id[1:]) for q in a])
    gap = hits["a"] - hits["b"]
    sums = [(gap[videos == v] - gap.mean()).sum() for v in range(40)]
    error = math.sqrt(sum(s * s for s in sums) * 40 / 39) / 120
    p = 2 * scipy_stats.t.sf(abs(gap.mean()) / error, 39)

    values = {row.name: [e.value for e in row.estimates if e] for row in table.rows}
    for name, of in hits.items():
        by_type = {kind: of[i::3].mean() for i, kind in enumerate(TYPES)}
        expected = [
            of.mean(),
            np.mean(list(by_type.values())),
            *(by_type[k] for k in sorted(TYPES)),
        ]
        assert values[name] == pytest.approx(expected)
    (pair,) = table.pairs
    assert (pair.a, pair.b) == ("a", "b")
    assert pair.difference.value == pytest.approx(gap.mean())
    assert pair.difference.p == pytest.approx(p)
    assert pair.difference.p_holm == pytest.approx(p)
    assert pair.beyond_noise == (p < 0.05)
    assert [c.name for c in table.columns] == ["all questions", "mean of types", *sorted(TYPES)]
    assert [c.chance for c in table.columns] == [pytest.approx(1 / 3)] * 5
    assert (table.asked, table.common, table.videos) == (120, 120, 40)


def test_scores_and_intervals_are_those_of_evaluate() -> None:
    questions = two_models()
    (table,) = compare_models([evaluate(questions)])
    results = {one.model: one for one in score.score(questions)}
    columns = [c.name for c in table.columns]
    for row in table.rows:
        mine = dict(zip(columns, row.estimates, strict=True))
        assert mine["all questions"] == results[row.name].weighted
        assert mine["mean of types"] == results[row.name].macro
        for kind in TYPES:
            assert mine[kind] == results[row.name].types[kind].accuracy


def test_ranks_that_differ_beyond_noise_are_told_from_those_that_do_not() -> None:
    (table,) = compare_models([evaluate(two_models())])
    first, *others = table.rows
    assert (first.name, first.rank, first.best, first.worst, first.apart) == ("good", 1, 1, 1, True)
    assert {row.name for row in others} == {"bad", "also bad"}
    assert [(row.rank, row.best, row.worst) for row in others] == [(2, 2, 3), (3, 2, 3)]
    assert [row.apart for row in others] == [False, None]
    pairs = {(pair.a, pair.b): pair for pair in table.pairs}
    assert all(pair.difference.value >= 0 for pair in table.pairs)
    assert all((pair.difference.p_holm or 0) >= pair.difference.p for pair in table.pairs)
    assert sum(pair.beyond_noise for pair in pairs.values()) == 2


def test_p_values_are_adjusted_over_all_pairs() -> None:
    given = (("a", 0.62, 8), ("b", 0.5, 8), ("c", 0.5, 3))
    made = [evaluate(answered((share,) * 3, name, seed), name) for name, share, seed in given]
    (table,) = compare_models(made)
    first, second, third = sorted(table.pairs, key=lambda pair: pair.difference.p)
    p = [pair.difference.p for pair in (first, second, third)]
    adjusted = [min(1.0, 3 * p[0]), min(1.0, max(3 * p[0], 2 * p[1]))]
    adjusted.append(max(adjusted[1], p[2]))
    found = [pair.difference.p_holm for pair in (first, second, third)]
    assert found == pytest.approx(adjusted)
    one = Difference(value=0.1, low=0.0, high=0.2, p=0.03, n=9, clusters=9, method="clustered t")
    assert compare.Comparison(a="a", b="b", difference=one).beyond_noise
    many = replace(one, p_holm=0.09)
    assert not compare.Comparison(a="a", b="b", difference=many).beyond_noise


def test_many_questions_on_few_videos_are_no_more_than_these_videos() -> None:
    """A gap of ten points that comes from three of 40 videos is noise, and is not if each question
    has a video of its own.
    """

    def table(per_video: int) -> ComparisonTable:
        better = [ask(i, video_id=f"v{i // per_video}") for i in range(120)]
        a = [right(q, "a") for q in better]
        b = [(wrong if i < 12 else right)(q, "b") for i, q in enumerate(better)]
        (found,) = compare_models([evaluate(a, "A"), evaluate(b, "B")])
        return found

    apart, together = table(1), table(4)
    assert apart.rows[0].apart is True
    assert together.pairs[0].difference.clusters == 30
    assert together.pairs[0].difference.p > apart.pairs[0].difference.p
    assert together.rows[0].apart is False
    assert [(row.best, row.worst) for row in together.rows] == [(1, 2), (1, 2)]


def test_clips_of_one_video_are_one_cluster() -> None:
    videos = [Video(video_id=f"v{i}", uri="", source=f"film{i // 10}") for i in range(40)]
    questions = answered((0.5, 0.5, 0.5), "a", 1)
    (table,) = compare_models([evaluate(questions, clusters=score.clusters_of(videos))])
    assert table.videos == 4
    assert table.rows[0].estimates[0] == score.score(questions, videos)[0].weighted


def test_equal_scores_share_a_rank() -> None:
    questions = [right(wrong(right(wrong(ask(3 * i), "c"), "a"), "d"), "b") for i in range(20)]
    (table,) = compare_models([evaluate(questions)])
    assert [(row.name, row.rank) for row in table.rows] == [("a", 1), ("b", 1), ("c", 3), ("d", 3)]
    assert [row.apart for row in table.rows] == [False, True, False, None]
    assert [(row.best, row.worst) for row in table.rows] == [(1, 2), (1, 2), (3, 4), (3, 4)]
    assert {(p.a, p.b): p.difference.p for p in table.pairs}["a", "b"] == 1.0


def test_one_video_has_no_interval_and_no_difference() -> None:
    questions = [wrong(right(ask(i, video_id="v"), "a"), "b") for i in range(9)]
    (table,) = compare_models([evaluate(questions)])
    assert table.videos == 1
    assert [(row.best, row.worst) for row in table.rows] == [(1, 2), (1, 2)]


def test_questions_that_a_model_lacks_are_named_and_left_out_for_all() -> None:
    base = [ask(3 * i) for i in range(10)]
    a = [right(q, "a") for q in base]
    b = [wrong(q, "b") if i < 5 else right(q, "b") for i, q in enumerate(base[:9])]
    b[0] = with_answers(base[0], [verdict_on_failure("down", model="b")])
    b[1] = base[1]
    b[2] = replace(b[2], drop="a person: faulty")
    (table,) = compare_models([evaluate(a, "A"), evaluate(b, "B")])
    assert (table.asked, table.common) == (10, 6)
    lacks = {row.name: row.without for row in table.rows}
    assert lacks["a"] == {}
    assert lacks["b"] == {FAILED: ("q0",), NO_REPLY: ("q3",), ABSENT: ("q6", "q27")}
    values = {row.name: row.estimates[0] for row in table.rows}
    assert values["a"] is not None
    assert values["b"] is not None
    assert (values["a"].n, values["b"].n) == (6, 6)
    assert values["b"].value == pytest.approx(4 / 6)


def test_models_without_a_common_question_are_refused() -> None:
    base = [ask(3 * i) for i in range(4)]
    three = [evaluate([right(q, m) for q in base[n : n + 2]], m) for n, m in enumerate("abc")]
    with pytest.raises(UserError, match=r"'d' has a score of every model.*a \(2\), b \(2\), c \(2"):
        compare_models(three)


def written(number: int, model: str, by: str, detail: dict[str, Any], **fields: Any) -> Question:
    question = ask(number, options=(), answer_index=None, answer="x", **fields)
    reply = verdict_on_reply(question, "said", model=model)
    text = json.dumps({"of": model, "rotation": 0, **detail})
    correct = detail.get("correct")
    return replace(
        question,
        verdicts=(reply, Verdict(filter=GRADE, model=by, correct=correct, detail=text)),
    )


def test_each_measure_and_each_grader_has_a_table_of_its_own() -> None:
    points = {"points": (Point(text="p"),), "skill": "cause"}
    one = [right(ask(0), "a"), written(1, "a", "judge 1", {"correct": True}),
           written(2, "a", "grader", {"score": 0.75, "missed": [], "contradicted": [], "points": 1,
                                      "share": 1.0, "by_points": True}, **points),
           written(3, "a", "grader", {"first": 3, "second": 4}, question_type="summary"),
           written(4, "a", "grader", {"error": "no JSON"})]  # fmt: skip
    other = [wrong(ask(0), "b"), written(1, "b", "judge 2", {"correct": False})]
    tables = compare_models([evaluate(one, "A"), evaluate(other, "B")])
    found = {t.measure: {row.name: row.estimates[0] for row in t.rows} for t in tables}
    values = {m: {n: e.value for n, e in rows.items() if e} for m, rows in found.items()}
    assert values == {
        Measure(CHOICE): {"a": 1.0, "b": 0.0},
        Measure(JUDGED, "judge 1"): {"a": 1.0},
        Measure(JUDGED, "judge 2"): {"b": 0.0},
        Measure(POINTS, "grader"): {"a": 0.75},
        Measure(RUBRIC, "grader"): {"a": 7.0},
    }
    absent = {t.measure: t.absent for t in tables}
    assert absent[Measure(JUDGED, "judge 1")] == ("b",)
    assert absent[Measure(CHOICE)] == ()
    assert evaluate(one).models[0].without == {"q4": UNGRADED}
    (result,) = score.score(one)
    assert result.written is not None
    assert result.by_points is not None
    assert result.written.judged == found[Measure(JUDGED, "judge 1")]["a"]
    assert result.by_points.score == found[Measure(POINTS, "grader")]["a"]


def test_unparsed_replies_are_wrong_and_questions_without_an_answer_have_no_score() -> None:
    odd = with_answers(ask(0), [verdict_on_reply(ask(0), "no idea", model="a")])
    keyless = right(ask(6, answer_index=None), "a")
    evaluation = evaluate([odd, right(ask(3), "a"), keyless])
    assert evaluation.no_key == 1
    assert list(evaluation.questions) == ["q0", "q3"]
    (table,) = compare_models([evaluation])
    assert table.rows[0].estimates[0] is not None
    assert table.rows[0].estimates[0].value == 0.5


def test_columns_are_splits_types_and_skills_that_divide_the_questions() -> None:
    made = [
        right(ask(3 * i, ("Counting", "Order")[i % 2], form="after" if i < 2 else "before",
                  metrics={"hardness": float(i < 3)}, subsets=("full",)), "a")
        for i in range(6)
    ]  # fmt: skip
    (table,) = compare_models([evaluate(made)])
    assert [(c.group, c.name, len(c.questions)) for c in table.columns] == [
        ("", "all questions", 6), ("average", "mean of types", 6), ("split", "hard", 3),
        ("split", "not hard", 3), ("split", "form after", 2), ("split", "form before", 4),
        ("type", "Counting", 3), ("type", "Order", 3),
    ]  # fmt: skip


def test_guessing_is_computed_from_the_options_of_each_column() -> None:
    two = [right(ask(3 * i, "Two", options=("x", "y"), answer_index=0), "a") for i in range(3)]
    three = [right(ask(90 + 3 * i, "Three"), "a") for i in range(1)]
    (table,) = compare_models([evaluate([*two, *three])])
    chances = {c.name: c.chance for c in table.columns}
    assert chances == {
        "all questions": pytest.approx((3 / 2 + 1 / 3) / 4),
        "mean of types": pytest.approx((1 / 2 + 1 / 3) / 2),
        "Two": 0.5,
        "Three": pytest.approx(1 / 3),
    }


def test_mlvu_has_the_two_averages_of_table_2() -> None:
    """M-Avg is the mean of seven tasks with options, G-Avg that of the two with rubrics; each is of
    tasks, not of questions.
    """
    questions = [right(ask(3 * i, kind), "a") for i, kind in enumerate(MLVU_7)]
    questions += [wrong(ask(n, "count"), "a") for n in (300, 303, 306)]
    grades = ((3, 4, "summary"), (5, 5, "summary"), (4, 4, "summary"), (1, 2, "subPlot"))
    questions += [
        written(400 + n, "a", "grader", {"first": one, "second": two}, question_type=kind)
        for n, (one, two, kind) in enumerate(grades)
    ]
    tables = {t.measure.kind: t for t in compare_models([evaluate(questions)])}
    averages = {
        kind: {
            column.name: estimate.value
            for column, estimate in zip(table.columns, table.rows[0].estimates, strict=True)
            if estimate is not None and column.group in ("", compare.AVERAGE)
        }
        for kind, table in tables.items()
    }
    m_avg = (6 + 1 / 4) / 7
    assert averages[CHOICE] == pytest.approx(
        {"all questions": 7 / 10, "mean of types": m_avg, "M-Avg (7 tasks)": m_avg}
    )
    g_avg = ((7 + 10 + 8) / 3 + 3) / 2
    assert averages[RUBRIC] == pytest.approx({"all questions": 28 / 4, "G-Avg": g_avg})
    (result,) = score.score(questions)
    assert result.named == {"M-Avg (7 tasks)": pytest.approx(m_avg)}
    assert result.rubric is not None
    assert result.rubric.g_avg == pytest.approx(g_avg)


def test_models_of_one_name_are_named_with_their_folders() -> None:
    same = [evaluate([right(ask(0), "m")], "A"), evaluate([wrong(ask(0), "m")], "B")]
    (table,) = compare_models(same)
    assert [row.name for row in table.rows] == ["m (A)", "m (B)"]


def test_people_have_a_row_on_the_questions_that_they_answered() -> None:
    evaluation = evaluate(answered((0.5, 0.5, 0.5), "a", 1))
    people = PeopleScores(name="study", scores={"q0": 1.0, "q3": 2 / 3, "q9": 1.0, "other": 0.0})
    (table,) = compare_models([evaluation], [people])
    estimates = dict(zip([c.name for c in table.columns], table.people["study"], strict=True))
    assert estimates["all questions"] is not None
    assert estimates["all questions"].value == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert estimates["all questions"].n == 3
    assert estimates["Summarization"] is None
    assert estimates["mean of types"] is None
    assert compare_models([evaluation], [PeopleScores(name="s", scores={"x": 1.0})])[0].people == {}


def test_a_model_whose_calls_all_failed_is_named() -> None:
    failed = [with_answers(ask(0), [verdict_on_failure("down", model="b")])]
    tables = compare_models(
        [evaluate([right(ask(0), "a")], "A"), evaluate(failed, "B", names=["b"])]
    )
    assert [(t.absent, t.common) for t in tables] == [(("b",), 1)]


def test_every_reason_has_words() -> None:
    from mustsee.evaluate.compare_show import MEASURES, REASONS

    assert {*REASONS} == {FAILED, NOT_IN_FILE, NO_REPLY, UNGRADED, ABSENT}
    assert {*MEASURES} == {CHOICE, JUDGED, POINTS, RUBRIC, IOU}
    assert compare.MAX_P == 0.05
