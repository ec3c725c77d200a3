"""The windows of a video of which facts are listed: all of them, or those where most goes on.

    windows = choose_windows(moments, rules, find_threads(names), video)

Of a video with more windows than may be listed, those are taken where people and places of its
overviews come again, and where the picture or the words change; half of them are spread, so that
no long stretch is without any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mustsee.facts.cases import by_chance
from mustsee.facts.moments import MomentRules, windows_of
from mustsee.questions.checks import normal
from mustsee.records import Fact, Frame, Line, Span, Video
from mustsee.verify.conditions.seen import merge_spans, video_span

Places = tuple[int, int]  # numbers of a window's first moment, and of the one behind its last


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
