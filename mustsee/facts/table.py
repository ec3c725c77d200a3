"""The truth table of a video: which facts hold at which moments.

A moment is a short stretch of the video; the moments lie side by side and cover it. An entry says
of one fact and one moment: true, false, or unknown. Entries come from looks (`mustsee.facts.look`)
and, for what is spoken, from the transcript. Unknown is never used as false.

Forms read the table. A draft of their questions is made before any look, from what the facts claim
(`TruthTable.as_claimed`); each question says which entries it needs, so that only these are looked
at.

Of a brief event that sparse frames miss no entry is sure: somebody who stays in the picture turns,
sits, looks up. A look judges a moment of some seconds from a few frames, and a movement of the body
that takes half a second may lie between them. Of 26 questions of a film that were read beside their
frames four were wrong or doubtful, each for such a movement of one of its leading men.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from mustsee.questions.checks import normal
from mustsee.questions.orders import has_known_place
from mustsee.records import Fact, Span
from mustsee.text import terms

Entry = tuple[str, int]  # id of a fact, number of a moment
Need = tuple[str, Sequence[int]]  # id of a fact, numbers of the moments of its entries
VIEW = "view"  # kind of all that rules measure in pixels; no model is asked for it
TEXTS = "texts"  # source of on-screen texts
# Share of the shorter of a fact's span and a moment; those that share less are apart.
MIN_SHARED = 0.3
MIN_RANGE_S = 60.0  # seconds from the first to the last act of somebody who stays on the screen
_MOVES = (
    "bends crouches ducks glances kneels leans lifts lies looks lowers moves nods raises rises "
    "rolls shakes shifts sits smiles spins stands steps straightens stretches swings tilts turns "
    "twists walks"
)
_WITH = (
    "a aside around arm arms at away back both down eyes face floor forward forwards from ground "
    "hand hands head her his in inside it its leg legs low off on one onto out over round shoulder "
    "shoulders sideways slowly the their to toward towards up upright upward upwards wrist"
)
# Words that tell a subject from others: "a man in grey" is not "a man".
_TELLS = "and at behind beside by from in near of on wearing who whose with without"
_MOVEMENT = re.compile(
    rf"(?P<subject>.+?) (?:{_MOVES.replace(' ', '|')})(?: (?:{_WITH.replace(' ', '|')}))*",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class TruthTable:
    """`facts`: in the order of time. `moments`: in order, without gaps. `scenes`: the scene of each
    moment, by number. `truth`: entries that are known; null where a look could not tell.
    `searched`: for each fact the moments that a search found most like it, besides its own.
    `is_draft`: entries without a look are what the facts claim; otherwise they are unknown.
    """

    facts: tuple[Fact, ...]
    moments: tuple[Span, ...]
    scenes: tuple[int, ...]
    truth: Mapping[Entry, bool | None] = field(default_factory=dict[Entry, "bool | None"])
    searched: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    is_draft: bool = False

    @cached_property
    def claims(self) -> Mapping[str, tuple[int, ...]]:
        """For each fact the moments at which its source claims it."""
        return {fact.fact_id: tuple(find_touched(fact.spans, self.moments)) for fact in self.facts}

    @cached_property
    def by_id(self) -> Mapping[str, Fact]:
        return {fact.fact_id: fact for fact in self.facts}

    @cached_property
    def alike(self) -> Mapping[str, tuple[Fact, ...]]:
        """For each fact the facts of its kind, itself among them, whose phrases contain its phrase
        or are contained in it: where one holds, the other may be said to hold. Things and
        states are measured each by itself.
        """
        texts = {fact.fact_id: f" {normal(fact.phrase)} " for fact in self.facts}
        by_kind = {fact.kind: self.of_kind(fact.kind) for fact in self.facts}
        return {
            name: tuple(
                other
                for other in by_kind[self.by_id[name].kind]
                if other.fact_id == name
                or (
                    _may_be_quoted(other)
                    and (text in texts[other.fact_id] or texts[other.fact_id] in text)
                )
            )
            for name, text in texts.items()
        }

    def are_twins(self, one: Fact, other: Fact) -> bool:
        """Whether two facts of a kind that share a content word may be one thing in two wordings:
        looks saw both at one moment, and at none one of them without the other. Beside each other
        among the options they would tell that neither is right.
        """
        if one.kind != other.kind or not set(terms(one.phrase)) & set(terms(other.phrase)):
            return False
        known = {*self._known.get(one.fact_id, ()), *self._known.get(other.fact_id, ())}
        pairs = {
            (self.truth.get((one.fact_id, m)), self.truth.get((other.fact_id, m))) for m in known
        }
        return (True, True) in pairs and not pairs & {(True, False), (False, True)}

    @cached_property
    def _known(self) -> Mapping[str, tuple[int, ...]]:
        """For each fact the moments of its entries."""
        moments: dict[str, list[int]] = {}
        for name, moment in self.truth:
            moments.setdefault(name, []).append(moment)
        return {name: tuple(numbers) for name, numbers in moments.items()}

    @cached_property
    def known_places(self) -> frozenset[str]:
        """Ids of on-screen texts whose place everybody knows: titles, goodbyes, seasons."""
        written = [fact for fact in self.facts if is_written(fact)]
        phrases = {fact.fact_id: fact.phrase for fact in written}
        return frozenset(
            name
            for name, phrase in phrases.items()
            if has_known_place(phrase, [p for other, p in phrases.items() if other != name])
        )

    @cached_property
    def fleeting_ids(self) -> frozenset[str]:
        """Ids of events of which no look can say for sure where they do not happen."""
        return find_fleeting(self.facts)

    @cached_property
    def as_claimed(self) -> TruthTable:
        """The table before any look, with the facts that were dropped since."""
        facts = tuple(replace(fact, drop=None) for fact in self.facts)
        return replace(self, facts=facts, truth={}, is_draft=True)

    def scenes_of(self, fact: Fact) -> frozenset[int]:
        """Return the scenes in which a fact is claimed."""
        return frozenset(self.scenes[moment] for moment in self.claims[fact.fact_id])

    def of_kind(self, *kinds: str) -> tuple[Fact, ...]:
        """Return the facts of some kinds that were not dropped, in the order of time, without those
        that are fleeting. On-screen texts come behind other views: of two answers to one question
        the first is asked for.
        """
        facts = (
            f
            for f in self.facts
            if f.kind in kinds and f.drop is None and f.fact_id not in self.fleeting_ids
        )
        return tuple(sorted(facts, key=lambda f: f.kind == VIEW and is_written(f)))

    def holds(self, fact: Fact, moment: int) -> bool | None:
        """Return whether a fact holds at a moment; null if that is unknown, and false outside of
        the video.
        """
        if not 0 <= moment < len(self.moments):
            return False
        entry = (fact.fact_id, moment)
        if entry in self.truth or not self.is_draft:
            return self.truth.get(entry)
        return moment in self.claims[fact.fact_id]

    def none_hold(self, facts: Iterable[Fact], moment: int) -> bool:
        """Whether all of the facts are known to be false at a moment."""
        return all(self.holds(fact, moment) is False for fact in facts)

    def places(self, fact: Fact) -> tuple[int, ...]:
        """Return those of the moments to check at which a fact is known to hold."""
        return tuple(m for m in self.to_check(fact) if self.holds(fact, m))

    def doubts(self, fact: Fact) -> tuple[int, ...]:
        """Return those of these moments at which it is unknown whether a fact holds."""
        return tuple(m for m in self.to_check(fact) if self.holds(fact, m) is None)

    def possible(self, fact: Fact) -> tuple[int, ...]:
        """Return the moments at which a fact holds or may hold, in order."""
        return tuple(m for m in self.to_check(fact) if self.holds(fact, m) is not False)

    def to_check(self, fact: Fact) -> Sequence[int]:
        """Return the moments at which a fact may hold: of its claims, their neighbours, the moments
        found by the search, and all others that were looked at.
        """
        own = self.claims[fact.fact_id]
        if fact.kind == VIEW:
            return range(len(self.moments))  # It comes again wherever it is not ruled out.
        beside = {near for moment in own for near in (moment - 1, moment + 1)}
        known = self._known.get(fact.fact_id, ())
        checked = {*own, *beside, *self.searched.get(fact.fact_id, ()), *known}
        return sorted(moment for moment in checked if 0 <= moment < len(self.moments))

    def absence(self, fact: Fact, moments: Iterable[int]) -> tuple[Need, ...]:
        """Return what must be known for a fact to be wrong at some moments: it, and each that says
        the same, at all of them.
        """
        numbers = tuple(moments)
        return tuple((other.fact_id, numbers) for other in self.alike[fact.fact_id])

    def stretch(self, first: int, last: int) -> Span:
        """Return the span from the start of one moment to the end of another."""
        return Span(self.moments[first].start, self.moments[last].end)

    @cached_property
    def whole(self) -> Span:
        """The span of the video."""
        return self.stretch(0, -1)

    def span(self, fact: Fact, moment: int) -> Span:
        """Return the span of a fact at a moment: where it is claimed there, else the moment."""
        here = self.moments[moment]
        inside = [
            Span(max(s.start, here.start), min(s.end, here.end))
            for s in fact.spans
            if s.start < here.end and here.start < s.end
        ]
        return max(inside, key=lambda s: s.seconds, default=here)


def is_written(fact: Fact) -> bool:
    """Whether a fact is an on-screen text: of that kind, or a view beside other views."""
    return fact.kind == "text" or fact.source == TEXTS


def is_thing(fact: Fact) -> bool:
    """Whether a fact is a view of a thing, which detectors may miss, such as a bicycle behind a
    fence.
    """
    return fact.kind == VIEW and not is_written(fact) and not fills_picture(fact)


def fills_picture(fact: Fact) -> bool:
    """Whether a view fills a part of the picture, as a colour does."""
    return fact.kind == VIEW and re.fullmatch(r".*\b(?:area|picture|rest)", fact.phrase) is not None


def doubt_lost_things(table: TruthTable, shots: Sequence[Span]) -> Mapping[Entry, bool | None]:
    """Return the entries of a table; those by which a thing is not seen are unknown at the moments
    of a shot in which it is seen at another moment: detectors lose what is still there.
    """
    truth = dict(table.truth)
    middles = [(moment.start + moment.end) / 2 for moment in table.moments]
    shot_of = [
        next((n for n, shot in enumerate(shots) if shot.start <= middle < shot.end), None)
        for middle in middles
    ]
    for fact in filter(is_thing, table.of_kind(VIEW)):
        places = range(len(table.moments))
        within = {shot_of[n] for n in places if truth.get((fact.fact_id, n))} - {None}
        for n in places:
            if shot_of[n] in within and truth.get((fact.fact_id, n)) is False:
                truth[fact.fact_id, n] = None
    return truth


def _may_be_quoted(fact: Fact) -> bool:
    return fact.kind != VIEW or is_written(fact)


def find_touched(spans: Sequence[Span], moments: Sequence[Span]) -> list[int]:
    """Return the numbers of the moments that share at least `MIN_SHARED` of themselves or of a span
    with one of the spans; for a span that has none, the one that shares most with it.
    """
    found: set[int] = set()
    for span in spans:
        shared = [min(span.end, m.end) - max(span.start, m.start) for m in moments]
        least = [MIN_SHARED * min(span.seconds, m.seconds) for m in moments]
        own = [n for n, seconds in enumerate(shared) if seconds > 0 and seconds >= least[n]]
        if not own and shared and max(shared) >= 0:
            own = [max(range(len(shared)), key=shared.__getitem__)]
        found.update(own)
    return sorted(found)


def find_fleeting(facts: Sequence[Fact]) -> frozenset[str]:
    """Return the ids of the events that are no more than a movement of the body, of somebody who
    acts over at least `MIN_RANGE_S` of the video. English phrases only.
    """
    events = [fact for fact in facts if fact.kind == "event"]
    moves = {
        f.fact_id: match["subject"] for f in events if (match := _MOVEMENT.fullmatch(f.phrase))
    }
    found: set[str] = set()
    for name, subject in moves.items():
        times = [
            time
            for fact in events
            if re.match(rf"{re.escape(subject)} (?!(?:{_TELLS.replace(' ', '|')})\b)", fact.phrase)
            for span in fact.spans
            for time in (span.start, span.end)
        ]
        if max(times) - min(times) >= MIN_RANGE_S:
            found.add(name)
    return frozenset(found)
