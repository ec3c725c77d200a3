"""Counts the requests about one row by what they are for, and those without a readable reply.

A stage that goes on without a reply counts what it lost here, and returns the counts with the row
(`Video.requests`). The engine marks the stored result of such a row as incomplete, the summary
names the loss, and `retry_problems=true` computes the row again: replies that could be read come
from the store, so only the lost ones are paid.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

from mustsee.errors import BadRow
from mustsee.records import RequestCount

T = TypeVar("T")


class RequestTally:
    """The requests about one row."""

    def __init__(self) -> None:
        self._counts: dict[str, RequestCount] = {}

    def add_sent(self, what: str, number: int = 1) -> None:
        """Count requests for `what` that are made."""
        count = self._counts.get(what, RequestCount(what=what, sent=0))
        self._counts[what] = replace(count, sent=count.sent + number)

    def add_unread(self, what: str, error: Exception, number: int = 1) -> None:
        """Count requests for `what` without a readable reply, which are among those sent."""
        count = self._counts.get(what, RequestCount(what=what, sent=0))
        unread = count.unread + number
        self._counts[what] = replace(
            count, sent=max(count.sent, unread), unread=unread, error=str(error)
        )

    async def try_call(self, what: str, call: Awaitable[T]) -> T | None:
        """Await a call for `what`, which is counted; None where no reply could be read."""
        self.add_sent(what)
        try:
            return await call
        except BadRow as error:
            self.add_unread(what, error)
            return None

    def unread(self, what: str) -> int:
        """Return the number of requests for `what` without a readable reply."""
        return self._counts[what].unread if what in self._counts else 0

    @property
    def counts(self) -> tuple[RequestCount, ...]:
        """The counts, in the order of their first requests."""
        return tuple(self._counts.values())
