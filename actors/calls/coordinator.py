"""The call coordinator: the one place in a cluster that admits model calls and counts everything.

It keeps the rate limits, the budget, the calls in flight (so that equal ones are made once), the
usage totals, the call log in which every call is entered before it is let go, the run's stage
counters, and the rows that were begun. It never waits and never sees a prompt or a picture: a
gateway asks with a few numbers, learns how long to wait, and then waits. The class runs as a Ray
actor (`actors.calls.coordinator_actor`) and, for tests and single processes, as a plain object.

Where the actor is killed, Ray starts it again: calls it knows from the call log, the rest from its
restart log, and what the limits search had found it finds anew.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from actors.calls.admission import AdmissionRequest, Grant
from actors.calls.helper_quota import HelperQuotas
from actors.calls.liveness import LivenessServer
from mustsee.calls.budget import Budget, HeldAmount
from mustsee.calls.call_log import CallLog
from mustsee.calls.limits import Admission, Limits, Rates
from mustsee.calls.restart_log import RestartLog
from mustsee.calls.usage import RETRY_OUTCOMES, CallOutcome, UsageTotals
from mustsee.run import other_runs
from mustsee.run.record import NOTHING, RowOutcome, RunAbort, Snapshot, StageCounts, WorkTimes
from mustsee.store import StoreDamage

BUDGET_WAIT = 0.25  # seconds after which a call asks again that waits for money of those in flight
OVERRAN_DEATHS = 1 << 30  # as a number of deaths: the row took longer than it may
REUNION_S = 30.0  # seconds in which those who have calls in flight come back to a restarted one


@dataclass(frozen=True, kw_only=True)
class _Flight:
    """`call`: its number in the account's search; None holds nothing."""

    owner: str
    account: str
    tokens: float = 0.0
    call: int | None = None
    batched: bool = False


