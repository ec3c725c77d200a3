"""Conditions: the frames and lines that are shown, for any video and any spans."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mustsee.records import Line, Span, Word
from mustsee.verify.conditions.seen import (
    Condition,
    lines_within,
    merge_spans,
    plan,
    spread,
    subtract_spans,
    whole_shots,
)

VIDEO = Span(10.0, 310.0)
times = st.floats(0, 320).map(lambda x: round(x, 3))
spans = st.lists(
    st.tuples(times, st.floats(0, 60).map(lambda x: round(x, 3))).map(
        lambda p: Span(p[0], p[0] + p[1])
    ),
    max_size=4,
)
WHOLE = Condition(frames=16)


def shown(condition: str, evidence: list[Span], seed: int = 0, **see: object) -> object:
    chosen = Condition(condition=condition, **({"frames": 16} | see))  # type: ignore[arg-type]
    return plan(chosen, VIDEO, evidence, seed=seed)


def inside(time: float, some: tuple[Span, ...]) -> bool:
    return any(s.start - 1e-6 <= time <= s.end + 1e-6 for s in some)


@given(spans)
def test_evidence_and_the_rest_partition_the_video(evidence: list[Span]) -> None:
    cuts = merge_spans(evidence, VIDEO)
    assume(cuts)
    rest = subtract_spans(VIDEO, cuts)
    assert all(a.end <= b.start for a, b in pairwise(cuts))
    total = sum(s.seconds for s in (*cuts, *rest))
    assert VIDEO.seconds - 0.05 * (len(cuts) + 1) <= total <= VIDEO.seconds + 1e-6


@given(spans, st.integers(0, 5))
def test_without_evidence_shows_as_many_frames_and_none_of_the_evidence(
    evidence: list[Span], seed: int
) -> None:
    cuts = merge_spans(evidence, VIDEO)
    assume(cuts)
    found = shown("without_evidence", evidence, seed)
    assume(found is not None)
    assert len(found.times) == 16  # type: ignore[attr-defined]
    assert not any(
        s.start + 1e-6 < t < s.end - 1e-6
        for s in cuts
        for t in found.times  # type: ignore[attr-defined]
    )


@given(spans, st.integers(0, 5))
def test_a_control_cuts_equal_lengths_elsewhere(evidence: list[Span], seed: int) -> None:
    cuts = merge_spans(evidence, VIDEO)
    assume(cuts)
    found = shown("control", evidence, seed)
    assume(found is not None)
    left = sum(s.seconds for s in found.spans)  # type: ignore[attr-defined]
    gone = sum(s.seconds for s in cuts)
    assert left == pytest.approx(VIDEO.seconds - gone, abs=0.05 * 10)
    for cut in cuts:  # the evidence itself stays
        middle = (cut.start + cut.end) / 2
        assert inside(middle, found.spans) or cut.seconds < 0.1  # type: ignore[attr-defined]
    assert found == shown("control", evidence, seed)


def test_evidence_that_is_the_whole_video_leaves_nothing() -> None:
    assert shown("without_evidence", [Span(0, 400)]) is None
    assert shown("control", [Span(0, 200)]) is None
    assert shown("without_evidence", []) is None  # no spans: the video is the evidence


@given(st.integers(2, 40), st.integers(0, 9))
def test_shuffled_shows_the_same_frames_in_a_different_order(count: int, seed: int) -> None:
    plain = shown("frames", [], frames=count)
    mixed = shown("shuffled", [], seed, frames=count)
    assert sorted(mixed.times) == list(plain.times)  # type: ignore[attr-defined]
    assert mixed.times != plain.times  # type: ignore[attr-defined]


def test_conditions_show_their_frames_and_lines() -> None:
    lines = [Line(start=t, end=t + 5, text=str(t)) for t in range(0, 300, 10)]
    evidence = [Span(42, 46), Span(200, 200)]
    found = shown("evidence", evidence, frames=0, fps=1.0, least=2)
    assert found.times == (42.5, 43.5, 44.5, 45.5, 200.0)  # type: ignore[attr-defined]
    assert [x.text for x in lines_within(lines, found.spans)] == ["40"]  # type: ignore[attr-defined]
    assert shown("one_frame", evidence).times == (160.0,)  # type: ignore[attr-defined]
    assert shown("blind", evidence).times == ()  # type: ignore[attr-defined]
    assert not Condition(condition="transcript", frames=8).looks
    assert Condition(condition="frames", frames=8, transcript=True).listens is False


@given(spans, st.integers(1, 50))
def test_frames_are_spread_over_the_spans_in_order(some: list[Span], count: int) -> None:
    cuts = merge_spans(some, VIDEO)
    assume(cuts and sum(s.seconds for s in cuts) > 0)
    found = spread(cuts, count)
    assert len(found) == count
    assert list(found) == sorted(found)
    assert all(inside(t, cuts) for t in found)


@given(st.integers(1, 40), st.floats(0, 1))
def test_frames_at_other_offsets_stay_in_their_intervals(count: int, at: float) -> None:
    video = (Span(0.0, 30.0), Span(50.0, 60.0))
    for number, time in enumerate(spread(video, count, at)):
        offset = time if time <= 30 else time - 20
        assert number * 40 / count - 1e-6 <= offset <= (number + 1) * 40 / count + 1e-6


@given(spans, st.lists(st.integers(11, 309), unique=True, max_size=6))
def test_cuts_contain_the_evidence_and_whole_shots(
    evidence: list[Span], borders: list[int]
) -> None:
    edges = [VIDEO.start, *sorted(borders), VIDEO.end]
    shots = [Span(a, b) for a, b in pairwise(edges)]
    near = whole_shots(evidence, (), VIDEO)
    cuts = whole_shots(evidence, shots, VIDEO)
    assert (
        merge_spans((*near, *cuts), VIDEO) == cuts
    )  # never less than the evidence and its borders
    assert cuts == merge_spans(cuts, VIDEO)
    if cuts != near:
        assert sum(s.seconds for s in cuts) <= 0.4 * VIDEO.seconds
        for shot in shots:
            shared = sum(
                max(0.0, min(s.end, shot.end) - max(s.start, shot.start))
                for s in merge_spans(evidence, VIDEO)
            )
            whole = any(c.start <= shot.start and shot.end <= c.end for c in cuts)
            assert whole or shared < 4 * 1.0  # of four spans each may lap over by a second


def test_cuts_take_two_seconds_on_both_sides() -> None:
    assert whole_shots([Span(50.0, 60.0)], (), VIDEO) == (Span(48.0, 62.0),)
    assert whole_shots([Span(10.5, 20.0)], (), VIDEO) == (Span(10.0, 22.0),)


pauses = st.floats(0, 3).map(lambda x: round(x, 2))


@st.composite
def spoken(draw: st.DrawFn) -> Line:
    """A line whose words, from w0, have times of their own."""
    time, words = draw(times), list[Word]()
    for number in range(draw(st.integers(1, 12))):
        start = time + draw(pauses)
        time = start + draw(pauses)
        words.append(Word(start, time, f"w{number}", 1.0))
    text = " ".join(word.word for word in words)
    return Line(start=words[0].start, end=time, text=text, words=tuple(words))


def words_left(line: Line, cuts: Sequence[Span]) -> list[str]:
    left = lines_within([line], [Span(-1e9, 1e9)], cuts)
    for piece in left:
        assert piece.start <= piece.end
        assert not line.words or piece.text == " ".join(word.word for word in piece.words)
    return [word for piece in left for word in piece.text.split()]


@given(spoken(), spans)
def test_no_word_that_overlaps_a_cut_survives_and_all_others_do(
    line: Line, some: list[Span]
) -> None:
    cuts = [cut for cut in merge_spans(some, VIDEO) if cut.seconds]
    gone = [any(w.start < c.end and w.end > c.start for c in cuts) for w in line.words]
    expected = [w.word for w, cut in zip(line.words, gone, strict=True) if not cut]
    assert words_left(line, cuts) == expected
    for piece in lines_within([line], [Span(-1e9, 1e9)], cuts):
        assert not any(piece.start < c.end and piece.end > c.start for c in cuts)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    times,
    st.floats(0.5, 30).map(lambda x: round(x, 2)),
    spans,
)
def test_words_without_times_are_cut_as_if_spoken_evenly(
    lengths: list[int], start: float, seconds: float, some: list[Span]
) -> None:
    """The time of a word is its share of the letters, uncertain by half a second."""
    cuts = [cut for cut in merge_spans(some, VIDEO) if cut.seconds]
    words = [chr(97 + number) * length for number, length in enumerate(lengths)]
    line = Line(start=start, end=start + seconds, text=" ".join(words))
    near = [c for c in cuts if line.start < c.end and line.end > c.start]
    letters = sum(lengths) + len(lengths)
    expected, before = list[str](), 0
    for word in words:
        a, b = (start + seconds * n / letters for n in (before, before + len(word) + 1))
        before += len(word) + 1
        edges = [abs(x - y) for c in near for x, y in ((a, c.end + 0.5), (b, c.start - 0.5))]
        assume(all(edge > 1e-6 for edge in edges))
        if not any(a < c.end + 0.5 and b > c.start - 0.5 for c in near):
            expected.append(word)
    assert words_left(line, cuts) == expected


def test_a_line_outside_of_the_cuts_is_unchanged() -> None:
    lines = [Line(start=t, end=t + 5, text=f"{t} o'clock") for t in (30, 38, 50, 58, 66)]
    rest = plan(Condition(condition="without_evidence", frames=4), VIDEO, [Span(40, 60)])
    assert rest is not None
    assert rest.cuts == (Span(40, 60),)
    left = lines_within(lines, rest.spans, rest.cuts)
    assert [x.text for x in left] == ["30 o'clock", "38", "66 o'clock"]
    assert (left[0], left[-1]) == (lines[0], lines[-1])


def test_a_word_whose_time_is_estimated_needs_half_a_second_to_a_cut() -> None:
    line = Line(start=30.0, end=40.0, text="aaaa bbbb")
    assert words_left(line, [Span(35.3, 60.0)]) == []
    assert words_left(line, [Span(35.6, 60.0)]) == ["aaaa"]
