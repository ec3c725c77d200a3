"""Facts of a whole video: those that a writer lists of its windows, and those of texts and lines.

    listed = await list_facts(work, moments, settings)

What an overview calls people and places, all windows call them. A video with more windows than may
be listed has further overviews, part by part, which say where most goes on: windows are taken where
people and places of the overviews come again, and where the picture or the words change; half of
them are spread, so that no long stretch is without any.
"""

from __future__ import annotations

import math
from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import BadRow
from mustsee.facts.cases import by_chance
from mustsee.facts.extract import Window, extract, line_facts, text_facts
from mustsee.facts.moments import MomentRules, windows_of
from mustsee.facts.settings import FactSettings
from mustsee.facts.table import VIEW, find_touched
from mustsee.facts.work import VideoWork
from mustsee.questions.checks import normal
from mustsee.records import Fact, Frame, Line, Span, Video
from mustsee.verify.conditions.seen import Condition, merge_spans, video_span

NAMED_KINDS = ("person", "place")  # kinds of facts that have one phrase in the whole video
WINDOWS = "windows"  # `what` of the requests
Places = tuple[int, int]  # numbers of a window's first moment, and of the one behind its last


@dataclass(frozen=True, kw_only=True)
class ListedFacts:
    """The facts of a video in the order of time, and the stretches of it that windows cover."""

    facts: tuple[Fact, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True)
class Lister:
    """A writer that lists facts of parts of one video."""

    work: VideoWork
    settings: FactSettings

    async def list_window(
        self, window: Window, see: Condition, kinds: Sequence[str], most: int
    ) -> tuple[Fact, ...]:
        """Return at most `most` facts of some kinds. Raises BadRow if no reply can be parsed."""
        self.work.requests.add_sent(WINDOWS)
        times, images = await self.work.show(see, (window.span,))
        return await extract(
            window, self.work.roles.writer, images=images, times=times, kinds=kinds, most=most,
            seed=self.work.seed,
        )  # fmt: skip

    async def list_windows(
        self, windows: Sequence[Window], see: Condition, kinds: Sequence[str], most: Sequence[int]
    ) -> list[tuple[Fact, ...] | BadRow]:
        """Return the facts of several windows; an error, which is counted, for each without a
        readable reply.
        """
        asked = zip(windows, most, strict=True)
        listed = await gather(
            *(self.list_window(window, see, kinds, n) for window, n in asked),
            return_exceptions=True,
        )
        read: list[tuple[Fact, ...] | BadRow] = []
        for found in listed:
            if isinstance(found, BadRow):
                self.work.requests.add_unread(WINDOWS, found)
            elif isinstance(found, BaseException):
                raise found
            read.append(found)
        return read

    async def list_names(
        self, spans: Sequence[Span], known: Sequence[Fact] = ()
    ) -> list[tuple[Fact, ...]]:
        """Return the people and places of overviews of some stretches, with their times; `known`
        ones are called as before. Of an overview without a readable reply there are none.
        """
        named = [kind for kind in self.settings.kinds if kind in NAMED_KINDS]
        if not named:
            return [()] * len(spans)
        phrases = tuple(fact.phrase for fact in known)
        listed = await self.list_windows(
            [Window(span=span, names=phrases) for span in spans],
            self.settings.overview, named, [self.settings.names] * len(spans),
        )  # fmt: skip
        return [() if isinstance(found, BadRow) else found for found in listed]


