"""Marks of certificates are merged by the paper's conventions."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.raters import marks
from mustsee.records import Span

span = st.tuples(st.floats(0, 170), st.floats(0, 10)).map(lambda p: Span(p[0], p[0] + p[1]))
spans = st.lists(span, max_size=12)


def covered(merged, time) -> bool:
    return any(p.start - 1e-9 <= time <= p.end + 1e-9 for p in merged)


@given(spans, st.randoms(use_true_random=False))
def test_merged_marks_cover_all_marks_and_are_disjoint(unmerged, shuffler) -> None:
    merged = marks.merge(unmerged, duration=180)
    shuffled = list(unmerged)
    shuffler.shuffle(shuffled)
    assert marks.merge(shuffled, duration=180) == merged
    assert marks.merge(merged, duration=180) == merged
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
    assert marks.length(unmerged, duration=180) == pytest.approx(sum(p.seconds for p in merged))


def test_marks_have_the_limits_of_the_paper() -> None:
    assert marks.length([Span(3, 3)]) == pytest.approx(0.1)
    assert marks.merge([Span(0, 1), Span(6, 7)]) == [Span(0, 1), Span(6, 7)]
    assert marks.merge([Span(0, 1), Span(5.9, 7)]) == [Span(0, 7)]
    assert marks.widen(Span(180, 180), 0.1, 180).end == 180
    with pytest.raises(ValueError, match="within the video"):
        marks.merge([Span(5, 4)])
    with pytest.raises(ValueError, match="within the video"):
        marks.merge([Span(5, 181)], 180)
