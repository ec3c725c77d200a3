"""Tells the narrator's lines of an audio description (visual) from the video's (dialogue).

CinePile, 2.1, in one of two ways. Where the clip was heard too, a line whose words the clip speaks
at that time is dialogue, and one that it does not speak is the narrator's: no model is needed.
Otherwise a head on sentence embeddings, fitted on labelled sentences (MAD's are the paper's), gives
a probability.
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
from mustsee.records import Line
from mustsee.tables import read_table

Floats = NDArray[np.float64]
Probabilities = Callable[[list[str]], Floats]  # texts -> probability that each is visual [n]
_TRUE = frozenset({"1", "1.0", "true", "visual", "description", "visual description", "narrator"})
_FALSE = frozenset({"0", "0.0", "false", "dialogue", "dialog", "subtitle", "subtitles", "speech"})
_PERSONS = frozenset("i you we me my your our us mine yours gonna".split())  # noqa: SIM905
_OPENERS = frozenset("a an the he she they his her two three as in on inside outside later".split())  # noqa: SIM905
SPOKEN, UNSPOKEN = 0.6, 0.25  # shares of a line's words from which it is dialogue, below not


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A labelled sentence; `movie` groups those that must not be split between train and test."""

    text: str
    visual: bool
    movie: str


def read_sentences(
    source: str, *, text: str = "text", label: str = "label", movie: str = "movie"
) -> list[Sentence]:
    """Labelled sentences of a table; `text`, `label`, `movie` are its columns. Raises UserError."""
    found: list[Sentence] = []
    for number, row in enumerate(read_table(source), 1):
        missing = [name for name in (text, label, movie) if row.get(name) in (None, "")]
        if missing:
            raise UserError(f"{source!r}, row {number}: no {missing[0]!r}; columns: {list(row)}")
        value = str(row[label]).strip().lower()
        if value not in _TRUE | _FALSE:
            raise UserError(
                f"{source!r}, row {number}: label {row[label]!r}; use visual/dialogue, or 1/0"
            )
        found.append(Sentence(text=str(row[text]), visual=value in _TRUE, movie=str(row[movie])))
    return found


def split(
    sentences: Sequence[Sentence], *, held_out: float = 0.2, seed: int = 0
) -> tuple[list[Sentence], list[Sentence]]:
    """Train and test sentences, whole movies on one side. The test side is filled with movies in
    seeded order until it holds `held_out` of the sentences. Raises UserError for a single movie.
    """
    movies = sorted({s.movie for s in sentences})
    if len(movies) < 2:
        raise UserError(f"{len(movies)} movie among the sentences: a split by movie needs two")
    random.Random(f"{seed}/sentences/split").shuffle(movies)
    test: set[str] = set()
    for movie in movies[:-1]:
        if test and sum(s.movie in test for s in sentences) >= held_out * len(sentences):
            break
        test.add(movie)
    return [s for s in sentences if s.movie not in test], [s for s in sentences if s.movie in test]


def style(texts: Sequence[str]) -> Floats:
    """How a sentence speaks, beside what it speaks of: persons addressed, contractions, questions,
    exclamations, length, verbs of the third person [n, 8].

    An embedding alone learns the training movies' subjects: without these, narrators of another
    video were taken for speakers.
    """
    rows: list[list[float]] = []
    for text in texts:
        words = text.lower().replace("’", "'").split() or [""]
        bare = [w.strip(".,?!\"'-") for w in words]
        rows.append(
            [
                float(any(w.split("'")[0] in _PERSONS for w in bare)),
                float(any("'" in w and not w.endswith("'s") for w in bare)),
                float("?" in text),
                float("!" in text),
                float(text.rstrip().endswith(("...", "-", "…"))),
                min(3.0, len(words) / 8),
                min(1.0, 4 * sum(w.endswith("s") and len(w) > 3 for w in bare) / len(words)),
                float(bare[0] in _OPENERS),
            ]
        )
    return np.array(rows, dtype=np.float64).reshape(-1, 8)


def features(texts: Sequence[str], vectors: NDArray[np.floating[Any]]) -> Floats:
    """What the head reads: the sentences' vectors [n, d] and their style, [n, d + 8]."""
    return np.concatenate([np.asarray(vectors, np.float64), style(texts)], axis=1)


@dataclass(frozen=True, kw_only=True)
class LogisticHead:
    """A logistic head on an encoder's vectors: `weights` [d], `bias`; `encoder` names what it was
    fitted on.
    """

    weights: Floats
    bias: float
    encoder: str = ""

    def probabilities(self, vectors: NDArray[np.floating[Any]]) -> Floats:
        """Probability that each row of `vectors` [n, d] is visual, [n]."""
        from scipy.special import expit

        return np.asarray(expit(np.asarray(vectors, np.float64) @ self.weights + self.bias))

    def save(self, path: str | Path) -> None:
        """One .npz file of plain arrays (no pickle)."""
        meta = json.dumps({"kind": "mustsee sentence head", "encoder": self.encoder})
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("wb") as file:
            np.savez(file, weights=self.weights, bias=np.float64(self.bias), meta=np.array(meta))

    @classmethod
    def load(cls, path: str | Path) -> LogisticHead:
        """Raises UserError for what is no such file."""
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
                f"{str(path)!r} is no sentence head: {error}; make one with "
                "python -m ray_jobs.sentences_train"
            ) from error