async def list_facts(
    work: VideoWork, moments: Sequence[Span], settings: FactSettings
) -> ListedFacts:
    """Return the facts that a writer lists of the windows, and those that code takes from the
    on-screen texts and the transcript. A window without a readable reply is left out, and counted;
    raises BadRow if all are. An overview of the video comes first, if it has several windows.
    """
    lister, video = Lister(work=work, settings=settings), work.video
    names: tuple[Fact, ...] = ()
    parts = divide_overviews(video, moments, settings.moments)
    if parts or len(choose_windows(moments, settings.moments, (), video)) > 1:
        (names,) = await lister.list_names([work.span])
    found = await lister.list_names(parts, names)
    of_parts = list(zip(parts, found, strict=True))
    further = [fact for some in found for fact in some]
    places = choose_windows(moments, settings.moments, (*names, *further), video)
    windows = [_make_window(video, moments, place, names, of_parts) for place in places]
    listed = await lister.list_windows(
        windows, settings.extract, settings.kinds,
        [round(settings.each * (last - first)) for first, last in places],
    )  # fmt: skip
    unread = [error for error in listed if isinstance(error, BadRow)]
    if unread and len(unread) == len(windows):
        raise BadRow(f"no facts could be listed of its {len(windows)} windows: {unread[-1]}")
    facts: dict[str, Fact] = {}
    for some in listed:
        for fact in () if isinstance(some, BadRow) else some:
            merge_fact(facts, fact)
    texts = pick_texts(text_facts(video.texts or ()), moments, settings.texts)
    if any(fact.kind == VIEW for fact in facts.values()):
        texts = [replace(text, kind=VIEW) for text in texts]  # One question may join both.
    for fact in (*texts, *line_facts(video.lines or ())):
        merge_fact(facts, fact)
    read = [p for p, some in zip(places, listed, strict=True) if not isinstance(some, BadRow)]
    return ListedFacts(
        facts=tuple(sorted(facts.values(), key=lambda f: (f.spans[0].start, f.fact_id))),
        spans=listed_spans(moments, read),
    )


def _make_window(
    video: Video, moments: Sequence[Span], place: Places, names: Sequence[Fact],
    of_parts: Sequence[tuple[Span, Sequence[Fact]]],
) -> Window:  # fmt: skip
    """Return a window with what is said and read in it. `names`: of the whole video; `of_parts`:
    of its parts.
    """
    first, last = place
    span = Span(moments[first].start, moments[last - 1].end)
    own = [
        fact for part, some in of_parts if part.start < span.end and span.start < part.end
        for fact in some
    ]  # fmt: skip
    return Window(
        span=span,
        moments=tuple(moments[first:last]),
        lines=tuple(x for x in video.lines or () if x.end > span.start and x.start < span.end),
        texts=tuple(
            t for t in video.texts or () if (t.end or t.time) >= span.start and t.time < span.end
        ),
        objects=tuple(x for x in video.objects or () if x.end >= span.start and x.start < span.end),
        names=tuple(dict.fromkeys(fact.phrase for fact in (*names, *own))),
    )


def pick_texts(texts: Sequence[Fact], moments: Sequence[Span], most: int) -> list[Fact]:
    """Return at most `most` of the on-screen texts that begin in one moment, the longest: credits
    and pages have many, of which none tells more than the others.
    """
    begin: dict[int, list[Fact]] = {}
    for fact in texts:
        begin.setdefault(min(find_touched(fact.spans, moments), default=0), []).append(fact)
    longest = (sorted(facts, key=lambda f: -len(f.phrase))[:most] for facts in begin.values())
    return [fact for facts in longest for fact in facts]


def merge_fact(facts: dict[str, Fact], fact: Fact) -> None:
    """Add a fact to those listed before; one with the kind and the words of an earlier one, but for
    articles and spelling, adds its spans to that.
    """
    key = f"{fact.kind}/{_plain_words(fact)}/{fact.of.casefold()}"
    if key not in facts:
        facts[key] = fact
        return
    always = Span(0.0, math.inf)
    spans = merge_spans((*facts[key].spans, *fact.spans), always)
    facts[key] = replace(facts[key], spans=spans)


