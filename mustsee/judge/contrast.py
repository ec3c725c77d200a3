"""Make contrast pairs from human-labelled pairs, by changes with a certain verdict.

Human-labelled answers seldom deny, offer a choice, or stand beside a much longer reference, so a
judge trained on them alone takes mention for equivalence. Each change that makes an answer wrong
has a similar one that keeps it right, so that no surface feature gives the verdict away.
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
from mustsee.records import group_pairs

REFUSALS = (
    "This information is not present in the provided frames.",
    "I cannot answer that from the video.",
    "It is not possible to tell from what is shown.",
    "I'm sorry, the answer is not mentioned.",
)
DENIALS = (
    "It is not {right}.", "Not {right}.", "It was never {right}.", "It isn't {right}.",
    "not {right}", "No, not {right}.", "It is anything but {right}.", "It wasn't {right}",
    "It is {wrong}, not {right}.", "Certainly not {right}", "neither {right} nor {wrong}",
)  # fmt: skip
AFFIRMATIONS = (
    "It is {right}, not {wrong}.", "Not {wrong} but {right}.", "It is not {wrong}, it is {right}.",
    "{right}, not {wrong}", "It is {right}, and nothing else.",
    "It wasn't {wrong}. It was {right}.",
)  # fmt: skip
CHOICES = (
    "{right} or {wrong}", "{wrong} or {right}", "{right} or {wrong} or {third}",
    "Either {wrong} or {right}.", "{wrong}, {third} or {right}", "{wrong}/{right}",
    "It could be {right}, {wrong} or {third}.", "{third}, {wrong}, or maybe {right}",
)  # fmt: skip
STATEMENTS = (
    "{right}", "It is {right}.", "{right}. {right}", "Answer: {right}", "The answer is {right}.",
    "{question}: {right}", "{right}, {right}",
)  # fmt: skip
SHORT_ANSWER_WORDS = 6  # words of a short answer, at most
LONG_ANSWER_WORDS = 40  # words of a long answer, at most
MIN_LENGTH_RATIO = 3  # words of a long reference as a multiple of a short answer's


def contrast_pairs(
    pairs: Sequence[LabelledPair], seed: int
) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """Return (pairs about short answers, pairs with a long reference).

    The numbers are those that help on each kind without a loss on the human labels.
    """
    rng = random.Random(f"{seed}/mini/contrast")
    long_references = long_reference(pairs)
    short_answers = [*_changed_answers(pairs, rng), *_denials_and_choices(pairs, rng)]
    long_answers = [
        *rng.sample(long_references, len(long_references) // 2),
        *longer_references(pairs, rng),
        *_unrelated_fragments(pairs, rng),
    ]
    return short_answers, long_answers


def _changed_answers(pairs: Sequence[LabelledPair], rng: random.Random) -> list[LabelledPair]:
    """Return changed answers, for one right pair in ten.

    The reference itself is TRUE. A refusal, a changed number and the answer to another question
    are FALSE.
    """
    right = [p for p in pairs if p.label]
    altered: list[LabelledPair] = []
    for pair in rng.sample(right, len(right) // 10):
        reference = nearest(pair)
        kind = rng.randrange(4)
        if kind == 0:
            altered.append(replace(pair, candidate=reference))
        elif kind == 1:
            altered.append(replace(pair, candidate=rng.choice(REFUSALS), label=False))
        elif kind == 2:
            other = rng.choice(right)
            if other.group != pair.group:
                altered.append(replace(pair, candidate=other.candidate, label=False))
        numbers = re.findall(r"\d+", reference)
        if numbers and all(n in pair.candidate for n in numbers):
            wrong = str(int(numbers[-1][:6]) + rng.choice((-2, -1, 1, 2, 10)))
            candidate = re.sub(rf"\b{numbers[-1]}\b", wrong, pair.candidate)
            if candidate != pair.candidate and numbers[-1] != wrong:
                altered.append(
                    replace(pair, candidate=candidate, references=(reference,), label=False)
                )
    return altered


def _denials_and_choices(
    pairs: Sequence[LabelledPair], rng: random.Random, share: float = 0.2
) -> list[LabelledPair]:
    """Return short right answers denied or offered as a choice (FALSE), or stated (TRUE)."""
    short = [p for p in pairs if p.label and 0 < len(words(nearest(p))) <= SHORT_ANSWER_WORDS]
    kinds: tuple[tuple[bool, Sequence[str]], ...] = (
        (False, DENIALS), (True, AFFIRMATIONS), (False, CHOICES), (True, STATEMENTS),
    )  # fmt: skip
    mentions: list[LabelledPair] = []
    other = _other_answers(short, rng)
    for pair in rng.sample(short, round(len(short) * share)):
        right = nearest(pair)
        if re.search(r"\b(?:or|not|no|never)\b|/", right):
            continue
        label, forms = rng.choices(kinds, weights=(3, 2, 3, 2))[0]
        candidate = rng.choice(forms).format(
            right=right, wrong=other(pair), third=other(pair), question=pair.question
        )
        mentions.append(replace(pair, candidate=candidate, references=(right,), label=label))
    return mentions


def _other_answers(
    pairs: Sequence[LabelledPair], rng: random.Random
) -> Callable[[LabelledPair], str]:
    """Return a function that draws a short answer to another question of the same kind."""
    kinds = group_pairs((_question_kind(pair), pair) for pair in pairs)

    def other(pair: LabelledPair) -> str:
        reference_words = {w for r in pair.references for w in words(r)}
        for _ in range(8):
            candidate = rng.choice(kinds[_question_kind(pair)])
            answer = nearest(candidate)
            if candidate.group != pair.group and not reference_words & set(words(answer)):
                return answer
        return "Ouagadougou"

    return other


def _question_kind(pair: LabelledPair) -> str:
    question_words = words(pair.question)
    return " ".join(question_words[: 2 if question_words[:1] == ["how"] else 1])


@dataclass(frozen=True)
class _AnswersOfQuestion:
    """One question's short answers, and its long answers that people called right."""

    short: list[LabelledPair]
    long: list[str]


