"""The temporal certificate that raters mark: which parts of a video one must have seen to be sure
of the answer, and how long that is in all (EgoSchema, 3.2, and the curators' sheet, 11.1).

Conventions of the paper: a mark counts at least 0.1 s; two parts whose nearest ends are less than
5 s apart are one part (the time between counts); the length is the sum of the parts; a question is
kept from 30 s on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.records import Span


@dataclass(frozen=True, kw_only=True)
class MarkConventions:
    """In seconds: the least that a mark counts, the distance below which two parts are one, and the
    least certificate of a question that is kept.
    """

    least_mark: float = 0.1
    merge_below: float = 5.0
    keep_from: float = 30.0


def widen(mark: Span, least: float, duration: float | None = None) -> Span:
    """A mark of at least `least` seconds, widened around its middle and kept within the video."""
    if mark.seconds >= least - 1e-9:
        return mark
    start = max(0.0, (mark.start + mark.end - least) / 2)
    if duration is not None:
        start = max(0.0, min(start, duration - least))
    return Span(start, start + least)


def merge(
    marks: Sequence[Span], rule: MarkConventions | None = None, duration: float | None = None
) -> list[Span]:
    """Marks, in any order, as parts in order of time that lie at least `merge_below` apart.

    Raises ValueError for a mark that ends before it begins or lies outside the video.
    """
    rule = rule or MarkConventions()
    for mark in marks:
        if not 0 <= mark.start <= mark.end or (duration is not None and mark.end > duration + 1e-6):
            raise ValueError(
                f"a mark must lie within the video and end after it begins: {mark!r}, "
                f"the video has {duration!r} s"
            )
    wide = sorted(
        (widen(mark, rule.least_mark, duration) for mark in marks), key=lambda m: (m.start, m.end)
    )
    parts: list[Span] = []
    for mark in wide:
        if parts and mark.start - parts[-1].end < rule.merge_below:
            parts[-1] = Span(parts[-1].start, max(parts[-1].end, mark.end))
        else:
            parts.append(mark)
    return parts


def length(
    marks: Sequence[Span], rule: MarkConventions | None = None, duration: float | None = None
) -> float:
    """The certificate's length in seconds: the sum of its merged parts."""
    return sum(part.seconds for part in merge(marks, rule, duration))


def long_enough(
    marks: Sequence[Span], rule: MarkConventions | None = None, duration: float | None = None
) -> bool:
    """Whether the question is kept: its certificate reaches `keep_from` seconds."""
    rule = rule or MarkConventions()
    return length(marks, rule, duration) >= rule.keep_from - 1e-9
