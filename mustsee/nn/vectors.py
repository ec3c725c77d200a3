"""Nearest neighbours and clusters of vectors, with FAISS.

Vectors are float32 `[n, d]`; similarity is the cosine (inner product of vectors of length 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
# Share of the inverted lists that a query searches: it finds at least 95 % of the nearest ten on
# clustered data.
PROBED_SHARE = 0.1


def unit(vectors: Vectors | Sequence[Sequence[float]]) -> Vectors:
    """Return the vectors scaled to length 1; zero vectors stay zero. Raises ValueError unless the
    shape is `[n, d]`.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2:
        raise ValueError(f"expected vectors [n, d], got the shape {rows.shape}")
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))


class Index:
    """A nearest-neighbour index: exact below `exact_below` vectors, then an inverted file (IVF)."""

    def __init__(
        self,
        vectors: Vectors | Sequence[Sequence[float]],
        *,
        exact_below: int = 50_000,
    ) -> None:
        import faiss

        rows = unit(vectors)
        count, dimensions = rows.shape
        flat: Any = faiss.IndexFlatIP(dimensions)
        self._index: Any = flat
        if count >= exact_below:
            # FAISS warns below 39 vectors in a list.
            lists = max(1, min(int(4 * math.sqrt(count)), count // 39))
            self._index = faiss.IndexIVFFlat(flat, dimensions, lists, faiss.METRIC_INNER_PRODUCT)
            self._index.cp.seed = 0
            self._index.train(rows)
            self._index.nprobe = max(1, math.ceil(PROBED_SHARE * lists))
        self._index.add(rows)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def search(
        self, queries: Vectors | Sequence[Sequence[float]], k: int
    ) -> tuple[Vectors, NDArray[np.int64]]:
        """Return cosines and row numbers `[m, min(k, n)]` of the nearest, best first. If an IVF
        index finds fewer, the rest are row -1.
        """
        scores, rows = self._index.search(unit(queries), min(k, len(self)))
        return scores, rows


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """A clustering.

    `labels`: cluster of each vector, 0 the largest. `centroids`: `[k, d]`, of length 1. `sizes`:
    number of vectors by cluster. `inertia`: mean squared distance to the centroid. `silhouette`:
    mean over all vectors, -1 to 1; 0 for a single cluster. `silhouettes`: the mean by cluster.
    """

    labels: NDArray[np.int64]
    centroids: Vectors
    sizes: tuple[int, ...]
    inertia: float
    silhouette: float
    silhouettes: tuple[float, ...]


def kmeans(
    vectors: Vectors | Sequence[Sequence[float]],
    k: int,
    *,
    seed: int = 0,
    restarts: int = 5,
) -> Clusters:
    """Spherical k-means with at most `k` clusters, none empty. Equal input and seed give equal
    clusters.
    """
    import faiss

    rows = unit(vectors)
    count, dimensions = rows.shape
    if count == 0:
        return Clusters(
            labels=np.empty(0, np.int64),
            centroids=np.empty((0, dimensions), np.float32),
            sizes=(),
            inertia=0.0,
            silhouette=0.0,
            silhouettes=(),
        )
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= k:
        centroids = distinct
    else:
        trained = faiss.Kmeans(
            dimensions,
            k,
            niter=30,
            nredo=restarts,
            seed=seed,
            spherical=True,
            min_points_per_centroid=1,
            max_points_per_centroid=max(256, math.ceil(count / k)),
        )
        trained.train(rows)
        centroids = unit(np.asarray(trained.centroids, dtype=np.float32))
    labels = np.argmax(rows @ centroids.T, axis=1)
    used, labels, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    first = [int(np.argmax(labels == c)) for c in range(len(used))]
    order = sorted(range(len(used)), key=lambda c: (-sizes[c], first[c]))
    rank = np.argsort(np.asarray(order))
    labels, centroids = rank[labels].astype(np.int64), centroids[used][order]
    whole, each = silhouette(rows, labels, seed=seed)
    return Clusters(
        labels=labels,
        centroids=centroids,
        sizes=tuple(int(sizes[c]) for c in order),
        inertia=float(np.mean(np.sum((rows - centroids[labels]) ** 2, axis=1))),
        silhouette=whole,
        silhouettes=each,
    )


def silhouette(
    vectors: Vectors, labels: NDArray[np.int64], *, seed: int = 0, sample: int = 2_000
) -> tuple[float, tuple[float, ...]]:
    """Return the mean silhouette (Rousseeuw 1987) over all vectors, and by cluster.

    The distance is Euclidean; a vector alone in its cluster counts 0. From more than `sample`
    vectors about `sample` are drawn, at least 20 (or all) of each cluster.
    """
    from scipy.spatial.distance import cdist

    clusters, labels, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    count = len(clusters)
    if count < 2:
        return 0.0, (0.0,) * count
    chosen = np.arange(len(vectors))
    if len(vectors) > sample:
        draw = np.random.default_rng(seed)
        shuffled = draw.permutation(len(vectors))
        share = np.minimum(np.maximum(sizes * sample // len(vectors), 20), sizes)
        chosen = np.concatenate([shuffled[labels[shuffled] == c][: share[c]] for c in range(count)])
    cluster = labels[chosen]
    members = np.bincount(cluster, minlength=count)
    totals = cdist(vectors[chosen], vectors[chosen]) @ np.eye(count)[cluster]
    own = np.arange(len(cluster)), cluster
    within = totals[own] / np.maximum(members[cluster] - 1, 1)
    others = totals / members
    others[own] = np.inf
    nearest = others.min(axis=1)
    widest = np.maximum(np.maximum(within, nearest), 1e-12)
    scores = np.where(members[cluster] > 1, (nearest - within) / widest, 0.0)
    each = np.bincount(cluster, scores, minlength=count) / members
    return float(each @ sizes / sizes.sum()), tuple(each.tolist())
