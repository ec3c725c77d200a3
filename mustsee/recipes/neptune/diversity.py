"""Diversity sampling (Neptune, C.1): a sample in which common kinds of videos have less weight.

Videos are clustered by their embeddings. A cell is a cluster together with the values of the
stratum columns (Neptune: perceived age and gender). A cell of n videos gets n ** boost shares of
the sample: a boost of 1 keeps the distribution, 0 makes it even. The sample is drawn without
replacement by a hash of seed and id, so it depends neither on the order of the rows nor on chance.

Perceived age and gender are a model's impression from a few frames, not facts about anybody. No
question asks about them, and they are off by default.
"""

from __future__ import annotations

import hashlib
import math
import re
from asyncio import to_thread
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from mustsee.calls.llm import Asker
from mustsee.calls.usage import RequestTally
from mustsee.errors import Unparsed, UserError
from mustsee.media.contact_sheet import spread_evenly
from mustsee.media.frames import crop_jpeg
from mustsee.nn.vectors import kmeans
from mustsee.questions.decision import Decision
from mustsee.records import Video, group_pairs
from mustsee.replies.forms import Form, form, one_of, record

PROMPT = "neptune/people"
AGES = ("CHILDREN", "YOUNG", "MIDDLE", "OLD", "MIXED", "NONE", "UNCLEAR")
GENDERS = ("WOMEN", "MEN", "MIXED", "NONE", "UNCLEAR")


@dataclass(frozen=True, kw_only=True)
class PerceivedPeople:
    """One of `AGES` and of `GENDERS`, in small letters."""

    age: str
    gender: str


UNCLEAR = PerceivedPeople(age="unclear", gender="unclear")


async def perceive_people(
    video: Video, asker: Asker, requests: RequestTally, *, frames: int, seed: int = 0
) -> PerceivedPeople:
    """Return the impression from `frames` evenly spread keyframes: "none" without keyframes,
    "unclear" if the reply cannot be parsed, which `requests` counts.
    """
    keyframes = video.keyframes or ()
    if not keyframes:
        return PerceivedPeople(age="none", gender="none")
    chosen = spread_evenly(keyframes, frames)
    images = await to_thread(lambda: [crop_jpeg(keyframe.jpeg) for keyframe in chosen])
    call = asker.ask(PROMPT, impression(), images=images, seed=seed, count=len(images))
    return await requests.try_call("impressions of people", call) or UNCLEAR


def impression() -> Form[PerceivedPeople]:
    """Parse `AGE: MIDDLE` and `GENDER: WOMEN`."""

    def make_impression(age: str, gender: str) -> PerceivedPeople:
        return PerceivedPeople(age=age.lower(), gender=gender.lower())

    def parse_impression(reply: str) -> PerceivedPeople:
        parts: list[str] = []
        for name, values in (("AGE", AGES), ("GENDER", GENDERS)):
            line = rf"^[\s>*_#-]*{name}[*_]*\s*[:：][\s*_]*({'|'.join(values)})\b"
            match = re.search(line, reply, re.IGNORECASE | re.MULTILINE)
            if not match:
                raise Unparsed(f"it holds no line '{name}: ...' with one of {', '.join(values)}")
            parts.append(match[1])
        return make_impression(*parts)

    shape = record(
        make_impression,
        age=one_of(AGES, "how old they look"),
        gender=one_of(GENDERS, "how they present"),
    )
    return form(text=parse_impression, shape=shape)


Cell = tuple[str, ...]
NO_TEXT = "no text"  # stands for the cluster of a video without an embedding
REASON = "diversity: not in the sample; diversity.size=null keeps it"


