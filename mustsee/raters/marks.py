"""Temporal certificates: the spans of a video that one must see to be sure of the answer, and
their total length (EgoSchema, 3.2, and the curators' sheet, 11.1).

The paper's conventions: a mark counts at least 0.1 s; spans with a gap of less than 5 s are
merged, with the gap; the length is the sum of the merged spans; a question needs at least 30 s.
"""

from __future__ import annotations

from collections.abc import Sequence

from mustsee.records import Span

MIN_MARK_S = 0.1  # seconds of the shortest mark
MERGE_GAP_S = 5.0  # seconds of a gap below which spans are merged


def widen(mark: Span, least: float, duration: float | None = None) -> Span:
    """Return the mark, widened around its middle to `least` seconds and within the video."""
    if mark.seconds >= least - 1e-9:
        return mark
    start = max(0.0, (mark.start + mark.end - least) / 2)
    if duration is not None:
        start = max(0.0, min(start, duration - least))
    return Span(start, start + least)


def merge(marks: Sequence[Span], duration: float | None = None) -> list[Span]:
    """Return the marks merged, in order of time, with gaps of at least `MERGE_GAP_S` seconds.

    Raises ValueError for a mark that ends before it starts or is outside the video.
    """
    for mark in marks:
        if not 0 <= mark.start <= mark.end or (duration is not None and mark.end > duration + 1e-6):
            raise ValueError(
                f"a mark must be within the video and end after it starts: {mark!r}, "
                f"the video has {duration!r} s"
            )
    wide = sorted(
        (widen(mark, MIN_MARK_S, duration) for mark in marks),
        key=lambda m: (m.start, m.end),
    )
    merged: list[Span] = []
    for mark in wide:
        if merged and mark.start - merged[-1].end < MERGE_GAP_S:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, mark.end))
        else:
            merged.append(mark)
    return merged


def length(marks: Sequence[Span], duration: float | None = None) -> float:
    """Return the certificate's length in seconds: the sum of its merged spans."""
    return sum(span.seconds for span in merge(marks, duration))
