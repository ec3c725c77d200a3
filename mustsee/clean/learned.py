"""The learned guess of a training set: a linear model over hashed words, in folds by video.

The model is that of `mustsee.audit.learned`, a conditional logistic regression over the options of
a question, without its limits: features are hashed into a table of fixed size (Weinberger et al.
2009), and the weights of all folds are fitted by AdaGrad (Duchi et al. 2011) while the parts of the
table are read one after the other. Open questions are guessed among the answers that are most
common on other videos in questions of the same type.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.clean.columns import TrainingRow
from mustsee.errors import UserError
from mustsee.replies.squad import normalize
from mustsee.text import terms, words

Floats = NDArray[np.float32]
NAME = "learned"
BITS = 20  # size of the table of weights, for each fold
FOLDS = 5
COMMON_ANSWERS = 8  # answers of a type among which an open answer is guessed
MIN_ANSWERS = 3  # times that an answer occurs on other videos, to be among them
MAX_COUNTED = 200_000  # answers that are counted at once; rare ones are forgotten then
BATCH = 128  # questions of one step of the fit
MIN_STEPS, MAX_EPOCHS = 1500, 24  # of the fit: small tables are read several times
QUESTION_TERMS, OPTION_TERMS = 14, 10  # whose pairs are features
L2 = 0.3  # strength of the regularisation, over all questions
_PAIR, _PLACE = np.int64(0x9E3779B1), np.int64(0x85EBCA77)


@dataclass(frozen=True, kw_only=True)
class LearnedGuesser:
    """The learned guess among the readers of a training set."""

    on: bool = True
    """Let it guess; false: models are the only readers."""
    sure: float = 3
    """Times the odds of chance that it must give the right answer of a row to know it, beside a
    probability of one half at least."""
    rate: float = 0.1
    """Step size of its fit."""

    def __post_init__(self) -> None:
        if self.sure < 1:
            raise UserError(f"learned.sure={self.sure!r}: expected at least 1 (chance)")
        if self.rate <= 0:
            raise UserError(f"learned.rate={self.rate!r}: more than 0")

    def knows(self, probability: float, count: int) -> bool:
        """Whether a probability of the right answer among `count` is that of one it knows."""
        odds = probability / max(1e-9, 1 - probability)
        return probability >= 0.5 and odds * (count - 1) >= self.sure


def fold_of(video: str) -> int:
    """Return the fold of a video: its rows are guessed by a model that has not seen it."""
    return hashlib.sha256(f"fold {video}".encode()).digest()[0] % FOLDS


class CommonAnswers:
    """The answers without options, counted by type and fold in bounded memory."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, str, int]]()

    def add(self, row: TrainingRow) -> None:
        self._counts[group_of(row), normalize(row.answer), fold_of(row.video)] += 1
        if len(self._counts) > MAX_COUNTED:
            self._counts = Counter({key: n for key, n in self._counts.items() if n > 1})

    def by_group(self) -> dict[str, list[list[str]]]:
        """Return the common answers of each group, by the fold of whose videos none is counted."""
        totals = Counter[tuple[str, str]]()
        for (group, answer, _), count in self._counts.items():
            totals[group, answer] += count
        listed: dict[str, list[list[str]]] = {}
        for fold in range(FOLDS):
            by_group: dict[str, list[tuple[int, str]]] = {}
            for (group, answer), total in totals.items():
                count = total - self._counts.get((group, answer, fold), 0)
                if count >= MIN_ANSWERS:
                    by_group.setdefault(group, []).append((-count, answer))
            for group, answers in by_group.items():
                best = [answer for _, answer in sorted(answers)[:COMMON_ANSWERS]]
                listed.setdefault(group, [[] for _ in range(FOLDS)])[fold] = best
        return listed


def group_of(row: TrainingRow) -> str:
    """Return the group whose common answers a row without options is guessed among."""
    return f"{row.kind} {row.question_type}"


