"""Questions on on-screen texts, alone and together with the transcript. They are about certain
texts only.
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


def questions(moments: Sequence[Moment], rng: random.Random, whole: bool) -> Iterator[RuleQuestion]:
    """Yield all questions on the texts. `whole`: whether these are all moments of the video."""
    makers = (_read_while_said, _said_while_read, _order, _soonest, _together, _highest, _missing)
    for maker in (*makers, *((_ends, _when) if whole else ())):
        yield from maker(moments, rng)


def _read_while_said(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for an on-screen text at the time of a transcript line."""
    lines = spoken_lines(moments)
    rng.shuffle(lines)
    for line in lines:
        moment = moments[line.moment]
        if not moment.cards or any(overlap(c, line.text) > 0 for c in moment.visible):
            continue
        answer = max(moment.cards, key=len)
        yield RuleQuestion(
            tag="identification",
            question=f"Which words come up on the screen at about the time of {quote(line.text)}?",
            answer=answer,
            decoys=pick(answer, unread_texts(moment, moments), rng),
            evidence=_joined(line.span, moment.close),
            worth=3,
        )


def _said_while_read(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    lines = spoken_lines(moments)
    cards = _cards(moments)
    rng.shuffle(cards)
    for card, moment in cards:
        here = [s for s in lines if moments[s.moment] is moment and overlap(card, s.text) == 0]
        if not here:
            continue
        answer = rng.choice(here)
        yield RuleQuestion(
            tag="other",
            question=f"What is said in the part in which {quote(card)} comes up on the screen?",
            answer=answer.text,
            decoys=pick(
                answer.text, [s.text for s in lines if not shows(moments[s.moment], card)], rng
            ),
            evidence=_joined(answer.span, moment.close),
            worth=3,
        )


def _cards(moments: Sequence[Moment]) -> list[tuple[str, Moment]]:
    return [(card, m) for m in moments for card in m.cards]


def _firsts(moments: Sequence[Moment], rng: random.Random) -> list[tuple[str, Moment]]:
    """Draw one card of each moment that has any."""
    return [(rng.choice(m.cards), m) for m in moments if m.cards]


def _order(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for the order of three or four cards of different moments."""
    first_cards = _firsts(moments, rng)
    if len(first_cards) < 3:
        return
    chosen = [first_cards[i] for i in spread([c for c, _ in first_cards], min(4, len(first_cards)))]
    other_orders = orders([quote(card.replace(";", ",")) for card, _ in chosen], rng)
    if not other_orders:
        return
    *wrong_orders, shown_order = other_orders
    yield RuleQuestion(
        tag="temporal ordering",
        question=f"In what order do these words come up on the screen: {'; '.join(shown_order)}?",
        answer="; ".join(quote(card.replace(";", ",")) for card, _ in chosen),
        decoys=tuple("; ".join(order) for order in wrong_orders),
        evidence=tuple(m.close for _, m in chosen),
        worth=3,
    )


def _ends(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask which of five cards appears first, and which last."""
    first_cards = _firsts(moments, rng)
    if len(first_cards) < 5:
        return
    for place, word in ((0, "first"), (-1, "last")):
        chosen = [first_cards[i] for i in spread([c for c, _ in first_cards], 5)]
        answer, _ = chosen[place]
        others = [card for card, _ in chosen if card != answer]
        if len(others) == 4:
            yield RuleQuestion(
                tag="temporal ordering",
                question=f"Which of these words come up on the screen {word}?",
                answer=answer,
                decoys=tuple(others),
                evidence=tuple(m.close for _, m in chosen),
                worth=2,
            )


def _soonest(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask which text appears next after a card; the decoys are visible in neither moment."""
    first_cards = _firsts(moments, rng)
    indices = list(range(len(first_cards) - 1))
    rng.shuffle(indices)
    for index in indices[:2]:
        (card, moment), (answer, after) = first_cards[index], first_cards[index + 1]
        others = [c for c in unread_texts(after, moments) if not shows(moment, c)]
        yield RuleQuestion(
            tag="predictive",
            question=f"Which of these words come up on the screen soonest after {quote(card)}?",
            answer=answer,
            decoys=pick(answer, others, rng),
            evidence=(moment.close, after.close),
            worth=2,
        )


def _together(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for two texts of one frame; the decoys are from other frames."""
    pairs = [(m, a, b) for m in moments for a in m.cards for b in m.cards if a != b]
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
            decoys=pick(answer, unread_texts(moment, moments), rng),
            evidence=(moment.close,),
            worth=1,
        )


def _highest(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask which of five on-screen texts is above or below the others."""
    for moment in moments:
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


def _missing(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for a word that is left out of a card; the decoys are from other cards."""
    long_cards = [(c, m) for c, m in _cards(moments) if len(c.split()) >= 4]
    rng.shuffle(long_cards)
    all_words = sorted({w for c, _ in _cards(moments) for w in c.split() if _PLAIN.fullmatch(w)})
    for card, moment in long_cards:
        card_words = card.split()
        candidates = [
            i for i, w in enumerate(card_words) if i and _PLAIN.fullmatch(w) and len(w) > 4
        ]
        if not candidates:
            continue
        gap = rng.choice(candidates)
        gapped = " ".join("…" if i == gap else w for i, w in enumerate(card_words))
        visible_words = {w for text in moment.visible for w in words(text)}
        others = [
            w
            for w in all_words
            if w.lower() not in visible_words and abs(len(w) - len(card_words[gap])) < 4
        ]
        unlike_words = [w for w in others if likeness(w, card_words[gap]) < 0.6 and len(w) > 3]
        yield RuleQuestion(
            tag="identification",
            question=f"Which word is missing in these words on the screen: {quote(gapped)}?",
            answer=card_words[gap].capitalize(),
            decoys=pick(card_words[gap].capitalize(), [w.capitalize() for w in unlike_words], rng),
            evidence=(moment.close,),
            worth=1,
        )


_PLAIN = re.compile(r"[A-Za-z]{4,}")


def _when(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask when in the video a text is visible."""
    cards = [c for m in moments for c in m.quotable]
    rng.shuffle(cards)
    used: set[str] = set()
    for card in cards:
        here = [m for m in moments if shows(m, card)]
        answer = part(here, here, moments)
        if answer and answer not in used:
            used.add(answer)
            what = "words" if " " in card else "word"
            question = f"When can the {what} {quote(card)} be read on the screen?"
            yield make_time_question(question, answer, here, moments)


def part(here: Sequence[Moment], nearly: Sequence[Moment], moments: Sequence[Moment]) -> str:
    """Return one of `WHEN` if the moments `here` clearly lie in such a part of the video, else "".
    `nearly`: these and the doubtful ones.
    """
    start, length = moments[0].start, max(1e-9, moments[-1].end - moments[0].start)
    places = [(m.time - start) / length for m in here]
    if not here or len(here) < len(nearly) or len(moments) < 3:
        return ""
    if len(here) == len(moments):
        return WHEN[3]
    if max(places) <= 0.4 and min(places) <= 0.25:
        return WHEN[0]
    if min(places) >= 0.6 and max(places) >= 0.75:
        return WHEN[2]
    return WHEN[1] if 0.25 <= min(places) <= 0.45 and 0.55 <= max(places) <= 0.75 else ""


def make_time_question(
    question: str, answer: str, here: Sequence[Moment], moments: Sequence[Moment]
) -> RuleQuestion:
    start, end = moments[0].start, moments[-1].end
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


def _joined(one: Span, other: Span) -> tuple[Span, ...]:
    return tuple(join_spans([one, other]))


def join_spans(spans: Sequence[Span]) -> list[Span]:
    """Return the spans in order, overlapping ones joined."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda s: s.start):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined
