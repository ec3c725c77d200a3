"""Certificates of questions whose needed span is known by construction, and retrieval of clips."""

import asyncio
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.evaluate.certificate import Answers, Certificate, Steps, certify, summarise
from mustsee.evaluate.rag import retrieve, times, windows
from mustsee.records import Question, Span

STEPS = Steps(shortest=1.0, growth=1.5, rates=(0.5, 1.0, 2.0))


def ask(name: str = "q") -> Question:
    return Question(question_id=name, video_id=name, recipe="r", question="?", question_type="t",
                    options=("a", "b"), answer_index=0, answer="a")  # fmt: skip


def needs(seconds: float, fps: float) -> Answers:
    """Right exactly when the clip is long enough and dense enough."""

    async def answers(_: Question, span: Span, rate: float, seed: int) -> bool | None:
        return span.seconds >= seconds - 1e-9 and rate >= fps - 1e-9

    return answers


def run(answers: Answers, duration: float, steps: Steps = STEPS) -> Certificate:
    return asyncio.run(certify(ask(), duration, answers, steps))


@given(st.floats(20, 600), st.floats(0.02, 0.9), st.sampled_from([0.5, 1.0, 2.0]))
def test_a_known_span_is_found_within_one_step(duration: float, share: float, fps: float) -> None:
    needed = share * duration
    # Rates of short clips are rounded to whole frames, so the demand allows for that rounding.
    steps = Steps(shortest=1.0, growth=1.5, rates=(0.5, 1.0, 2.0), most_frames=10_000)
    found = run(needs(needed, fps * 0.7), duration, steps)
    assert found.clip is not None
    assert needed <= found.clip.span.seconds + 1e-6
    assert (
        found.clip.span.seconds <= max(steps.shortest, min(duration, needed * steps.growth)) + 1e-6
    )
    assert found.clip.frames <= max(2, np.ceil(needed * steps.growth * fps) + 1)
    assert (found.clip.span.start + found.clip.span.end) / 2 == pytest.approx(duration / 2)


@given(st.floats(0.5, 4000))
def test_clips_grow_stay_inside_and_end_with_the_whole(duration: float) -> None:
    clips = STEPS.clips(duration)
    assert [c.frames for c in clips] == sorted(c.frames for c in clips)
    assert all(0 <= c.span.start <= c.span.end <= duration + 1e-9 for c in clips)
    assert STEPS.lengths(duration)[-1] == duration
    assert all(c.frames <= STEPS.most_frames for c in clips)


def test_one_verifier_that_disagrees_sends_the_driver_on() -> None:
    lucky = {(1.0, 0)}

    async def answers(_: Question, span: Span, fps: float, seed: int) -> bool | None:
        return span.seconds >= 8 or (round(span.seconds, 3), seed) in lucky

    found = run(answers, 60.0)
    assert found.clip is not None
    assert found.clip.span.seconds >= 8
    assert found.tries[0][1] is False


def test_a_question_without_a_certificate_and_calls_that_fail() -> None:
    async def never(_: Question, span: Span, fps: float, seed: int) -> bool | None:
        return None if span.seconds < 3 else False

    found = run(never, 30.0)
    assert found.clip is None
    assert found.effort is None
    assert found.unanswered > 0
    assert found.calls == len(found.tries)


def test_effort_is_most_wrong_over_fewest_right() -> None:
    found = run(needs(5.0, 0.0), 60.0)
    assert found.clip is not None
    wrong = [clip.frames for clip, right in found.tries if right is False]
    assert found.effort == max(wrong) / found.clip.frames
    first = run(needs(0.0, 0.0), 60.0)
    assert first.effort == 0


def test_summary_counts_what_has_no_certificate() -> None:
    rng = random.Random(0)
    found = [run(needs(rng.uniform(2, 30), 0.0), 60.0) for _ in range(12)]
    found += [run(needs(100.0, 0.0), 60.0)]
    summary = summarise([
        Certificate(**{**vars(c), "video_id": str(i)}) for i, c in enumerate(found)
    ])  # fmt: skip
    assert (summary.questions, summary.without) == (13, 1)
    assert set(summary.means) == {"frames", "seconds", "effort"}
    assert summarise([]).means == {}


def test_clips_may_grow_from_elsewhere_and_nonsense_is_refused() -> None:
    clips = STEPS.clips(100.0, middle=2.0)
    assert all(c.span.start >= 0 for c in clips)
    with pytest.raises(UserError, match="growth"):
        Steps(growth=1.0)
    with pytest.raises(ValueError, match="duration"):
        run(needs(1.0, 0.0), 0.0)


def test_retrieval_finds_the_clips_that_the_question_is_about() -> None:
    spans = windows(100.0, 10.0)
    rng = np.random.default_rng(0)
    pictures = rng.normal(size=(10, 4, 32)).astype(np.float32) * 0.2
    question = rng.normal(size=32).astype(np.float32)
    pictures[7] += question
    pictures[2] += 0.5 * question
    found = retrieve(spans, pictures, question, 2)
    assert [c.span.start for c in found] == [20.0, 70.0]
    assert found[1].score > found[0].score
    assert len(times(found[0].span, 4)) == 4
    assert len(retrieve(spans, pictures, question, 99)) == 10


@given(st.floats(1, 5000), st.floats(0.5, 100))
def test_windows_cover_the_video(duration: float, seconds: float) -> None:
    spans = windows(duration, seconds)
    assert spans[0].start == 0
    assert spans[-1].end == pytest.approx(duration)
    assert all(a.end == b.start for a, b in pairwise(spans))
