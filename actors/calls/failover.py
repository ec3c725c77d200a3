"""Failover between accounts: when the first does not answer, the next is asked.

`llm.fallback=[{model: M, base_url: U}]`: each call goes to the first account that is not suspended.
An account is suspended for a while when it has been silent for `patience`, has no credit left, or
refuses its key. A single call that fails for good goes to the next account, too. A fallback's reply
is stored under its own key, paid for at its price, and marked with its identity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from mustsee.calls.llm import Llm, Reply, Request
from mustsee.errors import KeyRefused, MustseeError, NoAnswer, NoCredit, Transient

RETRY_ACCOUNT_AFTER_S = 60.0  # seconds for which an account is suspended
ACCOUNT_ERRORS = (NoAnswer, NoCredit, KeyRefused)


class FailoverRoute(Llm, Protocol):
    """One account, through its gateway."""

    async def stored_reply(self, request: Request) -> Reply | None:
        """The stored reply, if there is one."""
        ...


class Failover:
    """An `Llm` over several accounts, in the order of preference."""

    def __init__(
        self, routes: Sequence[FailoverRoute], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._routes, self._clock = routes, clock
        self._suspended: dict[str, tuple[float, str]] = {}  # identity -> until when, and why

    @property
    def identity(self) -> str:
        return self._routes[0].identity

    async def complete(self, request: Request) -> Reply:
        """As `Llm.complete`. Raises MustseeError, which ends the run, if all are suspended."""
        for route in self._routes:
            if await route.stored_reply(request) is not None:
                return self._mark(route, await route.complete(request))
        failed: Exception | None = None
        for route in self._routes:
            if self._suspended.get(route.identity, (0.0, ""))[0] > self._clock():
                continue
            try:
                reply = await route.complete(request)
            except ACCOUNT_ERRORS as error:
                until = self._clock() + RETRY_ACCOUNT_AFTER_S
                self._suspended[route.identity] = until, str(error)
            except Transient as error:
                failed = error
            else:
                self._suspended.pop(route.identity, None)
                return self._mark(route, reply)
        if failed is not None:
            raise failed
        reasons = "; ".join(f"{who}: {why}" for who, (_, why) in self._suspended.items())
        raise MustseeError(
            f"none of the {len(self._routes)} accounts of llm and llm.fallback answers "
            f"({reasons}); what is finished is kept: run the same command again when one does"
        )

    def _mark(self, route: FailoverRoute, reply: Reply) -> Reply:
        return reply if route is self._routes[0] else replace(reply, by=route.identity)
