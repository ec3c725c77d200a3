"""Questions that the forms of facts compose, decided by where their phrases are seen or said.

The template by which a form wrote a question reads the phrases that it states; the options are
phrases, too. One fitting option is the answer. Phrases that no frame shows, or that a frame leaves
open where it matters, make the question undecidable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mustsee.errors import BadRow
from mustsee.facts.cases import ASKS, phrase_in, verb
from mustsee.facts.forms import after, at, order, whole
from mustsee.facts.table import VIEW
from mustsee.offline.facts_phrases import LINE, sight_of
from mustsee.offline.looking import Evidence
from mustsee.questions.templates import QuestionTemplate
from mustsee.records import Span

HARDLY_FARTHER_S = 1.5  # seconds by which another option must be farther away
CLEARLY_LONGER = 1.3  # times as many frames as of another option
BESIDE_S = 0.5  # seconds before and after a line or a frame that count as its time
# Kinds of facts that the rules measure, by the words that ask for one.
MEASURED_ASKS = {ASKS[kind]: kind for kind in (VIEW, "text", "state", "line")}


@dataclass(frozen=True, kw_only=True)
class OptionFits:
    """Indices of the fitting options, and the times of their evidence."""

    fits: tuple[int, ...] = ()
    times: tuple[float, ...] = ()


@dataclass(frozen=True)
class Places:
    """The spans in which a phrase is seen or said, and those in which that is open."""

    seen: tuple[Span, ...]
    open: tuple[Span, ...] = ()

    @property
    def hull(self) -> Span:
        return Span(self.seen[0].start, self.seen[-1].end)

    @property
    def first(self) -> float:
        return self.seen[0].start

    def spans_in(self, span: Span) -> tuple[Span, ...]:
        """Return the spans that touch a span in which it is seen or said."""
        return tuple(s for s in self.seen if s.start <= span.end and s.end >= span.start)

    def may_be_in(self, span: Span) -> bool:
        """Whether it is open whether the phrase is seen in a span."""
        return any(s.start <= span.end and s.end >= span.start for s in self.open)


Parts = Mapping[str, str]  # of a question
Decider = Callable[[Parts, tuple[str, ...], Evidence], OptionFits]


def decide(question: str, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Return the options that fit. Raises BadRow for a question of an unknown form, and for a
    phrase that the rules cannot measure.
    """
    template, decider, parts = _read(question)
    if template is None or decider is None or _asks_unmeasured(template, parts):
        raise BadRow("the rules cannot measure what the question asks for; vet/verifier=openai can")
    if _is_of_lines(template, parts):
        options = tuple(_quote_lines(o, is_order=template is order.QUESTION) for o in options)
    return decider(parts, options, evidence)


def asked_kind(question: str) -> str | None:
    """Return the kind of facts that a question asks for, if the rules measure it."""
    parts = _read(question)[2]
    if parts.get("verb") == verb("state"):
        return "state"
    return MEASURED_ASKS.get(parts.get("asks", ""))


def phrases_of(question: str, answer: str) -> tuple[str, ...]:
    """Return the phrases that a question states and asks for, as its evidence has them; none for a
    question of an unknown form.
    """
    template, _, parts = _read(question)
    if template is None:
        return ()
    if _is_of_lines(template, parts):
        answer = _quote_lines(answer, is_order=template is order.QUESTION)
    stated = {name: phrase_in(parts[name]) for name in STATED if name in parts}
    if "earlier" in stated:
        return stated["earlier"], answer, stated["later"]
    if "again" in stated:
        return ()  # The steps would have to say that the state ends in between.
    return (stated["clause"], answer) if stated else tuple(answer.split("; "))


STATED = ("clause", "earlier", "later", "again")  # parts of a question that hold a phrase


def _read(question: str) -> tuple[QuestionTemplate | None, Decider | None, Parts]:
    """Return the template that wrote a question, what decides it, and its parts."""
    for template, decider in DECIDERS:
        if (parts := template.read(question)) is not None:
            return template, decider, parts
    return None, None, {}


def _asks_unmeasured(template: QuestionTemplate, parts: Parts) -> bool:
    return template in (at.WHEN, at.WHILE) and parts["asks"] not in MEASURED_ASKS