@dataclass(frozen=True, kw_only=True)
class Diversity:
    """How a diverse sample is drawn."""

    size: int | None = None
    """Number of videos to keep; null: all."""
    clusters: int | None = None
    """Number of clusters; null: the square root of half the videos."""
    boost: float = 0.5
    """Balance over clusters: 1 keeps their distribution, 0 makes it even."""
    strata: tuple[str, ...] = field(default=())
    """Further columns of the input table that define the cells of the sample."""
    pool: int | None = None
    """Videos drawn first with the boost, of which size are then drawn uniformly; null: size."""
    seed: int = 0
    """Seed of the sample."""

    def __post_init__(self) -> None:
        if not 0 <= self.boost <= 1:
            raise UserError(f"diversity.boost={self.boost!r}: expected 0 (even) to 1 (unchanged)")
        for name, value in (("size", self.size), ("clusters", self.clusters)):
            if value is not None and value < 1:
                raise UserError(f"diversity.{name}={value!r}: expected 1 or more, or null")
        if self.pool is not None and (self.size is None or self.pool < self.size):
            raise UserError(
                f"diversity.pool={self.pool!r}: expected at least diversity.size={self.size!r}"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return ("video_id", "embedding", "drop", "problem", *self.strata)

    def __call__(self, rows: pa.Table) -> Decision:
        """Return the cluster of every video that has one, and drop the videos not sampled, of those
        without `drop` and `problem`. Raises UserError for a stratum that is not a column.
        """
        missing = [c for c in self.strata if c not in rows.column_names]
        if missing:
            raise UserError(
                f"diversity.strata={list(self.strata)!r}: the videos have no column "
                f"{', '.join(map(repr, missing))}; they have {', '.join(rows.column_names)}"
            )
        usable = _usable(rows).sort_by("video_id")
        ids: list[str] = usable["video_id"].to_pylist()
        vectors: dict[str, Sequence[float]] = {
            i: v for i, v in zip(ids, usable["embedding"].to_pylist(), strict=True) if v
        }
        k = self.clusters or max(1, round(math.sqrt(len(vectors) / 2)))
        dimensions = len(next(iter(vectors.values()), ()))
        matrix = np.array(list(vectors.values()), np.float32).reshape(len(vectors), dimensions)
        labels = kmeans(matrix, k, seed=self.seed).labels
        clusters = {i: int(c) for i, c in zip(vectors, labels, strict=True)}
        columns = [list(map(str, usable[c].to_pylist())) for c in self.strata]
        of_clusters = [str(clusters.get(i, NO_TEXT)) for i in ids]
        cells = dict(zip(ids, zip(of_clusters, *columns, strict=True), strict=True))
        kept = self._draw(cells)
        return Decision(clusters=clusters, drops={i: REASON for i in ids if i not in kept})

    def _draw(self, cells: Mapping[str, Cell]) -> set[str]:
        if self.size is None:
            return set(cells)
        ranked = sorted(cells, key=lambda i: _rank(self.seed, "pool", i))
        members = group_pairs((cells[i], i) for i in ranked)
        counts = {cell: len(ids) for cell, ids in sorted(members.items())}
        parts = quotas(counts, self.pool or self.size, self.boost)
        pool = [i for cell, n in parts.items() for i in members[cell][:n]]
        return set(sorted(pool, key=lambda i: _rank(self.seed, "size", i))[: self.size])


def quotas(counts: Mapping[Cell, int], total: int, boost: float) -> dict[Cell, int]:
    """Return how many videos each cell gives: `count ** boost` shares of `total`, at most its
    count. The surplus of a small cell is shared among the others. Numbers are rounded by largest
    remainder, and add up to `total` or to all videos.
    """
    total = min(total, sum(counts.values()))
    shares = dict.fromkeys(counts, 0.0)
    open_cells, remaining = set(counts), float(total)
    while open_cells and remaining > 1e-9:
        weight = sum(counts[c] ** boost for c in sorted(open_cells))
        exhausted = [
            c for c in sorted(open_cells) if remaining * counts[c] ** boost / weight >= counts[c]
        ]
        for cell in exhausted or sorted(open_cells):
            shares[cell] = counts[cell] if exhausted else remaining * counts[cell] ** boost / weight
        if not exhausted:
            break
        open_cells -= set(exhausted)
        remaining = total - sum(shares[c] for c in counts if c not in open_cells)
    rounded = {cell: math.floor(share + 1e-9) for cell, share in shares.items()}
    by_rest = sorted(counts, key=lambda c: (rounded[c] - shares[c], c))
    for cell in by_rest[: total - sum(rounded.values())]:
        rounded[cell] += 1
    return rounded


@dataclass(frozen=True, kw_only=True)
class HistogramCell:
    """A cell with its number of videos before and after the sampling."""

    cell: Cell
    before: int
    after: int


def clusters_before_after(
    clusters: Sequence[int | None], drops: Sequence[str | None]
) -> tuple[HistogramCell, ...]:
    """Return the histogram over clusters, the fullest first, from the published `cluster` and
    `drop` columns, without videos dropped before the sampling.
    """
    before, after = Counter[str](), Counter[str]()
    for cluster, drop in zip(clusters, drops, strict=True):
        if cluster is not None or drop in (None, REASON):
            name = NO_TEXT if cluster is None else str(cluster)
            before[name] += 1
            after[name] += drop != REASON
    return tuple(
        HistogramCell(cell=(name,), before=n, after=after[name])
        for name, n in sorted(before.items(), key=lambda item: (-item[1], item[0]))
    )


def _usable(table: pa.Table) -> pa.Table:
    keep = np.ones(table.num_rows, dtype=bool)
    for name in ("drop", "problem"):
        if name in table.column_names:
            keep &= ~np.asarray(table[name].is_valid())
    return table.filter(pa.array(keep))


def _rank(seed: int, purpose: str, video_id: str) -> bytes:
    return hashlib.sha256(f"{seed}/{video_id}/{purpose}".encode()).digest()
