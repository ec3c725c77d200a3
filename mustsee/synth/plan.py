"""The plan of a synthetic video: which clip goes where.

It is seeded and stored beside the video, so that the answer to a question is known by construction
(MLVU, F.4, F.8, F.9). A plan is in seconds; `mustsee.synth.make` puts every cut on a frame and
reports where each probe is in the result.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from mustsee.records import Span

if TYPE_CHECKING:
    from mustsee.synth.copy import PacketIndex
    from mustsee.synth.encoding import CodedShape

MAX_TRIES = 10_000  # draws of positions that are near cuts and keep their gaps


@dataclass(frozen=True, kw_only=True)
class InsertedProbe:
    """A span of a clip to show within another video; `label` names its content."""

    uri: str
    start: float = 0.0
    end: float
    label: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"a probe must have 0 <= start < end: {self!r}")


@dataclass(frozen=True, kw_only=True)
class Insertion:
    """A probe shown where the background pauses, at `at` seconds of the background's clock."""

    at: float
    probe: InsertedProbe


@dataclass(frozen=True, kw_only=True)
class InsertionPlan:
    """The background between `start` and `end`, with probes inserted (nothing is overwritten).

    `insertions` are in order of time; several at the same time are shown one after the other.
    """

    background: str
    start: float = 0.0
    end: float
    insertions: tuple[Insertion, ...] = ()

    def __post_init__(self) -> None:
        times = [i.at for i in self.insertions]
        if not 0 <= self.start < self.end:
            raise ValueError(
                f"a background must have 0 <= start < end: {self.start!r}, {self.end!r}"
            )
        if times != sorted(times) or any(not self.start <= t <= self.end for t in times):
            raise ValueError(
                f"insertions must be in order and within the background "
                f"({self.start:g} to {self.end:g} s): {times!r}"
            )

    @property
    def seconds(self) -> float:
        """The duration of the whole video: background and probes."""
        return self.end - self.start + sum(i.probe.end - i.probe.start for i in self.insertions)

    def placements(self) -> list[Span]:
        """Return when each probe is shown, on the clock of the whole video."""
        spans: list[Span] = []
        inserted = 0.0
        for insertion in self.insertions:
            begin = insertion.at - self.start + inserted
            length = insertion.probe.end - insertion.probe.start
            spans.append(Span(begin, begin + length))
            inserted += length
        return spans


@dataclass(frozen=True, kw_only=True)
class PositionRule:
    """How positions are drawn: uniformly over all that keep these rules (MLVU gives none).

    All are seconds of the background. `gap`: least distance between two positions. `margin`: least
    distance to the beginning and the end. `near_cut`: greatest distance to a cut between shots, so
    that no shot is interrupted in its middle; null: anywhere.
    """

    gap: float = 20.0
    margin: float = 10.0
    near_cut: float | None = None


def positions(
    count: int,
    start: float,
    end: float,
    spread: PositionRule,
    seed: str,
    shots: Sequence[Span] = (),
) -> list[float]:
    """Return `count` positions in a background, in order, drawn uniformly over all that keep the
    rules.

    Raises ValueError when the background has no room for them.
    """
    first, last = start + spread.margin, end - spread.margin
    room = last - first - spread.gap * (count - 1)
    if count < 1:
        return []
    if room < 0:
        raise ValueError(
            f"no room for {count} insertions between {start:g} and {end:g} s with gap="
            f"{spread.gap:g} and margin={spread.margin:g}: take a longer background or lower them"
        )
    rng = random.Random(seed)
    allowed = _allowed(first, last, spread.near_cut, shots)
    for _ in range(MAX_TRIES):
        # Points of a shorter span, with the gaps added, are uniform over all sets with these gaps.
        points = sorted(first + rng.random() * room for _ in range(count))
        drawn = [p + i * spread.gap for i, p in enumerate(points)]
        if allowed is not None:
            drawn = sorted(_point_at(allowed, rng.random()) for _ in range(count))
            if any(b - a < spread.gap for a, b in pairwise(drawn)):
                continue
        return drawn
    raise ValueError(
        f"no {count} positions with gap={spread.gap:g} and within near_cut={spread.near_cut:g} s of"
        f" a cut between {start:g} and {end:g} s: raise near_cut, lower gap, or take another"
        " background"
    )


