"""Questions from colours, light and bars that are certain throughout a video or at its ends."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mustsee.media.colours import HALVES, NAMES, NEAR
from mustsee.recipes.neptune.offline.moments import Moment, RuleQuestion, orders, spread
from mustsee.recipes.neptune.offline.seen import join_spans, make_time_question, part

BARS = (
    "above and below",
    "on the left and the right",
    "on all four sides",
    "only on the left",
    "only below",
    "only above",
)
LIGHT = ("at the beginning", "halfway through", "at the end", "all through alike",
         "at the beginning and at the end alike")  # fmt: skip


def questions(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Yield all questions on the frames of a whole video."""
    makers = (_colour_order, _passing, _bands, _largest, _halves, _when_coloured, _light, _bars)
    for maker in makers if moments else ():
        yield from maker(moments, rng)


def _when_coloured(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask when in the video a colour fills much of the frame."""
    for colour in sorted({c for m in moments for c in m.much if c not in ("black", "white")}):
        here = [m for m in moments if colour in m.much]
        answer = part(here, [m for m in moments if colour in (*m.much, *m.some)], moments)
        if answer:
            yield make_time_question(
                f"When is a large part of the picture clearly {colour}?", answer, here, moments
            )


@dataclass(frozen=True)
class _Area:
    colour: str
    moment: Moment


def _colour_order(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for the order in which three or four colours first fill a large part of the frame."""
    first_areas: list[_Area] = []
    doubtful: set[str] = set()
    for moment in moments:
        for colour in moment.much:
            if all(colour != a.colour for a in first_areas) and colour not in doubtful:
                first_areas.append(_Area(colour, moment))
        doubtful |= set(moment.some)
    chosen: list[_Area] = []
    for area in first_areas:
        if all(a.moment is not area.moment and a.colour not in NEAR[area.colour] for a in chosen):
            chosen.append(area)
    if len(chosen) < 3:
        return
    asked_areas = [chosen[i] for i in spread([a.colour for a in chosen], min(4, len(chosen)))]
    *wrong_orders, shown_order = orders([a.colour for a in asked_areas], rng)
    yield RuleQuestion(
        tag="temporal ordering",
        question=(
            "In what order do these colours first fill a large part of the picture: "
            f"{'; '.join(shown_order)}?"
        ),
        answer="; ".join(a.colour for a in asked_areas),
        decoys=tuple("; ".join(order) for order in wrong_orders),
        evidence=tuple(a.moment.close for a in asked_areas),
        worth=3,
    )


def _passing(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for a colour that fills much of the frame at one end of the video only."""
    if len(moments) < 2:
        return
    early, late = moments[0], moments[-1]
    for moment, other_moment, here, there in (
        (late, early, "at the end", "at the beginning"),
        (early, late, "at the beginning", "at the end"),
    ):
        other_colours = {*other_moment.much, *other_moment.some}
        passing_colours = [
            c for c in moment.much if c not in other_colours and c not in ("black", "white")
        ]
        if passing_colours:
            answer = passing_colours[0]
            visible_colours = {*moment.much, *moment.some}
            yield RuleQuestion(
                tag="state changes",
                question=(
                    f"Which colour fills a large part of the picture {here} of the video, "
                    f"but not {there}?"
                ),
                answer=answer.capitalize(),
                decoys=_colours(answer, visible_colours, rng),
                evidence=tuple(sorted((moment.close, other_moment.close), key=lambda s: s.start)),
                worth=3,
            )
            return


def _largest(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for a colour that is in all frames; the decoys are in no frame."""
    visible_colours = {c for m in moments for c in (*m.much, *m.some)}
    always = [c for c in NAMES if all(c in (*m.much, *m.some) for m in moments)]
    always.sort(key=lambda c: -sum(c in m.much for m in moments))
    large_colours = {c for m in moments for c in m.much if c not in ("black", "white")}
    for answer in [c for c in always if c not in ("black", "white") and large_colours <= {c}][:1]:
        decoys = [c for c in RARE if c not in visible_colours and c not in NEAR[answer]]
        if len(decoys) >= 4 and len(moments) <= MAX_MOMENTS:
            yield RuleQuestion(
                tag="visual narrative",
                question=(
                    "Which of these colours takes up the most room in the picture all through the "
                    "video?"
                ),
                answer=answer.capitalize(),
                decoys=tuple(c.capitalize() for c in decoys[:4]),
                evidence=tuple(join_spans([m.close for m in moments])),
                worth=1,
            )


MAX_MOMENTS = 12  # moments of a video whose frames all are evidence, at most
RARE = ("pink", "purple", "red", "green", "blue", "orange", "yellow", "white", "black", "brown")


def _halves(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for the half of the frame that holds all of a colour throughout the video."""
    if len(moments) > MAX_MOMENTS:
        return
    for colour, half in moments[0].halves:
        if colour in ("black", "white") or any((colour, half) not in m.halves for m in moments):
            continue
        places = {h: f"in the {h} half" for h in HALVES} | {"": "in all parts of it alike"}
        yield RuleQuestion(
            tag="visual narrative",
            question=f"Where in the picture is nearly everything that is clearly {colour}?",
            answer=places[half].capitalize(),
            decoys=tuple(text.capitalize() for h, text in places.items() if h != half),
            evidence=tuple(join_spans([m.close for m in moments])),
            worth=1,
        )


def _bands(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask for the colour of the top or the bottom: throughout the video, or at one end."""
    for name, third in (("top", "upper"), ("bottom", "lower")):
        colours = [m.top if name == "top" else m.bottom for m in moments]
        other = [m.bottom if name == "top" else m.top for m in moments]
        if len(moments) < 3 and len(set(colours)) == 1:
            times, when = [moments[0], moments[-1]], "all through the video"
        elif colours[-1] and colours[-1] not in colours[:1]:
            times, when = [moments[-1]], "at the end of the video"
        elif colours[0] and colours[0] not in colours[-1:]:
            times, when = [moments[0]], "at the beginning of the video"
        else:
            continue
        answer = colours[moments.index(times[-1])]
        visible_colours = {c for m in times for c in (*m.much, *m.some)} | set(other)
        if answer and answer not in ("black", "white"):
            yield RuleQuestion(
                tag="visual narrative",
                question=f"Which colour fills most of the {third} third of the picture {when}?",
                answer=answer.capitalize(),
                decoys=_colours(answer, visible_colours, rng),
                evidence=tuple(join_spans([m.close for m in times])),
                worth=1,
            )


def _colours(answer: str, visible_colours: set[str], rng: random.Random) -> tuple[str, ...]:
    """Return four colours that do not resemble the answer, first those in the frames."""
    candidates = [c for c in NAMES if c != answer and c not in NEAR[answer]]
    rng.shuffle(candidates)
    candidates.sort(key=lambda c: c not in visible_colours)
    return tuple(c.capitalize() for c in candidates[:4])


GRADES = {"very dark": 0, "dark": 1, "dim": 2, "": 3, "bright": 4}


def _light(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    """Ask when the video is darkest or lightest: at the beginning, halfway or at the end."""
    if len(moments) < 3:
        return
    middle = (moments[0].start + moments[-1].end) / 2
    half = min(moments[1:-1], key=lambda m: abs(m.time - middle))
    chosen = (moments[0], half, moments[-1])
    if abs(half.time - middle) > 0.2 * (moments[-1].end - moments[0].start):
        return
    grades = [GRADES[m.light] for m in chosen]
    for word, best in (("darkest", min(grades)), ("lightest", max(grades))):
        rest = sorted(abs(g - best) for g in grades)
        if rest[1] >= 2 and rest[0] == 0:
            answer = LIGHT[grades.index(best)]
            yield RuleQuestion(
                tag="visual narrative",
                question=f"At which of these times in the video is the picture {word}?",
                answer=answer.capitalize(),
                decoys=tuple(w.capitalize() for w in LIGHT if w != answer),
                evidence=tuple(m.close for m in chosen),
                worth=2,
            )
            return


def _bars(moments: Sequence[Moment], rng: random.Random) -> Iterator[RuleQuestion]:
    where = {m.bars for m in moments}
    if len(where) == 1 and (answer := where.pop()):
        others = [b for b in BARS if b != answer]
        yield RuleQuestion(
            tag="visual narrative",
            question="Where does the picture have black bars all through the video?",
            answer=answer.capitalize(),
            decoys=tuple(b.capitalize() for b in rng.sample(others, 4)),
            evidence=tuple(join_spans([moments[0].close, moments[-1].close])),
            worth=1,
        )
