"""Moments cover the video without gaps, and borders are cuts where shots allow it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.facts.moments import (
    MomentRules,
    find_alike,
    image_looks_of,
    looks_of,
    moments_of,
    scenes_of,
    windows_of,
)
from mustsee.facts.table import find_touched
from mustsee.records import Fact, Frame, ImageVector, Span, Video

RULES = MomentRules(seconds=6.0, window=4, windows=5)


def video(lengths: list[float]) -> Video:
    cuts = [0.0]
    for length in lengths:
        cuts.append(cuts[-1] + length)
    shots = tuple(Span(a, b) for a, b in pairwise(cuts))
    return Video(video_id="v", uri="v.mp4", duration=cuts[-1], shots=shots)


@given(st.lists(st.floats(0.1, 60), min_size=1, max_size=40))
def test_moments_cover_the_video_and_are_neither_long_nor_short(lengths: list[float]) -> None:
    row = video(lengths)
    moments = moments_of(row, RULES)
    total = sum(lengths)
    assert moments[0].start == 0.0
    assert moments[-1].end == pytest.approx(total)
    assert all(a.end == b.start for a, b in pairwise(moments))
    seconds = min(6.0, max(1.5, total / 14))
    assert all(m.seconds <= 2 * seconds + 1e-6 for m in moments)
    if len(moments) > 1:
        assert all(m.seconds >= seconds / 2 - 1e-6 for m in moments)


def test_borders_are_cuts_and_a_long_shot_is_divided() -> None:
    moments = moments_of(video([60.0, 5.0, 1.0, 4.0, 20.0, 8.0, 1.0]), RULES)
    starts = [m.start for m in moments if m.start >= 60]
    assert starts[:3] == pytest.approx([60.0, 65.0, 70.0])
    assert starts[3:] == pytest.approx([70 + 20 / 3, 70 + 40 / 3, 90])
    assert moments[-1].end == 99.0


def test_a_video_without_shots_is_divided_evenly() -> None:
    row = Video(video_id="v", uri="v.mp4", duration=90.0)
    assert moments_of(row, RULES) == tuple(Span(9 * n, 9 * n + 9) for n in range(10))


@pytest.mark.parametrize(("seconds", "least"), [(12.0, 6), (16.0, 8), (30.0, 10), (60.0, 10)])
def test_a_short_video_of_one_shot_has_moments_to_tell_apart(seconds: float, least: int) -> None:
    assert len(moments_of(Video(video_id="v", uri="v", duration=seconds), RULES)) >= least


def test_a_short_video_has_short_moments() -> None:
    shots = [1.0, 1.0, 1.2, 0.5, 0.9, 1.4, 2.0, 2.0]
    assert [m.start for m in moments_of(video(shots), RULES)] == pytest.approx(
        [0.0, 1.0, 2.0, 3.2, 4.6, 6.0, 8.0]
    )


def frame(time: float, value: float) -> Frame:
    return Frame(time=time, brightness=value, motion=0.0, descriptor=(value,) * 96)


def test_scenes_are_neighbours_that_look_alike_and_moments_of_one_place() -> None:
    moments = [Span(float(n), n + 1.0) for n in range(5)]
    frames = [frame(n + 0.5, value) for n, value in enumerate([0.1, 0.12, 0.6, 0.9, 0.1])]
    assert scenes_of(moments, frames, ()) == (0, 0, 1, 2, 3)
    place = Fact(
        fact_id="p", kind="place", phrase="a shed", source="m", spans=(Span(0, 1), Span(4, 5))
    )
    assert scenes_of(moments, frames, [place]) == (0, 0, 1, 2, 0)
    event = Fact(fact_id="e", kind="event", phrase="x", source="m", spans=place.spans)
    assert scenes_of(moments, frames, [event]) == (0, 0, 1, 2, 3)


def test_moments_are_alike_by_looks_or_by_scene() -> None:
    moments = [Span(float(n), n + 1.0) for n in range(5)]
    frames = [frame(n + 0.5, value) for n, value in enumerate([0.1, 0.6, 0.12, 0.9])]
    alike = find_alike(moments, frames, (0, 1, 2, 0, 3))
    found = {(a, b) for a in range(5) for b in range(5) if alike[a, b] and a < b}
    assert found == {(0, 2), (0, 3)}
    assert alike.diagonal().all()


def test_looks_are_centred_and_zero_without_frames() -> None:
    moments = [Span(0, 1), Span(1, 2), Span(2, 3)]
    looks = looks_of(moments, [frame(0.5, 0.2), frame(1.5, 0.4)])
    assert looks[0, 0] == pytest.approx(-0.1)
    assert looks[1, 0] == pytest.approx(0.1)
    assert not looks[2].any()


def test_looks_by_vectors_are_means_of_keyframes_and_without_one_the_nearest() -> None:
    moments = [Span(n, n + 1) for n in range(5)]
    at = {0.0: (1.0, 0.0), 0.5: (0.0, 1.0), 1.0: (0.5, 0.25), 4.5: (0.0, 0.75)}
    vectors = [ImageVector(time=time, values=values) for time, values in at.items()]
    looks = image_looks_of(moments, vectors).tolist()
    assert looks == [[0.5, 0.5], [0.5, 0.25], [0.5, 0.25], [0.0, 0.75], [0.0, 0.75]]


@given(st.integers(1, 200))
def test_windows_overlap_and_reach_the_end(count: int) -> None:
    moments = [Span(float(n), n + 1.0) for n in range(count)]
    windows = windows_of(moments, RULES)
    assert windows[0][0] == 0
    assert windows[-1][1] == count
    assert all(0 < last - first <= RULES.window for first, last in windows)
    assert all(b[0] == a[1] - 1 for a, b in pairwise(windows))


def test_a_span_touches_the_moments_that_it_shares_enough_with() -> None:
    moments = [Span(0, 6), Span(6, 12), Span(12, 18)]
    assert find_touched([Span(1, 2)], moments) == [0]
    assert find_touched([Span(5.9, 11)], moments) == [1]
    assert find_touched([Span(4, 9)], moments) == [0, 1]
    assert find_touched([Span(17, 30)], moments) == [2]
    assert find_touched([Span(3, 3)], moments) == [0]


def test_rules_must_be_above_zero() -> None:
    with pytest.raises(UserError, match=r"moments\.window=0"):
        MomentRules(window=0)
