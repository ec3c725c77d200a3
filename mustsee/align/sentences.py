"""Separates the narrator's lines of an audio description (visual) from the video's (dialogue).

CinePile, 2.1, in one of two ways. Where the clip has a transcript, a line whose words the clip
speaks at that time is dialogue, and one that it does not speak is the narrator's: no model is
needed. Otherwise a head on sentence embeddings, fitted on labelled sentences (the paper's are
MAD's), gives a probability.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mustsee.align.description import spoken_words
from mustsee.align.place import Alignment
from mustsee.errors import UserError
from mustsee.files.tables import read_table
from mustsee.records import Line

Floats = NDArray[np.float64]
Probabilities = Callable[[list[str]], Floats]  # texts -> probability that each is visual [n]
_TRUE = frozenset({"1", "1.0", "true", "visual", "description", "visual description", "narrator"})
_FALSE = frozenset({"0", "0.0", "false", "dialogue", "dialog", "subtitle", "subtitles", "speech"})
_PERSONS = frozenset("i you we me my your our us mine yours gonna".split())  # noqa: SIM905
_OPENERS = frozenset("a an the he she they his her two three as in on inside outside later".split())  # noqa: SIM905
# Shares of a line's words that the clip speaks: dialogue from SPOKEN on, narrator up to UNSPOKEN.
SPOKEN, UNSPOKEN = 0.6, 0.25


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A labelled sentence. Sentences of one `movie` are not split between train and test."""

    text: str
    visual: bool
    movie: str


def read_sentences(
    source: str, *, text: str = "text", label: str = "label", movie: str = "movie"
) -> list[Sentence]:
    """Return the labelled sentences of a table; `text`, `label`, `movie` are its columns. Raises
    UserError.
    """
    sentences: list[Sentence] = []
    for number, row in enumerate(read_table(source), 1):
        missing = [name for name in (text, label, movie) if row.get(name) in (None, "")]
        if missing:
            raise UserError(f"{source!r}, row {number}: no {missing[0]!r}; columns: {list(row)}")
        value = str(row[label]).strip().lower()
        if value not in _TRUE | _FALSE:
            raise UserError(
                f"{source!r}, row {number}: label {row[label]!r}; use visual/dialogue, or 1/0"
            )
        sentences.append(
            Sentence(text=str(row[text]), visual=value in _TRUE, movie=str(row[movie]))
        )
    return sentences


def split(
    sentences: Sequence[Sentence], *, held_out: float = 0.2, seed: int = 0
) -> tuple[list[Sentence], list[Sentence]]:
    """Return train and test sentences, with the sentences of each movie on one side.

    Movies are added to the test side in seeded order until it holds `held_out` of the sentences.
    Raises UserError for a single movie.
    """
    movies = sorted({sentence.movie for sentence in sentences})
    if len(movies) < 2:
        raise UserError(f"{len(movies)} movie among the sentences: a split by movie needs two")
    random.Random(f"{seed}/sentences/split").shuffle(movies)
    test: set[str] = set()
    for movie in movies[:-1]:
        if test and sum(sentence.movie in test for sentence in sentences) >= held_out * len(
            sentences
        ):
            break
        test.add(movie)
    return [sentence for sentence in sentences if sentence.movie not in test], [
        sentence for sentence in sentences if sentence.movie in test
    ]


def style(texts: Sequence[str]) -> Floats:
    """Return features of a sentence's style [n, 8]: persons addressed, contractions, questions,
    exclamations, unfinished sentences, length, verbs of the third person, narrators' first words.

    An embedding alone learns the training movies' subjects: without these features, narrators of
    another video were classified as dialogue.
    """
    rows: list[list[float]] = []
    for text in texts:
        words = text.lower().replace("’", "'").split() or [""]
        stripped = [w.strip(".,?!\"'-") for w in words]
        rows.append(
            [
                float(any(w.split("'")[0] in _PERSONS for w in stripped)),
                float(any("'" in w and not w.endswith("'s") for w in stripped)),
                float("?" in text),
                float("!" in text),
                float(text.rstrip().endswith(("...", "-", "…"))),
                min(3.0, len(words) / 8),
                min(1.0, 4 * sum(w.endswith("s") and len(w) > 3 for w in stripped) / len(words)),
                float(stripped[0] in _OPENERS),
            ]
        )
    return np.array(rows, dtype=np.float64).reshape(-1, 8)


def features(texts: Sequence[str], vectors: NDArray[np.floating[Any]]) -> Floats:
    """Return the head's input: the sentences' vectors [n, d] and their style, [n, d + 8]."""
    return np.concatenate([np.asarray(vectors, np.float64), style(texts)], axis=1)


@dataclass(frozen=True, kw_only=True)
class LogisticHead:
    """A logistic head on an encoder's vectors: `weights` [d], `bias`; `encoder`: the encoder of its
    training.
    """

    weights: Floats
    bias: float
    encoder: str = ""

    def probabilities(self, vectors: NDArray[np.floating[Any]]) -> Floats:
        """Return the probability that each row of `vectors` [n, d] is visual, [n]."""
        from scipy.special import expit

        return np.asarray(expit(np.asarray(vectors, np.float64) @ self.weights + self.bias))

    def save(self, path: str | Path) -> None:
        """Write the head as one .npz file of plain arrays (no pickle)."""
        meta = json.dumps({"kind": "mustsee sentence head", "encoder": self.encoder})
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("wb") as file:
            np.savez(file, weights=self.weights, bias=np.float64(self.bias), meta=np.array(meta))

    @classmethod
    def load(cls, path: str | Path) -> LogisticHead:
        """Read a head. Raises UserError for any other file."""
        try:
            with np.load(path, allow_pickle=False) as data:
                meta = json.loads(str(data["meta"]))
                return cls(
                    weights=np.asarray(data["weights"], np.float64),
                    bias=float(data["bias"]),
                    encoder=str(meta["encoder"]),
                )
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"{str(path)!r} is not a sentence head: {error}; make one with "
                "python -m ray_jobs.sentences_train"
            ) from error


