"""Several accounts for one model's place: where the first gives no more answers, the next is asked.

`llm.fallback=[{model: M, base_url: U}]`: each call goes to the first that is not known to be out of
order. An account is out of order for a while when it has answered nothing for `patience`, has no
credit left, or refuses its key; a single call that fails for good goes on to the next as well. A
reply is the fallback's: stored under its key, paid for at its price, and marked with its identity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from mustsee.calls.llm import Llm, Reply, Request
from mustsee.errors import KeyRefused, MustseeError, NoAnswer, NoCredit, Transient

RETRY_ACCOUNT_AFTER_S = 60.0  # seconds after which an account that was out of order is asked again
ACCOUNT_ERRORS = (NoAnswer, NoCredit, KeyRefused)


class FailoverRoute(Llm, Protocol):
    async def stored_reply(self, request: Request) -> Reply | None:
        """The reply that was kept, if there is one."""
        ...


class Failover:
    """An `Llm` over several, in the order in which they are preferred."""

    def __init__(
        self, ways: Sequence[FailoverRoute], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ways, self._clock = ways, clock
        self._out: dict[str, tuple[float, str]] = {}  # identity -> until when, and why

    @property
    def identity(self) -> str:
        return self._ways[0].identity

    async def complete(self, request: Request) -> Reply:
        """As `Llm.complete`. Raises MustseeError when all are out of order: it ends the run."""
        for way in self._ways:
            if await way.stored_reply(request) is not None:
                return self._marked(way, await way.complete(request))
        failed: Exception | None = None
        for way in self._ways:
            if self._out.get(way.identity, (0.0, ""))[0] > self._clock():
                continue
            try:
                reply = await way.complete(request)
            except ACCOUNT_ERRORS as error:
                self._out[way.identity] = self._clock() + RETRY_ACCOUNT_AFTER_S, str(error)
            except Transient as error:
                failed = error
            else:
                self._out.pop(way.identity, None)
                return self._marked(way, reply)
        if failed is not None:
            raise failed
        reasons = "; ".join(f"{who}: {why}" for who, (_, why) in self._out.items())
        raise MustseeError(
            f"none of the {len(self._ways)} accounts of llm and llm.fallback answers ({reasons}); "
            "what is finished is kept: run the same command again when one of them does"
        )

    def _marked(self, way: FailoverRoute, reply: Reply) -> Reply:
        return reply if way is self._ways[0] else replace(reply, by=way.identity)
