"""Shortcuts in a set of questions: guessers without the video, and drops that bring them to chance.

A guesser uses the options (and the question's words) alone. It is fair if the 95 % Wilson interval
of its accuracy contains chance, the mean of one over the number of options. MLVU's released sets
have even answer slots, but the longest option is right in 59 % of its needle questions, where
chance is 30 %.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mustsee.questions.chance import chance_of
from mustsee.records import Question
from mustsee.stats import wilson
from mustsee.text import LETTERS, words

Guesser = Callable[[Question], Sequence[float]]  # a score per option; the guess is the highest


def longest(question: Question) -> list[float]:
    return [float(len(option)) for option in question.options]


def shortest(question: Question) -> list[float]:
    return [-float(len(option)) for option in question.options]


def central(question: Question) -> list[float]:
    """Score options by similarity to the others: decoys often are variations of the answer."""
    bags = [set(words_and_pairs(option)) for option in question.options]
    return [
        sum(_overlap(one, other) for k, other in enumerate(bags) if k != n)
        for n, one in enumerate(bags)
    ]


def echo_scores(question: Question) -> list[float]:
    """Score options by their similarity to the question."""
    of_question = set(words_and_pairs(question.question))
    return [_overlap(set(words_and_pairs(option)), of_question) for option in question.options]


def words_and_pairs(text: str) -> list[str]:
    """Return the words and the word pairs of a text, so that orders of the same words differ."""
    tokens = words(text)
    return [*tokens, *(f"{a} {b}" for a, b in pairwise(tokens))]


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


GUESSERS: Mapping[str, Guesser] = {
    "longest": longest,
    "shortest": shortest,
    "central": central,
    "echoing": echo_scores,
}


def hit(question: Question, scores: Sequence[float]) -> float:
    """Return the probability that a guess among the highest scores is right: 1, 0, or 1/n for n
    equal scores.
    """
    top = max(scores)
    best = [n for n, score in enumerate(scores) if score >= top - 1e-12]
    return 1 / len(best) if question.answer_index in best else 0.0


@dataclass(frozen=True, kw_only=True)
class GuesserBias:
    """The accuracy of one guesser on one task.

    `kind`: "slot" (always the same letter), "guesser", or "answer" (always the same answer: a
    count, a permutation). `low`, `high`: 95 % Wilson interval of `accuracy`.
    """

    task: str
    kind: str
    name: str
    questions: int
    accuracy: float
    low: float
    high: float
    chance: float

    @property
    def fair(self) -> bool:
        return self.low <= self.chance <= self.high


def report(questions: Sequence[Question]) -> list[GuesserBias]:
    """Measure every guesser on each task (`question_type`), on kept multiple-choice questions."""
    return [
        _measure(task, kind, name, members, hits)
        for task, members in sorted(_tasks(questions).items())
        for (kind, name), hits in _hits(members).items()
    ]


def _tasks(questions: Sequence[Question]) -> dict[str, list[Question]]:
    tasks: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        if (
            question.drop is None
            and len(question.options) > 1
            and question.answer_index is not None
        ):
            tasks[question.question_type].append(question)
    return tasks


def _hits(questions: Sequence[Question]) -> dict[tuple[str, str], list[float]]:
    """Return (kind, name) of a guesser -> the probability that it is right, by question."""
    hits: dict[tuple[str, str], list[float]] = {}
    for slot in range(max(len(q.options) for q in questions)):
        hits["slot", LETTERS[slot]] = [float(q.answer_index == slot) for q in questions]
    for name, guesser in GUESSERS.items():
        hits["guesser", name] = [hit(q, guesser(q)) for q in questions]
    for answer in _repeated_answers(questions):
        hits["answer", answer] = [
            hit(q, [float(option == answer) for option in q.options]) for q in questions
        ]
    return hits


def _repeated_answers(questions: Sequence[Question]) -> list[str]:
    """Return the answers (counts, permutations, labels) of at least 5 questions and at least a
    fortieth of all.
    """
    counts = Counter(q.options[q.answer_index or 0] for q in questions)
    return sorted(a for a, n in counts.items() if n >= max(5, len(questions) / 40))


def _measure(
    task: str, kind: str, name: str, questions: Sequence[Question], hits: Sequence[float]
) -> GuesserBias:
    accuracy = sum(hits) / len(hits)
    low, high = wilson(sum(hits), len(hits))
    chance = sum(chance_of(q) for q in questions) / len(questions)
    return GuesserBias(
        task=task,
        kind=kind,
        name=name,
        questions=len(questions),
        accuracy=accuracy,
        low=low,
        high=high,
        chance=chance,
    )


def balance_questions(
    questions: Sequence[Question], seed: int = 0, least: float = 0.5
) -> list[Question]:
    """Drop questions ("balance: <guesser>") until every guesser is fair on every task.

    Each step drops one question that favours the guesser farthest from chance, in widths of its
    interval; of these, one that favours the most unfair guessers, drawn by seed. Stops before a
    task falls below the share `least` of its size.
    """
    reasons: dict[str, str] = {}
    for task, members in sorted(_tasks(questions).items()):
        order = sorted(members, key=lambda q: q.question_id)
        random.Random(f"{seed}/{task}/balance").shuffle(order)
        reasons |= _choose_drops(order, max(1, round(least * len(order))))
    return [
        replace(q, drop=reasons[q.question_id]) if q.question_id in reasons else q
        for q in questions
    ]


def _choose_drops(questions: Sequence[Question], least: int) -> dict[str, str]:
    """Return question id -> reason of the questions of one task to drop; at least `least` stay.

    Questions on which every guesser fares alike are one group, whose first one is dropped first: a
    step costs time in the number of groups, of which there are few, and not of questions.
    """
    hits, chances = _hits(questions), [chance_of(q) for q in questions]
    groups: dict[tuple[float, ...], deque[int]] = defaultdict(deque)
    for n, row in enumerate(zip(chances, *hits.values(), strict=True)):
        groups[row].append(n)
    members = list(groups.values())
    values = np.array(list(groups))
    over = dict(zip(hits, (values[:, 1:] - values[:, :1]).T, strict=True))  # by guesser, by group
    is_left = np.ones(len(members), bool)
    right = {key: sum(of_key) for key, of_key in hits.items()}
    chance, left = sum(chances), len(questions)
    reasons: dict[str, str] = {}
    while left > least:
        gaps = {key: _gap(total, chance, left) for key, total in right.items()}
        unfair = {key: gap for key, gap in gaps.items() if gap}
        if not unfair:
            break
        worst = max(unfair, key=lambda key: (abs(unfair[key]), key))
        favour = np.where(is_left, over[worst] * np.sign(unfair[worst]), -np.inf)
        (best,) = np.nonzero(favour >= favour.max() - 1e-9)
        totals = sum(over[key][best] * np.sign(gap) for key, gap in unfair.items())
        best = best[totals == np.max(totals)]
        group = min(best, key=lambda number: members[number][0])
        dropped = members[group].popleft()
        is_left[group], left = bool(members[group]), left - 1
        chance -= chances[dropped]
        right = {key: max(0.0, total - hits[key][dropped]) for key, total in right.items()}
        reasons[questions[dropped].question_id] = f"balance: {worst[0]} {worst[1]}"
    return reasons


def _gap(right: float, chance: float, count: int) -> float:
    """Return the signed distance of a guesser's accuracy from chance, in widths of its interval; 0
    if the interval contains chance. `right` and `chance` are sums over `count` questions.
    """
    low, high = wilson(min(right, count), count)
    if low <= chance / count <= high:
        return 0.0
    return (right - chance) / count / (high - low)
