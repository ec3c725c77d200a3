"""The timeline of a synthesised video: a plan in seconds becomes pieces in pictures and ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from mustsee.synth.copy import PacketIndex
from mustsee.synth.pictures import CodedShape
from mustsee.synth.plan import InsertionPlan


@dataclass(frozen=True, kw_only=True)
class TimelineSpan:
    """A stretch of one file in the whole. `start`: on the file's own clock, seconds. `ticks`: when
    each of its pictures is shown; `end`: when the last one ends. `first`, `after`: numbers of the
    background's pictures, where it is indexed. `cut`: of a probe, when the background stops for it,
    on the background's clock.
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


def pieces(plan: InsertionPlan, shape: CodedShape, found: PacketIndex | None) -> list[TimelineSpan]:
    """The timeline, in ticks; no piece is without pictures."""
    done: list[TimelineSpan] = []
    cuts = [plan.start, *(i.at for i in plan.insertions), plan.end]
    now = 0
    for number, (low, high) in enumerate(pairwise(cuts)):
        if found is None:
            first, after = _frame(low - plan.start, shape), _frame(high - plan.start, shape)
            ticks: Sequence[int] = range(now, now + after - first)
            start, stop = (Fraction(plan.start) + n / shape.rate for n in (first, after))
            end = now + after - first
        else:
            first, after = found.number(Fraction(low)), found.number(Fraction(high))
            shift = now - found.stamp(first)
            ticks = [tick + shift for tick in found.shown[first:after]]
            start, stop = ((found.stamp(n) - found.zero) * shape.tick for n in (first, after))
            end = found.stamp(after) + shift
        if after > first:
            done.append(
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
            done.append(_probe(plan, number, now, stop, shape))
            now = done[-1].end
    return done


def _probe(
    plan: InsertionPlan, number: int, now: int, cut: Fraction, shape: CodedShape
) -> TimelineSpan:
    """The piece of probe `number`, which begins at tick `now`."""
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
