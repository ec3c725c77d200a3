"""Statistics against scipy and statsmodels, and intervals by simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee import stats


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_statsmodels(case: tuple[int, int]) -> None:
    from statsmodels.stats.proportion import proportion_confint

    assert stats.wilson(*case) == pytest.approx(
        proportion_confint(*case, method="wilson"), abs=1e-9
    )


def test_wilson_has_width_if_all_are_right() -> None:
    assert stats.wilson(15, 15) == pytest.approx((0.796, 1.0), abs=1e-3)
    assert stats.wilson(14, 15) == pytest.approx(
        (0.702, 0.988), abs=1e-3
    )  # Neptune, Goal Reasoning


def clustered(
    rng: np.random.Generator, clusters: int, size: int, share: float, rho: float
) -> tuple[np.ndarray, list[int]]:
    """0/1 scores with intra-cluster correlation `rho` (beta-binomial)."""
    a, b = share * (1 - rho) / rho, (1 - share) * (1 - rho) / rho
    sizes = rng.integers(1, 2 * size, clusters)
    scores = np.concatenate([rng.random(n) < rng.beta(a, b) for n in sizes]).astype(float)
    return scores, np.repeat(np.arange(clusters), sizes).tolist()


def test_the_clustered_error_equals_statsmodels_sandwich() -> None:
    import statsmodels.api as sm

    scores, codes = clustered(np.random.default_rng(1), 30, 8, 0.6, 0.2)
    fit = sm.OLS(scores, np.ones(len(scores))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(codes), "use_correction": False}
    )
    expected = float(fit.bse[0]) * np.sqrt(30 / 29)
    assert stats.clustered_se(scores, codes) == pytest.approx(expected, rel=1e-9)


def test_singletons_give_the_plain_standard_error() -> None:
    scores = np.array([0.0, 1, 1, 0, 1, 1])
    assert stats.clustered_se(scores) == pytest.approx(scores.std(ddof=1) / np.sqrt(6))
    assert stats.mean(scores).method == "wilson"


def coverage(interval: "object", truth: float, runs: int, draw: "object") -> float:
    hits = 0
    for run in range(runs):
        low, high = interval(*draw(np.random.default_rng(run)))  # type: ignore[operator]
        hits += low <= truth <= high
    return hits / runs


@pytest.mark.parametrize("videos", [5, 20, 60])
@pytest.mark.parametrize("share", [0.6, 0.9])
def test_the_clustered_interval_covers_and_the_naive_one_does_not(
    videos: int, share: float
) -> None:
    def draw(rng: np.random.Generator) -> tuple[np.ndarray, list[int]]:
        return clustered(rng, videos, 10, share, 0.15)

    def robust(scores: np.ndarray, codes: list[int]) -> tuple[float, float]:
        found = stats.mean(scores, codes)
        assert found.low is not None
        assert found.high is not None
        return found.low, found.high

    def naive(scores: np.ndarray, codes: list[int]) -> tuple[float, float]:
        return stats.wilson(scores.sum(), len(scores))

    # Five videos at 90 % are often all right or nearly so: then it is wide.
    most = 1.0 if (videos, share) == (5, 0.9) else 0.97
    assert 0.93 <= coverage(robust, share, 1500, draw) <= most
    assert coverage(naive, share, 300, draw) < 0.88


def test_the_bootstrap_of_clusters_covers() -> None:
    def draw(rng: np.random.Generator) -> tuple[np.ndarray, list[int]]:
        return clustered(rng, 60, 6, 0.6, 0.15)

    def interval(scores: np.ndarray, codes: list[int]) -> tuple[float, float]:
        def mean(w: np.ndarray) -> float:
            return float((w * scores).sum() / w.sum())

        found = stats.bootstrap(mean, len(scores), codes, draws=500)
        assert found.low is not None
        assert found.high is not None
        return found.low, found.high

    # 400 runs: one standard error of the coverage itself is 1.1 points.
    assert 0.92 <= coverage(interval, 0.6, 400, draw) <= 0.98


@pytest.mark.parametrize("shared", [False, True])
def test_the_macro_average_covers_whether_or_not_tasks_share_videos(shared: bool) -> None:
    truths = [0.9, 0.6, 0.3]

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, list[int], list[object]]:
        scores, tasks, clusters = [], [], []
        for task, truth in enumerate(truths):
            found, codes = clustered(rng, 40, 4, truth, 0.1)
            scores += found.tolist()
            tasks += [task] * len(found)
            clusters += [c if shared else (task, c) for c in codes]
        return np.array(scores), tasks, clusters

    def interval(
        scores: np.ndarray, tasks: list[int], clusters: list[object]
    ) -> tuple[float, float]:
        found = stats.macro(scores, tasks, clusters, draws=300)  # type: ignore[arg-type]
        assert found.method == ("bootstrap" if shared else "macro")
        assert found.low is not None
        assert found.high is not None
        return found.low, found.high

    assert 0.92 <= coverage(interval, 0.6, 300, draw) <= 0.98


def test_with_few_videos_the_macro_average_still_covers() -> None:
    truths = [0.8, 0.6, 0.4, 0.6]

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, list[int], list[int]]:
        kinds = [int(k) for k in rng.permutation([0, 1, 2, 3] * 6)]
        shift = np.repeat(rng.uniform(-0.1, 0.1, size=3), 8)
        chances = np.array([truths[k] for k in kinds]) + shift
        return (rng.random(24) < chances).astype(float), kinds, np.repeat(np.arange(3), 8).tolist()

    def interval(scores: np.ndarray, tasks: list[int], clusters: list[int]) -> tuple[float, float]:
        found = stats.macro(scores, tasks, clusters, draws=300)
        assert found.method in ("bootstrap t", "wilson on clusters")
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.high <= 1
        return found.low, found.high

    assert coverage(interval, 0.6, 300, draw) >= 0.92


def test_models_with_equal_differences_have_a_p_value_and_no_interval() -> None:
    found = stats.paired_difference([1, 1, 1], [0, 0, 0])
    assert (found.value, found.low, found.high, found.p) == (1, None, None, 0.25)
    same = stats.paired_difference([1, 0, 1], [1, 0, 1], [0, 0, 1])
    assert (same.value, same.low, same.p) == (0, None, 1)
    thirds, videos = [1, 0, 0] * 3, list("aaabbbccc")  # their mean is not an exact number
    found = stats.paired_difference(thirds, [0] * 9, videos)
    assert (found.low, found.high, found.p) == (None, None, 0.25)
    one = stats.mean(thirds, videos)
    assert [one.low, one.high] == [pytest.approx(edge) for edge in stats.wilson(1, 3)]
    assert stats.mean([0.1, 0.2] * 2, list("aabb")).low is None


def test_the_macro_average_of_equal_scores_has_an_interval() -> None:
    found = stats.macro([1.0] * 6, list("ababab"), [0, 0, 1, 1, 2, 2])
    assert (found.value, found.low, found.high) == (1.0, *stats.wilson(3, 3))
    assert stats.macro([0.0] * 4, list("aabb"), [0, 1, 2, 3]).high == stats.wilson(0, 4)[1]


def test_macro_differs_from_the_weighted_mean_and_small_tasks_are_not_hidden() -> None:
    scores, tasks = [1.0] * 15 + [0.0, 1.0] * 50, ["small"] * 15 + ["large"] * 100
    found = stats.macro(scores, tasks)
    assert found.value == pytest.approx(0.75)
    assert stats.mean(scores).value == pytest.approx(65 / 115)
    assert found.se is not None
    assert found.se > stats.clustered_se(scores[15:]) / 2  # type: ignore[operator]


def test_pairing_and_its_p_values_against_scipy() -> None:
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(3)
    a, b = (rng.random(200) < 0.7).astype(float), (rng.random(200) < 0.6).astype(float)
    found = stats.paired_difference(a, b)
    assert found.p == pytest.approx(ttest_rel(a, b).pvalue, rel=1e-9)
    assert found.value == pytest.approx(a.mean() - b.mean())
    assert abs(stats.sign_permutation(a, b) - found.p) < 0.02
    assert stats.sign_permutation(a, a) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_numbers_of_successes_are_as_likely_as_scipy_says(chances: list[float]) -> None:
    from scipy.stats import poisson_binom

    expected = poisson_binom(chances).pmf(np.arange(len(chances) + 1))
    assert stats.poisson_binomial(chances) == pytest.approx(expected, abs=1e-12)


def test_permutation_of_few_clusters_is_exact() -> None:
    a, b = [1.0, 1.0, 1.0, 1.0, 1.0], [0.0] * 5
    assert stats.sign_permutation(a, b) == pytest.approx(2 / 32)
    assert stats.sign_permutation(a, b, ["x"] * 5) == 1.0


@given(st.lists(st.sampled_from((-1.0, -0.5, 0.0, 1 / 3, 0.5, 1.0)), min_size=1, max_size=9))
@settings(max_examples=40, deadline=None)  # the first one imports scipy.stats
def test_permutation_counts_all_ways_to_sign_the_clusters(gaps: list[float]) -> None:
    ways = [abs(sum(s * gap for s, gap in zip(signs, gaps, strict=True)))
            for signs in product((-1, 1), repeat=len(gaps))]  # fmt: skip
    expected = sum(way >= abs(sum(gaps)) - 1e-9 for way in ways) / len(ways)
    assert stats.sign_permutation(gaps, [0.0] * len(gaps)) == pytest.approx(expected, abs=1e-12)


def test_permutation_of_many_clusters_draws_its_ways() -> None:
    assert stats.sign_permutation([1.0] * 14, [0.0] * 14) == 2 / 2**14  # exact
    assert stats.sign_permutation([1.0] * 40, [0.0] * 40) == 1 / 10_001  # no draw is as far out
    assert stats.sign_permutation([1.0, 0.0] * 20, [0.0, 1.0] * 20) == 1.0


def test_differences_of_a_family_are_adjusted_and_named_beyond_noise() -> None:
    def gap(value: float, p: float) -> stats.Difference:
        return stats.Difference(value=value, low=None, high=None, p=p, n=9, clusters=9, method="t")

    alone = {"a": gap(0.2, 0.02), "b": gap(0.1, 0.04), "c": gap(-0.3, 0.00001)}
    assert [name for name, one in alone.items() if one.is_above()] == ["a", "b"]
    family = stats.adjust(alone)
    assert [one.p_holm for one in family.values()] == pytest.approx([0.04, 0.04, 0.00003])
    assert [one.p_text for one in family.values()] == ["0.0400", "0.0400", "< 0.0001"]
    assert [name for name, one in family.items() if one.is_above(0.03)] == []
    assert stats.adjust({}) == {}


def test_permutation_holds_its_level_on_clusters() -> None:
    hits = 0
    for run in range(200):
        rng = np.random.default_rng(run)
        gap, codes = clustered(rng, 25, 4, 0.5, 0.3)
        hits += stats.sign_permutation(gap, 1 - gap, codes, draws=500, seed=run) < 0.05
    assert hits / 200 < 0.09


@pytest.mark.slow  # importing statsmodels
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=30)
def test_holm_equals_statsmodels(p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    expected = multipletests(p_values, method="holm")[1]
    assert stats.holm(p_values) == pytest.approx(list(expected))


def judged(
    rng: np.random.Generator, n: int, share: float, sens: float, spec: float
) -> tuple[list[bool], list[bool]]:
    truth = rng.random(n) < share
    said = np.where(truth, rng.random(n) < sens, rng.random(n) > spec)
    return truth.tolist(), said.tolist()


def test_correction_for_the_judges_errors_covers() -> None:
    hits = 0
    for run in range(150):
        rng = np.random.default_rng(run)
        labels, verdicts = judged(rng, 300, 0.3, 0.75, 0.85)
        _, said = judged(rng, 1000, 0.4, 0.75, 0.85)
        sample = stats.JudgeSample(labels=labels, verdicts=verdicts)
        found = stats.rogan_gladen(said, sample, draws=200)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.4 <= found.high
    assert 0.9 <= hits / 150 <= 0.99


def test_an_uninformative_judge_is_refused() -> None:
    rng = np.random.default_rng(0)
    labels, verdicts = judged(rng, 300, 0.3, 0.5, 0.52)
    sample = stats.JudgeSample(labels=labels, verdicts=verdicts)
    with pytest.raises(ValueError, match="cannot be corrected"):
        stats.rogan_gladen([True, False], sample)


def test_correction_with_few_videos_covers() -> None:
    """Five videos of forty answers each, and videos that differ: percentiles alone cover 80 %."""
    hits = 0
    for run in range(100):
        rng = np.random.default_rng(run)
        labels, verdicts = judged(rng, 400, 0.3, 0.9, 0.9)
        shares = rng.beta(4, 4, size=5)
        said = [v for share in shares for v in judged(rng, 40, share, 0.9, 0.9)[1]]
        videos = [n for n in range(5) for _ in range(40)]
        sample = stats.JudgeSample(labels=labels, verdicts=verdicts)
        found = stats.rogan_gladen(said, sample, videos, draws=200)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.5 <= found.high
    assert hits >= 90


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        stats.mean([])
    with pytest.raises(ValueError, match="clusters for"):
        stats.mean([1.0, 0.0], ["a"])
    with pytest.raises(ValueError, match="paired"):
        stats.paired_difference([1.0], [1.0, 0.0])
    alone = stats.mean([1.0, 0.0, 1.0], ["v"] * 3)
    assert (alone.low, alone.high, alone.method) == (None, None, "none")
