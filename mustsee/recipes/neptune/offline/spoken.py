"""Questions on the transcript."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from mustsee.offline.wording import sentence
from mustsee.recipes.neptune.offline.moments import (
    Moment,
    QuotableLine,
    RuleQuestion,
    brief,
    join_names,
    lower,
    orders,
    pick,
    quote,
    spoken_lines,
)
from mustsee.text import STOP_WORDS, TermVectors, nouns, terms

_CLAUSE = re.compile(
    r",?\s+\b(?:because|so that|and so|and then|and|but|so|then|until|when)\b\s+|,\s+"
)
_BECAUSE = re.compile(r"^(.{12,}?),?\s+because\s+(?!of\b)(.{6,})$", re.IGNORECASE)
_AIM = re.compile(
    r"\b(?:today we(?: will| are going to)?|we(?:'re| are)? (?:will|going to)|learn how to|how to|"
    r"i(?:'ll| will) (?:show you(?: how to)?|teach you to))\s+(.{8,})$",
    re.IGNORECASE,
)
_DEED = re.compile(
    r"\b(?:we|i|you|they|he|she|to)\s+(?:will |have to |must |can |also )?(.{8,})$", re.IGNORECASE
)


MAX_SILENCE_S = 2.0  # seconds between two successive lines, at most


def questions(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Yield all questions on the lines, the best of each kind first."""
    lines = spoken_lines(moments)
    for maker in (
        _order,
        _after,
        _reasons,
        _lists,
        _aim,
        _ending,
    ):
        yield from maker(lines, rng)


def _order(lines: Sequence[QuotableLine], rng: random.Random) -> Iterator[RuleQuestion]:
    if len(lines) < 8:
        return
    vectors = TermVectors([s.text for s in lines])
    size = len(lines) // 4
    quarters = [range(i * size, (i + 1) * size) for i in range(4)]
    chosen = [
        max(quarter, key=lambda i: (sum(vectors.weight(t) for t in set(terms(lines[i].text))), -i))
        for quarter in quarters
    ]
    quotes = [brief(lines[i].text.replace(";", ",")) for i in chosen]
    other_orders = orders(quotes, rng)
    if not other_orders:
        return
    *wrong_orders, shown_order = other_orders
    yield RuleQuestion(
        tag="temporal ordering",
        question=f"In what order are these things said: {'; '.join(shown_order)}?",
        answer="; ".join(quotes),
        decoys=tuple("; ".join(order) for order in wrong_orders),
        evidence=tuple(lines[i].span for i in chosen),
    )


def _after(lines: Sequence[QuotableLine], rng: random.Random) -> Iterator[RuleQuestion]:
    indices = list(range(1, len(lines) - 1))
    rng.shuffle(indices)
    for index in indices[:4] if len(lines) >= 7 else ():
        distant_texts = [s.text for i, s in enumerate(lines) if abs(i - index) > 1]
        asks_next = rng.random() < 0.6
        line, answer = lines[index], lines[index + 1 if asks_next else index - 1]
        if max(line.start, answer.start) - min(line.end, answer.end) > MAX_SILENCE_S:
            continue
        yield RuleQuestion(
            tag="predictive" if asks_next else "temporal ordering",
            question=f"What is said right {'after' if asks_next else 'before'} {quote(line.text)}?",
            answer=answer.text,
            decoys=pick(answer.text, distant_texts, rng),
            evidence=(line.span, answer.span),
        )


def _clauses(lines: Sequence[QuotableLine], excluded: str = "") -> list[str]:
    """Return the clauses of at least three words, without those of the line `excluded`."""
    clauses = [p.strip(" ,.;") for s in lines if s.text != excluded for p in _CLAUSE.split(s.text)]
    return [sentence(p) for p in clauses if len(p.split()) >= 3 and len(terms(p)) >= 1]


def _reasons(lines: Sequence[QuotableLine], rng: random.Random) -> Iterator[RuleQuestion]:
    for line in lines:
        if match := _BECAUSE.match(line.text):
            effect, cause = sentence(match[1].strip(" ,")), sentence(match[2])
            yield RuleQuestion(
                tag="cause and effect",
                question=f"What is the reason given for this: {quote(effect)}?",
                answer=cause,
                decoys=pick(cause, _clauses(lines, line.text), rng),
                evidence=(line.span,),
            )


def _lists(lines: Sequence[QuotableLine], rng: random.Random) -> Iterator[RuleQuestion]:
    things = [n.split()[-1] for s in lines for n in nouns(s.text)]
    for line in lines:
        parts = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", lower(line.text))
        items = parts[1:]
        short_items = [p for p in items if len(p.split()) <= 2 and terms(p)]
        if len(parts) < 4 or len(short_items) != len(items):
            continue
        named = [parts[0].split()[-1], *items]
        others = [n for n in dict.fromkeys(things) if not any(n in p or p in n for p in named)]
        if len(others) < 5:
            continue
        decoys: list[str] = []
        for _ in range(4):
            variant = list(named)
            for index in rng.sample(range(len(named)), 2):
                variant[index] = rng.choice([o for o in others if o not in variant])
            decoys.append(sentence(join_names(variant)))
        yield RuleQuestion(
            tag="identification",
            question="Which of these are named together in one breath?",
            answer=sentence(join_names(named)),
            decoys=tuple(decoys),
            evidence=(line.span,),
        )


def _aim(lines: Sequence[QuotableLine], rng: random.Random) -> Iterator[RuleQuestion]:
    for line in lines[: max(3, len(lines) // 5)]:
        match = _AIM.search(line.text)
        if not match or len(match[1].split()) < 3:
            continue
        deeds = [m[1] for s in lines if s is not line and (m := _DEED.search(s.text))]
        deeds = [d for d in deeds if len(d.split()) >= 3 and d.split()[0].lower() not in STOP_WORDS]
        answer = f"To {match[1]}"
        yield RuleQuestion(
            tag="goal reasoning",
            question="What does the video set out to do, as it says near its beginning?",
            answer=answer,
            decoys=pick(answer, [f"To {d}" for d in deeds], rng),
            evidence=(line.span,),
        )
        return


def _ending(lines: Sequence[QuotableLine], rng: random.Random) -> Iterator[RuleQuestion]:
    if len(lines) >= 8:
        last = lines[-1]
        yield RuleQuestion(
            tag="creator intent",
            question="With which words do the makers leave their viewers at the very end?",
            answer=last.text,
            decoys=pick(last.text, [s.text for s in lines[:-2]], rng),
            evidence=(last.span,),
        )
