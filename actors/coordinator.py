"""The call coordinator: the one place in a cluster that admits model calls and counts everything.

It keeps the rate limits, the budget, the calls in flight (so that equal ones are made once), the
ledger, the daybook in which every call is entered before it is let go, the run's stage counters,
and the rows that were begun. It never waits and never sees a prompt or a picture: a gateway asks
with a few numbers, learns how long to wait, and then waits. The class runs as a Ray actor
(`start_coordinator`) and, for tests and single processes, as a plain object.
"""

from __future__ import annotations

import asyncio
import copy
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mustsee.run.daybook import Daybook
from mustsee.run.ledger import AGAIN, Entry, Ledger
from mustsee.run.limits import Admission, Limits, Rates
from mustsee.run.record import Aborted, RowOutcome, Snapshot, StageCounts
from mustsee.store import is_local

SILENCE = 60.0  # seconds after which a gateway that sends nothing counts as dead


@dataclass(frozen=True, kw_only=True)
class Ask:
    """May this call start? `tokens_out` is the most that the reply may have, `usd` the most that
    the call may cost, `patience` the seconds for which the account may have answered nothing.
    `batched`: it goes by a batch; `joined`: it was sent in one before, and only its reply is
    waited for.
    """

    key: str
    account: str
    prompt: str
    tokens_in: float = 0.0
    tokens_out: int = 0
    usd: float = 0.0
    patience: float = math.inf
    batched: bool = False
    joined: bool = False


@dataclass(frozen=True)
class Grant:
    """`go`: start after `wait` seconds. `elsewhere`: an equal call is in flight, look in the store
    after `wait`. `hold`: the account takes no more for now, or calls in flight may use up the
    budget; ask again after `wait`. `spent`: the budget is reached. `dead`: the account has answered
    nothing for too long.
    """

    answer: Literal["go", "elsewhere", "hold", "spent", "dead"]
    wait: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Flight:
    """`call`: its number in the account's search; None holds nothing."""

    owner: str
    account: str
    tokens: float = 0.0
    usd: float = 0.0
    call: int | None = None
    batched: bool = False


