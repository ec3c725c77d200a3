"""Giveaways: options that reveal the answer without the video or a model, at no cost.

Four guesses: the option most similar to the others (decoys often are variations of the answer), the
longest, the shortest, and the one that repeats words of the question. A guess may be right by
chance, so a question fails only by a clear margin. Where options are orders of the same things,
which share all words, similarity compares positions and neighbours: a thing that is third in most
options gives itself away. In all combinations of the same values no option is more similar than
another, however long its words. The orders and combinations of `mustsee.questions.orders` pass.
`mustsee.questions.balance` measures whole datasets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from mustsee.errors import UserError
from mustsee.prompts import ENGLISH
from mustsee.questions.checks import is_order, items, normal
from mustsee.records import Question, Verdict, Video
from mustsee.text import TermVectors, length, terms, words
from mustsee.verify.filters import WORDED, FilterOutcome, VettingContext, add_outcome


@dataclass(frozen=True, kw_only=True)
class Giveaways:
    """The filter `giveaways`. A question fails by a guess that is right with its margin.

    `alike`: similarity to the other options, above the next option's. `longest`, `shortest`: ratio
    of the number of words to the next option's. `echo`: number of words that only this option
    shares with the question, above the next option's; off unless `language` is English, because
    other languages have no list of stop words. Null leaves a guess out of the verdict, but not out
    of the metrics.

    Metrics: `giveaway_alike`, `_longest`, `_shortest`, `_echo`: 1 if that guess is right, else 0.
    `giveaway_places`: over orders, the largest share of the options with one thing in one position.
    """

    alike: float | None = 0.1
    longest: float | None = 1.5
    shortest: float | None = 1.5
    echo: int | None = 1
    drops: bool = False
    language: str = ENGLISH

    name: str = "giveaways"
    roles: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        least = {"alike": 0.0, "longest": 1.0, "shortest": 1.0, "echo": 1.0}
        for name, number in least.items():
            value = getattr(self, name)
            if value is not None and value < number:
                raise UserError(
                    f"vet.filters: {self.name}.{name}={value!r}: expected at least {number:g}, or "
                    "null"
                )

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question with its metrics and one verdict. Calls no model."""
        right = question.answer_index
        if right is None or len(question.options) < 2:
            return question
        ordered = is_order(question.question, question.answer)
        by_guess = scores(question, ordered)
        metrics = {f"giveaway_{name}": float(_best(s) == right) for name, s in by_guess.items()}
        clear = [name for name, s in by_guess.items() if self._is_clear(name, s, right)]
        if ordered:
            metrics["giveaway_places"] = most_crowded_share(question.options)
        reason = "; ".join(_reason(name, question, by_guess[name]) for name in clear)
        verdict = Verdict(filter=self.name, model="rules", passed=not clear, reply=reason)
        outcome = FilterOutcome(
            filter=self.name, passed=not clear, fault=WORDED, reason=reason, drops=self.drops,
            metrics=metrics,
        )  # fmt: skip
        return add_outcome(replace(question, verdicts=(*question.verdicts, verdict)), outcome)

    def _is_clear(self, name: str, option_scores: Sequence[float], right: int) -> bool:
        """Whether a guess is right by its margin."""
        margin: float | None = getattr(self, name)
        if name == "echo" and self.language != ENGLISH:
            return False
        if margin is None or _best(option_scores) != right:
            return False
        own = option_scores[right]
        following = max(s for n, s in enumerate(option_scores) if n != right)
        if name == "longest":
            return own >= margin * following
        if name == "shortest":
            return -own * margin <= -following
        return own - following >= margin - 1e-9


def _reason(name: str, question: Question, option_scores: Sequence[float]) -> str:
    """Return what gives the answer away, with the words that do."""
    right = question.answer_index
    others = [n for n in range(len(option_scores)) if n != right]
    answer = question.options[right or 0]
    if name in ("longest", "shortest"):
        own, following = length(answer), round(abs(max(option_scores[n] for n in others)))
        return (
            f"the right answer is by far the {name} option: {own} words, the next has {following}"
        )
    if name == "echo":
        elsewhere = {t for n in others for t in terms(question.options[n])}
        echoed = _words_with_stems(answer, set(terms(question.question)) - elsewhere)
        return f"only the right answer takes up words of the question: {echoed}"
    counts = Counter(t for n in others for t in set(terms(question.options[n])))
    shared = _words_with_stems(answer, {t for t, n in counts.items() if 2 * n >= len(others)})
    return (
        f"the right answer is the one most like the others{shared and f', with {shared}'}: two "
        "wrong answers should rather be like each other"
    )


def _words_with_stems(text: str, stems: set[str]) -> str:
    """Return the words of a text that have one of the stems."""
    return ", ".join(dict.fromkeys(w for w in words(text) if stems & set(terms(w))))


def scores(question: Question, ordered: bool) -> dict[str, list[float]]:
    """Return for each guess the scores of all options; the guess is the highest."""
    options = question.options
    sizes = [float(length(option)) for option in options]
    of_question = set(terms(question.question))
    shared = [set(terms(option)) & of_question for option in options]
    echoes = [
        float(len(own.difference(*(s for k, s in enumerate(shared) if k != n))))
        for n, own in enumerate(shared)
    ]
    return {
        "alike": _order_likeness(options) if ordered else _likeness(options),
        "longest": sizes,
        "shortest": [-size for size in sizes],
        "echo": echoes,
    }


def most_crowded_share(options: Sequence[str]) -> float:
    """Return the largest share of the options, 0 to 1, with one thing in one position."""
    rows = [items(option) for option in options]
    return max(
        (sum(row[place : place + 1] == (thing,) for row in rows) / len(rows)
         for row_ in rows for place, thing in enumerate(row_)),
        default=0.0,
    )  # fmt: skip


def _likeness(options: Sequence[str]) -> list[float]:
    """Return the mean cosine of each option with the others, by words; equal values for all
    combinations of the same parts.
    """
    pairs = [tuple(normal(part) for part in option.split(";")) for option in options]
    if all(len(pair) == 2 for pair in pairs):
        combinations = product(*({*parts} for parts in zip(*pairs, strict=True)))
        if sorted(pairs) == sorted(combinations):
            return [1.0] * len(options)
    mutual = TermVectors(options).cosines
    others = len(options) - 1
    return [float(mutual[n].sum() - mutual[n, n]) / others for n in range(len(options))]


def _order_likeness(options: Sequence[str]) -> list[float]:
    """Return for each order the mean share of its things that stand in the same position, and of
    its neighbours that follow each other, as in the others.
    """
    rows = [items(option) for option in options]
    others = len(rows) - 1
    return [
        sum(_alike(row, other) for k, other in enumerate(rows) if k != n) / others
        for n, row in enumerate(rows)
    ]


def _alike(one: Sequence[str], other: Sequence[str]) -> float:
    places = sum(a == b for a, b in zip(one, other, strict=False)) / len(one)
    pairs = {*pairwise(one)} & {*pairwise(other)}
    return (places + len(pairs) / max(1, len(one) - 1)) / 2


def _best(option_scores: Sequence[float]) -> int | None:
    """Return the option with the highest score; None if several have it."""
    top = max(option_scores)
    best = [n for n, score in enumerate(option_scores) if score >= top - 1e-9]
    return best[0] if len(best) == 1 else None
