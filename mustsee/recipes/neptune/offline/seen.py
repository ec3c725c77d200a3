"""Questions from what is read on the screen, and from how it goes with what is said.

Only what the measurements are sure of is asked, and of more than one moment where there are more.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from mustsee.offline.wording import likeness
from mustsee.recipes.neptune.offline.moments import (
    Moment,
    RuleQuestion,
    orders,
    pick,
    quote,
    shows,
    spoken_lines,
    spread,
    unread_texts,
)
from mustsee.records import Span
from mustsee.text import overlap, words

WHEN = ("only in the first half", "only about the middle", "only in the second half",
        "all through", "near the beginning and again near the end")  # fmt: skip


def questions(found: Sequence[Moment], rng: random.Random, whole: bool) -> Iterator[RuleQuestion]:
    """All that the rules can make of the words. `whole`: these are all moments of the video."""
    makers = (_read_while_said, _said_while_read, _order, _soonest, _together, _highest, _missing)
    for maker in (*makers, *((_ends, _when) if whole else ())):
        yield from maker(found, rng)


def _read_while_said(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """The words on the screen of a moment in which something is said."""
    lines = spoken_lines(found)
    rng.shuffle(lines)
    for line in lines:
        moment = found[line.moment]
        if not moment.cards or any(overlap(c, line.text) > 0 for c in moment.visible):
            continue
        answer = max(moment.cards, key=len)
        yield RuleQuestion(
            tag="identification",
            question=f"Which words come up on the screen at about the time of {quote(line.text)}?",
            answer=answer,
            decoys=pick(answer, unread_texts(moment, found), rng),
            evidence=_apart(line.span, moment.close),
            worth=3,
        )


def _said_while_read(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    lines = spoken_lines(found)
    read = _cards(found)
    rng.shuffle(read)
    for card, moment in read:
        here = [s for s in lines if found[s.moment] is moment and overlap(card, s.text) == 0]
        if not here:
            continue
        answer = rng.choice(here)
        yield RuleQuestion(
            tag="other",
            question=f"What is said in the part in which {quote(card)} comes up on the screen?",
            answer=answer.text,
            decoys=pick(
                answer.text, [s.text for s in lines if not shows(found[s.moment], card)], rng
            ),
            evidence=_apart(answer.span, moment.close),
            worth=3,
        )


def _cards(found: Sequence[Moment]) -> list[tuple[str, Moment]]:
    return [(card, m) for m in found for card in m.cards]


def _firsts(found: Sequence[Moment], rng: random.Random) -> list[tuple[str, Moment]]:
    """One card of each moment in which new words come up."""
    return [(rng.choice(m.cards), m) for m in found if m.cards]


def _order(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """The order of cards that come up in different moments: of four, where there are so many."""
    first = _firsts(found, rng)
    if len(first) < 3:
        return
    chosen = [first[i] for i in spread([c for c, _ in first], min(4, len(first)))]
    mixed = orders([quote(card.replace(";", ",")) for card, _ in chosen], rng)
    if not mixed:
        return
    *wrong, shown = mixed
    yield RuleQuestion(
        tag="temporal ordering",
        question=f"In what order do these words come up on the screen: {'; '.join(shown)}?",
        answer="; ".join(quote(card.replace(";", ",")) for card, _ in chosen),
        decoys=tuple("; ".join(order) for order in wrong),
        evidence=tuple(m.close for _, m in chosen),
        worth=3,
    )


def _ends(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Which of five cards comes up first, and which last."""
    first = _firsts(found, rng)
    if len(first) < 5:
        return
    for place, word in ((0, "first"), (-1, "last")):
        chosen = [first[i] for i in spread([c for c, _ in first], 5)]
        answer, _ = chosen[place]
        rest = [card for card, _ in chosen if card != answer]
        if len(rest) == 4:
            yield RuleQuestion(
                tag="temporal ordering",
                question=f"Which of these words come up on the screen {word}?",
                answer=answer,
                decoys=tuple(rest),
                evidence=tuple(m.close for _, m in chosen),
                worth=2,
            )


