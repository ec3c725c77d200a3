"""The fewest pictures from which a question can be answered, so that "long" is proven, not claimed.

By bisection over the number of pictures, spread over the whole film or over the evidence: the
looker, with what is said there, must be right in all of two looks with the options in other
orders, and must not be so without any picture. Bisection takes for granted that more pictures never
show less. A short moment may take many pictures to be hit; so those before and after what is needed
are then left out, and the seconds count from the first picture that is needed to the last.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from mustsee.conditions.seen import Plan, Seen, plan
from mustsee.filters.looks import Eye
from mustsee.records import Span

LOOKS = 2  # that must all be right
UNREAD = 2  # replies that cannot be read, for which others are asked


@dataclass(frozen=True, kw_only=True)
class Fewest:
    """`frames`: how many pictures suffice, 0 where none are needed. `seconds`: of film from the
    first of them that is needed to the last.
    """

    frames: int
    seconds: float


async def fewest(eye: Eye, see: Seen, evidence: Sequence[Span] = ()) -> Fewest | None:
    """The fewest of at most `see.most` pictures; null where all of them do not suffice."""

    def spread(count: int) -> Plan:
        found = plan(replace(see, fps=None, frames=count), eye.film, evidence)
        assert found is not None  # neither the film nor its evidence is empty
        return found

    async def suffice(count: int) -> bool:
        return await _right(eye, see, spread(count))

    if not await suffice(see.most):
        return None
    if await suffice(0):
        return Fewest(frames=0, seconds=0.0)
    frames = await _least(suffice, see.most)
    shown = spread(frames)
    times = shown.times

    async def from_last(count: int) -> bool:
        return await _right(eye, see, replace(shown, times=times[len(times) - count :]))

    times = times[len(times) - await _least(from_last, len(times)) :]

    async def from_first(count: int) -> bool:
        return await _right(eye, see, replace(shown, times=times[:count]))

    times = times[: await _least(from_first, len(times))]
    return Fewest(frames=frames, seconds=max(times) - min(times))


async def _least(suffices: Callable[[int], Awaitable[bool]], enough: int) -> int:
    """The least number that suffices, of those above 0 and up to one that does."""
    too_few = 0
    while enough - too_few > 1:
        count = (enough + too_few) // 2
        if await suffices(count):
            enough = count
        else:
            too_few = count
    return enough


async def _right(eye: Eye, see: Seen, planned: Plan) -> bool:
    """Whether every look at the plan's pictures is right."""
    images = await eye.pictures(planned.times, see)
    right = unread = 0
    while right < LOOKS:
        look = await eye.look(planned, images, see, right + unread)
        eye.verdicts.append(look.verdict)
        if look.choice is None and unread < UNREAD:
            unread += 1
        elif look.choice != eye.answer:
            return False
        else:
            right += 1
    return True
