"""Marks of certificates are merged by the paper's conventions."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.raters.form import merge_marks
from mustsee.records import Span

span = st.tuples(st.floats(0, 170), st.floats(0, 10)).map(lambda p: Span(p[0], p[0] + p[1]))
spans = st.lists(span, max_size=12)


def covered(merged, time) -> bool:
    return any(p.start - 1e-9 <= time <= p.end + 1e-9 for p in merged)


@given(spans, st.randoms(use_true_random=False))
def test_merged_marks_cover_all_marks_and_are_disjoint(unmerged, shuffler) -> None:
    merged = merge_marks(unmerged)
    shuffled = list(unmerged)
    shuffler.shuffle(shuffled)
    assert merge_marks(shuffled) == merged
    assert merge_marks(merged) == merged
    assert all(b.start - a.end >= 5 for a, b in pairwise(merged))
    for mark in unmerged:
        assert covered(merged, mark.start)
        assert covered(merged, mark.end)
    for span in merged:  # it starts and ends with a mark, and has no gap of 5 s between marks
        assert span.seconds >= 0.1 - 1e-9
        inside = sorted(
            (m.start, m.end) for m in unmerged if span.start - 1 <= m.start <= span.end + 1
        )
        reach = inside[0][1]
        for start, end in inside:
            assert start - reach < 5 + 0.2
            reach = max(reach, end)


def test_marks_have_the_limits_of_the_paper() -> None:
    (mark,) = merge_marks([Span(3, 3)])
    assert (mark.start, mark.end) == pytest.approx((2.95, 3.05))
    assert merge_marks([Span(0, 0)]) == [Span(0, 0.1)]
    assert merge_marks([Span(0, 1), Span(6, 7)]) == [Span(0, 1), Span(6, 7)]
    assert merge_marks([Span(0, 1), Span(5.9, 7)]) == [Span(0, 7)]
