"""Whether a set of questions gives its answers away: guessers that see no video, and a resampling
step that brings them back to chance.

A guesser looks at the options (and the question's words) alone. It is fair when its accuracy's 95 %
Wilson interval holds chance, the mean of one over the number of options. MLVU's released sets have
even answer slots, but the longest option is right in 59 % of its needle questions where 30 % would
be chance.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mustsee.questions.chance import chance_of
from mustsee.records import Question
from mustsee.stats import wilson
from mustsee.text import LETTERS, words

Guesser = Callable[[Question], Sequence[float]]  # a score for each option; the highest is guessed


def longest(question: Question) -> list[float]:
    return [float(len(option)) for option in question.options]


def shortest(question: Question) -> list[float]:
    return [-float(len(option)) for option in question.options]


def central(question: Question) -> list[float]:
    """Likeness to the other options: decoys made from the answer lie around it."""
    bags = [set(pieces(option)) for option in question.options]
    return [
        sum(_overlap(one, other) for k, other in enumerate(bags) if k != n)
        for n, one in enumerate(bags)
    ]


def echo_scores(question: Question) -> list[float]:
    """Likeness to the question's words."""
    asked = set(pieces(question.question))
    return [_overlap(set(pieces(option)), asked) for option in question.options]


def pieces(text: str) -> list[str]:
    """Words, and pairs of neighbours, so that orders of the same words differ."""
    said = words(text)
    return [*said, *(f"{a} {b}" for a, b in pairwise(said))]


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


GUESSERS: Mapping[str, Guesser] = {
    "longest": longest,
    "shortest": shortest,
    "central": central,
    "echoing": echo_scores,
}


def hit(question: Question, scores: Sequence[float]) -> float:
    """The chance that a guess among the highest scores is right: 1, 0, or a share where several are
    equal.
    """
    top = max(scores)
    best = [n for n, score in enumerate(scores) if score >= top - 1e-12]
    return 1 / len(best) if question.answer_index in best else 0.0


@dataclass(frozen=True, kw_only=True)
class GuesserBias:
    """One guesser on one task. `kind`: "slot", "guesser", or "answer" (always the same answer: a
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
    """Every guesser on every task (`question_type`), multiple choice only; dropped questions are
    left out.
    """
    found: list[GuesserBias] = []
    for task, asked in sorted(_tasks(questions).items()):
        for (kind, name), hits in _hits(asked).items():
            found.append(_finding(task, kind, name, asked, hits))
    return found


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


def _hits(asked: Sequence[Question]) -> dict[tuple[str, str], list[float]]:
    """(kind, name) -> for each question how right the guesser is."""
    hits: dict[tuple[str, str], list[float]] = {}
    for slot in range(max(len(q.options) for q in asked)):
        hits["slot", LETTERS[slot]] = [float(q.answer_index == slot) for q in asked]
    for name, guesser in GUESSERS.items():
        hits["guesser", name] = [hit(q, guesser(q)) for q in asked]
    for answer in _repeated(asked):
        hits["answer", answer] = [
            hit(q, [float(option == answer) for option in q.options]) for q in asked
        ]
    return hits


def _repeated(asked: Sequence[Question]) -> list[str]:
    """Answers that many questions share (counts, permutations, labels): those of at least 5
    questions and a fortieth of all.
    """
    counts = Counter(q.options[q.answer_index or 0] for q in asked)
    return sorted(a for a, n in counts.items() if n >= max(5, len(asked) / 40))


def _finding(
    task: str, kind: str, name: str, asked: Sequence[Question], hits: Sequence[float]
) -> GuesserBias:
    accuracy = sum(hits) / len(hits)
    low, high = wilson(sum(hits), len(hits))
    chance = sum(chance_of(q) for q in asked) / len(asked)
    return GuesserBias(
        task=task,
        kind=kind,
        name=name,
        questions=len(asked),
        accuracy=accuracy,
        low=low,
        high=high,
        chance=chance,
    )


def table(findings: Sequence[GuesserBias], *, all_rows: bool = False) -> str:
    """Findings as text: one line for each guesser, those that beat or miss chance marked."""
    lines = [f"{'task':18} {'guesser':24} {'n':>5} {'right':>7}  {'95 %':^15} {'chance':>7}"]
    for f in findings:
        if f.kind == "answer" and f.fair and not all_rows:
            continue
        name = f"{f.kind} {f.name}" if f.kind != "guesser" else f.name
        lines.append(
            f"{f.task[:18]:18} {name[:24]:24} {f.questions:5d} {f.accuracy:7.1%}  "
            f"{f.low:6.1%} -{f.high:6.1%}  {f.chance:6.1%}{'' if f.fair else '  *'}"
        )
    return "\n".join(lines)


def balance_questions(
    questions: Sequence[Question], seed: int = 0, least: float = 0.5
) -> list[Question]:
    """The questions, some dropped ("balance: <guesser>") until every guesser is fair on every task.

    Each time the guesser that is farthest from chance, in widths of its interval, loses one
    question that speaks for it (drawn by seed among those that speak for most unfair guessers).
    Stops where a task would fall below `least` of its size: no set is thrown away to mend it.
    """
    reasons: dict[str, str] = {}
    for task, asked in sorted(_tasks(questions).items()):
        order = sorted(asked, key=lambda q: q.question_id)
        random.Random(f"{seed}/{task}/balance").shuffle(order)
        reasons |= _dropped(order, max(1, round(least * len(order))))
    return [
        replace(q, drop=reasons[q.question_id]) if q.question_id in reasons else q
        for q in questions
    ]


def _dropped(asked: Sequence[Question], least: int) -> dict[str, str]:
    hits = _hits(asked)
    chances = [chance_of(q) for q in asked]
    right = {key: sum(some) for key, some in hits.items()}
    chance, left = sum(chances), list(range(len(asked)))
    reasons: dict[str, str] = {}
    while len(left) > least:
        gaps = {key: _gap(total, chance, len(left)) for key, total in right.items()}
        unfair = {key: gap for key, gap in gaps.items() if gap}
        if not unfair:
            break
        worst = max(unfair, key=lambda key: (abs(unfair[key]), key))
        loud = max(_speaks(hits[worst], n, unfair[worst], chances) for n in left)
        near = [n for n in left if _speaks(hits[worst], n, unfair[worst], chances) >= loud - 1e-9]
        speaking = [_for(hits, n, unfair, chances) for n in near]
        gone = near[speaking.index(max(speaking))]
        left.remove(gone)
        chance -= chances[gone]
        right = {key: max(0.0, total - hits[key][gone]) for key, total in right.items()}
        reasons[asked[gone].question_id] = f"balance: {worst[0]} {worst[1]}"
    return reasons


def _gap(right: float, chance: float, count: int) -> float:
    """0 when chance lies in the interval, else how far off, in widths of it, with its sign. `right`
    and `chance` are sums over `count` questions.
    """
    low, high = wilson(min(right, count), count)
    if low <= chance / count <= high:
        return 0.0
    return (right - chance) / count / (high - low)


def _speaks(some: Sequence[float], n: int, gap: float, chances: Sequence[float]) -> float:
    """How much question `n` adds to the gap."""
    return (some[n] - chances[n]) * (1 if gap > 0 else -1)


def _for(
    hits: Mapping[tuple[str, str], Sequence[float]],
    n: int,
    unfair: Mapping[tuple[str, str], float],
    chances: Sequence[float],
) -> float:
    return sum(_speaks(hits[key], n, gap, chances) for key, gap in unfair.items())
