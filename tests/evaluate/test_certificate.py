"""Certificates of questions whose needed span is known by construction, and retrieval of clips."""

from itertools import pairwise
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.evaluate.certificate import Certificate, CertificateClip, CertificateSteps, summarise
from mustsee.evaluate.rag import retrieve, times, windows
from mustsee.records import Span
from mustsee.stats import Estimate


def certificate(name: str, clip: CertificateClip | None, most_wrong: int = 0) -> Certificate:
    return Certificate(question_id=name, video_id=name, duration=60.0, clip=clip,
                       most_wrong=most_wrong, calls=3, unanswered=0)  # fmt: skip


@given(st.floats(0.5, 4000), st.floats(0, 100))
def test_clips_grow_from_the_middle_stay_inside_and_end_with_the_whole(
    seconds: float, start: float
) -> None:
    video, steps = Span(start, start + seconds), CertificateSteps(most_frames=10_000)
    for rate, clips in zip(steps.rates, steps.ladders(video), strict=True):
        assert clips[-1].span.seconds == pytest.approx(video.seconds)
        for clip in clips:
            assert video.start - 1e-6 <= clip.span.start <= clip.span.end <= video.end + 1e-6
            middle = (clip.span.start + clip.span.end) / 2
            assert middle == pytest.approx((video.start + video.end) / 2)
            assert abs(clip.frames - max(1, clip.span.seconds * rate)) <= 0.5 + 1e-6
        for one, next_ in pairwise(clips):
            assert one.span.seconds < next_.span.seconds <= 1.5 * one.span.seconds + 1e-6
            assert one.frames <= next_.frames
    assert all(c.frames <= 256 for clips in CertificateSteps().ladders(video) for c in clips)


def test_effort_is_most_wrong_over_fewest_right() -> None:
    clip = CertificateClip(span=Span(38.0, 42.0), fps=1.0, frames=4)
    assert certificate("q", clip, 3).effort == 3 / 4
    assert certificate("q", None, 60).effort is None
    blind = CertificateClip(span=Span(10.0, 10.0), fps=0.0, frames=0)
    assert certificate("q", blind).effort is None


def test_the_summary_counts_questions_without_a_certificate_and_without_need_of_the_video() -> None:
    clips = [CertificateClip(span=Span(40 - n, 40 + n), fps=1.0, frames=2 * n) for n in (1, 2, 3)]
    blind = CertificateClip(span=Span(10.0, 10.0), fps=0.0, frames=0)
    found = [certificate(str(i), clip, 1) for i, clip in enumerate([*clips, blind, None])]
    summary = summarise(found)
    assert (summary.questions, summary.without, summary.blind) == (5, 1, 1)
    means = {name: cast(Estimate, mean).value for name, mean in summary.means.items()}
    assert means["frames"] == pytest.approx(3.0)
    assert means["effort"] == pytest.approx((1 / 2 + 1 / 4 + 1 / 6) / 3)
    assert summarise([]).means == {}


def test_settings_out_of_range_are_refused_by_certificates() -> None:
    with pytest.raises(UserError, match="growth"):
        CertificateSteps(growth=1.0)
    with pytest.raises(ValueError, match="above 0"):
        CertificateSteps().ladders(Span(3.0, 3.0))


def test_retrieval_finds_the_clips_nearest_to_the_question() -> None:
    spans = windows(100.0, 10.0)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(10, 4, 32)).astype(np.float32) * 0.2
    question = rng.normal(size=32).astype(np.float32)
    vectors[7] += question
    vectors[2] += 0.5 * question
    found = retrieve(spans, vectors, question, 2)
    assert [c.span.start for c in found] == [20.0, 70.0]
    assert found[1].score > found[0].score
    assert len(times(found[0].span, 4)) == 4
    assert len(retrieve(spans, vectors, question, 99)) == 10


@given(st.floats(1, 5000), st.floats(0.5, 100))
def test_windows_cover_the_video(duration: float, seconds: float) -> None:
    spans = windows(duration, seconds)
    assert spans[0].start == 0
    assert spans[-1].end == pytest.approx(duration)
    assert all(a.end == b.start for a, b in pairwise(spans))