def fit(
    vectors: NDArray[np.floating[Any]],
    visual: Sequence[bool],
    *,
    strength: float = 1.0,
    encoder: str = "",
) -> LogisticHead:
    """The logistic head with the least loss (classes weighted alike) plus an L2 penalty of
    `strength` / n. Raises UserError when one class is missing.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    x, y = np.asarray(vectors, np.float64), np.asarray(visual, np.float64)
    if not 0 < y.mean() < 1:
        raise UserError("all sentences have the same label: a classifier needs both kinds")
    share = np.where(y > 0, 0.5 / y.mean(), 0.5 / (1 - y.mean())) / len(y)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, bias = parameters[:-1], parameters[-1]
        z = x @ weights + bias
        value = float((share * (np.logaddexp(0.0, z) - y * z)).sum())
        value += 0.5 * strength / len(y) * float(weights @ weights)
        slope = share * (np.asarray(expit(z)) - y)
        return value, np.append(x.T @ slope + strength / len(y) * weights, slope.sum())

    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B")
    return LogisticHead(weights=found.x[:-1], bias=float(found.x[-1]), encoder=encoder)


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Measures on held-out sentences. Intervals are 95 %, with whole movies as the units where
    there are several. `confusion[truth][said]` counts, 0 dialogue and 1 visual.
    """

    sentences: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    f1: float
    f1_interval: tuple[float, float]
    confusion: tuple[tuple[int, int], tuple[int, int]]
    recall: Mapping[str, tuple[float, float, float]]  # class -> share, low, high (Wilson)


def measure(test: Sequence[Sentence], probability: Floats, *, seed: int = 0) -> Quality:
    """Accuracy, F1 of "visual", and the confusion at probability 0.5."""
    from mustsee import stats

    truth = np.array([s.visual for s in test])
    said = probability >= 0.5
    right = (truth == said).astype(float)
    groups: list[Hashable] = [s.movie for s in test]
    several = len(set(groups)) > 1
    accuracy = stats.mean(right, groups if several else None)
    counts = tuple(
        tuple(int(((truth == t) & (said == s)).sum()) for s in (False, True)) for t in (False, True)
    )
    recall = {
        name: (counts[t][t] / max(1, sum(counts[t])), *stats.wilson(counts[t][t], sum(counts[t])))
        for t, name in enumerate(("dialogue", "visual"))
        if sum(counts[t])
    }
    f1 = stats.bootstrap(
        lambda times: _f1(truth, said, times), len(test), groups if several else None,
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


def _f1(truth: NDArray[np.bool_], said: NDArray[np.bool_], times: Floats) -> float:
    """F1 with each sentence counted so many times."""
    return float(2 * times[truth & said].sum() / max(1.0, times[truth].sum() + times[said].sum()))


def heard_share(lines: Sequence[Line], clip: Sequence[Line], found: Alignment) -> list[float]:
    """For each description line, the share of its words that the clip speaks at that time, give or
    take 2 s; each of the clip's words counts once.
    """
    said = spoken_words(clip)
    times = found.offset + found.rate * said.start
    free = [True] * len(times)
    shares: list[float] = []
    for line in lines:
        wanted = spoken_words([line]).words
        low = int(np.searchsorted(times, line.start - 2.0))
        high = int(np.searchsorted(times, line.end + 2.0))
        hits = 0
        for word in wanted:
            place = next((i for i in range(low, high) if free[i] and said.words[i] == word), None)
            if place is not None:
                free[place] = False
                hits += 1
        shares.append(hits / len(wanted) if wanted else 0.0)
    return shares


def visual_probability(
    lines: Sequence[Line],
    *,
    clip: Sequence[Line] = (),
    found: Alignment | None = None,
    model: Probabilities | None = None,
) -> list[float]:
    """Probability that each description line is the narrator's. The clip's own words decide where
    they are clear; else the model does; without one, how little of the line the clip speaks.
    """
    shares = heard_share(lines, clip, found) if clip and found is not None else None
    said = model([line.text for line in lines]) if model is not None and lines else None
    result: list[float] = []
    for number in range(len(lines)):
        share = None if shares is None else shares[number]
        if share is not None and share >= SPOKEN:
            result.append(0.0)
        elif share is not None and share <= UNSPOKEN:
            result.append(1.0)
        elif said is not None:
            result.append(float(said[number]))
        else:
            result.append(0.5 if share is None else 1.0 - share)
    return result
