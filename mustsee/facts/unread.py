"""Several requests of one step, of which some cannot be read."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from mustsee.errors import BadRow

T = TypeVar("T")


async def gather_readable(
    requests: Sequence[Awaitable[T]], count: Callable[[str, int], None], name: str
) -> list[T | None]:
    """Return the results of requests in their order, null for each whose replies could not be
    parsed, and add the number of these to the count `name`. Raises BadRow if all of them are so,
    and any other exception as it is.
    """
    results = await gather(*requests, return_exceptions=True)
    unread = [result for result in results if isinstance(result, BadRow)]
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, BadRow):
            raise result
    count(name, len(unread))
    if unread and len(unread) == len(results):
        raise unread[-1]
    return [None if isinstance(result, BaseException) else result for result in results]
