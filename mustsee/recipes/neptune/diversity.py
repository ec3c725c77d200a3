"""Diversity sampling (Neptune, C.1): a sample in which common kinds of videos count for less.

Videos are clustered by their embeddings. A cell is a cluster, together with the values of any
stratum columns (Neptune: perceived age and gender of the people in it). A cell of n videos is given
n ** boost shares of the sample: 1 keeps the distribution as it is, 0 makes it even. The
sample is drawn without replacement, by a hash of seed and id, so that it depends neither on the
order of the rows nor on chance.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from mustsee.errors import UserError
from mustsee.run.decision import Decision
from mustsee.vectors import kmeans

Cell = tuple[str, ...]
REASON = "diversity: not in the sample; diversity.size=null keeps it"


@dataclass(frozen=True, kw_only=True)
class HistogramCell:
    """One cell of the histogram: how many videos it had, how many it keeps."""

    cell: Cell
    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class DiversityChoice:
    """Which videos are kept; the cluster of each; the histogram, largest cell first; what the
    clusters are like (k, inertia, silhouette).
    """

    kept: frozenset[str]
    clusters: Mapping[str, int]
    histogram: tuple[HistogramCell, ...]
    inertia: float
    silhouette: float


@dataclass(frozen=True, kw_only=True)
class Diversity:
    """`size`: videos to keep, null for all; `clusters`: null for the square root of half their
    number; `boost`: 1 as it is, 0 even; `strata`: further columns of the input table; `pool`: draw
    so many with the boost first, then `size` of them uniformly (Neptune: 100,000), null for `size`.
    """

    size: int | None = None
    clusters: int | None = None
    boost: float = 0.5
    strata: tuple[str, ...] = field(default=())
    pool: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.boost <= 1:
            raise UserError(f"diversity.boost={self.boost!r}: expected 0 (even) to 1 (as it is)")
        for name, value in (("size", self.size), ("clusters", self.clusters)):
            if value is not None and value < 1:
                raise UserError(f"diversity.{name}={value!r}: expected 1 or more, or null")
        if self.pool is not None and (self.size is None or self.pool < self.size):
            raise UserError(
                f"diversity.pool={self.pool!r}: expected at least diversity.size={self.size!r}"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        return ("video_id", "embedding", "drop", "problem", *self.strata)

    def __call__(self, rows: pa.Table) -> Decision:
        """The cluster of every video that has one, and drops of those that are not sampled."""
        choice = self.choose(rows)
        ids: list[str] = _usable(rows)["video_id"].to_pylist()
        fallen = {i: REASON for i in ids if i not in choice.kept}
        return Decision(clusters=choice.clusters, drops=fallen)

    def choose(self, table: pa.Table) -> DiversityChoice:
        """Sample the rows that have neither a `drop` nor a `problem`. Raises UserError for a
        stratum that is no column.
        """
        missing = [c for c in self.strata if c not in table.column_names]
        if missing:
            raise UserError(
                f"diversity.strata={list(self.strata)!r}: the videos have no column "
                f"{', '.join(map(repr, missing))}; they have {', '.join(table.column_names)}"
            )
        rows = _usable(table).sort_by("video_id")
        ids: list[str] = rows["video_id"].to_pylist()
        vectors: dict[str, Sequence[float]] = {
            i: v for i, v in zip(ids, rows["embedding"].to_pylist(), strict=True) if v
        }
        k = self.clusters or max(1, round(math.sqrt(len(vectors) / 2)))
        dimensions = len(next(iter(vectors.values()), ()))
        matrix = np.array(list(vectors.values()), np.float32).reshape(len(vectors), dimensions)
        found = kmeans(matrix, k, seed=self.seed)
        clusters = {i: int(c) for i, c in zip(vectors, found.labels, strict=True)}
        strata = zip(*(rows[c].to_pylist() for c in self.strata), strict=True)
        values = list(strata) if self.strata else [()] * len(ids)
        cells = {
            i: (str(clusters.get(i, "no text")), *map(str, value))
            for i, value in zip(ids, values, strict=True)
        }
        kept = self._draw(cells)
        return DiversityChoice(
            kept=frozenset(kept),
            clusters=clusters,
            histogram=histogram(cells, kept),
            inertia=found.inertia,
            silhouette=found.silhouette,
        )

    def _draw(self, cells: Mapping[str, Cell]) -> set[str]:
        if self.size is None:
            return set(cells)
        members: dict[Cell, list[str]] = {}
        for i in sorted(cells, key=lambda i: _rank(self.seed, "pool", i)):
            members.setdefault(cells[i], []).append(i)
        counts = {cell: len(found) for cell, found in sorted(members.items())}
        parts = quotas(counts, self.pool or self.size, self.boost)
        pool = [i for cell, n in parts.items() for i in members[cell][:n]]
        return set(sorted(pool, key=lambda i: _rank(self.seed, "size", i))[: self.size])


def quotas(counts: Mapping[Cell, int], total: int, boost: float) -> dict[Cell, int]:
    """How many each cell gives: `count ** boost` shares of `total`, no more than it has; what a
    small cell cannot give is shared among the others. Whole numbers by largest remainder; the sum
    is `total`, or everything where that is less.
    """
    total = min(total, sum(counts.values()))
    shares = dict.fromkeys(counts, 0.0)
    free, left = set(counts), float(total)
    while free and left > 1e-9:
        weight = sum(counts[c] ** boost for c in sorted(free))
        full = [c for c in sorted(free) if left * counts[c] ** boost / weight >= counts[c]]
        for cell in full or sorted(free):
            shares[cell] = counts[cell] if full else left * counts[cell] ** boost / weight
        if not full:
            break
        free -= set(full)
        left = total - sum(shares[c] for c in counts if c not in free)
    whole = {cell: math.floor(share + 1e-9) for cell, share in shares.items()}
    by_rest = sorted(counts, key=lambda c: (whole[c] - shares[c], c))
    for cell in by_rest[: total - sum(whole.values())]:
        whole[cell] += 1
    return whole


def histogram(cells: Mapping[str, Cell], kept: Iterable[str]) -> tuple[HistogramCell, ...]:
    """How full each cell was and is, the fullest first."""
    before, after = Counter(cells.values()), Counter(cells[i] for i in kept)
    return tuple(
        HistogramCell(cell=cell, before=n, after=after[cell])
        for cell, n in sorted(before.items(), key=lambda item: (-item[1], item[0]))
    )


def clusters_before_after(
    clusters: Sequence[int | None], drops: Sequence[str | None]
) -> tuple[HistogramCell, ...]:
    """The histogram over clusters, told from the published `cluster` and `drop` columns. Videos
    that fell before the sampling have no part in it.
    """
    cells = {
        str(n): ("no text" if cluster is None else str(cluster),)
        for n, (cluster, drop) in enumerate(zip(clusters, drops, strict=True))
        if cluster is not None or drop in (None, REASON)
    }
    return histogram(cells, [i for i in cells if drops[int(i)] != REASON])


def _usable(table: pa.Table) -> pa.Table:
    keep = np.ones(table.num_rows, dtype=bool)
    for name in ("drop", "problem"):
        if name in table.column_names:
            keep &= ~np.asarray(table[name].is_valid())
    return table.filter(pa.array(keep))


def _rank(seed: int, purpose: str, video_id: str) -> bytes:
    return hashlib.sha256(f"{seed}/{video_id}/{purpose}".encode()).digest()