@dataclass(frozen=True, kw_only=True)
class Features:
    """The options of some questions as hashed features.

    `rows`: numbers of the questions in their part. `folds`, `counts` (options), `rights` (index of
    the right option; -1 where it is none of them): [questions]. `edges`: [options + 1], where the
    features of each option begin. `places`, `values`: the features.
    """

    rows: NDArray[np.int32]
    folds: NDArray[np.int8]
    counts: NDArray[np.int16]
    rights: NDArray[np.int16]
    edges: NDArray[np.int64]
    places: NDArray[np.int32]
    values: NDArray[np.float16]

    def take(self, numbers: NDArray[np.int64]) -> Features:
        """Return some of the questions, in this order."""
        starts = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        options = _ranges(starts[numbers], starts[numbers + 1])
        places = _ranges(self.edges[options], self.edges[options + 1])
        lengths = np.diff(self.edges)[options]
        return Features(
            rows=self.rows[numbers], folds=self.folds[numbers], counts=self.counts[numbers],
            rights=self.rights[numbers], edges=np.concatenate([[0], np.cumsum(lengths)]),
            places=self.places[places], values=self.values[places],
        )  # fmt: skip


def _ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers from each start to its end, one after the other."""
    lengths = ends - starts
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(int(lengths.sum())) + offsets


def candidates(row: TrainingRow, common: Mapping[str, Sequence[Sequence[str]]]) -> tuple[str, ...]:
    """Return the answers that the learned guess chooses from: the options, or common answers."""
    if row.kind is None or row.options:
        return row.options
    of_folds = common.get(group_of(row))
    return tuple(of_folds[fold_of(row.video)]) if of_folds else ()


def make_features(
    rows: Sequence[TrainingRow], common: Mapping[str, Sequence[Sequence[str]]]
) -> Features:
    """Return the features of the rows that can be guessed."""
    numbers, folds, counts, rights = list[int](), list[int](), list[int](), list[int]()
    lengths, places, values = list[int](), list[NDArray[np.int64]](), list[Floats]()
    for number, row in enumerate(rows):
        answers = candidates(row, common)
        if len(answers) < 2:
            continue
        numbers.append(number)
        folds.append(fold_of(row.video))
        counts.append(len(answers))
        right = row.answer_index
        if not row.options:
            own = normalize(row.answer)
            right = answers.index(own) if own in answers else -1
        rights.append(-1 if right is None else right)
        for hashed, weight in _option_features(row, answers):
            lengths.append(len(hashed))
            places.append(hashed)
            values.append(weight)
    empty = np.zeros(0, np.int64)
    return Features(
        rows=np.array(numbers, np.int32), folds=np.array(folds, np.int8),
        counts=np.array(counts, np.int16), rights=np.array(rights, np.int16),
        edges=np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]),
        places=(np.concatenate(places) if places else empty).astype(np.int32),
        values=(np.concatenate(values) if values else empty).astype(np.float16),
    )  # fmt: skip


def _option_features(
    row: TrainingRow, answers: Sequence[str]
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Yield the hashed features of each option, and their values: its words and word pairs, its
    words beside those of the question, and its place, length and likeness, also by type and source.
    """
    asked = _hashes(tuple(dict.fromkeys([f"type {row.question_type}", *terms(row.question)])))
    asked = asked[:QUESTION_TERMS]
    of_options = [words(answer) for answer in answers]
    in_question = set(words(row.question))
    lengths = np.array([len(answer) for answer in answers], np.float32)
    spread = float(lengths.std()) or 1.0
    shared = [set(own) for own in of_options]
    echo = _scaled([len(own & in_question) / (len(own) or 1) for own in shared])
    central = _scaled(
        [sum(len(own & other) for other in shared) / (len(own) or 1) for own in shared]
    )
    groups = _hashes(("all", f"type {row.question_type}", f"source {row.source}"))
    open_answer = not row.options
    for n, own in enumerate(of_options):
        pairs = [f"{a} {b}" for a, b in pairwise(own)]
        hashed_words = _hashes((*dict.fromkeys(own), *pairs))
        of_option = _hashes(tuple(dict.fromkeys(terms(answers[n]))))[:OPTION_TERMS]
        crossed = (asked[:, None] * _PAIR ^ of_option[None, :]).ravel()
        measured = [1.0, (lengths[n] - lengths.mean()) / spread, lengths[n] == lengths.max(),
                    lengths[n] == lengths.min(), echo[n], central[n]]  # fmt: skip
        names = _hashes((f"open place {n}" if open_answer else f"place {n}", *MEASURES))
        plain = (groups[:, None] * _PLACE ^ names[None, :]).ravel()
        hashed = np.concatenate([hashed_words, crossed, plain])
        weight = np.concatenate([
            np.full(len(hashed_words), 1 / math.sqrt(len(hashed_words) or 1), np.float32),
            np.full(len(crossed), 1 / math.sqrt(len(crossed) or 1), np.float32),
            np.tile(np.array(measured, np.float32), len(groups)),
        ])  # fmt: skip
        yield (hashed ^ (hashed >> 21)) & ((1 << BITS) - 1), weight


