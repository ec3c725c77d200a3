"""The learned guess: a small text model that learns from some videos which options are right, and
guesses at the questions of the others.

The questions are fitted in folds by video, so that each is guessed by a model that has seen no
question on its video (as in the Test-set Stress-Test of VSI-Bench-Debiased). The model scores each
option by its words and word pairs, by the words that it has beside those of the question, and by
its length, place and likeness to question and options. What it knows better than chance is a
regularity of the dataset, and no knowledge of the video.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mustsee import stats
from mustsee.errors import UserError
from mustsee.questions.balance import central, echo_scores, hit, words_and_pairs
from mustsee.questions.chance import chance_of
from mustsee.records import Question, guessed_metric, passed_metric
from mustsee.run.decision import Decision
from mustsee.run.tables import Tables, standing_questions
from mustsee.stats import Estimate
from mustsee.text import terms

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
NAME = "learned"
FOLDS = 5
L2 = 0.3  # strength of the regularisation
MAX_STEPS = 60  # steps of the fit, at most
MIN_VIDEOS = 3  # videos below which there is too little to learn from
MAX_LEARNED = 4000  # questions to fit on; each takes 10 ms and tens of kB
SCORED_AT_ONCE = 500  # further questions whose features are in memory
DECIMALS = 6  # digits of the metric; further ones depend on the processor's kernels
ALARM_LEVEL = 0.05  # p-value, adjusted by Holm


def learned_guess(questions: Sequence[Question]) -> list[list[float]]:
    """Return the probability of every option of every question, by a model fitted on the questions
    of other videos; all equal with fewer than `MIN_VIDEOS` videos. Of more than `MAX_LEARNED`
    questions, the model is fitted on those of the first videos in the order of their hashes.
    """
    fold_of = _folds(questions)
    if len(fold_of) < MIN_VIDEOS:
        return [[chance_of(q)] * len(q.options) for q in questions]
    learned = [n for n, q in enumerate(questions) if q.video_id in fold_of]
    others = [n for n, q in enumerate(questions) if q.video_id not in fold_of]
    sample = [questions[n] for n in learned]
    columns = _columns(sample)
    matrix = _matrix(sample, columns)
    folds = np.array([fold_of[q.video_id] for q in sample])
    counts = np.array([len(q.options) for q in sample])
    rights = np.array([q.answer_index or 0 for q in sample])
    fold_of_option = np.repeat(folds, counts)
    guesses: list[list[float]] = [[] for _ in questions]
    for fold in range(FOLDS):
        (held_out,) = np.nonzero(folds == fold)
        (rest,) = np.nonzero(folds != fold)
        if not len(held_out):
            continue
        weights = _fit(matrix[fold_of_option != fold], counts[rest], rights[rest])
        shares = _shares(matrix[fold_of_option == fold] @ weights, counts[held_out])
        for n, share in zip(held_out, shares, strict=True):
            guesses[learned[n]] = share
    weights = _fit(matrix, counts, rights) if others else np.zeros(0)
    for start in range(0, len(others), SCORED_AT_ONCE):
        numbers = others[start : start + SCORED_AT_ONCE]
        scored = [questions[n] for n in numbers]
        lengths = np.array([len(q.options) for q in scored])
        shares = _shares(_matrix(scored, columns) @ weights, lengths)
        for n, share in zip(numbers, shares, strict=True):
            guesses[n] = share
    return guesses


def _folds(questions: Sequence[Question]) -> dict[str, int]:
    """Return the fold of each video whose questions the model is fitted on."""
    of_video = Counter(q.video_id for q in questions)
    folds, count = dict[str, int](), 0
    for video in sorted(of_video, key=_hash):
        if count >= MAX_LEARNED and len(folds) >= MIN_VIDEOS:
            break
        folds[video] = len(folds) % FOLDS
        count += of_video[video]
    return folds


def _shares(scores: Floats, counts: NDArray[np.int64]) -> list[list[float]]:
    """Return the probabilities of the options of each question."""
    chances = np.exp(_log_softmax(scores, counts))
    return [part.tolist() for part in np.split(chances, np.cumsum(counts)[:-1])]


def _fit(matrix: Any, counts: NDArray[np.int64], rights: NDArray[np.int64]) -> Floats:
    """Return the weights of a conditional logistic regression: the probability of an option is the
    softmax of its score among those of its question.
    """
    from scipy.optimize import minimize

    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    truth = np.zeros(matrix.shape[0])
    truth[starts + rights] = 1.0

    def loss(weights: Floats) -> tuple[float, Floats]:
        logs = _log_softmax(matrix @ weights, counts)
        slope = matrix.T @ (np.exp(logs) - truth) + L2 * weights
        return float(-(truth @ logs) + L2 * weights @ weights / 2), slope

    start = np.zeros(matrix.shape[1])
    options = {"maxiter": MAX_STEPS}
    return minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x


def _log_softmax(scores: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return the logarithms of the softmax within groups of `counts` scores."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    shifted = scores - np.repeat(np.maximum.reduceat(scores, starts), counts)
    return shifted - np.repeat(np.log(np.add.reduceat(np.exp(shifted), starts)), counts)


def _columns(questions: Sequence[Question]) -> dict[str, int]:
    """Return the features that occur on more than one video, with their columns."""
    videos_of: dict[str, str] = {}  # by name, the first video, or "" for several
    for question in questions:
        for of_option in _features(question):
            for name in of_option:
                if videos_of.setdefault(name, question.video_id) != question.video_id:
                    videos_of[name] = ""
    return {name: n for n, name in enumerate(name for name in videos_of if not videos_of[name])}


def _matrix(questions: Sequence[Question], columns: Mapping[str, int]) -> Any:
    """Return the features of all options, a row each."""
    from scipy import sparse

    edges, places, values = array("q", [0]), array("q"), array("d")
    for question in questions:
        for of_option in _features(question):
            known = [(columns[name], value) for name, value in of_option.items() if name in columns]
            places.extend(column for column, _ in known)
            values.extend(value for _, value in known)
            edges.append(len(places))
    shape = (len(edges) - 1, len(columns))
    return sparse.csr_matrix(tuple(map(np.asarray, (values, places, edges))), shape=shape)


def _features(question: Question) -> Iterator[dict[str, float]]:
    """Yield the features of each option, by name."""
    asked = {*terms(question.question), f"form {question.form or question.question_type}"}
    lengths = np.array([len(option) for option in question.options], np.float64)
    spread = float(lengths.std()) or 1.0
    measured = {
        "length": (lengths - lengths.mean()) / spread,
        "longest": (lengths == lengths.max()) * 1.0,
        "shortest": (lengths == lengths.min()) * 1.0,
        "echo": _scaled(echo_scores(question)),
        "central": _scaled(central(question)),
    }
    for n, option in enumerate(question.options):
        own = {f"word {text}" for text in words_and_pairs(option)}
        of_option = set(terms(option))
        crossed = {f"beside {a}: {b}" for a in asked for b in of_option}
        features = {f"place {n}": 1.0}
        for names in (own, crossed):
            features |= dict.fromkeys(sorted(names), 1 / math.sqrt(len(names) or 1))
        yield features | {name: float(of_options[n]) for name, of_options in measured.items()}


def _scaled(scores: Sequence[float]) -> Floats:
    """Scale scores to 0 (the least) to 1 (the greatest); 0 if all are equal."""
    values = np.array(scores)
    spread = float(values.max() - values.min())
    return (values - values.min()) / spread if spread > 0 else values * 0


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


WARN_LEAD = 0.1  # lead over chance from which the run warns, although it may be luck


@dataclass(frozen=True, kw_only=True)
class LearnedGuess:
    """Takes what the learned guess knows out of a subset, at a barrier after `vet`.

    It learns from all questions of the run that stand. Where it is right more often than chance,
    over all questions or over those of a form (tests adjusted by Holm), the questions leave
    `subset` that it gets right with at least `sure` times the probability of chance. All questions
    get `metrics.learned`, the probability of the right option, `learned_guessed` and
    `learned_passed`. `subset` null: it does nothing.
    """

    subset: str | None = "mma"
    """Subset that questions leave which it knows, where it is better than chance; null:
    none."""
    sure: float = 2
    """Times the probability of chance that it gives the right option of these, at least."""

    def __post_init__(self) -> None:
        if self.sure < 1:
            raise UserError(f"learned.sure={self.sure!r}: expected at least 1 (chance)")

    @property
    def columns(self) -> tuple[str, ...]:
        return ("questions",)

    def __call__(self, rows: pa.Table) -> Decision:
        asked = [
            # Without what a guesser never sees, because a run may have a million questions.
            replace(
                q, verdicts=(), repairs=(), evidence=(), metrics={}, provenance=None, trace=None
            )
            for q in standing_questions(rows)
            if q.drop is None and len(q.options) > 1 and q.answer_index is not None
        ]
        if self.subset is None or len({q.video_id for q in asked}) < MIN_VIDEOS:
            return Decision()
        guesses = learned_guess(asked)
        rights = [hit(q, guess) for q, guess in zip(asked, guesses, strict=True)]
        known = _known_forms(asked, rights)
        metrics: dict[str, Mapping[str, float]] = {}
        leaves: dict[str, tuple[str, ...]] = {}
        for question, guess, right in zip(asked, guesses, rights, strict=True):
            chance = guess[question.answer_index or 0]
            sure = right == 1 and chance >= self.sure * chance_of(question)
            passed = not (sure and ({None, question.form} & known))
            metrics[question.question_id] = {
                NAME: round(chance, DECIMALS),
                guessed_metric(NAME): right,
                passed_metric(NAME): float(passed),
            }
            if not passed and self.subset in question.subsets:
                leaves[question.question_id] = (self.subset,)
        return Decision(metrics=metrics, leaves=leaves)


def _known_forms(questions: Sequence[Question], rights: Sequence[float]) -> set[str | None]:
    """Return the forms whose questions are guessed better than chance, and null if all together
    are.
    """
    # A form that all questions have is tested once.
    forms = {q.form for q in questions if q.form is not None}
    groups: list[str | None] = [None, *(sorted(forms) if len(forms) > 1 else ())]
    tests: list[tuple[float, float]] = []
    for form in groups:
        chosen = [n for n, q in enumerate(questions) if form in (None, q.form)]
        chances = [chance_of(questions[n]) for n in chosen]
        videos = [questions[n].video_id for n in chosen]
        over = stats.paired_difference([rights[n] for n in chosen], chances, videos)
        tests.append((over.value, over.p))
    adjusted = stats.holm([p for _, p in tests])
    return {
        form
        for form, (value, _), p in zip(groups, tests, adjusted, strict=True)
        if value > 0 and p <= ALARM_LEVEL
    }


def record_learned(tables: Tables) -> Mapping[str, Any]:
    """Return the part of the run record on the learned guess: its accuracy with the interval by
    video, chance, and how many questions it took out; empty without its metrics.
    """
    hits = list[tuple[float, float, str, float]]()
    for q in tables.questions("options", "metrics"):
        right = q.metrics.get(guessed_metric(NAME))
        if right is not None and q.options:
            taken = NAME in q.failed_filters
            hits.append((right, chance_of(q), q.video_id, float(taken)))
    if not hits:
        return {}
    rights, chances, videos, taken = zip(*hits, strict=True)
    found, chance = stats.mean(rights, videos), float(np.mean(chances))
    note = f"a text model fitted on the other videos answers {_in_words(found)} of {found.n} "
    note += f"questions right, by chance {chance:.0%}; {round(sum(taken))} did not pass for it"
    if not sum(taken) and found.value >= chance + WARN_LEAD:
        note = f"warning: {note}, since this may be luck on so few: look for what the answers share"
    return {NAME: {**vars(found), "chance": chance, "taken": int(sum(taken))}, "notes": [note]}


def _in_words(share: Estimate) -> str:
    if share.low is None or share.high is None:
        return f"{share.value:.0%}"
    return f"{share.value:.0%} (95% {max(0.0, share.low):.0%} to {min(1.0, share.high):.0%})"
