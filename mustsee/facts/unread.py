"""Several requests of one step, of which some cannot be read."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow

T = TypeVar("T")


@dataclass(frozen=True)
class StepTally:
    """What the steps on a video count: its `requests`, and by `add` other counts of `run.json`."""

    requests: RequestTally
    add: Callable[[str, int], None]


async def gather_readable(
    requests: Sequence[Awaitable[T]], tally: StepTally, what: str, *, may_lack: bool = False
) -> list[T | None]:
    """Return the results of requests in their order, null for each whose replies could not be
    parsed, and count them as requests for `what`. Raises BadRow if all of them are so, unless the
    step `may_lack` them, and any other exception as it is.
    """
    results = await gather(*requests, return_exceptions=True)
    unread = [result for result in results if isinstance(result, BadRow)]
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, BadRow):
            raise result
    tally.requests.add_sent(what, len(results))
    if unread:
        tally.requests.add_unread(what, unread[-1], len(unread))
    if unread and len(unread) == len(results) and not may_lack:
        raise unread[-1]
    return [None if isinstance(result, BaseException) else result for result in results]
