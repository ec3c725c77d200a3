"""The fewest frames: bisection finds the same rung as trying all of them."""

import asyncio
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from mustsee.evaluate.certificate import CertificateSteps
from mustsee.records import Span, Verdict
from mustsee.verify.conditions.seen import Condition, FramePlan, spread
from mustsee.verify.fewest import BLIND, fewest
from mustsee.verify.look_replies import CANNOT
from mustsee.verify.looks import LookReply, VerifierSession

SEE = Condition(condition="evidence", fps=1.0)


class Needs:
    """A model that is right exactly where a clip is long and dense enough."""

    answer = 3

    def __init__(self, seconds: float, fps: float) -> None:
        self.seconds, self.fps = seconds, fps
        self.asked: list[FramePlan] = []

    async def look(self, planned: FramePlan, see: Condition, number: int) -> LookReply:
        self.asked.append(planned)
        right = self.right(planned)
        return LookReply(choice=3 if right else CANNOT, verdict=Verdict(filter="", model=""))

    def right(self, planned: FramePlan) -> bool:
        seconds = sum(s.seconds for s in planned.spans)
        return seconds >= self.seconds and len(planned.times) >= self.fps * seconds


def ladders(video: Span, steps: CertificateSteps) -> list[list[FramePlan]]:
    return [
        [FramePlan(spans=(c.span,), times=spread((c.span,), c.frames)) for c in clips]
        for clips in steps.ladders(video)
    ]


@given(st.floats(20, 600), st.floats(0.02, 1.2), st.sampled_from([0.2, 0.45, 0.9, 1.8]))
def test_the_smallest_clip_is_found_in_a_few_looks(
    seconds: float, share: float, fps: float
) -> None:
    """Rates are rounded to whole frames, so that what suffices at one is not always monotone: what
    is found suffices, and no clip with fewer frames at a rate that is dense enough throughout does.
    """
    video, steps = Span(5.0, 5.0 + seconds), CertificateSteps(most_frames=10_000)
    session, rungs = Needs(share * seconds, fps), ladders(video, steps)
    found = asyncio.run(fewest(cast(VerifierSession, cast(Any, session)), SEE, rungs, 1))
    dense = [ladder for ladder, rate in zip(rungs, steps.rates, strict=True) if rate > 2 * fps]
    every = [rung for ladder in dense for rung in ladder if session.right(rung)]
    assert session.asked[0] == BLIND
    assert len(session.asked) <= 1 + sum(2 + len(ladder).bit_length() for ladder in rungs)
    if found.plan is None:
        assert not every
        return
    assert session.right(found.plan)
    assert not every or len(found.plan.times) <= min(len(rung.times) for rung in every)
    assert found.failed <= len(found.plan.times)


def test_the_search_stops_if_no_video_is_needed() -> None:
    session = Needs(0.0, 0.0)
    found = asyncio.run(
        fewest(
            cast(VerifierSession, cast(Any, session)),
            SEE,
            ladders(Span(0, 60), CertificateSteps()),
            3,
        )
    )
    assert (found.plan, found.seconds, session.asked) == (BLIND, 0.0, [BLIND] * 3)
