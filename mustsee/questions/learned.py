"""The learned guess: a small text model that learns from some videos which options are right, and
guesses at the questions of the others.

    guesses = learned_guess(questions)                         # a probability for each option
    models = fit_folds([lambda: make_features(part)], 0.1, 0)  # of a set that no process holds

It is a conditional logistic regression: the probability of an option is the softmax of its score
among those of its question. An option is scored by its words and word pairs, by its words beside
those of the question, and by its place, length and likeness, also by type and source. Questions are
fitted in folds by video, so that each is guessed by a model that has seen no question on its video
(as in the Test-set Stress-Test of VSI-Bench-Debiased). What it knows better than chance is a
regularity of the dataset, and no knowledge of the video.

Features are hashed into a table of fixed size (Weinberger et al. 2009), and the weights of all
folds are fitted by AdaGrad (Duchi et al. 2011) while the parts of a set are read one after the
other. Only features that occur in `MIN_FOLDS` folds are fitted: AdaGrad takes steps as long for a
rare feature as for a common one, so the rare ones would explain the questions away from which a
common one is to be learned.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.questions.chance import chance_of
from mustsee.records import Question
from mustsee.text import terms, words

Floats = NDArray[np.float32]
BITS = 20  # size of the table of weights, for each fold
FOLDS = 5
MIN_FOLDS = 4  # folds in which a feature occurs that is fitted
MIN_VIDEOS = 3  # videos below which there is too little to learn from
BATCH = 32  # questions of one step of the fit
MIN_STEPS, MAX_EPOCHS = 1500, 24  # length of the fit: small sets are read several times
RATE = 0.1  # step size of the fit
L2 = 0.3  # strength of the regularisation, over all questions
QUESTION_TERMS, OPTION_TERMS = 14, 10  # terms of each text whose pairs are features
PAIR_SCALE = 0.3  # weight of word pairs beside words: they are many, and rarer
PART, HELD_PARTS = 1000, 50  # questions of a part, and parts whose features stay in memory
MEASURES = ("length", "longest", "shortest", "echo", "central")
_PAIR, _PLACE = np.int64(0x9E3779B1), np.int64(0x85EBCA77)


@dataclass(frozen=True, kw_only=True)
class ChoiceText:
    """A question as the learned guess reads it. `right`: index of the right one of `choices`; -1
    where it is none of them. `fold`: of its video. `open_answer`: the choices are common answers to
    such questions, and no options of this one.
    """

    question: str
    question_type: str
    choices: tuple[str, ...]
    right: int
    fold: int
    source: str = ""
    open_answer: bool = False


def learned_guess(questions: Sequence[Question], seed: int = 0) -> list[list[float]]:
    """Return the probability of every option of every question, by models fitted on the questions
    of other videos; all equal with fewer than `MIN_VIDEOS` videos. The order of the questions does
    not matter. A question's form stands for its type, where it has one.
    """
    videos = sorted({q.video_id for q in questions}, key=_digest)
    if len(videos) < MIN_VIDEOS:
        return [[chance_of(q)] * len(q.options) for q in questions]
    fold_of = {video: n % FOLDS for n, video in enumerate(videos)}
    order = sorted(
        range(len(questions)),
        key=lambda n: (_digest(questions[n].video_id), questions[n].question_id),
    )

    @lru_cache(maxsize=HELD_PARTS)
    def part(start: int) -> Features:
        return make_features(
            [_as_choice(questions[n], fold_of) for n in order[start : start + PART]]
        )

    starts = range(0, len(order), PART)
    models = fit_folds([partial(part, start) for start in starts], RATE, seed)
    guesses = [guess for start in starts for guess in models.guess(part(start))]
    found: list[list[float]] = [[] for _ in questions]
    for n, guess in zip(order, guesses, strict=True):
        found[n] = guess.tolist()
    return found


def _as_choice(question: Question, fold_of: dict[str, int]) -> ChoiceText:
    right = question.answer_index
    return ChoiceText(
        question=question.question,
        question_type=question.form or question.question_type,
        choices=question.options,
        right=-1 if right is None else right,
        fold=fold_of[question.video_id],
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


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

    def with_features(self, kept: NDArray[np.bool_]) -> Features:
        """Return the questions with some of the features. `kept`: by place in the table."""
        chosen = kept[self.places]
        before = np.concatenate([[0], np.cumsum(chosen, dtype=np.int64)])
        return replace(
            self, edges=before[self.edges], places=self.places[chosen], values=self.values[chosen]
        )


def _ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers from each start to its end, one after the other."""
    lengths = ends - starts
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(int(lengths.sum())) + offsets


