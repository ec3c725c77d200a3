"""The chance level of multiple-choice questions: the expected accuracy of guessing, and how often
guesses at chance let a question pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from mustsee.records import Question


def chance_of(question: Question) -> float:
    """Return the probability that a guess among the options is right. The question must have
    options.
    """
    return 1 / len(question.options)


def chance_level(questions: Iterable[Question]) -> float | None:
    """Return the mean of `chance_of` over the questions with options; None if none has any."""
    chances = [chance_of(q) for q in questions if q.options]
    return fmean(chances) if chances else None


def chance_of_all(questions: Sequence[Question]) -> float:
    """Return the probability that independent guesses at the questions are all right."""
    return math.prod(map(chance_of, questions))


def chance_of_square(questions: Sequence[Question]) -> float:
    """Return the expected square of the share of right answers, by independent guesses."""
    chances = [chance_of(q) for q in questions]
    variance = sum(p * (1 - p) for p in chances)
    return (sum(chances) ** 2 + variance) / len(chances) ** 2


@dataclass(frozen=True, kw_only=True)
class MatchingChance:
    """What a random one-to-one matching of questions with their shared options gives: the
    probability that all are right, and the expected square of the share of right ones.
    """

    whole: float
    squared: float


def chance_of_matching(questions: Sequence[Question]) -> MatchingChance | None:
    """Return what a random matching gives; None unless the questions share one list of options of
    which each is the answer to at most one of them.
    """
    lists = {frozenset(q.options) for q in questions}
    keys = [q.options[q.answer_index] for q in questions if q.answer_index is not None]
    if len(lists) != 1 or len({*keys}) < len(questions):
        return None
    count, of = len(questions), len(questions[0].options)
    both = count * (count - 1) / (of * (of - 1))  # expected ordered pairs of right answers
    return MatchingChance(whole=1 / math.perm(of, count), squared=(count / of + both) / count**2)


def chance_to_pass(chance: float, runs: int, min_failures: int) -> float:
    """Return the probability that at least `min_failures` of `runs` guesses are wrong, each right
    with probability `chance`.
    """
    return sum(
        math.comb(runs, wrong) * (1 - chance) ** wrong * chance ** (runs - wrong)
        for wrong in range(min_failures, runs + 1)
    )


def chance_in_tries(probability: float, tries: int) -> float:
    """Return the probability that at least one of `tries` independent tries succeeds."""
    return 1 - (1 - probability) ** tries


def correct_for_chance(share: float, chance: float) -> float:
    """Return a share of right guesses corrected for chance: 0 at chance, 1 if all are right."""
    return (share - chance) / (1 - chance)


def matching_chances(count: int) -> list[float]:
    """Return the probability of 0, 1, ... `count` right pairs, if as many answers are given to
    `count` questions at random.
    """
    none_right = [math.fsum((-1) ** k / math.factorial(k) for k in range(n + 1))
                  for n in range(count + 1)]  # fmt: skip
    return [none_right[count - right] / math.factorial(right) for right in range(count + 1)]
