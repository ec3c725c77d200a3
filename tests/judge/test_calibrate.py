"""Thresholds, intervals and calibration: properties, and published figures."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.judge import calibrate
from mustsee.judge import data as equivalence_data
from mustsee.judge.judge import Identity, Record, sigmoid
from tests.support.material import material

PAIRS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([i / 8 for i in range(9)])), min_size=1, max_size=30
)
NQ = "answer_equivalence/ehsk+OpenQA-eval/data"


@given(PAIRS)
def test_no_other_threshold_has_a_better_f1(pairs: list[tuple[bool, float]]) -> None:
    labels, scores = zip(*pairs, strict=True)
    choice = calibrate.choose(labels, scores)
    thresholds = [-0.1, *np.linspace(0, 1, 33), 1.1]
    f1s = [calibrate.f1(labels, np.array(scores) > c) for c in thresholds]
    assert choice.f1 == pytest.approx(max(f1s))
    if 0 < choice.threshold < 1 and choice.threshold not in scores:
        verdicts = np.array(scores) > choice.threshold
        assert calibrate.f1(labels, verdicts) == pytest.approx(choice.f1)


def test_the_threshold_is_the_middle_of_the_plateau() -> None:
    choice = calibrate.choose([False, False, True, True], [0.1, 0.2, 0.8, 0.9])
    assert (choice.threshold, choice.f1) == (pytest.approx(0.5), 1.0)
    # 0.5 and 0.9 reach the same F1; the range around 0.5 is wider.
    tied = calibrate.choose([True, False, False, True, False], [0.99, 0.85, 0.2, 0.8, 0.1])
    assert tied.low < tied.threshold < tied.high


def test_without_positives_f1_is_zero() -> None:
    assert calibrate.choose([False, False], [0.2, 0.7]).f1 == 0
    assert calibrate.f1([False], [False]) == 0


@given(PAIRS)
def test_auc_is_the_share_of_pairs_in_the_right_order(pairs: list[tuple[bool, float]]) -> None:
    high = [s for y, s in pairs if y]
    low = [s for y, s in pairs if not y]
    auc = calibrate.auc([y for y, _ in pairs], [s for _, s in pairs])
    if not high or not low:
        assert math.isnan(auc)
        return
    right = sum((h > n) + (h == n) / 2 for h in high for n in low)
    assert auc == pytest.approx(right / len(high) / len(low))


def test_temperature_recovers_the_true_one() -> None:
    rng = np.random.default_rng(0)
    true_logits = rng.normal(0, 2, 6000)
    labels = rng.random(6000) < 1 / (1 + np.exp(-true_logits))
    assert calibrate.temperature(labels, 3 * true_logits) == pytest.approx(3, rel=0.1)
    scores = 1 / (1 + np.exp(-true_logits))
    assert calibrate.calibration_error(labels, scores) < 0.03
    bins = calibrate.reliability(labels, scores)
    assert sum(b.n for b in bins) == 6000
    assert all(b.low <= b.score <= b.high for b in bins)


def test_the_nested_estimate_is_below_the_same_set_f1_on_noise() -> None:
    """On random scores, the same-set F1 is never below the nested one, and above it on average."""
    gains = []
    for seed in range(12):
        rng = random.Random(seed)
        labels = [rng.random() < 0.3 for _ in range(60)]
        scores = [rng.random() for _ in labels]
        groups = [str(i // 3) for i in range(60)]
        same_set = calibrate.choose(labels, scores).f1
        gains.append(same_set - calibrate.nested_f1(labels, scores, groups))
    assert min(gains) > -1e-9
    assert np.mean(gains) > 0.01


def test_intervals_draw_whole_questions() -> None:
    """Ten copies of an answer are one observation: the interval has the same width."""
    rng = np.random.default_rng(1)
    labels = rng.random(60) < 0.5
    scores = np.clip(labels * 0.3 + rng.random(60) * 0.7, 0, 1)
    groups = [str(i) for i in range(60)]
    once = calibrate.interval(calibrate.brier, labels, scores, groups, draws=400)
    many = calibrate.interval(
        calibrate.brier,
        np.repeat(labels, 10),
        np.repeat(scores, 10),
        [g for g in groups for _ in range(10)],
        draws=400,
    )
    assert many[1] - many[0] == pytest.approx(once[1] - once[0], rel=0.3)


def test_precision_and_recall_have_a_point_per_distinct_score() -> None:
    labels, scores = [True, False, True, True], [0.9, 0.8, 0.7, 0.1]
    values, precision, recall = calibrate.precision_recall(labels, scores)
    assert list(values) == [0.1, 0.7, 0.8, 0.9]
    assert (precision[0], recall[0]) == (0.75, 1.0)
    assert (precision[-1], recall[-1]) == (1.0, pytest.approx(1 / 3))


@pytest.mark.parametrize("bad", [([], []), ([True], [0.1, 0.2]), ([True], [math.nan])])
def test_empty_unequal_or_nan_inputs_are_refused(bad: tuple[list[bool], list[float]]) -> None:
    with pytest.raises(UserError):
        calibrate.choose(*bad)


@settings(max_examples=20)
@given(st.lists(st.floats(-20, 20), min_size=4, max_size=40), st.integers(0, 2**32))
def test_a_record_is_the_same_after_a_round_trip(logits: list[float], seed: int) -> None:
    rng = random.Random(seed)
    labels = [True, False, *(rng.random() < 0.5 for _ in logits[2:])]
    identity = Identity(engine="mini", weights="w", prompt="p")
    groups = [str(i // 2) for i in range(len(logits))]
    record = calibrate.record(identity, labels, logits, groups, dev="d")
    loaded = Record.load(record.dump())
    assert loaded.dump() == record.dump()
    assert 0 < loaded.threshold < 1
    verdicts = [sigmoid(z / record.temperature) > record.threshold for z in logits]
    assert calibrate.f1(labels, verdicts) == pytest.approx(record.f1)


def test_bem_and_gpt4_have_their_published_figures_on_nq301() -> None:
    """The readers reproduce the published figures of both judges on the 1,489 labelled pairs."""
    human = material(f"{NQ}/NQ301_human.tsv")
    gold = material(f"{NQ}/NQ301_BEM.tsv")
    pairs = equivalence_data.read_nq301(human, gold)
    assert len(pairs) == 1489
    labels = [p.label for p in pairs]
    bem = equivalence_data.read_rival(gold)
    scores = [equivalence_data.match(p, bem).score for p in pairs]
    assert calibrate.auc(labels, scores) == pytest.approx(0.852, abs=0.002)
    assert calibrate.choose(labels, scores).f1 == pytest.approx(0.809, abs=0.002)
    gpt = equivalence_data.read_rival(material(f"{NQ}/NQ301_gpt-4.tsv"))
    verdicts = [equivalence_data.match(p, gpt) for p in pairs]
    gpt_verdicts = [bool(v and v.score) for v in verdicts]
    assert calibrate.f1(labels, gpt_verdicts) == pytest.approx(0.857, abs=0.002)
