"""A movie's description made ready to be searched: its words with their times, the pairs of words
that occur in it, and the FAISS index of its lines.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.records import Line
from mustsee.text import WORD

Embed = Callable[[list[str]], NDArray[np.float32]]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NOISE = re.compile(r"\[[^\]]*\]|\([^)]*\)|<[^>]*>|♪|^\s*[A-Z][A-Z .'-]{1,24}:")
_COMMON = 40  # a pair of words that occurs more often than this in a description does not vote
_BLOCK = 16384  # lines embedded at once: 10^6 lines take 1.5 GB, not twice that


@dataclass(frozen=True)
class SpokenWords:
    """The words of some lines: text, start and end seconds [n], and the line each belongs to."""

    words: tuple[str, ...]
    start: Floats
    end: Floats
    line: Ints


def clean(text: str) -> str:
    """A line without sounds in brackets, markup and speaker labels."""
    return " ".join(_NOISE.sub(" ", text).split())


def spoken_words(lines: Sequence[Line]) -> SpokenWords:
    """The words that are spoken in lines, in order of time.

    Timed words are taken as they are; others are spread over their line by their length.
    """
    words: list[str] = []
    same: dict[str, str] = {}
    starts, ends, numbers = array("d"), array("d"), array("q")

    def add(word: str, start: float, end: float, number: int) -> None:
        word = word.lower().replace("’", "'")
        words.append(same.setdefault(word, word))
        starts.append(start)
        ends.append(end)
        numbers.append(number)

    for number, line in enumerate(lines):
        for timed in line.words:
            for piece in WORD.findall(timed.word):
                add(piece, timed.start, timed.end, number)
        if line.words:
            continue
        text = clean(line.text)
        scale = (line.end - line.start) / max(1, len(text))
        for found in WORD.finditer(text):
            begin, end = found.span()
            add(found.group(), line.start + begin * scale, line.start + end * scale, number)
    start = np.frombuffer(starts, dtype=np.float64)
    order = np.argsort(start, kind="stable")  # a narrator may speak over a line
    return SpokenWords(
        tuple(words[i] for i in order.tolist()),
        start[order],
        np.frombuffer(ends, dtype=np.float64)[order],
        np.frombuffer(numbers, dtype=np.int64)[order],
    )


def _pairs(ids: Ints) -> tuple[Ints, Ints]:
    """Keys of neighbouring words, and of words with one word between them, and the position of the
    first: one insertion, loss or change does not hide its surroundings.
    """
    near = ids[:-1] * (1 << 31) + ids[1:]
    skip = ids[:-2] * (1 << 31) + ids[2:]
    keys = np.concatenate([near, skip])
    places = np.concatenate([np.arange(len(near)), np.arange(len(skip))])
    known = np.concatenate([(ids[:-1] >= 0) & (ids[1:] >= 0), (ids[:-2] >= 0) & (ids[2:] >= 0)])
    return keys[known], places[known]


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length one (zero rows stay zero)."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(length, 1e-12)).astype(np.float32)


class Description:
    """A movie's description, ready to be searched: FAISS index of its lines, its words, its pairs
    of words. Lines must be in order of their start.
    """

    def __init__(self, lines: Sequence[Line], embed: Embed) -> None:
        import faiss

        self.lines = tuple(sorted(lines, key=lambda line: (line.start, line.end)))
        self.starts = np.array([line.start for line in self.lines], dtype=np.float64)
        self.ends = np.array([line.end for line in self.lines], dtype=np.float64)
        self.spoken = spoken_words(self.lines)
        self.index: Any = None
        for at in range(0, len(self.lines), _BLOCK):
            texts = [clean(line.text) or "-" for line in self.lines[at : at + _BLOCK]]
            vectors = unit(np.asarray(embed(texts), dtype=np.float32))
            self.index = self.index or faiss.IndexFlatIP(vectors.shape[1])
            self.index.add(vectors)
        self.known: dict[str, int] = {}
        ids = [self.known.setdefault(word, len(self.known)) for word in self.spoken.words]
        self.ids = np.array(ids, dtype=np.int64)
        self.counts = np.bincount(self.ids, minlength=len(self.known))
        keys, places = _pairs(self.ids)
        order = np.argsort(keys, kind="stable")
        self._keys, self._places = keys[order], places[order]
        first = np.unique(self.ids, return_index=True)[1] if len(self.ids) else self.ids
        self._once = np.where(self.counts == 1, first, -1)

    def weights(self, ids: Ints) -> Floats:
        """How telling words are: 1 for one that is new or occurs once, towards 0 for the common."""
        total = np.log(max(3, len(self.ids)))
        counts = np.where(ids >= 0, self.counts[np.maximum(ids, 0)], 1) if len(self.counts) else 1
        return np.clip(1.0 - np.log(np.maximum(counts, 1)) / total, 0.05, 1.0) * np.ones(len(ids))

    def shared_pairs(self, ids: Ints) -> tuple[Ints, Ints, Floats]:
        """Positions (clip, description) of shared pairs and of words that occur once, with their
        votes.
        """
        keys, places = _pairs(ids)
        low = np.searchsorted(self._keys, keys, side="left")
        count = np.searchsorted(self._keys, keys, side="right") - low
        use = (count > 0) & (count <= _COMMON)
        low, count, places = low[use], count[use], places[use]
        here = np.repeat(places, count)
        step = np.arange(len(here)) - np.repeat(np.cumsum(count) - count, count)
        there = self._places[np.repeat(low, count) + step]
        votes = 1.0 / np.repeat(count, count)
        single = np.flatnonzero(ids >= 0)
        single = single[self._once[ids[single]] >= 0] if len(self._once) else single[:0]
        return (
            np.concatenate([here, single]),
            np.concatenate([there, self._once[ids[single]] if len(single) else single]),
            np.concatenate([votes, np.full(len(single), 0.7)]),
        )

    def mean(self, start: float, end: float) -> NDArray[np.float32] | None:
        """The mean embedding [d] of the lines heard between two times, by the time that they
        share with it.
        """
        first = int(np.searchsorted(self.starts, start - 30.0))
        last = int(np.searchsorted(self.starts, end))
        if first >= last:
            return None
        inside = np.minimum(self.ends[first:last], end) - np.maximum(self.starts[first:last], start)
        inside = np.maximum(inside, 0.0)
        if not inside.any():
            return None
        rows = self.index.reconstruct_n(first, last - first)
        return (rows * inside[:, None]).sum(axis=0).astype(np.float32)


def common(
    movie: Description, ids: Ints, weights: Floats, low: Floats, high: Floats
) -> tuple[Ints, Ints]:
    """The heaviest common subsequence of the clip's words and the description's, in which word i is
    matched between the times `low[i]` and `high[i]`. Returns the positions in both.

    Only equal pairs inside the band are looked at, and each costs a walk up a Fenwick tree of best
    weights by description position: linear in the clip's words, whatever the movie's length.
    """
    times = movie.spoken.start
    first = np.searchsorted(times, low, side="left")
    last = np.searchsorted(times, high, side="right")
    base = int(first.min(initial=len(times)))
    size = int(last.max(initial=0)) - base
    if size <= 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    where: dict[int, list[int]] = {}
    for place, word in enumerate(movie.ids[base : base + size].tolist(), start=base):
        where.setdefault(word, []).append(place)
    tree: list[tuple[float, int]] = [(0.0, -1)] * (size + 1)
    steps: list[tuple[int, int, int]] = []  # clip position, description position, step before
    rows = zip(ids.tolist(), weights.tolist(), first.tolist(), last.tolist(), strict=True)
    for here, (word, weight, begin, end) in enumerate(rows):
        for there in reversed(where.get(word, ())):
            if not begin <= there < end:
                continue
            best, node = (0.0, -1), there - base
            while node > 0:
                best = max(best, tree[node])
                node &= node - 1
            steps.append((here, there, best[1]))
            reached, node = (best[0] + weight, len(steps) - 1), there - base + 1
            while node <= size:
                if tree[node] < reached:
                    tree[node] = reached
                node += node & -node
    best, node = (0.0, -1), size
    while node > 0:
        best = max(best, tree[node])
        node &= node - 1
    path: list[tuple[int, int]] = []
    step = best[1]
    while step >= 0:
        here, there, step = steps[step]
        path.append((here, there))
    pairs = np.array(path[::-1], dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