def _is_of_lines(template: QuestionTemplate, parts: Parts) -> bool:
    """Whether the options of a question are lines, or orders of lines."""
    asked = (parts.get("verb"), parts.get("asks"))
    words = (verb("line"), ASKS["line"], order.ASKS["line"])
    return template is at.SAID or any(word in words for word in asked)


def _quote_lines(option: str, *, is_order: bool) -> str:
    """Return an option of lines with the quotes around each, which some recipes strip."""
    lines = option.split("; ") if is_order else [option]
    return "; ".join(f"“{line.strip('“” ')}”" for line in lines)


def places_of(clause: str, evidence: Evidence) -> Places:
    """Return where a phrase, or a clause with it, is seen or said. Raises BadRow for one that the
    rules cannot measure.
    """
    phrase = phrase_in(clause.strip())
    if line := LINE.fullmatch(phrase):
        return Places(tuple(evidence.spans_spoken(line[1])))
    sighting = sight_of(phrase, evidence)
    return Places(
        tuple(Span(time, time) for time in sighting.seen),
        tuple(Span(time, time) for time in sighting.open),
    )


def _beside(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is nearest after (or before) the stated phrase, and not with it."""
    given = places_of(parts["clause"], evidence)
    others = [places_of(option, evidence) for option in options]
    if not given.seen:
        return OptionFits()
    is_after = parts["side"] == "after"
    edge = given.hull.end if is_after else given.hull.start
    gaps: dict[int, float] = {}
    for number, places in enumerate(others):
        ahead = [s.start - edge if is_after else edge - s.end for s in places.seen]
        if not places.spans_in(given.hull) and any(gap > 0 for gap in ahead):
            gaps[number] = min(gap for gap in ahead if gap > 0)
    if not gaps:
        return OptionFits(times=(edge,))
    near = min(gaps.values())
    reach = near + HARDLY_FARTHER_S
    fits = tuple(n for n, gap in gaps.items() if gap <= reach)
    between = Span(edge, edge + reach) if is_after else Span(edge - reach, edge)
    times = (edge, edge + near if is_after else edge - near)
    if not evidence.covers(min(times), max(times)):
        return OptionFits(times=times)
    return _unless_open(fits, others, between, times)


def _at(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is seen or said together with the stated phrase."""
    given = places_of(parts["clause"], evidence)
    others = [places_of(option, evidence) for option in options]
    if not given.seen:
        return OptionFits()
    around = Span(given.hull.start - BESIDE_S, given.hull.end + BESIDE_S)
    shared = [places.spans_in(around) for places in others]
    fits = tuple(n for n, spans in enumerate(shared) if spans)
    times = [s.start for s in given.seen] + [s.start for n in fits for s in shared[n]]
    return _unless_open(fits, others, around, times)


def _order(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option lists its things in the order in which they are first seen or said."""
    things = options[0].split("; ")
    places = {thing: places_of(thing, evidence) for thing in things}
    if not all(p.seen for p in places.values()):
        return OptionFits(times=tuple(p.first for p in places.values() if p.seen))
    firsts = {thing: p.first for thing, p in places.items()}
    if len(set(firsts.values())) < len(things):
        return OptionFits()
    in_order = sorted(things, key=firsts.__getitem__)
    times = tuple(sorted(firsts.values()))
    for earlier, later in pairwise(in_order):
        if any(span.start <= firsts[earlier] for span in places[later].open):
            return OptionFits(times=times)  # The later one may come first.
    fits = tuple(n for n, option in enumerate(options) if option.split("; ") == in_order)
    return OptionFits(fits=fits, times=times)


def _between(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is seen or said after one phrase and before another."""
    earlier, later = (places_of(parts[name], evidence) for name in ("earlier", "later"))
    others = [places_of(option, evidence) for option in options]
    if not earlier.seen or not later.seen or earlier.hull.end >= later.hull.start:
        return OptionFits()
    between = Span(earlier.hull.end, later.hull.start)
    inside = [places.spans_in(between) for places in others]
    fits = tuple(n for n, spans in enumerate(inside) if spans and spans == others[n].seen)
    times = [between.start, between.end, *(inside[n][0].start for n in fits)]
    return _unless_open(fits, others, between, times)


def _end(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is first or last, where all frames from that end of the video on are
    known.
    """
    others = [places_of(option, evidence) for option in options]
    is_first = parts["place"] == "first"
    ends = {
        n: places.first if is_first else places.hull.end
        for n, places in enumerate(others)
        if places.seen
    }
    if not ends or evidence.extent is None:
        return OptionFits()
    best = min(ends.values()) if is_first else max(ends.values())
    before = Span(evidence.extent.start, best) if is_first else Span(best, evidence.extent.end)
    if not evidence.covers(before.start, before.end):
        return OptionFits(times=(best,))
    return _unless_open(tuple(n for n, t in ends.items() if t == best), others, before, (best,))


def _part(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is seen or said in one third of the video only."""
    others = [places_of(option, evidence) for option in options]
    if evidence.extent is None:
        return OptionFits()
    start, third = evidence.extent.start, evidence.extent.seconds / 3
    number = whole.PARTS.index(parts["part"])
    own = Span(start + number * third, start + (number + 1) * third)
    inside = [places.spans_in(own) for places in others]
    fits = tuple(n for n, spans in enumerate(inside) if spans and spans == others[n].seen)
    return _unless_open(fits, others, own, [inside[n][0].start for n in fits])


def _quarter(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide in which quarter of the video the stated phrase is first or last seen."""
    given, extent = places_of(parts["clause"], evidence), evidence.extent
    if extent is None or not given.seen:
        return OptionFits()
    is_first = parts["end"] == "first"
    time = given.first if is_first else given.hull.end
    before = Span(extent.start, time) if is_first else Span(time, extent.end)
    if given.may_be_in(before) or not evidence.covers(before.start, before.end):
        return OptionFits(times=(time,))
    number = int(len(whole.QUARTERS) * (time - extent.start) / extent.seconds)
    answer = whole.QUARTERS[min(number, len(whole.QUARTERS) - 1)]
    fits = tuple(n for n, option in enumerate(options) if option == answer)
    return OptionFits(fits=fits, times=(before.start, before.end))


def _longest(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is in most of evenly spread frames, clearly more than in any other."""
    extent = evidence.extent
    counts = [len(places_of(option, evidence).seen) for option in options]
    if extent is None or not evidence.covers(extent.start, extent.end):
        return OptionFits()
    most, second = sorted(counts, reverse=True)[:2]
    if most < CLEARLY_LONGER * max(1, second):
        return OptionFits()
    longest = counts.index(most)
    times = [span.start for span in places_of(options[longest], evidence).seen]
    return OptionFits(fits=(longest,), times=tuple(times))


def _next_time(parts: Parts, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is seen when a state is so the next time after a phrase."""
    given = places_of(parts["clause"], evidence)
    link = sight_of(phrase_in(parts["again"]), evidence)
    others = [places_of(option, evidence) for option in options]
    ended = min((t for t in link.unseen if given.seen and t > given.hull.end), default=None)
    start = min((t for t in link.seen if ended is not None and t > ended), default=None)
    if start is None or ended is None:
        return OptionFits()
    end = min((t for t in (*link.unseen, *link.open) if t > start), default=evidence.end)
    again = Span(start, max(t for t in link.seen if t <= end))
    inside = [places.spans_in(again) for places in others]
    fits = tuple(n for n, spans in enumerate(inside) if spans)
    times = [given.hull.end, start, *(inside[n][0].start for n in fits)]
    return _unless_open(fits, others, again, times)


def _unless_open(
    fits: tuple[int, ...], others: Sequence[Places], span: Span, times: Sequence[float]
) -> OptionFits:
    """Return the fitting options; none if another option may be in the span, too."""
    is_open = any(p.may_be_in(span) for n, p in enumerate(others) if n not in fits)
    return OptionFits(fits=() if is_open else fits, times=tuple(sorted(set(times))))


DECIDERS: tuple[tuple[QuestionTemplate, Decider], ...] = (
    (after.AFTER, _beside),
    (at.WHILE, _at),
    (at.SAID, _at),
    (at.WHEN, _at),
    (order.QUESTION, _order),
    (after.BETWEEN, _between),
    (after.NEXT_TIME, _next_time),
    (whole.AT_END, _end),
    (whole.IN_PART, _part),
    (whole.IN_QUARTER, _quarter),
    (whole.LONGEST, _longest),
)
