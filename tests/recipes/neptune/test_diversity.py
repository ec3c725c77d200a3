"""Diversity sampling: shares of the cells, and a draw by seed and ids alone."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.recipes.neptune.diversity import REASON, Diversity, clusters_before_after, quotas

COUNTS = st.dictionaries(
    st.tuples(st.sampled_from("abcdefgh")), st.integers(1, 60), min_size=1, max_size=8
)


def table(sizes: list[int], seed: int = 0) -> pa.Table:
    """Videos around orthogonal directions, with a stratum, some of them already dropped."""
    rng = np.random.default_rng(seed)
    rows = []
    for kind, n in enumerate(sizes):
        for i in range(n):
            vector = np.eye(8)[kind] + rng.normal(0, 0.05, 8)
            rows.append(
                {
                    "video_id": f"{kind}-{i:03}",
                    "embedding": vector.astype(np.float32).tolist(),
                    "drop": None,
                    "problem": None,
                    "genre": "news" if i % 4 == 0 else "play",
                }
            )
    rows.append({**rows[0], "video_id": "fallen", "drop": "static"})
    rows.append({**rows[0], "video_id": "broken", "problem": {"stage": "look"}})
    rows.append({**rows[0], "video_id": "silent", "embedding": []})
    return pa.Table.from_pylist([rows[i] for i in rng.permutation(len(rows))])


def kept_of(sampling: Diversity, videos: pa.Table) -> set[str]:
    """The ids of the sampled videos."""
    rows = videos.select(["video_id", "drop", "problem"]).to_pylist()
    usable = {r["video_id"] for r in rows if r["drop"] is None and r["problem"] is None}
    return usable - set(sampling(videos).drops)


def bars_of(sampling: Diversity, videos: pa.Table) -> dict[tuple[str, ...], tuple[int, int]]:
    """The number of videos before and after, by cluster."""
    decision = sampling(videos)
    ids = [i for i in videos["video_id"].to_pylist() if i not in ("broken", "fallen")]
    bars = clusters_before_after(
        [decision.clusters.get(i) for i in ids], [decision.drops.get(i) for i in ids]
    )
    return {b.cell: (b.before, b.after) for b in bars}


@given(COUNTS, st.integers(1, 500), st.floats(0, 1))
def test_quotas(counts: dict[tuple[str, ...], int], total: int, boost: float) -> None:
    shares = quotas(counts, total, boost)
    assert set(shares) == set(counts)
    assert all(0 <= shares[c] <= counts[c] for c in counts)
    assert sum(shares.values()) == min(total, sum(counts.values()))
    for a in counts:
        for b in counts:
            if counts[a] >= counts[b]:
                assert shares[a] >= shares[b] - 1


def test_boost_goes_from_even_to_proportional() -> None:
    counts = {("a",): 900, ("b",): 90, ("c",): 10}
    assert quotas(counts, 100, 1.0) == {("a",): 90, ("b",): 9, ("c",): 1}
    assert quotas(counts, 30, 0.0) == {("a",): 10, ("b",): 10, ("c",): 10}
    assert quotas(counts, 100, 0.0) == {("a",): 45, ("b",): 45, ("c",): 10}
    root = quotas(counts, 100, 0.5)
    assert 45 < root["a",] < 90
    assert root["c",] > 1


def test_rare_kinds_gain() -> None:
    videos = table([60, 12, 6])
    even = Diversity(size=24, clusters=3, boost=0.0)
    assert len(kept_of(even, videos)) == 24
    bars = bars_of(even, videos)
    assert bars[("2",)] == (6, 6)
    assert bars[("no text",)] == (1, 1)
    assert sorted(b for b, _ in bars.values()) == [1, 6, 12, 60]
    assert bars_of(Diversity(size=24, clusters=3, boost=1.0), videos)[("2",)][1] < 6


def test_only_seed_and_ids_decide() -> None:
    sampling = Diversity(size=20, clusters=3)
    kept = kept_of(sampling, table([40, 20, 10]))
    shuffled = table([40, 20, 10])
    order = np.random.default_rng(9).permutation(shuffled.num_rows)
    assert kept_of(sampling, shuffled.take(pa.array(order))) == kept
    assert kept_of(Diversity(size=20, clusters=3, seed=1), shuffled) != kept
    fewer = kept_of(Diversity(size=10, clusters=3, pool=20), shuffled)
    assert len(fewer) == 10
    assert fewer < kept


def test_dropped_videos_have_a_reason_and_earlier_drops_are_unchanged() -> None:
    videos = table([20, 10])
    decision = Diversity(size=8, clusters=2)(videos)
    assert len(decision.drops) == 31 - 8
    assert set(decision.drops.values()) == {REASON}
    assert not {"fallen", "broken"} & (set(decision.drops) | set(decision.clusters))
    assert set(decision.clusters.values()) == {0, 1}
    ids = videos["video_id"].to_pylist()
    old = dict(zip(ids, videos["drop"].to_pylist(), strict=True))
    bars = clusters_before_after(
        [decision.clusters.get(i) for i in ids if i != "broken"],
        [decision.drops.get(i) or old[i] for i in ids if i != "broken"],
    )
    assert sum(b.after for b in bars) == 8
    assert sum(b.before for b in bars) == 31


def test_strata_split_the_cells() -> None:
    videos, even = table([40, 40]), Diversity(size=8, clusters=2, boost=0.0, strata=("genre",))
    clusters, kept = even(videos).clusters, kept_of(even, videos)
    genres = dict(zip(*(videos[c].to_pylist() for c in ("video_id", "genre")), strict=True))
    after = Counter((clusters[i], genres[i]) for i in kept if i in clusters)
    assert set(after) == {(c, g) for c in (0, 1) for g in ("news", "play")}
    assert max(after.values()) - min(after.values()) <= 1


def test_size_null_keeps_all_and_small_sets_do_not_fail() -> None:
    assert len(kept_of(Diversity(), table([5, 2]))) == 8
    one = table([1]).filter(pa.array([True, False, False, False]))
    assert len(kept_of(Diversity(size=5), one)) <= 1
    assert kept_of(Diversity(size=5), table([1]).slice(0, 0)) == set()


def test_impossible_values_name_the_key() -> None:
    with pytest.raises(UserError, match=r"diversity\.boost=2"):
        Diversity(boost=2)
    with pytest.raises(UserError, match=r"diversity\.size=0"):
        Diversity(size=0)
    with pytest.raises(UserError, match=r"diversity\.pool=3"):
        Diversity(size=5, pool=3)
    with pytest.raises(UserError, match=r"'age'.*video_id"):
        Diversity(size=2, strata=("age",))(table([3]))
