"""The desk: the one place in a cluster where model calls are let through and everything is counted.

It keeps the rate limits, the budget, the calls in flight (so that equal ones are made once), the
ledger, and the run's stage counters. It never waits and never sees a prompt or a picture: a gateway
asks in a few numbers, is told how long to wait, and waits by itself. The class runs as a Ray actor
(`start_desk`) and, for tests and single processes, as a plain object.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mustsee.run.ledger import Entry, Ledger
from mustsee.run.limits import Limits, Rates

SILENCE = 60.0  # seconds after which a gateway that says nothing counts as dead


@dataclass(frozen=True, kw_only=True)
class Ask:
    """May this call start? `tokens_out` is the most that the reply may have, `usd` the most that
    the call may cost.
    """

    key: str
    account: str
    prompt: str
    tokens_in: float = 0.0
    tokens_out: int = 0
    usd: float = 0.0


@dataclass(frozen=True)
class Grant:
    """`go`: start after `wait` seconds. `elsewhere`: an equal call is in flight, look in the store
    after `wait`. `hold`: calls in flight may use up the budget, ask again after `wait`. `spent`:
    the budget is reached.
    """

    answer: Literal["go", "elsewhere", "hold", "spent"]
    wait: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Flight:
    owner: str
    account: str
    tokens: float
    usd: float


class Desk:
    """Limits, budget, calls in flight, ledger, stage counters. All methods return at once."""

    def __init__(
        self,
        budget_usd: float | None = None,
        silence: float = SILENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget, self._silence, self._clock = budget_usd, silence, clock
        self._rates: dict[str, Rates] = {}
        self._flights: dict[str, _Flight] = {}
        self._reserved = 0.0
        self._seen: dict[str, float] = {}
        self._ledger = Ledger()
        self._stages: dict[str, dict[str, float]] = {}
        self._counts: dict[str, int] = {}
        self._aborted: tuple[str, str] | None = None

    def enroll(self, account: str, limits: Limits) -> None:
        """Make an account's limits known; other limits for a known account replace the old ones."""
        known = self._rates.get(account)
        if known is None or known.limits != limits:
            self._rates[account] = Rates(limits, self._clock())

    def exchange(self, owner: str, entries: Sequence[Entry], asks: Sequence[Ask]) -> list[Grant]:
        """Settle what ended, answer what wants to start: one message for many calls of one owner
        (an empty one is a sign of life).
        """
        now = self._clock()
        self._seen[owner] = now
        for entry in entries:
            self._settle(entry, owner, now)
        return [self._answer(ask, owner, now) for ask in asks]

    def _settle(self, entry: Entry, owner: str, now: float) -> None:
        self._ledger.add(entry)
        rates = self._rates.get(entry.account)
        if rates is not None and entry.outcome == "retry" and entry.retry_after is not None:
            rates.pause(entry.retry_after, now)
        flight = self._flights.get(entry.key)
        if flight is None or flight.owner != owner:
            return
        used = 0 if entry.outcome == "cached" else entry.tokens_in + entry.tokens_out
        self._land(entry.key, now, used=used)
        if entry.outcome == "retry":  # the call is still its owner's, but holds nothing meanwhile
            self._flights[entry.key] = _Flight(
                owner=owner, account=entry.account, tokens=0.0, usd=0.0
            )

    def _land(self, key: str, now: float, used: float) -> None:
        flight = self._flights.pop(key)
        self._reserved -= flight.usd
        if not self._flights:
            self._reserved = 0.0
        if flight.account in self._rates:
            self._rates[flight.account].refund(flight.tokens - used, now)

    def _answer(self, ask: Ask, owner: str, now: float) -> Grant:
        flight = self._flights.get(ask.key)
        if flight is not None and flight.owner != owner:
            if now - self._seen[flight.owner] < self._silence:
                return Grant("elsewhere", 0.25)
            self._bury(flight.owner, now)
        if self._budget is not None:
            spent = self._ledger.total.usd
            if spent >= self._budget or spent + ask.usd > self._budget + 1e-12:
                return Grant("spent")
            if spent + self._reserved + ask.usd > self._budget + 1e-12:
                self._bury_silent(now)
                return Grant("hold", 0.25)
        tokens = ask.tokens_in + self._ledger.expected_out(ask.prompt, ask.tokens_out)
        rates = self._rates.get(ask.account)
        wait = rates.reserve(tokens, now) if rates is not None else 0.0
        self._flights[ask.key] = _Flight(
            owner=owner, account=ask.account, tokens=tokens, usd=ask.usd
        )
        self._reserved += ask.usd
        return Grant("go", wait)

    def _bury(self, owner: str, now: float) -> None:
        """Forget the calls of a gateway that was killed. What the endpoint billed for them is not
        known, and not counted.
        """
        for key in [k for k, flight in self._flights.items() if flight.owner == owner]:
            self._land(key, now, used=0.0)
        self._seen.pop(owner, None)

    def _bury_silent(self, now: float) -> None:
        for owner in [o for o, seen in self._seen.items() if now - seen >= self._silence]:
            self._bury(owner, now)

    def event(self, stage: str, outcome: str, n: int = 1, seconds: float = 0.0) -> None:
        """Count rows of a stage: `outcome` is computed, reused, dropped, problem, ..."""
        counters = self._stages.setdefault(stage, {})
        counters[outcome] = counters.get(outcome, 0) + n
        counters["seconds"] = counters.get("seconds", 0.0) + seconds

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter of the run."""
        self._counts[name] = self._counts.get(name, 0) + n

    def abort(self, error: str, message: str) -> None:
        """Note why a worker ends the whole run. Ray hands a worker's error on as text only."""
        self._aborted = self._aborted or (error, message)

    def snapshot(self) -> dict[str, Any]:
        """Plain data: `stages` {stage: {outcome: n, seconds}}, `counts` {name: n}, `llm` (the
        ledger's summary), `aborted` (class and text of the error that ended the run, or None).
        """
        return {
            "aborted": self._aborted,
            "stages": {stage: dict(counters) for stage, counters in self._stages.items()},
            "counts": dict(self._counts),
            "llm": self._ledger.summary(),
        }


def start_desk(budget_usd: float | None = None, silence: float = SILENCE) -> Any:
    """The desk as a Ray actor: its handle, to be given to every worker of the run."""
    import ray

    return ray.remote(num_cpus=0)(Desk).remote(budget_usd, silence)
