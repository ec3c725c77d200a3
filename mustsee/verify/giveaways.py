"""Giveaways: what the options tell without the video and without a model, before any guess is paid
for.

Four guesses: the option most like the others (wrong answers made from the right one lie around it),
the longest, the shortest, and the one that echoes the question. A question is none the worse for
one such guess being right by chance, so it falls only where the margin is clear. Over orders of the
same things, likeness is that of places: a thing that stands third in most options gives itself
away. How a whole dataset fares is in `mustsee.questions.balance`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mustsee.errors import UserError
from mustsee.prompts import ENGLISH
from mustsee.questions.checks import is_order, items
from mustsee.records import Question, Verdict, Video
from mustsee.text import TermVectors, length, terms, words
from mustsee.verify.vetting import VettingContext


@dataclass(frozen=True, kw_only=True)
class Giveaways:
    """A guess is clear where it is right and, for `alike`, its likeness to the others is at least
    so much above the next option's; for `longest` and `shortest`, its words are at least that many
    times more, or fewer, than the next option's; for `echo`, it shares at least so many more words
    with the question that no other option shares. Null leaves a guess out of the verdict, not out
    of the metrics.

    In another `language` than English the guess by echo is off: without a list of its small words
    every "der" would be one.

    Metrics: `giveaway_alike`, `_longest`, `_shortest`, `_echo`, 1 where that guess alone would be
    right, else 0; `giveaway_places`, over orders, the largest share of the options in which one
    thing stands in one place.
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
                    f"vet.filters: {self.name}.{name}={value!r}: at least {number:g}, or null"
                )

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """The question with its metrics and one verdict; nothing is asked."""
        right = question.answer_index
        if right is None or len(question.options) < 2:
            return question
        ordered = is_order(question.question, question.answer)
        found = scores(question, ordered)
        metrics = {f"giveaway_{name}": float(_best(some) == right) for name, some in found.items()}
        clear = [name for name, some in found.items() if self._clear(name, some, right)]
        if ordered:
            metrics["giveaway_places"] = most_crowded_share(question.options)
        reason = "; ".join(_why(name, question, found[name]) for name in clear)
        verdict = Verdict(filter=self.name, model="rules", passed=not clear, reply=reason)
        return replace(
            question,
            verdicts=(*question.verdicts, verdict),
            metrics={**question.metrics, **metrics, f"{self.name}_passed": float(not clear)},
            drop=f"{self.name}: {reason}" if clear and self.drops else question.drop,
        )

    def _clear(self, name: str, some: Sequence[float], right: int) -> bool:
        """Whether a guess is right by a clear margin."""
        margin: float | None = getattr(self, name)
        if name == "echo" and self.language != ENGLISH:
            return False
        if margin is None or _best(some) != right:
            return False
        own, following = some[right], max(s for n, s in enumerate(some) if n != right)
        if name == "longest":
            return own >= margin * following
        if name == "shortest":
            return -own * margin <= -following
        return own - following >= margin - 1e-9


def _why(name: str, question: Question, some: Sequence[float]) -> str:
    """What gives the answer away, with the words that do."""
    right = question.answer_index
    others = [n for n in range(len(some)) if n != right]
    answer = question.options[right or 0]
    if name in ("longest", "shortest"):
        own, following = length(answer), round(abs(max(some[n] for n in others)))
        return (
            f"the right answer is by far the {name} option: {own} words, the next has {following}"
        )
    if name == "echo":
        elsewhere = {t for n in others for t in terms(question.options[n])}
        echoed = _words(answer, set(terms(question.question)) - elsewhere)
        return f"only the right answer takes up words of the question: {echoed}"
    counts = Counter(t for n in others for t in set(terms(question.options[n])))
    shared = _words(answer, {t for t, n in counts.items() if 2 * n >= len(others)})
    return (
        f"the right answer is the one most like the others{shared and f', with {shared}'}: two "
        "wrong answers should rather be like each other"
    )


def _words(text: str, wanted: set[str]) -> str:
    """The words of a text whose stems are wanted."""
    return ", ".join(dict.fromkeys(w for w in words(text) if wanted & set(terms(w))))


def scores(question: Question, ordered: bool) -> dict[str, list[float]]:
    """For each guess a score of every option; the highest is guessed."""
    options = question.options
    sizes = [float(length(option)) for option in options]
    asked = set(terms(question.question))
    shared = [set(terms(option)) & asked for option in options]
    echoes = [
        float(len(some.difference(*(s for k, s in enumerate(shared) if k != n))))
        for n, some in enumerate(shared)
    ]
    return {
        "alike": _places(options) if ordered else _likeness(options),
        "longest": sizes,
        "shortest": [-size for size in sizes],
        "echo": echoes,
    }


def most_crowded_share(options: Sequence[str]) -> float:
    """The largest share of the options, 0 to 1, in which one thing stands in one place."""
    rows = [items(option) for option in options]
    return max(
        (sum(row[place : place + 1] == (thing,) for row in rows) / len(rows)
         for row_ in rows for place, thing in enumerate(row_)),
        default=0.0,
    )  # fmt: skip


def _likeness(options: Sequence[str]) -> list[float]:
    """The mean likeness of each option to the others, in words."""
    mutual = TermVectors(options).cosines
    others = len(options) - 1
    return [float(mutual[n].sum() - mutual[n, n]) / others for n in range(len(options))]


def _places(options: Sequence[str]) -> list[float]:
    """For each order, the mean share of its things that stand where they stand in the others."""
    rows = [items(option) for option in options]
    others = len(rows) - 1
    return [
        sum(
            sum(a == b for a, b in zip(row, other, strict=False)) / len(row)
            for k, other in enumerate(rows)
            if k != n
        )
        / others
        for n, row in enumerate(rows)
    ]


def _best(some: Sequence[float]) -> int | None:
    """The option that a guess names; null where several are equal."""
    top = max(some)
    found = [n for n, score in enumerate(some) if score >= top - 1e-9]
    return found[0] if len(found) == 1 else None
