"""What the gateway does where an endpoint answers late, or not at all.

`ReplyWaits`: an endpoint that answers after the timeout has done the work and bills it. So a call
that timed out is made again with a longer wait, and so are all calls of its prompt after some
timeouts in a row, or once an answer has shown that it needed the longer wait. A prompt that was
never answered waits as long as the slowest other one.

`Failover`: with `llm.fallback=[{model: M, base_url: U}]` each call goes to the first account that
is not suspended. An account is suspended for a while when it has been silent for `patience`, has no
credit left, or refuses its key. A single call that fails for good goes to the next account, too. A
fallback's reply is stored under its own key, paid for at its price, and marked with its identity.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from mustsee.calls.llm import Llm, Reply, Request
from mustsee.errors import KeyRefused, MustseeError, NoAnswer, NoCredit, Transient

RETRY_ACCOUNT_AFTER_S = 60.0  # seconds for which an account is suspended
ACCOUNT_ERRORS = (NoAnswer, NoCredit, KeyRefused)
# Timeouts of a prompt without an answer in between, before its other calls wait longer.
IN_A_ROW = 2
FACTORS = (1, 3, 8)  # multiples of the timeout


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


class ReplyWaits:
    """The waits of one model's calls by prompt; `timeout`: seconds of the first."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._steps: dict[str, int] = {}  # prompt -> index of its factor
        self._in_a_row = Counter[str]()

    def lengthen(self, request: Request, timeouts: int) -> Request:
        """Return a request that has timed out `timeouts` times with its wait, if that is not the
        usual one.
        """
        step = min(max(self._step(request.prompt), timeouts), len(FACTORS) - 1)
        return replace(request, wait=self._timeout * FACTORS[step]) if step else request

    def seconds(self, prompt: str) -> float:
        """Return the wait for a new call."""
        return self._timeout * FACTORS[self._step(prompt)]

    def record_timeout(self, prompt: str, waited: float) -> None:
        """Note that a call got no answer within `waited` seconds (0: it failed otherwise)."""
        if waited < self.seconds(prompt):
            return  # sent before the wait was lengthened
        self._in_a_row[prompt] += 1
        if self._in_a_row[prompt] >= IN_A_ROW:
            self._lengthen(prompt)

    def record_answer(self, prompt: str, took: float) -> None:
        """Note that a call was answered after `took` seconds."""
        self._in_a_row[prompt] = 0
        self._steps.setdefault(prompt, 0)
        while took > self.seconds(prompt) and self._lengthen(prompt):
            pass

    def _step(self, prompt: str) -> int:
        return self._steps.get(prompt, max(self._steps.values(), default=0))

    def _lengthen(self, prompt: str) -> bool:
        """Take the next factor, if there is one."""
        before, self._in_a_row[prompt] = self._step(prompt), 0
        self._steps[prompt] = min(before + 1, len(FACTORS) - 1)
        return self._steps[prompt] > before