def fit(
    vectors: NDArray[np.floating[Any]],
    visual: Sequence[bool],
    *,
    strength: float = 1.0,
    encoder: str = "",
) -> LogisticHead:
    """Return the logistic head that minimises the loss (both classes weighted alike) plus an L2
    penalty of `strength` / n. Raises UserError when one class is missing.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    x, y = np.asarray(vectors, np.float64), np.asarray(visual, np.float64)
    if not 0 < y.mean() < 1:
        raise UserError("all sentences have the same label: a classifier needs both kinds")
    sample_weights = np.where(y > 0, 0.5 / y.mean(), 0.5 / (1 - y.mean())) / len(y)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, bias = parameters[:-1], parameters[-1]
        z = x @ weights + bias
        value = float((sample_weights * (np.logaddexp(0.0, z) - y * z)).sum())
        value += 0.5 * strength / len(y) * float(weights @ weights)
        slope = sample_weights * (np.asarray(expit(z)) - y)
        return value, np.append(x.T @ slope + strength / len(y) * weights, slope.sum())

    optimum = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B")
    return LogisticHead(weights=optimum.x[:-1], bias=float(optimum.x[-1]), encoder=encoder)


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Measures on held-out sentences.

    Intervals are 95 %, with whole movies as units where there are several.
    `confusion[truth][predicted]` counts, 0 dialogue and 1 visual.
    """

    sentences: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    f1: float
    f1_interval: tuple[float, float]
    confusion: tuple[tuple[int, int], tuple[int, int]]
    recall: Mapping[str, tuple[float, float, float]]  # class -> share, low, high (Wilson)


def measure(test: Sequence[Sentence], probability: Floats, *, seed: int = 0) -> Quality:
    """Return accuracy, F1 of "visual", and the confusion at probability 0.5."""
    from mustsee import stats

    truth = np.array([sentence.visual for sentence in test])
    predicted = probability >= 0.5
    correct = (truth == predicted).astype(float)
    groups: list[Hashable] = [sentence.movie for sentence in test]
    several = len(set(groups)) > 1
    accuracy = stats.mean(correct, groups if several else None)
    counts = tuple(
        tuple(int(((truth == t) & (predicted == sentence)).sum()) for sentence in (False, True))
        for t in (False, True)
    )
    recall = {
        name: (counts[t][t] / max(1, sum(counts[t])), *stats.wilson(counts[t][t], sum(counts[t])))
        for t, name in enumerate(("dialogue", "visual"))
        if sum(counts[t])
    }
    f1 = stats.bootstrap(
        lambda times: _f1(truth, predicted, times), len(test), groups if several else None,
        draws=1000, seed=seed, within=(0.0, 1.0),
    )  # fmt: skip
    return Quality(
        sentences=len(test),
        accuracy=accuracy.value,
        accuracy_interval=(accuracy.low or 0.0, 1.0 if accuracy.high is None else accuracy.high),
        f1=f1.value,
        f1_interval=(f1.low or 0.0, 1.0 if f1.high is None else f1.high),
        confusion=(counts[0], counts[1]),  # type: ignore[arg-type]
        recall=recall,
    )


def _f1(truth: NDArray[np.bool_], predicted: NDArray[np.bool_], counts: Floats) -> float:
    """F1, with each sentence counted `counts` times."""
    return float(
        2
        * counts[truth & predicted].sum()
        / max(1.0, counts[truth].sum() + counts[predicted].sum())
    )


def spoken_shares(lines: Sequence[Line], clip: Sequence[Line], alignment: Alignment) -> list[float]:
    """Return for each description line the share of its words that the clip speaks within 2 s of
    it.

    Each word of the clip counts once.
    """
    clip_words = spoken_words(clip)
    times = alignment.offset + alignment.rate * clip_words.start
    is_unused = [True] * len(times)
    shares: list[float] = []
    for line in lines:
        words = spoken_words([line]).words
        low = int(np.searchsorted(times, line.start - 2.0))
        high = int(np.searchsorted(times, line.end + 2.0))
        hits = 0
        for word in words:
            place = next(
                (i for i in range(low, high) if is_unused[i] and clip_words.words[i] == word), None
            )
            if place is not None:
                is_unused[place] = False
                hits += 1
        shares.append(hits / len(words) if words else 0.0)
    return shares


def visual_probability(
    lines: Sequence[Line],
    *,
    clip: Sequence[Line] = (),
    alignment: Alignment | None = None,
    model: Probabilities | None = None,
) -> list[float]:
    """Return the probability that each description line is the narrator's.

    The clip's own words decide where they are clear; otherwise the model does, or without one the
    share of the line that the clip does not speak.
    """
    shares = spoken_shares(lines, clip, alignment) if clip and alignment is not None else None
    predicted = model([line.text for line in lines]) if model is not None and lines else None
    probabilities: list[float] = []
    for number in range(len(lines)):
        share = None if shares is None else shares[number]
        if share is not None and share >= SPOKEN:
            probabilities.append(0.0)
        elif share is not None and share <= UNSPOKEN:
            probabilities.append(1.0)
        elif predicted is not None:
            probabilities.append(float(predicted[number]))
        else:
            probabilities.append(0.5 if share is None else 1.0 - share)
    return probabilities