def long_reference(pairs: Sequence[LabelledPair]) -> list[LabelledPair]:
    """Return the short answers with their human labels and a new reference: the shortest right
    answer to the same question that is long enough.
    """
    with_long_reference: list[LabelledPair] = []
    for answers in _by_question(pairs):
        for pair in answers.short:
            size = len(words(pair.candidate))
            longer = [r for r in answers.long if len(words(r)) >= MIN_LENGTH_RATIO * size]
            if longer:
                with_long_reference.append(replace(pair, references=(min(longer, key=len),)))
    return with_long_reference


def _by_question(pairs: Sequence[LabelledPair]) -> list[_AnswersOfQuestion]:
    groups: dict[str, _AnswersOfQuestion] = defaultdict(lambda: _AnswersOfQuestion([], []))
    for pair in pairs:
        size = len(words(pair.candidate))
        if 0 < size <= SHORT_ANSWER_WORDS and not refuses(pair.candidate):
            groups[pair.group].short.append(pair)
        elif pair.label and SHORT_ANSWER_WORDS < size <= LONG_ANSWER_WORDS:
            groups[pair.group].long.append(pair.candidate)
    return [g for g in groups.values() if g.short and g.long]


def longer_references(
    pairs: Sequence[LabelledPair], rng: random.Random, share: float = 0.25
) -> list[LabelledPair]:
    """Return pairs from references that contain a shorter reference of the same question.

    The shorter one as the candidate is TRUE, since people gave both. A word that only the longer
    one has is FALSE.
    """
    longer: list[LabelledPair] = []
    for pair in {p.group: p for p in pairs}.values():
        for long in pair.references:
            long_words = words(long)
            shorter = [r for r in pair.references if 0 < len(words(r)) < len(long_words)
                      and f" {' '.join(words(r))} " in f" {' '.join(long_words)} "]  # fmt: skip
            if not shorter:
                continue
            short = min(shorter, key=len)
            longer.append(replace(pair, candidate=short, references=(long,), label=True))
            shared_words = {w for text in (pair.question, *shorter) for w in words(text)}
            if rng.random() > share:
                continue
            beside = re.findall(r"\w[\w'-]{3,}", long)
            unshared = [w for w in beside if not shared_words & set(words(w))]
            if unshared:
                longer.append(
                    replace(pair, candidate=unshared[-1], references=(long,), label=False)
                )
    return longer


def _unrelated_fragments(
    pairs: Sequence[LabelledPair], rng: random.Random, share: float = 0.06
) -> list[LabelledPair]:
    """Return one or two words of a long right answer as a candidate, which is FALSE.

    The question, the references and the right short answers have none of these words.
    """
    fragments: list[LabelledPair] = []
    for answers in _by_question(pairs):
        pair, long = answers.short[0], rng.choice(answers.long)
        right = [*pair.references, *(p.candidate for p in answers.short if p.label)]
        related_words = {w for text in (pair.question, *right) for w in words(text)}
        unrelated = [m for m in re.findall(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?|\w{6,}", long)
                 if not related_words & set(words(m))]  # fmt: skip
        if unrelated and rng.random() < share:
            fragments.append(
                replace(pair, candidate=rng.choice(unrelated), references=(long,), label=False)
            )
    return fragments
