"""Guessers without a model or the video, which use the options and the other questions.

Each guesser scores every option of every question, and guesses the highest. Guessers that learn
from other questions (`prior`, `score_by_wording`) learn from one half of the videos and guess on
the other; `learned_guess` learns in folds by video. What that knows better than chance leaves a
run's subset (`LearnedGuess`).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mustsee import stats
from mustsee.errors import UserError
from mustsee.questions import balance
from mustsee.questions.balance import hit
from mustsee.questions.chance import chance_of
from mustsee.questions.decision import Decision
from mustsee.questions.learned import MIN_VIDEOS, learned_guess
from mustsee.records import Question, guessed_metric, passed_metric
from mustsee.run.tables import Tables, standing_questions
from mustsee.stats import Estimate
from mustsee.text import LETTERS, words

if TYPE_CHECKING:
    import pyarrow as pa

Scores = list[list[float]]  # by question, by option
Guesser = Callable[[Sequence[Question]], Scores]

ABOUT: Mapping[str, str] = {
    "longest": "the option with the most letters",
    "shortest": "the option with the fewest letters",
    "central": "the option most similar to the others",
    "echoing": "the option most similar to the question's words",
    "novel": "the option with the rarest words in the dataset",
    "worn": "the option with the most common words in the dataset",
    "prior": "the option that is most often right in questions of this type on other videos",
    "wording": "the option with the words of right answers on other videos",
    "learned": "the option that a text model prefers that was fitted to questions on other videos",
}
SHORT: Mapping[str, str] = {  # names for tables
    "longest": "longest option",
    "shortest": "shortest option",
    "central": "most like the others",
    "echoing": "most like the question",
    "novel": "rarest words",
    "worn": "commonest words",
    "prior": "usual answer of the type",
    "wording": "words of right answers",
    "learned": "fitted text model",
}


def askable_questions(questions: Sequence[Question]) -> list[Question]:
    """Return the kept multiple-choice questions with a known answer."""
    return [
        q for q in questions
        if q.drop is None and len(q.options) > 1 and q.answer_index is not None
    ]  # fmt: skip


def hits(questions: Sequence[Question]) -> dict[str, list[float]]:
    """Return guesser -> by question the probability that it is right: 1, 0, or 1/n for n options of
    equal score. `questions`: from `askable_questions`. "place A" always guesses the first option.
    """
    guessers = {name: _each(guess) for name, guess in balance.GUESSERS.items()}
    guessers |= {"novel": score_novelty, "worn": familiarity, "prior": prior,
                 "wording": score_by_wording, "learned": learned_guess}  # fmt: skip
    letters = LETTERS[: max((len(q.options) for q in questions), default=0)]
    guessers |= {f"place {letter}": _place(n) for n, letter in enumerate(letters)}
    return {
        name: [balance.hit(q, s) for q, s in zip(questions, guess(questions), strict=True)]
        for name, guess in guessers.items()
    }


def _each(guess: balance.Guesser) -> Guesser:
    return lambda questions: [list(guess(q)) for q in questions]


def _place(number: int) -> Guesser:
    """Return the guesser of one position. Without such a position all options score the same."""
    return lambda questions: [
        [float(n == number) for n in range(len(q.options))] for q in questions
    ]


def score_novelty(questions: Sequence[Question]) -> Scores:
    """Score options by the mean rarity of their words and word pairs: the fewer other videos have
    them in options, the higher.
    """
    terms = [[set(balance.words_and_pairs(option)) for option in q.options] for q in questions]
    videos_by_term: dict[str, set[str]] = {}
    for question, sets in zip(questions, terms, strict=True):
        for term in set().union(*sets):
            videos_by_term.setdefault(term, set()).add(question.video_id)
    count = len({q.video_id for q in questions})

    def rarity(term: str, video: str) -> float:
        others = len(videos_by_term[term]) - (video in videos_by_term[term])
        return math.log((count + 1) / (others + 1))

    return [
        [sum(rarity(t, q.video_id) for t in own) / len(own) if own else 0.0 for own in sets]
        for q, sets in zip(questions, terms, strict=True)
    ]


def familiarity(questions: Sequence[Question]) -> Scores:
    """Score options by how common their words are: the opposite of `score_novelty`."""
    return [[-score for score in scores] for scores in score_novelty(questions)]


def prior(questions: Sequence[Question]) -> Scores:
    """Score options by the share of right ones among equal options, in questions of the same type
    on the other half of the videos.
    """
    offered, right = (Counter[tuple[int, str, str]]() for _ in range(2))
    for q in questions:
        for n, option in enumerate(q.options):
            key = (half(q), q.question_type, plain(option))
            offered[key] += 1
            right[key] += n == q.answer_index

    def share(q: Question, option: str) -> float:
        key = (1 - half(q), q.question_type, plain(option))
        return (right[key] + 1 / len(q.options)) / (offered[key] + 1)

    return [[share(q, option) for option in q.options] for q in questions]


def score_by_wording(questions: Sequence[Question]) -> Scores:
    """Score options by the mean log-odds of their words and word pairs, in right over wrong answers
    on the other half of the videos.
    """
    right, wrong = (Counter[tuple[int, str]]() for _ in range(2))
    for q in questions:
        for n, option in enumerate(q.options):
            counts = right if n == q.answer_index else wrong
            counts.update((half(q), term) for term in set(balance.words_and_pairs(option)))

    def odds(term: str, side: int, others: int) -> float:
        return math.log((right[side, term] + 0.5) / (wrong[side, term] / others + 0.5))

    return [
        [
            sum(odds(t, 1 - half(q), len(q.options) - 1) for t in own) / len(own) if own else 0.0
            for own in (set(balance.words_and_pairs(option)) for option in q.options)
        ]
        for q in questions
    ]


def half(question: Question) -> int:
    """Return the half of the videos, 0 or 1, that a question's video belongs to."""
    return hashlib.sha256(question.video_id.encode()).digest()[0] & 1


def plain(text: str) -> str:
    """Return a text for comparison: its words in lower case."""
    return " ".join(words(text))


NAME = "learned"
DECIMALS = 4  # digits of the metric; further ones depend on the processor's kernels
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
    gaps = dict[str | None, stats.Difference]()
    for form in groups:
        chosen = [n for n, q in enumerate(questions) if form in (None, q.form)]
        chances = [chance_of(questions[n]) for n in chosen]
        videos = [questions[n].video_id for n in chosen]
        gaps[form] = stats.paired_difference([rights[n] for n in chosen], chances, videos)
    return {form for form, gap in stats.adjust(gaps).items() if gap.is_above()}


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