def _allowed(
    first: float, last: float, near_cut: float | None, shots: Sequence[Span]
) -> list[Span] | None:
    """The spans close to a cut; None when anywhere is allowed."""
    if near_cut is None:
        return None
    cuts = sorted({shot.start for shot in shots} | {shot.end for shot in shots})
    spans: list[Span] = []
    for cut in cuts:
        low, high = max(first, cut - near_cut), min(last, cut + near_cut)
        if low > high:
            continue
        if spans and low <= spans[-1].end:
            spans[-1] = Span(spans[-1].start, max(high, spans[-1].end))
        else:
            spans.append(Span(low, high))
    if not spans:
        raise ValueError(f"no cut between shots from {first:g} to {last:g} s: leave near_cut unset")
    return spans


def _point_at(spans: Sequence[Span], share: float) -> float:
    """The point at `share` (0 to 1) of the spans laid end to end."""
    remaining = share * sum(s.seconds for s in spans)
    for span in spans:
        if remaining <= span.seconds:
            return span.start + remaining
        remaining -= span.seconds
    return spans[-1].end


def plan(
    background: str,
    start: float,
    end: float,
    probes: Sequence[InsertedProbe],
    *,
    spread: PositionRule | None = None,
    seed: str | int = 0,
    shots: Sequence[Span] = (),
) -> InsertionPlan:
    """Return a plan that shows `probes`, in the order given, at seeded positions in the
    background.
    """
    times = positions(
        len(probes), start, end, spread or PositionRule(), f"{seed}/{background}/positions", shots
    )
    insertions = tuple(Insertion(at=t, probe=p) for t, p in zip(times, probes, strict=True))
    return InsertionPlan(background=background, start=start, end=end, insertions=insertions)


@dataclass(frozen=True, kw_only=True)
class TimelineSpan:
    """A span of one file in the whole video.

    `start`: seconds of the file's own clock. `ticks`: when each of its frames is shown; `end`: when
    the last one ends. `first`, `after`: numbers of the background's frames, where it is indexed.
    `probe`: number of the probe; `cut`: its time on the background's clock.
    """

    uri: str
    start: Fraction
    ticks: Sequence[int]
    end: int
    probe: int | None = None
    cut: Fraction = Fraction(0)
    first: int = 0
    after: int = 0

    @property
    def begin(self) -> int:
        return self.ticks[0]


def timeline_spans(
    plan: InsertionPlan, shape: CodedShape, index: PacketIndex | None
) -> list[TimelineSpan]:
    """Return the timeline, in ticks. Spans without a frame are left out."""
    timeline: list[TimelineSpan] = []
    cuts = [plan.start, *(i.at for i in plan.insertions), plan.end]
    now = 0
    for number, (low, high) in enumerate(pairwise(cuts)):
        if index is None:
            first, after = _frame(low - plan.start, shape), _frame(high - plan.start, shape)
            ticks: Sequence[int] = range(now, now + after - first)
            start, stop = (Fraction(plan.start) + n / shape.rate for n in (first, after))
            end = now + after - first
        else:
            first, after = index.number(Fraction(low)), index.number(Fraction(high))
            shift = now - index.stamp(first)
            ticks = [tick + shift for tick in index.times[first:after]]
            start, stop = ((index.stamp(n) - index.zero) * shape.tick for n in (first, after))
            end = index.stamp(after) + shift
        if after > first:
            timeline.append(
                TimelineSpan(
                    uri=plan.background, start=start, ticks=ticks, end=end, first=first, after=after
                )
            )
            now = end
        if number < len(plan.insertions):
            timeline.append(_probe(plan, number, now, stop, shape))
            now = timeline[-1].end
    return timeline


def _probe(
    plan: InsertionPlan, number: int, now: int, cut: Fraction, shape: CodedShape
) -> TimelineSpan:
    """The span of probe `number`, which begins at tick `now`."""
    probe = plan.insertions[number].probe
    count = max(1, round(Fraction(probe.end - probe.start) * shape.rate))
    steps = [now + round(n / shape.rate / shape.tick) for n in range(count + 1)]
    return TimelineSpan(
        uri=probe.uri,
        start=Fraction(probe.start),
        ticks=steps[:-1],
        end=steps[-1],
        probe=number,
        cut=cut,
    )


def _frame(seconds: float, shape: CodedShape) -> int:
    return round(Fraction(seconds) * shape.rate)
