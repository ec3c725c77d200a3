"""A movie's audio description, indexed for search: its words with their times, the pairs of words
that occur in it, and a FAISS index of its lines.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.nn.vectors import unit
from mustsee.records import Line, group_pairs
from mustsee.text import WORD

Embed = Callable[[list[str]], NDArray[np.float32]]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NOISE = re.compile(r"\[[^\]]*\]|\([^)]*\)|<[^>]*>|♪|^\s*[A-Z][A-Z .'-]{1,24}:")
_MAX_PAIR_COUNT = 40  # occurrences of a word pair in a description above which the pair has no vote
_EMBEDDED_LINES = 16384  # lines embedded at once: 10^6 lines take 1.5 GB, not twice that


@dataclass(frozen=True)
class SpokenWords:
    """The words of transcript lines.

    `words`: their texts [n]; `start`, `end`: seconds [n]; `line`: the number of each word's line
    [n].
    """

    words: tuple[str, ...]
    start: Floats
    end: Floats
    line: Ints


def clean(text: str) -> str:
    """Return the text of a line without sounds in brackets, markup and speaker labels."""
    return " ".join(_NOISE.sub(" ", text).split())


def spoken_words(lines: Sequence[Line]) -> SpokenWords:
    """Return the spoken words of lines, in order of time.

    Words with times keep them; the words of other lines are spread over their line by length.
    """
    words: list[str] = []
    interned: dict[str, str] = {}
    starts, ends, numbers = array("d"), array("d"), array("q")

    def add(word: str, start: float, end: float, number: int) -> None:
        word = word.lower().replace("’", "'")
        words.append(interned.setdefault(word, word))
        starts.append(start)
        ends.append(end)
        numbers.append(number)

    for number, line in enumerate(lines):
        for timed in line.words:
            for word in WORD.findall(timed.word):
                add(word, timed.start, timed.end, number)
        if line.words:
            continue
        text = clean(line.text)
        scale = (line.end - line.start) / max(1, len(text))
        for match in WORD.finditer(text):
            begin, end = match.span()
            add(match.group(), line.start + begin * scale, line.start + end * scale, number)
    start = np.frombuffer(starts, dtype=np.float64)
    order = np.argsort(start, kind="stable")  # A narrator may speak over another line.
    return SpokenWords(
        tuple(words[i] for i in order.tolist()),
        start[order],
        np.frombuffer(ends, dtype=np.float64)[order],
        np.frombuffer(numbers, dtype=np.int64)[order],
    )


def _pairs(ids: Ints) -> tuple[Ints, Ints]:
    """Return the keys of word pairs and the position of each pair's first word.

    Pairs are neighbouring words, and words with one word between them: one inserted, missing or
    changed word then leaves pairs around it.
    """
    adjacent = ids[:-1] * (1 << 31) + ids[1:]
    skipping = ids[:-2] * (1 << 31) + ids[2:]
    keys = np.concatenate([adjacent, skipping])
    positions = np.concatenate([np.arange(len(adjacent)), np.arange(len(skipping))])
    is_known = np.concatenate([(ids[:-1] >= 0) & (ids[1:] >= 0), (ids[:-2] >= 0) & (ids[2:] >= 0)])
    return keys[is_known], positions[is_known]


class Description:
    """A movie's audio description, indexed for search by lines (FAISS), words and pairs of
    words.
    """

    def __init__(self, lines: Sequence[Line], embed: Embed) -> None:
        import faiss

        self.lines = tuple(sorted(lines, key=lambda line: (line.start, line.end)))
        self.starts = np.array([line.start for line in self.lines], dtype=np.float64)
        self.ends = np.array([line.end for line in self.lines], dtype=np.float64)
        self.spoken = spoken_words(self.lines)
        self.index: Any = None
        for at in range(0, len(self.lines), _EMBEDDED_LINES):
            texts = [clean(line.text) or "-" for line in self.lines[at : at + _EMBEDDED_LINES]]
            vectors = unit(embed(texts))
            self.index = self.index or faiss.IndexFlatIP(vectors.shape[1])
            self.index.add(vectors)
        self.vocabulary: dict[str, int] = {}
        ids = [self.vocabulary.setdefault(word, len(self.vocabulary)) for word in self.spoken.words]
        self.ids = np.array(ids, dtype=np.int64)
        self.counts = np.bincount(self.ids, minlength=len(self.vocabulary))
        keys, places = _pairs(self.ids)
        order = np.argsort(keys, kind="stable")
        self._keys, self._places = keys[order], places[order]
        first = np.unique(self.ids, return_index=True)[1] if len(self.ids) else self.ids
        self._once = np.where(self.counts == 1, first, -1)

    def weights(self, ids: Ints) -> Floats:
        """Return the weights of words: 1 for a word that is unknown or occurs once, near 0 for
        common words.
        """
        total = np.log(max(3, len(self.ids)))
        counts = np.where(ids >= 0, self.counts[np.maximum(ids, 0)], 1) if len(self.counts) else 1
        return np.clip(1.0 - np.log(np.maximum(counts, 1)) / total, 0.05, 1.0) * np.ones(len(ids))

    def shared_pairs(self, ids: Ints) -> tuple[Ints, Ints, Floats]:
        """Return positions (clip, description) of shared pairs and of words that occur once, with
        their votes.
        """
        keys, places = _pairs(ids)
        low = np.searchsorted(self._keys, keys, side="left")
        count = np.searchsorted(self._keys, keys, side="right") - low
        may_vote = (count > 0) & (count <= _MAX_PAIR_COUNT)
        low, count, places = low[may_vote], count[may_vote], places[may_vote]
        clip_positions = np.repeat(places, count)
        step = np.arange(len(clip_positions)) - np.repeat(np.cumsum(count) - count, count)
        description_positions = self._places[np.repeat(low, count) + step]
        votes = 1.0 / np.repeat(count, count)
        unique_words = np.flatnonzero(ids >= 0)
        unique_words = (
            unique_words[self._once[ids[unique_words]] >= 0]
            if len(self._once)
            else unique_words[:0]
        )
        return (
            np.concatenate([clip_positions, unique_words]),
            np.concatenate(
                [
                    description_positions,
                    self._once[ids[unique_words]] if len(unique_words) else unique_words,
                ]
            ),
            np.concatenate([votes, np.full(len(unique_words), 0.7)]),
        )

    def mean(self, start: float, end: float) -> NDArray[np.float32] | None:
        """Return the mean embedding [d] of the lines between two times, weighted by the time
        inside.
        """
        first = int(np.searchsorted(self.starts, start - 30.0))
        last = int(np.searchsorted(self.starts, end))
        if first >= last:
            return None
        overlap = np.minimum(self.ends[first:last], end) - np.maximum(
            self.starts[first:last], start
        )
        overlap = np.maximum(overlap, 0.0)
        if not overlap.any():
            return None
        rows = self.index.reconstruct_n(first, last - first)
        return (rows * overlap[:, None]).sum(axis=0).astype(np.float32)


def match_words(
    movie: Description, ids: Ints, weights: Floats, low: Floats, high: Floats
) -> tuple[Ints, Ints]:
    """Return the positions (clip, description) of the heaviest common subsequence of their words.

    Word i of the clip may match between the times `low[i]` and `high[i]` of the description. Only
    equal words within this band are compared, and each comparison walks up a Fenwick tree of the
    best weights by description position: linear in the clip's words, whatever the movie's length.
    """
    times = movie.spoken.start
    first = np.searchsorted(times, low, side="left")
    last = np.searchsorted(times, high, side="right")
    base = int(first.min(initial=len(times)))
    size = int(last.max(initial=0)) - base
    if size <= 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    words = movie.ids[base : base + size].tolist()
    positions_of_word = group_pairs((word, base + n) for n, word in enumerate(words))
    tree: list[tuple[float, int]] = [(0.0, -1)] * (size + 1)
    steps: list[tuple[int, int, int]] = []  # clip position, description position, previous step
    rows = zip(ids.tolist(), weights.tolist(), first.tolist(), last.tolist(), strict=True)
    for clip_position, (word, weight, begin, end) in enumerate(rows):
        for position in reversed(positions_of_word.get(word, ())):
            if not begin <= position < end:
                continue
            best, node = (0.0, -1), position - base
            while node > 0:
                best = max(best, tree[node])
                node &= node - 1
            steps.append((clip_position, position, best[1]))
            new_best, node = (best[0] + weight, len(steps) - 1), position - base + 1
            while node <= size:
                if tree[node] < new_best:
                    tree[node] = new_best
                node += node & -node
    best, node = (0.0, -1), size
    while node > 0:
        best = max(best, tree[node])
        node &= node - 1
    path: list[tuple[int, int]] = []
    step = best[1]
    while step >= 0:
        clip_position, position, step = steps[step]
        path.append((clip_position, position))
    pairs = np.array(path[::-1], dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