def _soonest(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """What can be read next after a card, of things that all can be read only in one place."""
    first = _firsts(found, rng)
    places = list(range(len(first) - 1))
    rng.shuffle(places)
    for place in places[:2]:
        (card, moment), (answer, after) = first[place], first[place + 1]
        others = [c for c in unread_texts(after, found) if not shows(moment, c)]
        yield RuleQuestion(
            tag="predictive",
            question=f"Which of these words come up on the screen soonest after {quote(card)}?",
            answer=answer,
            decoys=pick(answer, others, rng),
            evidence=(moment.close, after.close),
            worth=2,
        )


def _together(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Words in one picture, against words of other pictures."""
    pairs = [(m, a, b) for m in found for a in m.cards for b in m.cards if a != b]
    rng.shuffle(pairs)
    used: list[Moment] = []
    for moment, card, answer in pairs:
        if sum(m is moment for m in used) == 2 or overlap(card, answer) > 0:
            continue
        used.append(moment)
        yield RuleQuestion(
            tag="identification",
            question=f"Which of these words are on the screen together with {quote(card)}?",
            answer=answer,
            decoys=pick(answer, unread_texts(moment, found), rng),
            evidence=(moment.close,),
            worth=1,
        )


def _highest(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Which of five lines on the screen stands above or below the others."""
    for moment in found:
        lines = [c for c in moment.quotable if c in moment.cards]
        if len(lines) < 5:
            continue
        for place, word in ((0, "highest"), (-1, "lowest")):
            answer = lines[place]
            rest = lines[1:] if place == 0 else lines[:-1]
            yield RuleQuestion(
                tag="visual narrative",
                question=f"All of these words are on the screen at once. Which stand {word}?",
                answer=answer,
                decoys=tuple(rng.sample(rest, 4)),
                evidence=(moment.close,),
                worth=1,
            )


def _missing(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """A word of a card, against words of other cards."""
    read = [(c, m) for c, m in _cards(found) if len(c.split()) >= 4]
    rng.shuffle(read)
    known = sorted({w for c, _ in _cards(found) for w in c.split() if _PLAIN.fullmatch(w)})
    for card, moment in read:
        parts = card.split()
        inner = [i for i, w in enumerate(parts) if i and _PLAIN.fullmatch(w) and len(w) > 4]
        if not inner:
            continue
        gap = rng.choice(inner)
        rest = " ".join("…" if i == gap else w for i, w in enumerate(parts))
        seen_here = {w for text in moment.visible for w in words(text)}
        others = [
            w for w in known if w.lower() not in seen_here and abs(len(w) - len(parts[gap])) < 4
        ]
        far = [w for w in others if likeness(w, parts[gap]) < 0.6 and len(w) > 3]
        yield RuleQuestion(
            tag="identification",
            question=f"Which word is missing in these words on the screen: {quote(rest)}?",
            answer=parts[gap].capitalize(),
            decoys=pick(parts[gap].capitalize(), [w.capitalize() for w in far], rng),
            evidence=(moment.close,),
            worth=1,
        )


_PLAIN = re.compile(r"[A-Za-z]{4,}")


def _when(found: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """In which part of the video words can be read."""
    cards = [c for m in found for c in m.quotable]
    rng.shuffle(cards)
    used: set[str] = set()
    for card in cards:
        here = [m for m in found if shows(m, card)]
        answer = part(here, here, found)
        if answer and answer not in used:
            used.add(answer)
            what = "words" if " " in card else "word"
            question = f"When can the {what} {quote(card)} be read on the screen?"
            yield make_time_question(question, answer, here, found)


def part(here: Sequence[Moment], nearly: Sequence[Moment], found: Sequence[Moment]) -> str:
    """In which part of the video moments lie, if it is plain; `nearly`: those that come close."""
    start, length = found[0].start, max(1e-9, found[-1].end - found[0].start)
    places = [(m.time - start) / length for m in here]
    if not here or len(here) < len(nearly) or len(found) < 3:
        return ""
    if len(here) == len(found):
        return WHEN[3]
    if max(places) <= 0.4 and min(places) <= 0.25:
        return WHEN[0]
    if min(places) >= 0.6 and max(places) >= 0.75:
        return WHEN[2]
    return WHEN[1] if 0.25 <= min(places) <= 0.45 and 0.55 <= max(places) <= 0.75 else ""


def make_time_question(
    question: str, answer: str, here: Sequence[Moment], found: Sequence[Moment]
) -> RuleQuestion:
    start, end = found[0].start, found[-1].end
    middle = (start + end) / 2
    spans = [
        Span(start, min(end, start + 1.5)),
        Span(max(start, middle - 1), min(end, middle + 1)),
        Span(max(start, end - 1.5), end),
        *(m.close for m in (here[0], here[-1])),
    ]
    return RuleQuestion(
        tag="temporal ordering",
        question=question,
        answer=answer.capitalize(),
        decoys=tuple(w.capitalize() for w in WHEN if w != answer),
        evidence=tuple(join_spans(spans)),
        worth=2,
    )


def _apart(one: Span, other: Span) -> tuple[Span, ...]:
    return tuple(join_spans([one, other]))


def join_spans(spans: Sequence[Span]) -> list[Span]:
    """In order; those that overlap are one."""
    done: list[Span] = []
    for span in sorted(spans, key=lambda s: s.start):
        if done and span.start <= done[-1].end:
            done[-1] = Span(done[-1].start, max(done[-1].end, span.end))
        else:
            done.append(span)
    return done