def _plain_words(fact: Fact) -> str:
    """Return the words of a fact's phrase; without articles and in one spelling if a model wrote
    them, since windows that overlap name the same thing twice.
    """
    phrase = fact.phrase.casefold()
    if fact.kind in ("text", "line"):
        return phrase
    return normal(phrase).replace("gray", "grey")


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How much goes on in each window, each kind from 0 to 1 (`[n]`).

    `threads`: named people and places that come again; one that is nearly everywhere counts little.
    `picture`: how much the picture changes. `speech`: words that the window before does not have.
    """

    threads: NDArray[np.float64]
    picture: NDArray[np.float64]
    speech: NDArray[np.float64]

    @property
    def sums(self) -> NDArray[np.float64]:
        """The sums of the three (`[n]`)."""
        return self.threads + self.picture + self.speech


def lists_all(moments: Sequence[Span], rules: MomentRules) -> bool:
    """Whether facts of all windows may be listed."""
    return len(windows_of(moments, rules)) <= rules.windows


def divide_overviews(video: Video, moments: Sequence[Span], rules: MomentRules) -> tuple[Span, ...]:
    """Return the parts of a video of which each gets an overview of its own, of about
    `rules.overview_seconds`; none where all windows are listed.
    """
    if lists_all(moments, rules):
        return ()
    whole = video_span(video)
    parts = max(1, round(whole.seconds / rules.overview_seconds))
    borders = [whole.start + whole.seconds * n / parts for n in range(parts + 1)]
    return tuple(Span(a, b) for a, b in pairwise(borders))


def choose_windows(
    moments: Sequence[Span], rules: MomentRules, names: Sequence[Fact], video: Video
) -> tuple[Places, ...]:
    """Return the windows of which facts are listed, in the order of time. `names`: people and
    places of the overviews, with their spans.
    """
    windows = windows_of(moments, rules)
    if len(windows) <= rules.windows:
        return windows
    spans = [Span(moments[first].start, moments[last - 1].end) for first, last in windows]
    scores = score_windows(spans, names, video).sums
    drawn = by_chance("windows", range(len(windows)), str)
    order = sorted(drawn, key=lambda n: -scores[n])  # Where nothing tells them apart, by chance.
    stretches = -(-rules.windows // 2)
    stretch_of = [n * stretches // len(windows) for n in range(len(windows))]
    best = {stretch_of[n]: n for n in reversed(order)}  # the best of a stretch is set last
    taken = dict.fromkeys((*best.values(), *order))
    return tuple(windows[n] for n in sorted(list(taken)[: rules.windows]))


def score_windows(spans: Sequence[Span], names: Sequence[Fact], video: Video) -> Scores:
    """Return how much goes on in windows of a video."""
    return Scores(
        threads=_up_to_one(_count_threads(spans, names)),
        picture=_up_to_one(_changes(spans, video.frames or ())),
        speech=_up_to_one(_new_words(spans, video.lines or ())),
    )


def _up_to_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    most = values.max(initial=0.0)
    return values / most if most > 0 else values


def _count_threads(spans: Sequence[Span], names: Sequence[Fact]) -> NDArray[np.float64]:
    """Return the number of names that each window shares with others, each less by the share of the
    windows that have it.
    """
    touched: dict[str, NDArray[np.bool_]] = {}
    for fact in names:
        inside = [any(s.start < w.end and w.start < s.end for s in fact.spans) for w in spans]
        key = f"{fact.kind}/{normal(fact.phrase)}"
        touched[key] = touched.get(key, np.zeros(len(spans), bool)) | np.array(inside, bool)
    rows = [t * (1 - t.mean()) for t in touched.values() if t.sum() > 1]
    return np.array(rows, np.float64).sum(axis=0) if rows else np.zeros(len(spans))


def _changes(spans: Sequence[Span], frames: Sequence[Frame]) -> NDArray[np.float64]:
    """Return how far apart frames that follow each other look in each window, on average (root mean
    square of their descriptors).
    """
    changes = np.zeros(len(spans))
    if len(frames) < 2:
        return changes
    looks = np.array([frame.descriptor for frame in frames], np.float64)
    steps = np.sqrt(np.mean(np.diff(looks, axis=0) ** 2, axis=1))
    times = np.array([frame.time for frame in frames[1:]])
    for n, span in enumerate(spans):
        inside = steps[(times >= span.start) & (times < span.end)]
        changes[n] = inside.mean() if len(inside) else 0.0
    return changes


def _new_words(spans: Sequence[Span], lines: Sequence[Line]) -> NDArray[np.float64]:
    """Return the number of different words that are said in each window and not in the one
    before.
    """
    said = [
        {
            word
            for line in lines
            if line.start < span.end and span.start < line.end
            for word in normal(line.text).split()
        }
        for span in spans
    ]
    before = [set[str](), *said[:-1]]
    return np.array([len(here - last) for here, last in zip(said, before, strict=True)], float)


def listed_spans(moments: Sequence[Span], windows: Sequence[Places]) -> tuple[Span, ...]:
    """Return the stretches of a video that windows cover, in order and merged."""
    spans = [Span(moments[first].start, moments[last - 1].end) for first, last in windows]
    return merge_spans(spans, Span(moments[0].start, moments[-1].end))
