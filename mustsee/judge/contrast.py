"""Contrasting pairs made from human-labelled ones, by changes that leave no doubt of the verdict.

What people labelled seldom denies, offers a choice, or sets a short answer beside a long reference,
so a judge trained on that alone takes mention for equivalence. Each change that makes an answer
wrong has a like one that leaves it right: no mark alone gives the verdict away.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mustsee.judge.data import LabelledPair
from mustsee.judge.lexical import refuses, words
from mustsee.judge.mini_fit import nearest

REFUSALS = (
    "This information is not present in the provided frames.",
    "I cannot answer that from the video.",
    "It is not possible to tell from what is shown.",
    "I'm sorry, the answer is not mentioned.",
)
DENIED = (
    "It is not {right}.", "Not {right}.", "It was never {right}.", "It isn't {right}.",
    "not {right}", "No, not {right}.", "It is anything but {right}.", "It wasn't {right}",
    "It is {wrong}, not {right}.", "Certainly not {right}", "neither {right} nor {wrong}",
)  # fmt: skip
AFFIRMED = (
    "It is {right}, not {wrong}.", "Not {wrong} but {right}.", "It is not {wrong}, it is {right}.",
    "{right}, not {wrong}", "It is {right}, and nothing else.",
    "It wasn't {wrong}. It was {right}.",
)  # fmt: skip
CHOICES = (
    "{right} or {wrong}", "{wrong} or {right}", "{right} or {wrong} or {third}",
    "Either {wrong} or {right}.", "{wrong}, {third} or {right}", "{wrong}/{right}",
    "It could be {right}, {wrong} or {third}.", "{third}, {wrong}, or maybe {right}",
)  # fmt: skip
SETTLED = (
    "{right}", "It is {right}.", "{right}. {right}", "Answer: {right}", "The answer is {right}.",
    "{question}: {right}", "{right}, {right}",
)  # fmt: skip
SHORT, LONG, TIMES = 6, 40, 3  # words of a short answer, of a long one, and how much longer it is


def contrast_pairs(
    pairs: Sequence[LabelledPair], seed: int
) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """(what is said of the answer, what a long reference holds): each kind as many as helps it
    without loss on the labels themselves.
    """
    rng = random.Random(f"{seed}/mini/contrast")
    long = long_reference(pairs)
    said = [*_altered(pairs, rng), *_mentioned(pairs, rng)]
    held = [
        *rng.sample(long, len(long) // 2),
        *longer_references(pairs, rng),
        *_parts(pairs, rng),
    ]
    return said, held


def _altered(pairs: Sequence[LabelledPair], rng: random.Random) -> list[LabelledPair]:
    """The reference repeated is TRUE; another number, a refusal, and the answer to another question
    are FALSE. One in ten.
    """
    right = [p for p in pairs if p.label]
    made: list[LabelledPair] = []
    for pair in rng.sample(right, len(right) // 10):
        told = nearest(pair)
        kind = rng.randrange(4)
        if kind == 0:
            made.append(replace(pair, candidate=told))
        elif kind == 1:
            made.append(replace(pair, candidate=rng.choice(REFUSALS), label=False))
        elif kind == 2:
            other = rng.choice(right)
            if other.group != pair.group:
                made.append(replace(pair, candidate=other.candidate, label=False))
        numbers = re.findall(r"\d+", told)
        if numbers and all(n in pair.candidate for n in numbers):
            wrong = str(int(numbers[-1][:6]) + rng.choice((-2, -1, 1, 2, 10)))
            candidate = re.sub(rf"\b{numbers[-1]}\b", wrong, pair.candidate)
            if candidate != pair.candidate and numbers[-1] != wrong:
                made.append(replace(pair, candidate=candidate, references=(told,), label=False))
    return made


def _mentioned(
    pairs: Sequence[LabelledPair], rng: random.Random, share: float = 0.2
) -> list[LabelledPair]:
    """A right short answer denied or in a choice is FALSE; affirmed or just said, TRUE."""
    short = [p for p in pairs if p.label and 0 < len(words(nearest(p))) <= SHORT]
    kinds: tuple[tuple[bool, Sequence[str]], ...] = (
        (False, DENIED), (True, AFFIRMED), (False, CHOICES), (True, SETTLED),
    )  # fmt: skip
    made: list[LabelledPair] = []
    other = _others(short, rng)
    for pair in rng.sample(short, round(len(short) * share)):
        right = nearest(pair)
        if re.search(r"\b(?:or|not|no|never)\b|/", right):
            continue
        label, forms = rng.choices(kinds, weights=(3, 2, 3, 2))[0]
        said = rng.choice(forms).format(
            right=right, wrong=other(pair), third=other(pair), question=pair.question
        )
        made.append(replace(pair, candidate=said, references=(right,), label=label))
    return made


def _others(pairs: Sequence[LabelledPair], rng: random.Random) -> Callable[[LabelledPair], str]:
    """The short answer to another question of the same kind (who, when, how many, ...)."""
    kinds: dict[str, list[LabelledPair]] = defaultdict(list)
    for pair in pairs:
        kinds[_kind(pair)].append(pair)

    def other(pair: LabelledPair) -> str:
        told = {w for r in pair.references for w in words(r)}
        for _ in range(8):
            found = rng.choice(kinds[_kind(pair)])
            answer = nearest(found)
            if found.group != pair.group and not told & set(words(answer)):
                return answer
        return "Ouagadougou"

    return other


def _kind(pair: LabelledPair) -> str:
    asked = words(pair.question)
    return " ".join(asked[: 2 if asked[:1] == ["how"] else 1])


@dataclass(frozen=True)
class _Told:
    """Of one question: the short answers, and the long ones that people called right."""

    short: list[LabelledPair]
    long: list[str]


def long_reference(pairs: Sequence[LabelledPair]) -> list[LabelledPair]:
    """Short answers, with people's labels, beside a long answer to the same question that people
    called right as the one reference.
    """
    made: list[LabelledPair] = []
    for told in _by_question(pairs):
        for pair in told.short:
            size = len(words(pair.candidate))
            fit = [r for r in told.long if len(words(r)) >= TIMES * size]
            if fit:
                made.append(replace(pair, references=(min(fit, key=len),)))
    return made


def _by_question(pairs: Sequence[LabelledPair]) -> list[_Told]:
    groups: dict[str, _Told] = defaultdict(lambda: _Told([], []))
    for pair in pairs:
        size = len(words(pair.candidate))
        if 0 < size <= SHORT and not refuses(pair.candidate):
            groups[pair.group].short.append(pair)
        elif pair.label and SHORT < size <= LONG:
            groups[pair.group].long.append(pair.candidate)
    return [g for g in groups.values() if g.short and g.long]


def longer_references(
    pairs: Sequence[LabelledPair], rng: random.Random, share: float = 0.25
) -> list[LabelledPair]:
    """Where one reference of a question is part of a longer one: the shorter as the candidate is
    TRUE, since people gave both; what the longer one has beside it, alone, is FALSE.
    """
    made: list[LabelledPair] = []
    for pair in {p.group: p for p in pairs}.values():
        for long in pair.references:
            told = words(long)
            inside = [r for r in pair.references if 0 < len(words(r)) < len(told)
                      and f" {' '.join(words(r))} " in f" {' '.join(told)} "]  # fmt: skip
            if not inside:
                continue
            short = min(inside, key=len)
            made.append(replace(pair, candidate=short, references=(long,), label=True))
            known = {w for text in (pair.question, *inside) for w in words(text)}
            if rng.random() > share:
                continue
            beside = re.findall(r"\w[\w'-]{3,}", long)
            parts = [w for w in beside if not known & set(words(w))]
            if parts:
                made.append(replace(pair, candidate=parts[-1], references=(long,), label=False))
    return made


def _parts(
    pairs: Sequence[LabelledPair], rng: random.Random, share: float = 0.06
) -> list[LabelledPair]:
    """A word or two of a long right answer that neither the question nor any right short answer or
    reference has: beside the point, so FALSE.
    """
    made: list[LabelledPair] = []
    for told in _by_question(pairs):
        pair, long = told.short[0], rng.choice(told.long)
        right = [*pair.references, *(p.candidate for p in told.short if p.label)]
        known = {w for text in (pair.question, *right) for w in words(text)}
        parts = [m for m in re.findall(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?|\w{6,}", long)
                 if not known & set(words(m))]  # fmt: skip
        if parts and rng.random() < share:
            made.append(replace(pair, candidate=rng.choice(parts), references=(long,), label=False))
    return made