MEASURES = ("length", "longest", "shortest", "echo", "central")


@lru_cache(maxsize=1 << 18)
def _hash(text: str) -> int:
    raw = text.encode(errors="surrogatepass")
    return zlib.crc32(raw) | (zlib.crc32(raw, 0x5BD1E995) << 31)


def _hashes(texts: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(_hash, texts), np.int64, len(texts))


def _scaled(scores: Sequence[float]) -> Sequence[float]:
    """Scale scores to 0 (the least) to 1 (the greatest); 0 if all are equal."""
    least, spread = min(scores), max(scores) - min(scores)
    return [(score - least) / spread if spread > 0 else 0.0 for score in scores]


class FoldModels:
    """The weights of all folds, fitted together: [features, folds]. Memory does not grow with the
    number of rows. `questions`: all that will be read in one epoch.
    """

    def __init__(self, questions: int, rate: float) -> None:
        self._weights = np.zeros((1 << BITS, FOLDS), np.float32)
        self._squares = np.full((1 << BITS, FOLDS), 1e-6, np.float32)
        self._rate, self._decay = rate, L2 / max(1, questions)

    def fit(self, features: Features) -> None:
        """Make one step with some questions; each teaches the models of the other folds."""
        known = np.flatnonzero(features.rights >= 0)
        if not len(known):
            return
        batch = features if len(known) == len(features.rows) else features.take(known)
        matrix, columns = _matrix(batch)
        weights = self._weights[columns]
        chances = _softmax(matrix @ weights, batch.counts)
        starts = np.concatenate([[0], np.cumsum(batch.counts)[:-1]])
        chances[starts + batch.rights] -= 1.0
        taught = np.arange(FOLDS)[None, :] != np.repeat(batch.folds, batch.counts)[:, None]
        slope = (matrix.T @ (chances * taught)).astype(np.float32)
        slope += self._decay * len(batch.rows) * weights
        squares = self._squares[columns] + slope * slope
        self._squares[columns] = squares
        self._weights[columns] = weights - self._rate * slope / np.sqrt(squares)

    def guess(self, features: Features) -> list[Floats]:
        """Return the probabilities of the options of each question, by the model of its fold."""
        if not len(features.rows):
            return []
        matrix, columns = _matrix(features)
        chances = _softmax(matrix @ self._weights[columns], features.counts)
        own = chances[np.arange(len(chances)), np.repeat(features.folds, features.counts)]
        return np.split(own, np.cumsum(features.counts)[:-1])


def _matrix(features: Features) -> tuple[Any, NDArray[np.integer]]:
    """Return the features as a sparse matrix over the columns that occur, and these columns."""
    from scipy import sparse

    columns, places = np.unique(features.places, return_inverse=True)
    shape = (len(features.edges) - 1, len(columns))
    values = features.values.astype(np.float32)
    return sparse.csr_matrix((values, places, features.edges), shape=shape), columns


def _softmax(scores: Floats, counts: NDArray[np.int16]) -> NDArray[Any]:
    """Return the softmax of each column within groups of `counts` rows."""
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)[:-1]])
    shifted = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), counts, axis=0))
    return shifted / np.repeat(np.add.reduceat(shifted, starts), counts, axis=0)


def fit_folds(
    parts: Sequence[Callable[[], Features]], questions: int, rate: float, seed: int
) -> FoldModels:
    """Fit the models on all parts. `parts`: read the features of each; one is in memory at a time,
    in an order drawn anew for each epoch. `questions`: of all.
    """
    models = FoldModels(questions, rate)
    rng = np.random.default_rng(seed)
    epochs = min(MAX_EPOCHS, max(2, math.ceil(MIN_STEPS * BATCH / max(1, questions))))
    for _ in range(epochs):
        for number in rng.permutation(len(parts)):
            features = parts[number]()
            order = rng.permutation(len(features.rows))
            for start in range(0, len(order), BATCH):
                models.fit(features.take(order[start : start + BATCH]))
    return models


def count_questions(parts: Iterable[Features]) -> int:
    """Return the number of questions of all parts."""
    return sum(len(part.rows) for part in parts)
