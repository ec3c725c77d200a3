"""Nearest neighbours against brute force; known clusters are found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.nn.vectors import Index, kmeans, silhouette, unit


def blobs(sizes: list[int], seed: int = 0, spread: float = 0.05, d: int = 16) -> np.ndarray:
    """Return shuffled vectors around orthogonal directions."""
    rng = np.random.default_rng(seed)
    rows = [np.eye(d)[i] + rng.normal(0, spread, (n, d)) for i, n in enumerate(sizes)]
    return rng.permutation(np.concatenate(rows)).astype(np.float32)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=25)
def test_exact_search_equals_brute_force(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, queries = rng.normal(size=(n, 5)), rng.normal(size=(3, 5))
    scores, rows = Index(vectors).search(queries, k)
    cosines = unit(queries) @ unit(vectors).T
    assert rows.shape == (3, min(k, n))
    np.testing.assert_allclose(scores, -np.sort(-cosines, axis=1)[:, :k], atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(cosines, rows, axis=1), scores, atol=1e-5)


def test_an_inverted_file_finds_nearly_all_neighbours() -> None:
    vectors = np.random.default_rng(1).permutation(blobs([250] * 16, spread=0.2))
    exact, fast = Index(vectors), Index(vectors, exact_below=1000)
    queries = vectors[:200]
    expected, found = exact.search(queries, 10)[1], fast.search(queries, 10)[1]
    shared = [len(set(a) & set(b)) for a, b in zip(expected, found, strict=True)]
    assert np.mean(shared) >= 9.5
    again = Index(vectors, exact_below=1000).search(queries, 10)[1]
    assert np.array_equal(found, again)


def test_known_clusters_are_found() -> None:
    vectors = blobs([50, 30, 20])
    found = kmeans(vectors, 3, seed=7)
    assert found.sizes == (50, 30, 20)
    truth = vectors.argmax(axis=1)
    assert np.array_equal(found.labels, truth)
    assert found.silhouette > 0.8
    assert found.inertia < kmeans(vectors, 2, seed=7).inertia
    again = kmeans(vectors, 3, seed=7)
    assert np.array_equal(again.labels, found.labels)
    assert np.array_equal(again.centroids, found.centroids)


@given(st.integers(0, 25), st.integers(1, 8), st.integers(0, 99))
@settings(max_examples=25)
def test_every_vector_is_in_one_cluster(n: int, k: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).integers(0, 3, (n, 3)).astype(np.float32)
    found = kmeans(vectors, k, seed=seed)
    assert len(found.labels) == n == sum(found.sizes)
    assert len(found.sizes) <= k or len(found.sizes) <= len(np.unique(vectors, axis=0))
    assert list(found.sizes) == sorted(found.sizes, reverse=True)
    assert all(size > 0 for size in found.sizes)
    assert found.centroids.shape == (len(found.sizes), 3)
    assert -1 <= found.silhouette <= 1


def test_silhouette_of_two_far_and_two_mixed_clusters() -> None:
    points = np.array([[0, 0], [0, 1], [10, 0], [10, 1]], np.float32)
    near = 1.0
    far = (10 + np.sqrt(101)) / 2
    whole, each = silhouette(points, np.array([0, 0, 1, 1]))
    assert (whole, *each) == pytest.approx((1 - near / far,) * 3)
    assert silhouette(points, np.array([0, 1, 0, 1]))[0] < 0
    assert silhouette(points, np.zeros(4, np.int64)) == (0, (0,))
    lone, (pair, alone) = silhouette(points[:3], np.array([0, 0, 1]))
    assert (alone, lone) == (0, pytest.approx(2 / 3 * pair))


def test_a_sampled_silhouette_is_near_the_whole() -> None:
    vectors = blobs([900, 300, 60])
    labels = vectors.argmax(axis=1)
    whole, each = silhouette(vectors, labels)
    some, parts = silhouette(vectors, labels, sample=200)
    assert some == pytest.approx(whole, abs=0.03)
    assert parts == pytest.approx(each, abs=0.06)


def test_a_wrong_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\(3,\)"):
        unit(np.zeros(3))
