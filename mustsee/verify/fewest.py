"""The fewest pictures from which a question can be answered, so that "long" is proven, not claimed.

A ladder is a row of plans, each of which shows more than the one before. On each the lowest rung is
sought, by bisection, from which the verifier is right in all of some looks, with the options in
other orders and "it cannot be told" among them. First it must fail with nothing of the video at
all: else no picture is needed. Bisection takes for granted that who is shown more does not know
less.

`sight` asks this of pictures spread over the video and over the evidence, `ray_jobs.certificate` of
clips that grow from the middle (`mustsee.evaluate.certificate.CertificateSteps`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from mustsee.records import Span
from mustsee.verify.conditions.seen import Condition, FramePlan, common, plan
from mustsee.verify.looks import VerifierSession

REQUIRED_LOOKS = 2  # that must all be right
MAX_UNPARSED_LOOKS = 2  # replies that cannot be read, for which others are asked
BLIND = FramePlan(spans=())


@dataclass(frozen=True, kw_only=True)
class FewestFound:
    """`shown`: the least that suffices, `BLIND` where nothing of the video is needed, null where
    not even the most does. `failed`: the most pictures of a lesser rung that did not do.
    """

    shown: FramePlan | None
    failed: int = 0

    @property
    def seconds(self) -> float:
        """Of video, from the first picture to the last."""
        times = self.shown.times if self.shown else ()
        return max(times) - min(times) if times else 0.0


async def fewest(
    session: VerifierSession,
    see: Condition,
    ladders: Sequence[Sequence[FramePlan]],
    looks: int = REQUIRED_LOOKS,
) -> FewestFound:
    """The rung with the fewest pictures, of those the one that shows least of the video, from which
    all of `looks` looks are right.
    """
    if await _right(session, replace(see, condition="blind"), BLIND, looks):
        return FewestFound(shown=BLIND)
    best: FramePlan | None = None
    failed: list[FramePlan] = []
    for ladder in ladders:
        rungs = [rung for rung in ladder if best is None or _size(rung) < _size(best)]
        place, wrong = await _lowest(session, see, rungs, looks)
        failed += [rungs[i] for i in wrong]
        best = best if place is None else rungs[place]
    below = [len(x.times) for x in failed if best is None or _size(x) < _size(best)]
    return FewestFound(shown=best, failed=max(below, default=0))


def spread_rungs(
    see: Condition, video: Span, evidence: Sequence[Span] = ()
) -> tuple[FramePlan, ...]:
    """One to `see.most` pictures, spread over what `see` shows."""
    plans = (
        plan(replace(see, fps=None, frames=count), video, evidence)
        for count in range(1, see.most + 1)
    )
    return tuple(rung for rung in plans if rung is not None)


async def trim_frames(session: VerifierSession, see: Condition, shown: FramePlan) -> FewestFound:
    """A short moment may take many pictures to be hit: those before and after what is needed are
    left out, and what is said beside them.
    """
    gap = sum(s.seconds for s in shown.spans) / max(1, len(shown.times))
    for part in (_from, _until):
        rungs = [part(shown, count, gap) for count in range(1, len(shown.times) + 1)]
        place, _ = await _lowest(session, see, rungs[:-1], REQUIRED_LOOKS)
        shown = rungs[-1] if place is None else rungs[place]
    return FewestFound(shown=shown)


def _from(shown: FramePlan, count: int, gap: float) -> FramePlan:
    """Its last pictures."""
    times = shown.times[len(shown.times) - count :]
    return _within(shown, times, Span(times[0] - gap / 2, shown.spans[-1].end))


def _until(shown: FramePlan, count: int, gap: float) -> FramePlan:
    """Its first pictures."""
    times = shown.times[:count]
    return _within(shown, times, Span(shown.spans[0].start, times[-1] + gap / 2))


def _within(shown: FramePlan, times: tuple[float, ...], part: Span) -> FramePlan:
    return replace(shown, times=times, spans=common(shown.spans, (part,)))


async def _lowest(
    session: VerifierSession, see: Condition, rungs: Sequence[FramePlan], looks: int
) -> tuple[int | None, list[int]]:
    """The place of the lowest rung that suffices, or null; and the places of those that were tried
    below it.
    """
    wrong: list[int] = []

    async def suffices(place: int) -> bool:
        right = await _right(session, see, rungs[place], looks)
        if not right:
            wrong.append(place)
        return right

    if not rungs or not await suffices(len(rungs) - 1):
        return None, wrong
    return await _bisected(suffices, len(rungs) - 1), wrong


async def _bisected(suffices: Callable[[int], Awaitable[bool]], enough: int) -> int:
    """The least place that suffices, of those from 0 up to one that does."""
    too_few = -1
    while enough - too_few > 1:
        place = (enough + too_few) // 2
        if await suffices(place):
            enough = place
        else:
            too_few = place
    return enough


def _size(rung: FramePlan) -> tuple[float, float]:
    return float(len(rung.times)), sum(s.seconds for s in rung.spans)


async def _right(session: VerifierSession, see: Condition, planned: FramePlan, looks: int) -> bool:
    """Whether every look at the plan's pictures is right."""
    images = await session.pictures(planned.times, see)
    right = unread = 0
    while right < looks:
        look = await session.look(planned, (images, ()), see, right + unread)
        session.record((look,))
        if look.choice is None and unread < MAX_UNPARSED_LOOKS:
            unread += 1
        elif look.choice != session.answer:
            return False
        else:
            right += 1
    return True
