"""The fewest frames from which a question can be answered: a measure of how long its evidence is.

A ladder is a sequence of plans, each of which shows more than the one before. Bisection finds the
lowest rung on which the verifier is right in all of several looks, each with its own order of the
options and with "it is undecidable" among them. It assumes that a model that is shown more does not
know less. First the verifier must fail without the video; otherwise no frame is needed.

`sight` searches frames spread over the video and over the evidence, `ray_jobs.certificate` clips
that grow from the middle (`mustsee.evaluate.certificate.CertificateSteps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mustsee.records import Span
from mustsee.verify.conditions.seen import Condition, FramePlan, common, plan
from mustsee.verify.looks import VerifierSession

REQUIRED_LOOKS = 2  # looks at a rung, all of which must be right
MAX_UNPARSED_LOOKS = 2  # unparseable replies on a rung that are replaced by another look
BLIND = FramePlan(spans=())


@dataclass(frozen=True, kw_only=True)
class FewestFound:
    """The result of a search.

    `plan`: the smallest plan that suffices; `BLIND` if the video is not needed, None if no plan
    suffices. `failed`: the largest number of frames of a smaller plan that failed.
    """

    plan: FramePlan | None
    failed: int = 0

    @property
    def seconds(self) -> float:
        """Seconds from the first frame to the last."""
        times = self.plan.times if self.plan else ()
        return max(times) - min(times) if times else 0.0


async def fewest(
    session: VerifierSession,
    see: Condition,
    ladders: Sequence[Sequence[FramePlan]],
    looks: int = REQUIRED_LOOKS,
    *,
    in_turn: bool = False,
) -> FewestFound:
    """Find the rung with the fewest frames, and then the fewest seconds, on which all of `looks`
    looks are right. `in_turn`: try all rungs from the smallest, and not each ladder by bisection.
    """
    if await _all_right(session, replace(see, condition="blind"), BLIND, looks):
        return FewestFound(plan=BLIND)
    best: FramePlan | None = None
    failed: list[FramePlan] = []
    if in_turn:
        for rung in sorted((rung for ladder in ladders for rung in ladder), key=_size):
            if await _all_right(session, see, rung, looks):
                best = rung
                break
            failed.append(rung)
        return FewestFound(plan=best, failed=max((len(x.times) for x in failed), default=0))
    for ladder in ladders:
        rungs = [rung for rung in ladder if best is None or _size(rung) < _size(best)]
        place, wrong = await _lowest(session, see, rungs, looks)
        failed += [rungs[i] for i in wrong]
        best = best if place is None else rungs[place]
    below = [len(x.times) for x in failed if best is None or _size(x) < _size(best)]
    return FewestFound(plan=best, failed=max(below, default=0))


def spread_rungs(
    see: Condition, video: Span, evidence: Sequence[Span] = ()
) -> tuple[FramePlan, ...]:
    """Return the ladder of 1 to `see.most` frames, spread over the spans that `see` shows."""
    plans = (
        plan(replace(see, fps=None, frames=count), video, evidence)
        for count in range(1, see.most + 1)
    )
    return tuple(rung for rung in plans if rung is not None)


async def trim_frames(session: VerifierSession, see: Condition, planned: FramePlan) -> FewestFound:
    """Leave out the frames before and after those that are needed, with their transcript lines: it
    may take many evenly spread frames to hit a short event.
    """
    gap = sum(s.seconds for s in planned.spans) / max(1, len(planned.times))
    for shorten in (_last_frames, _first_frames):
        rungs = [shorten(planned, count, gap) for count in range(1, len(planned.times) + 1)]
        place, _ = await _lowest(session, see, rungs[:-1], REQUIRED_LOOKS)
        planned = rungs[-1] if place is None else rungs[place]
    return FewestFound(plan=planned)


def _last_frames(planned: FramePlan, count: int, gap: float) -> FramePlan:
    times = planned.times[len(planned.times) - count :]
    return _within(planned, times, Span(times[0] - gap / 2, planned.spans[-1].end))


def _first_frames(planned: FramePlan, count: int, gap: float) -> FramePlan:
    times = planned.times[:count]
    return _within(planned, times, Span(planned.spans[0].start, times[-1] + gap / 2))


def _within(planned: FramePlan, times: tuple[float, ...], span: Span) -> FramePlan:
    return replace(planned, times=times, spans=common(planned.spans, (span,)))


async def _lowest(
    session: VerifierSession, see: Condition, rungs: Sequence[FramePlan], looks: int
) -> tuple[int | None, list[int]]:
    """Return the index of the lowest rung that suffices, or None, and the indices that failed."""
    wrong: list[int] = []

    async def suffices(place: int) -> bool:
        right = await _all_right(session, see, rungs[place], looks)
        if not right:
            wrong.append(place)
        return right

    too_few, enough = -1, len(rungs) - 1
    if not rungs or not await suffices(enough):
        return None, wrong
    while enough - too_few > 1:
        place = (enough + too_few) // 2
        too_few, enough = (too_few, place) if await suffices(place) else (place, enough)
    return enough, wrong


def _size(rung: FramePlan) -> tuple[float, float]:
    return float(len(rung.times)), sum(s.seconds for s in rung.spans)


async def _all_right(
    session: VerifierSession, see: Condition, planned: FramePlan, looks: int
) -> bool:
    """Whether all of `looks` looks at the plan's frames are right."""
    right = unparsed = 0
    while right < looks:
        look = await session.look(planned, see, right + unparsed)
        if look.choice is None and unparsed < MAX_UNPARSED_LOOKS:
            unparsed += 1
        elif look.choice != session.answer:
            return False
        else:
            right += 1
    return True
