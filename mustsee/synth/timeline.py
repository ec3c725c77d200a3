"""The timeline of a synthetic video: a plan in seconds becomes spans in frames and ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from mustsee.synth.copy import PacketIndex
from mustsee.synth.encoding import CodedShape
from mustsee.synth.plan import InsertionPlan


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
                    uri=plan.background,
                    start=start,
                    ticks=ticks,
                    end=end,
                    first=first,
                    after=after,
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