class Coordinator:
    """Limits, budget, calls in flight, ledger, counters. All methods return at once."""

    def __init__(
        self,
        budget_usd: float | None = None,
        silence: float = SILENCE,
        clock: Callable[[], float] = time.monotonic,
        out: str | None = None,
    ) -> None:
        self.daybook = Daybook(out)
        self._budget, self._silence, self._clock = budget_usd, silence, clock
        self._rates: dict[str, Rates] = {}
        self._flights: dict[str, _Flight] = {}
        self._reserved = 0.0
        self._last_message: dict[str, float] = {}
        self._ledger = Ledger()
        self._stages: dict[str, StageCounts] = {}
        self._together: set[str] = set()  # rows begun in a block of several, and not ended
        self._alone: dict[str, int] = {}  # row -> how often begun by itself without an end
        self._counts: dict[str, int] = {}
        self._aborted: Aborted | None = None

    def enroll(self, account: str, limits: Limits) -> None:
        """Make an account's limits known; other limits for a known account replace the old ones."""
        known = self._rates.get(account)
        if known is None or known.limits != limits:
            self._rates[account] = Rates(limits, self._clock())

    def exchange(self, owner: str, entries: Sequence[Entry], asks: Sequence[Ask]) -> list[Grant]:
        """Settle the calls that ended, answer those that want to start: one message for many calls
        of one owner (an empty one is a heartbeat).
        """
        now = self._clock()
        self._last_message[owner] = now
        for entry in entries:
            self._settle(entry, owner, now)
        grants = [self._answer(ask, owner, now) for ask in asks]
        if self.daybook.local:
            self.daybook.keep()
        return grants

    def _settle(self, entry: Entry, owner: str, now: float) -> None:
        self._ledger.add(entry)
        self.daybook.ended(entry)
        rates = self._rates.get(entry.account)
        if rates is not None and entry.outcome in AGAIN and entry.retry_after is not None:
            rates.pause(entry.retry_after, now)
        flight = self._flights.get(entry.key)
        if flight is None or flight.owner != owner:
            return
        used = 0 if entry.outcome == "cached" else entry.tokens_in + entry.tokens_out
        self._release(entry.key, now, used=used)
        if entry.outcome in AGAIN:  # the call is still its owner's, but holds nothing meanwhile
            self._flights[entry.key] = _Flight(owner=owner, account=entry.account)
        if rates is not None and flight.call is not None:
            if entry.outcome == "done":
                rates.answered(flight.call, entry.prompt, entry.seconds)
            elif entry.outcome == "refused":
                rates.refused(flight.call, now)
            elif entry.outcome == "retry":
                rates.failed(now)

    def _release(self, key: str, now: float, used: float) -> None:
        flight = self._flights.pop(key)
        self._reserved -= flight.usd
        if not self._flights:
            self._reserved = 0.0
        if flight.account in self._rates and flight.call is not None:
            self._rates[flight.account].release(flight.tokens - used, now)

    def _answer(self, ask: Ask, owner: str, now: float) -> Grant:
        flight = self._flights.get(ask.key)
        if flight is not None and flight.owner != owner:
            if now - self._last_message[flight.owner] < self._silence:
                return Grant("elsewhere", 0.25)
            self._forget(flight.owner, now)
        elif flight is not None:  # it goes another way now
            self._release(ask.key, now, used=0.0)
        if ask.joined:
            self.daybook.rejoin(ask.key)
        if self._budget is not None:
            spent = self._ledger.total.usd + self.daybook.usd
            if spent >= self._budget or spent + ask.usd > self._budget + 1e-12:
                return Grant("spent")
            if spent + self._reserved + ask.usd > self._budget + 1e-12:
                self._forget_silent(now)
                return Grant("hold", 0.25)
        tokens = ask.tokens_in + self._ledger.expected_out(ask.prompt, ask.tokens_out)
        rates = self._rates.get(ask.account)
        admitted = Admission(True)
        if rates is not None:
            if rates.dead(ask.patience, now):
                return Grant("dead")
            admitted = rates.admit(tokens, now)
            if not admitted.go:
                return Grant("hold", admitted.wait)
        self._flights[ask.key] = _Flight(
            owner=owner,
            account=ask.account,
            tokens=tokens,
            usd=ask.usd,
            call=admitted.call,
            batched=ask.batched,
        )
        self._reserved += ask.usd
        self.daybook.sent(ask.key, ask.usd)
        return Grant("go", admitted.wait)

    def _forget(self, owner: str, now: float) -> None:
        """Release the calls of a gateway that was killed. What the endpoint billed for them is not
        known: they count with the most that they may have cost.
        """
        for key in [k for k, flight in self._flights.items() if flight.owner == owner]:
            self._release(key, now, used=0.0)
            self.daybook.lose(key)
        self._last_message.pop(owner, None)

    def _forget_silent(self, now: float) -> None:
        silent = [o for o, last in self._last_message.items() if now - last >= self._silence]
        for owner in silent:
            self._forget(owner, now)

    def begin(self, rows: Sequence[str]) -> list[int]:
        """How many workers have died with each row, before work on a block of them begins.

        Rows that were begun before and have not ended went down with their worker. Of those that
        were begun together the first is blamed: a plain part works in their order. Where a worker
        has died with any, nothing is begun: the rows are to be begun one by one.
        """
        lost = [row for row in rows if row in self._together]
        if lost:
            self._together.difference_update(lost)
            self._alone[lost[0]] = self._alone.get(lost[0], 0) + 1
        deaths = [self._alone.get(row, 0) for row in rows]
        if len(rows) == 1:
            self._alone[rows[0]] = deaths[0] + 1
        elif not any(deaths):
            self._together.update(rows)
        return deaths

    def event(
        self, stage: str, outcome: RowOutcome, seconds: float = 0.0, row: str | None = None,
        rows: int = 1,
    ) -> None:  # fmt: skip
        """Count `rows` of a stage; `row`: the one that was begun, and has ended by this."""
        self._stages[stage] = self._stages.get(stage, StageCounts()).plus(outcome, seconds, rows)
        if row is not None:
            self._together.discard(row)
            self._alone.pop(row, None)

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter of the run."""
        self._counts[name] = self._counts.get(name, 0) + n

    def abort(self, error: str, message: str) -> None:
        """Note why a worker ends the whole run. Ray hands a worker's error on as text only."""
        self._aborted = self._aborted or Aborted(error=error, message=message)

    def snapshot(self) -> Snapshot:
        """The counters as they are now."""
        return Snapshot(
            stages=dict(self._stages),
            counts=dict(self._counts),
            llm=copy.deepcopy(self._ledger),
            spent=self.daybook.spent(self._ledger),
            in_batches=sum(flight.batched for flight in self._flights.values()),
            aborted=self._aborted,
        )


class FarKept(Coordinator):
    """One whose daybook takes a while to write (an object store): a message is answered when its
    entries are kept, and those that come meanwhile share the next write.
    """

    _writing: asyncio.Lock | None = None

    async def exchange(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, owner: str, entries: Sequence[Entry], asks: Sequence[Ask]
    ) -> list[Grant]:
        grants = super().exchange(owner, entries, asks)
        self._writing = self._writing or asyncio.Lock()
        mine = self.daybook.entered
        async with self._writing:
            if self.daybook.kept < mine:
                await asyncio.to_thread(self.daybook.write, *self.daybook.take())
        return grants


def start_coordinator(
    budget_usd: float | None = None, silence: float = SILENCE, out: str | None = None
) -> Any:
    """The coordinator as a Ray actor: its handle, to be given to every worker of the run. `out`:
    the folder whose runs share the budget and a daybook.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    kind = FarKept
    if out is None or is_local(out):
        kind, out = Coordinator, out and os.path.abspath(out)
    node = (
        ray.get_runtime_context().get_node_id()
    )  # the job's own: it is there that it writes `out`
    here = NodeAffinitySchedulingStrategy(node, soft=True)
    actor: Any = ray.remote(kind)
    return actor.options(num_cpus=0, scheduling_strategy=here).remote(budget_usd, silence, out=out)
