"""Questions from what is seen and read, and from how it goes with what is said."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from mustsee.offline.moments import (
    Made,
    Moment,
    cards,
    listed,
    number_near,
    orders,
    pick,
    quoted,
    sentence,
    shows,
    spoken,
    spread,
    unseen,
)
from mustsee.records import Span
from mustsee.text import overlap

_FIGURE = re.compile(r"(?<![\w.,:])\d+(?:[.,]\d+)?(?![\w.,:])")


def questions(found: Sequence[Moment], rng: random.Random, whole: bool) -> Iterator[Made]:
    """All that the rules can make of the pictures. `whole`: these are all moments of the video."""
    for maker in (
        _said_with_face,
        _read_while_said,
        _said_while_read,
        _look_while_said,
        _order,
        _next,
        _figures,
        _looks,
        _changes,
        _compared,
        _course,
        _brightest,
    ):
        yield from maker(found, rng)
    if whole:
        yield from _counts(found, rng)


def _read_while_said(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    """The words on the screen of a moment in which something is said."""
    lines = spoken(found)
    rng.shuffle(lines)
    for line in lines:
        moment = found[line.moment]
        if not moment.cards or any(overlap(c, line.text) > 0 for c in moment.cards):
            continue
        answer = max(moment.cards, key=len)
        yield Made(
            tag="identification",
            question=f"Which words come up on the screen at about the time of {quoted(line.text)}?",
            answer=answer,
            decoys=pick(answer, unseen(moment, found), rng),
            evidence=(_both(line.span, moment.span),),
            worth=3,
        )


def _said_while_read(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    lines = spoken(found)
    read = cards(found)
    rng.shuffle(read)
    for card, moment in read:
        here = [s for s in lines if found[s.moment] is moment and overlap(card, s.text) == 0]
        if not here:
            continue
        answer = rng.choice(here)
        yield Made(
            tag="other",
            question=f"What is said in the part in which {quoted(card)} comes up on the screen?",
            answer=answer.text,
            decoys=pick(
                answer.text, [s.text for s in lines if not shows(found[s.moment], card)], rng
            ),
            evidence=(_both(answer.span, moment.span),),
            worth=3,
        )


def _said_with_face(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    lines = spoken(found)
    with_face = [s for s in lines if found[s.moment].face]
    without = [s.text for s in lines if not found[s.moment].face]
    if with_face and len(without) >= 4:
        answer = rng.choice(with_face)
        yield Made(
            tag="identification",
            question="Which of these is said while a face is looking out of the picture?",
            answer=answer.text,
            decoys=pick(answer.text, without, rng),
            evidence=(_both(answer.span, found[answer.moment].span),),
            worth=3,
        )


def _look_while_said(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    lines = [s for s in spoken(found) if found[s.moment].look]
    rng.shuffle(lines)
    for line in lines[:6]:
        moment = found[line.moment]
        yield _look(moment, found, f"at the words {quoted(line.text)}", line.span, 3, rng)


def _looks(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    read = [(c, m) for c, m in cards(found) if m.look]
    rng.shuffle(read)
    for card, moment in read[:6]:
        when = f"where {quoted(card)} comes up on the screen"
        yield _look(moment, found, when, moment.span, 2, rng)


def _look(
    moment: Moment, found: Sequence[Moment], when: str, span: Span, worth: int, rng: random.Random
) -> Made:
    answer = sentence(moment.look)
    others = [sentence(m.look) for m in found if m.look and m.colours != moment.colours]
    return Made(
        tag="visual narrative",
        question=f"What does the picture look like {when}?",
        answer=answer,
        decoys=pick(answer, others, rng),
        evidence=(_both(span, moment.span),),
        worth=worth,
    )


def _order(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    first = [(c, m) for m in found for c in m.cards[:1]]
    if len(first) < 4:
        return
    chosen = [first[i] for i in spread([c for c, _ in first], 4)]
    things = [quoted(card.replace(";", ",")) for card, _ in chosen]
    mixed = orders(things, rng)
    if not mixed:
        return
    *wrong, shown = mixed
    yield Made(
        tag="temporal ordering",
        question=f"In what order do these words come up on the screen: {'; '.join(shown)}?",
        answer="; ".join(things),
        decoys=tuple("; ".join(order) for order in wrong),
        evidence=tuple(m.span for _, m in chosen),
        worth=2,
    )


def _next(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    first = [(c, m) for m in found for c in m.cards[:1]]
    places = list(range(len(first) - 1))
    rng.shuffle(places)
    for place in places[:3] if len(first) >= 6 else ():
        (card, moment), (answer, after) = first[place], first[place + 1]
        others = [c for c in unseen(after, found) if not shows(moment, c)]
        yield Made(
            tag="predictive",
            question=f"Which words are on the screen next, after the picture with {quoted(card)}?",
            answer=answer,
            decoys=pick(answer, others, rng),
            evidence=(moment.span, after.span),
            worth=2,
        )


def _figures(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    """A figure among the words on the screen."""
    read = [(c, m, f) for c, m in cards(found) if len(f := _FIGURE.findall(c)) == 1]
    for card, moment, (figure,) in read:
        rest = " ".join(_FIGURE.sub("…", card).split())
        value = float(figure.replace(",", "."))
        if value != int(value) or not 2 <= value <= 100_000:
            continue
        others = [f for _, _, (f,) in read if f != figure]
        step = 1 if value < 20 else 5 if value < 100 else 10 ** (len(str(int(value))) - 2) * 5
        near = [str(int(value) + step * k) for k in (-2, -1, 1, 2, 3) if int(value) + step * k > 0]
        yield Made(
            tag="identification",
            question=f"Which figure is missing in these words from the screen: {quoted(rest)}?",
            answer=figure,
            decoys=pick(figure, [*rng.sample(others, min(2, len(others))), *near], rng),
            evidence=(moment.span,),
            worth=2,
        )


def _changes(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    """How the picture differs between two moments with words on the screen."""
    read = [(m.cards[0], m) for m in found if m.cards and m.colours]
    for place in range(0, len(read) - 1, 2):
        (one, early), (two, late) = read[place], read[rng.randrange(place + 1, len(read))]
        if early.colours == late.colours:
            continue
        pairs = [(a, b) for _, a in read for _, b in read if a.colours != b.colours]
        right = _from_to(early, late)
        others = [t for a, b in pairs if (t := _from_to(a, b)) != right]
        swapped = _from_to(late, early)
        yield Made(
            tag="state changes",
            question=f"How do the picture's colours change from {quoted(one)} to {quoted(two)}?",
            answer=right,
            decoys=(swapped, *pick(right, [o for o in others if o != swapped], rng, 3)),
            evidence=(early.span, late.span),
            worth=2,
        )


def _from_to(early: Moment, late: Moment) -> str:
    return f"From {listed(early.colours)} to {listed(late.colours)}"


def _compared(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    """Which of two moments is lighter, and what colour it has more of."""
    grades = {"dark": 0, "dim": 1, "": 2, "bright": 3}
    read = [(m.cards[0], m) for m in found if m.cards and m.colours]
    rng.shuffle(read)
    for (one, first), (two, second) in zip(read[::2], read[1::2], strict=False):
        apart = grades[second.light] - grades[first.light]
        fresh = [c for c in second.colours if c not in first.colours]
        lost = [c for c in first.colours if c not in second.colours]
        if abs(apart) < 2 or not fresh or not lost:
            continue
        lighter, darker = ("lighter", "darker") if apart > 0 else ("darker", "lighter")
        answer = f"It is {lighter}, and there is more {fresh[0]} in it"
        wrong = (
            f"It is {darker}, and there is more {fresh[0]} in it",
            f"It is {lighter}, and there is more {lost[0]} in it",
            f"It is {darker}, and there is more {lost[0]} in it",
            f"It is about as {'dark' if apart > 0 else 'light'}, with the same colours in it",
        )
        yield Made(
            tag="comparison",
            question=(
                f"Compared with the picture that shows {quoted(one)}, "
                f"what is the one like that shows {quoted(two)}?"
            ),
            answer=answer,
            decoys=wrong,
            evidence=tuple(sorted((first.span, second.span), key=lambda s: s.start)),
            worth=2,
        )


def _course(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    """The colours at the beginning, in the middle, at the end."""
    seen = [m for m in found if m.colours]
    if len(seen) < 5:
        return
    chosen = [seen[i] for i in spread([m.look for m in seen], 3)]
    if len({m.colours[0] for m in chosen}) < 3:
        return
    names = [m.look.removeprefix("mostly ") for m in chosen]
    others = [m.look.removeprefix("mostly ") for m in seen if m not in chosen]

    def course(steps: Sequence[str]) -> str:
        return f"It begins {steps[0]}, then turns {steps[1]}, and ends {steps[2]}"

    wrong = [course([names[i] for i in order]) for order in ((2, 1, 0), (1, 0, 2), (0, 2, 1))]
    if others:
        wrong.append(course([names[1], rng.choice(others), names[0]]))
    yield Made(
        tag="visual narrative",
        question="Which course do the light and the colours of the pictures take?",
        answer=course(names),
        decoys=tuple(wrong),
        evidence=tuple(m.span for m in chosen),
        worth=2,
    )


def _brightest(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    """The only words on a dark (or bright) screen."""
    read = [(m.cards[0], m) for m in found if m.cards]
    for light, words in (("dark", "a dark"), ("bright", "a bright")):
        here = [(c, m) for c, m in read if m.light == light]
        if len(here) == 1:
            card, moment = here[0]
            yield Made(
                tag="comparison",
                question=f"Which of these words come up in {words} picture, unlike all the others?",
                answer=card,
                decoys=pick(card, unseen(moment, found), rng),
                evidence=(moment.span,),
                worth=2,
            )


def _counts(found: Sequence[Moment], rng: random.Random) -> Iterator[Made]:
    shots = sum(m.shots for m in found)
    faces = [m for m in found if m.face]
    if 2 <= len(faces) <= 12 and len(faces) < len(found) and all(m.shots == 1 for m in found):
        yield Made(
            tag="counting",
            question="In how many separate shots does a face look out of the picture?",
            answer=str(len(faces)),
            decoys=tuple(str(n) for n in number_near(len(faces), rng)),
            evidence=tuple(m.span for m in faces),
            worth=2,
        )
    if 4 <= shots <= 24:
        yield Made(
            tag="counting",
            question="Of how many shots does the video consist, from one cut to the next?",
            answer=str(shots),
            decoys=tuple(str(n) for n in number_near(shots, rng)),
            evidence=(Span(found[0].start, found[-1].end),),
            worth=2,
        )


def _both(one: Span, other: Span) -> Span:
    return Span(min(one.start, other.start), max(one.end, other.end))