class Coordinator:
    """Limits, budget, calls in flight, usage totals, counters. All methods return at once.

    An owner of calls is `sender/number`, or a name of its own where it has no sender. `out`, `run`:
    as `CallLog`; `restart_log`: the file from which a restarted one takes over; `store`: its other
    runs' calls in flight are not made here.
    """

    def __init__(
        self,
        budget_usd: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        out: str | None = None,
        run: str | None = None,
        restart_log: str | None = None,
        store: str | None = None,
    ) -> None:
        self._other_runs = other_runs.OtherRuns(store, run)
        self._limit, self._clock, self._book = budget_usd, clock, (out, run)
        self._rates: dict[str, Rates] = {}
        self._calls_in_flight: dict[str, _Flight] = {}
        self._orphaned: set[str] = set()  # senders whose worker died
        self._expected: set[str] = set()  # senders known before a restart
        self._reunion_deadline = math.inf  # when the expected ones are given up
        self._store_totals = UsageTotals()  # calls that the call log does not hold
        self._stages: dict[str, StageCounts] = {}
        self._together: set[str] = set()  # rows begun in a block of several, and not ended
        self._starts_alone: dict[str, int] = {}  # row -> how often begun by itself without an end
        self._counts: dict[str, int] = {}
        # objects of the store, and what is wrong with each
        self._damaged_objects: dict[str, str] = {}
        self._helper_quotas = HelperQuotas()
        self._aborted: RunAbort | None = None
        self._liveness: LivenessServer | None = None
        self._restart_log = RestartLog()
        kept = RestartLog(restart_log)
        for name, arguments in kept.read_entries():
            getattr(self, name)(*arguments)
        self._restart_log = kept

    @cached_property
    def call_log(self) -> CallLog:
        """Opened when first used: who uses it is told why it cannot be read."""
        found = CallLog(*self._book)
        self._budget = Budget(self._limit, found.history)
        for key, sent in found.calls_in_flight.items():  # by a predecessor
            self._calls_in_flight[key] = _Flight(owner=sent.by, account="")
            self._budget.start(key, self._budget.resume(sent.cost))
            self._expected.add(_sender(sent.by))
        self._reunion_deadline = self._clock() + REUNION_S
        return found

    def liveness_address(self) -> tuple[str, int]:
        """Where senders tie theirs."""
        import ray

        self._liveness = self._liveness or LivenessServer(ray.util.get_node_ip_address())
        return self._liveness.address

    def register_account(self, account: str, limits: Limits) -> None:
        """Make an account's limits known; other limits for a known account replace the old ones."""
        known = self._rates.get(account)
        if known is None or known.limits != limits:
            self._rates[account] = Rates(limits, self._clock())
            self._restart_log.add("register_account", account, limits)

    def exchange(
        self, owner: str, entries: Sequence[CallOutcome], asks: Sequence[AdmissionRequest]
    ) -> list[Grant]:
        """Settle the calls that ended, answer those that want to start: one message for many calls
        of one owner.
        """
        now, call_log = self._clock(), self.call_log
        self._look_round(now)
        for entry in entries:
            self._settle(entry, owner, now)
        if asks:
            self._other_runs.refresh()
        grants = [self._answer(ask, owner, now) for ask in asks]
        if call_log.local:
            call_log.keep()
        return grants

    def _look_round(self, now: float) -> None:
        """Learn who is gone."""
        for sign in self._liveness.signs() if self._liveness else ():
            self._expected.discard(sign.sender)
            if sign.here:
                self._orphaned.discard(sign.sender)  # the network had been, not the sender
            else:
                self.release_worker(sign.sender, sign.still)
        if self._expected and now > self._reunion_deadline:
            for sender in list(self._expected):
                self.release_worker(sender)

    def release_worker(self, sender: str, still: Collection[str] = ()) -> None:
        """The worker of a sender is gone, and only the calls `still` are out: the others are for
        whoever wants them. What the endpoint billed for those that were let go is not known: they
        count with the most that they may have cost.
        """
        now, kept = self._clock(), frozenset(still)
        self._orphaned.add(sender)
        self._expected.discard(sender)
        for key in [k for k, f in self._calls_in_flight.items() if _sender(f.owner) == sender]:
            if key not in kept:
                self._release(key, now, used=0.0)
                self.call_log.record_lost(key)

    def _settle(self, entry: CallOutcome, owner: str, now: float) -> None:
        flight = self._calls_in_flight.get(entry.key)
        if entry.outcome == "done" and flight is None and entry.key in self.call_log.done:
            return  # sent again by Ray: the predecessor had it, and died before it said so
        if entry.outcome == "cached" and flight is not None and flight.owner != owner:
            if _sender(flight.owner) not in self._orphaned:
                self.from_store(entry)  # its owner is about to report it
                return
            entry, owner = replace(entry, outcome="done"), flight.owner
        elif entry.outcome == "cached" and self.call_log.is_unreported(entry.key):
            self.call_log.record_found(entry.key)  # paid for by one that did not live to say so
            entry = replace(entry, outcome="done")
        own = flight is not None and flight.owner == owner
        expected = self._budget.release(entry.key) if own else None
        if not self.call_log.record_end(entry, expected):
            self.from_store(entry)
            return
        self.call_log.now.add(entry)
        rates = self._rates.get(entry.account)
        if rates is not None:
            if entry.quotas:
                rates.record_quotas(entry.quotas, now)
            rates.said = entry.said or rates.said
            if entry.outcome in RETRY_OUTCOMES and entry.retry_after is not None:
                rates.pause(entry.retry_after, now)
        if flight is None or flight.owner != owner:
            return
        used = 0 if entry.outcome == "cached" else entry.tokens_in + entry.tokens_out
        self._release(entry.key, now, used=used)
        # the call is still its owner's, but holds nothing meanwhile
        if entry.outcome in RETRY_OUTCOMES:
            self._calls_in_flight[entry.key] = _Flight(owner=owner, account=entry.account)
        if rates is not None and flight.call is not None:
            if entry.outcome == "done" and entry.seconds:
                rates.record_answer(flight.call, entry.prompt, entry.seconds)
            elif entry.outcome == "refused":
                rates.record_refusal(flight.call, now, told=entry.retry_after is not None)
            elif entry.outcome == "retry":
                rates.record_failure(now)

    def from_store(self, entry: CallOutcome) -> None:
        """Count a call that cost nothing."""
        self._store_totals.add(entry)
        self._restart_log.add("from_store", entry)

    def _release(self, key: str, now: float, used: float) -> None:
        flight = self._calls_in_flight.pop(key)
        self._budget.release(key)
        if flight.account in self._rates and flight.call is not None:
            self._rates[flight.account].release(flight.tokens - used, now)

    def _answer(self, ask: AdmissionRequest, owner: str, now: float) -> Grant:
        flight = self._calls_in_flight.get(ask.key)
        if _sender(owner) in self._orphaned:
            return Grant("hold", 1.0)  # it was killed, and nobody listens
        if self._other_runs.is_in_flight(ask.key) if flight is None else flight.owner != owner:
            return Grant("elsewhere", 0.25)
        if flight is not None:  # it goes another way now
            self._release(ask.key, now, used=0.0)
        if ask.joined:
            self.call_log.record_found(ask.key)
        cost = ask.cost
        if ask.joined:
            held = self._budget.resume(cost)
        else:
            spent = self.call_log.now.total.usd + self.call_log.usd
            held = self._budget.consider(cost, spent, batched=ask.batched)
        if not isinstance(held, HeldAmount):
            return Grant(held, BUDGET_WAIT if held == "hold" else 0.0)
        tokens = ask.tokens_in + self.call_log.now.expected_out(ask.prompt, ask.tokens_out)
        rates = self._rates.get(ask.account)
        admitted = Admission(True)
        if rates is not None:
            if rates.is_silent(ask.patience, now):
                return Grant("dead")
            admitted = rates.admit(tokens, now)
            if not admitted.go:
                return Grant("hold", admitted.wait)
        self._calls_in_flight[ask.key] = _Flight(
            owner=owner,
            account=ask.account,
            tokens=tokens,
            call=admitted.call,
            batched=ask.batched,
        )
        self._budget.start(ask.key, held)
        self.call_log.record_sent(ask.key, cost, owner)
        return Grant("go", admitted.wait)

    def begin(self, rows: Sequence[str]) -> list[int]:
        """How many workers have died with each row, before work on a block of them begins.

        Rows that were begun before and have not ended went down with their worker. Of those that
        were begun together the first is blamed: a plain part works in their order. Where a worker
        has died with any, nothing is begun: the rows are to be begun one by one.
        """
        self._restart_log.add("begin", rows)
        lost = [row for row in rows if row in self._together]
        if lost:
            self._together.difference_update(lost)
            self._starts_alone[lost[0]] = self._starts_alone.get(lost[0], 0) + 1
        deaths = [self._starts_alone.get(row, 0) for row in rows]
        if len(rows) == 1:
            self._starts_alone[rows[0]] = deaths[0] + 1
        elif not any(deaths):
            self._together.update(rows)
        return deaths

    def record_overrun(self, row: str, beside: Sequence[str]) -> None:
        """A worker ends, for this row took too long. Those begun `beside` it are not to blame."""
        self._restart_log.add("record_overrun", row, beside)
        self._together.difference_update(beside)
        self._starts_alone[row] = OVERRAN_DEATHS

    def event(
        self, stage: str, outcome: RowOutcome, took: WorkTimes = NOTHING, row: str | None = None,
        rows: int = 1,
    ) -> None:  # fmt: skip
        """Count `rows` of a stage; `row`: the one that was begun, and has ended by this."""
        self._restart_log.add("event", stage, outcome, took, row, rows)
        self._stages[stage] = self._stages.get(stage, StageCounts()).plus(outcome, took, rows)
        if row is not None:
            self._together.discard(row)
            self._starts_alone.pop(row, None)

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter of the run."""
        self._restart_log.add("count", name, n)
        self._counts[name] = self._counts.get(name, 0) + n

    def note_damage(self, damage: StoreDamage) -> None:
        """Note a damaged object of the store, which nobody will find any more."""
        self._restart_log.add("note_damage", damage)
        self._damaged_objects[damage.path] = damage.reason

    def acquire_helpers(self, stage: str, video: str, wanted: int, most: int) -> int:
        """As `HelperQuotas.acquire`. Who is restarted learns it anew from those that ask again."""
        return self._helper_quotas.acquire(stage, video, wanted, most)

    def release_helpers(self, stage: str, video: str) -> None:
        """As `HelperQuotas.release`."""
        self._helper_quotas.release(stage, video)

    def abort(self, error: str, message: str) -> None:
        """Note why a worker ends the whole run. Ray hands a worker's error on as text only."""
        self._restart_log.add("abort", error, message)
        self._aborted = self._aborted or RunAbort(error=error, message=message)

    def snapshot(self) -> Snapshot:
        """The counters as they are now."""
        held, now = Counter[str](), self._clock()
        for rates in self._rates.values():
            held.update(rates.held_seconds)
        trouble = {account: rates.trouble_message(now) for account, rates in self._rates.items()}
        return Snapshot(
            stages=dict(self._stages),
            counts=dict(self._counts),
            damaged=dict(self._damaged_objects),
            llm=self.call_log.now.plus(self._store_totals),
            spent=self.call_log.spent(self.call_log.now),
            in_batches=sum(flight.batched for flight in self._calls_in_flight.values()),
            held=held,
            trouble={account: said for account, said in trouble.items() if said},
            aborted=self._aborted,
        )


def _sender(owner: str) -> str:
    return owner.partition("/")[0]