def make_features(questions: Sequence[ChoiceText | None]) -> Features:
    """Return the features of questions; None stands for a row that cannot be guessed."""
    asked = [(n, q) for n, q in enumerate(questions) if q is not None]
    lengths, places, values = list[int](), list[NDArray[np.int64]](), list[Floats]()
    for _, question in asked:
        for hashed, weight in _option_features(question):
            lengths.append(len(hashed))
            places.append(hashed)
            values.append(weight)
    empty = np.zeros(0, np.int64)
    return Features(
        rows=np.array([n for n, _ in asked], np.int32),
        folds=np.array([q.fold for _, q in asked], np.int8),
        counts=np.array([len(q.choices) for _, q in asked], np.int16),
        rights=np.array([q.right for _, q in asked], np.int16),
        edges=np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]),
        places=(np.concatenate(places) if places else empty).astype(np.int32),
        values=(np.concatenate(values) if values else empty).astype(np.float16),
    )


def _option_features(question: ChoiceText) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Yield the hashed features of each choice, and their values."""
    of_type = f"type {question.question_type}"
    asked = _hashes(tuple(dict.fromkeys([of_type, *terms(question.question)])))[:QUESTION_TERMS]
    of_options = [words(choice) for choice in question.choices]
    in_question = set(words(question.question))
    lengths = np.array([len(choice) for choice in question.choices], np.float32)
    spread = float(lengths.std()) or 1.0
    shared = [set(own) for own in of_options]
    echo = _scaled([len(own & in_question) / (len(own) or 1) for own in shared])
    central = _scaled(
        [sum(len(own & other) for other in shared) / (len(own) or 1) for own in shared]
    )
    groups = _hashes(("all", of_type, f"source {question.source}"))
    for n, own in enumerate(of_options):
        hashed_words = _hashes(tuple(dict.fromkeys(own)))
        pairs = _hashes([f"{a} {b}" for a, b in pairwise(own)])
        of_option = _hashes(tuple(dict.fromkeys(terms(question.choices[n]))))[:OPTION_TERMS]
        crossed = (asked[:, None] * _PAIR ^ of_option[None, :]).ravel()
        measured = [1.0, (lengths[n] - lengths.mean()) / spread, lengths[n] == lengths.max(),
                    lengths[n] == lengths.min(), echo[n], central[n]]  # fmt: skip
        place = f"open place {n}" if question.open_answer else f"place {n}"
        plain = (groups[:, None] * _PLACE ^ _hashes((place, *MEASURES))[None, :]).ravel()
        hashed = np.concatenate([hashed_words, pairs, crossed, plain])
        weight = np.concatenate([
            _evenly(hashed_words, 1.0), _evenly(pairs, PAIR_SCALE), _evenly(crossed, 1.0),
            np.tile(np.array(measured, np.float32), len(groups)),
        ])  # fmt: skip
        yield (hashed ^ (hashed >> 21)) & ((1 << BITS) - 1), weight


def _evenly(features: NDArray[np.int64], length: float) -> Floats:
    """Return equal values for features, which together are a vector of a length."""
    return np.full(len(features), length / math.sqrt(len(features) or 1), np.float32)


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


def fit_folds(parts: Sequence[Callable[[], Features]], rate: float, seed: int) -> FoldModels:
    """Fit the models on all parts. `parts`: read the features of each; one is in memory at a time,
    in an order drawn anew for each epoch.
    """
    folds_of, questions = np.zeros(1 << BITS, np.uint8), 0  # a bit for each fold
    for read in parts:
        features = read()
        questions += len(features.rows)
        fold = np.repeat(np.repeat(features.folds, features.counts), np.diff(features.edges))
        for n in range(FOLDS):
            folds_of[features.places[fold == n]] |= np.uint8(1 << n)
    occupied = int(np.bitwise_count(np.bitwise_or.reduce(folds_of)))
    fitted = np.bitwise_count(folds_of) >= min(MIN_FOLDS, occupied - 1)
    models, rng = FoldModels(questions, rate), np.random.default_rng(seed)
    epochs = min(MAX_EPOCHS, max(2, math.ceil(MIN_STEPS * BATCH / max(1, questions))))
    for _ in range(epochs):
        for number in rng.permutation(len(parts)):
            features = parts[number]().with_features(fitted)
            order = rng.permutation(len(features.rows))
            for start in range(0, len(order), BATCH):
                models.fit(features.take(order[start : start + BATCH]))
    return models
