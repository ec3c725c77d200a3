"""Guessers that ask no model and see no video: what the options and the other questions give away.

Each gives every option of every question a score; the highest is guessed. Those that learn from
other questions (`prior`, `score_by_wording`) learn from one half of the videos and guess on the
other.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from mustsee.questions import balance
from mustsee.records import Question
from mustsee.text import LETTERS, words

Scores = list[list[float]]  # for each question, of each of its options
Guesser = Callable[[Sequence[Question]], Scores]

ABOUT: Mapping[str, str] = {
    "longest": "the option with the most letters",
    "shortest": "the option with the fewest letters",
    "central": "the option most like the others",
    "echoing": "the option most like the question's words",
    "novel": "the option whose words are rarest in the dataset",
    "worn": "the option whose words are commonest in the dataset",
    "prior": "the option that is most often right in questions of this type on other videos",
    "wording": "the option whose words are most often in right answers on other videos",
}


def askable_questions(questions: Sequence[Question]) -> list[Question]:
    """The multiple-choice questions with a known answer that were not dropped."""
    return [
        q for q in questions
        if q.drop is None and len(q.options) > 1 and q.answer_index is not None
    ]  # fmt: skip


def hits(questions: Sequence[Question]) -> dict[str, list[float]]:
    """Guesser -> for each of the questions (`askable_questions`) the chance that it is right: 1, 0,
    or a share where several options score alike. "place A" always guesses the first option.
    """
    every = {name: _each(guess) for name, guess in balance.GUESSERS.items()}
    every |= {"novel": novel, "worn": familiarity, "prior": prior, "wording": score_by_wording}
    places = LETTERS[: max((len(q.options) for q in questions), default=0)]
    every |= {f"place {letter}": _place(n) for n, letter in enumerate(places)}
    return {
        name: [balance.hit(q, s) for q, s in zip(questions, guess(questions), strict=True)]
        for name, guess in every.items()
    }


def _each(guess: balance.Guesser) -> Guesser:
    return lambda questions: [list(guess(q)) for q in questions]


def _place(number: int) -> Guesser:
    """Where an option is not there, all are equal."""
    return lambda questions: [
        [float(n == number) for n in range(len(q.options))] for q in questions
    ]


def novel(questions: Sequence[Question]) -> Scores:
    """The mean rarity of an option's words and pairs of words, by the videos whose options have
    them; the question's own video does not count.
    """
    pieces = [[set(balance.pieces(option)) for option in q.options] for q in questions]
    holders: dict[str, set[str]] = {}
    for question, sets in zip(questions, pieces, strict=True):
        for piece in set().union(*sets):
            holders.setdefault(piece, set()).add(question.video_id)
    count = len({q.video_id for q in questions})

    def rarity(piece: str, video: str) -> float:
        others = len(holders[piece]) - (video in holders[piece])
        return math.log((count + 1) / (others + 1))

    return [
        [sum(rarity(p, q.video_id) for p in own) / len(own) if own else 0.0 for own in sets]
        for q, sets in zip(questions, pieces, strict=True)
    ]


def familiarity(questions: Sequence[Question]) -> Scores:
    return [[-score for score in scores] for scores in novel(questions)]


def prior(questions: Sequence[Question]) -> Scores:
    """How often an option of the same words was right where it was offered, in questions of the
    same type on the other half of the videos.
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
    """The mean log-odds of an option's words and pairs of words, as learned from the other half of
    the videos: in right answers over in wrong ones.
    """
    right, wrong = (Counter[tuple[int, str]]() for _ in range(2))
    for q in questions:
        for n, option in enumerate(q.options):
            counts = right if n == q.answer_index else wrong
            counts.update((half(q), piece) for piece in set(balance.pieces(option)))

    def odds(piece: str, side: int, others: int) -> float:
        return math.log((right[side, piece] + 0.5) / (wrong[side, piece] / others + 0.5))

    return [
        [
            sum(odds(p, 1 - half(q), len(q.options) - 1) for p in own) / len(own) if own else 0.0
            for own in (set(balance.pieces(option)) for option in q.options)
        ]
        for q in questions
    ]


def half(question: Question) -> int:
    """Which half of the videos its video belongs to, 0 or 1."""
    return hashlib.sha256(question.video_id.encode()).digest()[0] & 1


def plain(text: str) -> str:
    """A text as it is compared: its words alone, in lower case."""
    return " ".join(words(text))
