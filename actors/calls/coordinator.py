"""The call coordinator, which admits every model call of a run and counts everything.

It keeps the rate limits, the budget, the calls in flight (so that equal calls are made once), the
usage totals, the call log, in which each call is recorded before it is sent, the run's stage
counters, and the rows in progress. It never waits and never sees a prompt or an image: a gateway
sends a few numbers, learns how long to wait, and waits. The class runs as a Ray actor
(`actors.calls.coordinator_actor`) or, in tests and single processes, as a plain object.

When the actor is killed, Ray restarts it. It then reads the calls from the call log and everything
else from its restart log; the search for rate limits starts again.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from actors.calls.liveness import LivenessServer
from mustsee.calls.budget import AdmissionRequest, Budget, Grant, HeldAmount
from mustsee.calls.call_log import CallLog
from mustsee.calls.limits import Admission, Limits, Rates
from mustsee.calls.usage import RETRY_OUTCOMES, CallOutcome, UsageTotals
from mustsee.errors import MustseeError
from mustsee.files.store import StoreDamage
from mustsee.run import other_runs
from mustsee.run.record import NOTHING, RowOutcome, RunAbort, Snapshot, StageCounts, WorkTimes


class RestartLog:
    """The messages that a process received, written so that its successor can replay them: one
    pickled `(name, arguments)` after another in the file `path`, on the local disk. A kill may have
    cut off the last one. None: nothing is written.
    """

    def __init__(self, path: str | None = None) -> None:
        self._path, self._file = path, -1

    def read_entries(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield the messages of a killed predecessor. Read all of them before adding more."""
        if self._path is None:
            return
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with open(self._file, "rb", closefd=False) as file:
            content = io.BytesIO(file.read())
        whole = 0
        while whole < len(content.getbuffer()):
            try:
                name, arguments = pickle.load(content)
            except (EOFError, pickle.UnpicklingError):
                os.truncate(self._file, whole)
                return
            whole = content.tell()
            yield name, arguments

    def add(self, name: str, *arguments: Any) -> None:
        """Write a message. Raises MustseeError where the disk is full."""
        if self._path is None:
            return
        try:
            os.write(self._file, pickle.dumps((name, arguments)))
        except OSError as error:
            raise MustseeError(
                f"cannot write the run's counts to {self._path!r}: {error.strerror}; free disk "
                "space: finished work is kept, and the same command goes on from here"
            ) from error


BUDGET_WAIT_S = 0.25  # seconds before a call asks again while calls in flight hold the budget
OVERRAN_DEATHS = 1 << 30  # number of deaths that stands for a row that exceeded its timeout
REUNION_S = 30.0  # seconds for senders with calls in flight to reconnect after a restart


@dataclass(frozen=True, kw_only=True)
class _Flight:
    """A call in flight. `call`: its number in the account's limit search; None: it holds no
    place.
    """

    owner: str
    account: str
    tokens: float = 0.0
    call: int | None = None
    batched: bool = False


class Coordinator:
    """Limits, budget, calls in flight, usage totals, counters. All methods return at once.

    An owner of calls is `sender/number`, or a unique name where it has no sender. `out`, `run`: as
    in `CallLog`. `restart_log`: the file that a restarted coordinator reads. `store`: calls that
    other runs on this store have in flight are not made here.
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
        self._limit, self._clock, self._log_place = budget_usd, clock, (out, run, store)
        self._rates: dict[str, Rates] = {}
        self._calls_in_flight: dict[str, _Flight] = {}
        self._orphaned: set[str] = set()  # senders whose worker died
        self._expected: set[str] = set()  # senders known before a restart
        self._reunion_deadline = math.inf  # when the expected ones are given up
        self._stages: dict[str, StageCounts] = {}
        self._begun_together: set[str] = set()  # unfinished rows of blocks of several rows
        self._starts_alone: dict[str, int] = {}  # row -> unfinished starts in a block of its own
        self._counts: dict[str, int] = {}
        self._damaged_objects: dict[str, str] = {}  # path in the store -> reason
        self._helpers: dict[str, dict[str, int]] = {}  # stage -> video -> its helpers
        self._aborted: RunAbort | None = None
        self._liveness: LivenessServer | None = None
        self._restart_log = RestartLog()
        saved_log = RestartLog(restart_log)
        for name, arguments in saved_log.read_entries():
            getattr(self, name)(*arguments)
        self._restart_log = saved_log

    @cached_property
    def call_log(self) -> CallLog:
        """The call log, opened when first used, so that the caller gets the error if it cannot be
        read.
        """
        log = CallLog(*self._log_place)
        self._budget = Budget(self._limit, log.history)
        for key, sent in log.calls_in_flight.items():  # sent before a restart
            self._calls_in_flight[key] = _Flight(owner=sent.by, account="")
            self._budget.start(key, self._budget.resume(sent.cost))
            self._expected.add(_sender(sent.by))
        self._reunion_deadline = self._clock() + REUNION_S
        return log

    def liveness_address(self) -> tuple[str, int]:
        """The address to which senders connect, so that their death is noticed."""
        import ray

        self._liveness = self._liveness or LivenessServer(ray.util.get_node_ip_address())
        return self._liveness.address

    def register_account(self, account: str, limits: Limits) -> None:
        """Set an account's limits, in place of earlier ones."""
        rates = self._rates.get(account)
        if rates is None or rates.limits != limits:
            self._rates[account] = Rates(limits, self._clock())
            self._restart_log.add("register_account", account, limits)

    def exchange(
        self, owner: str, entries: Sequence[CallOutcome], asks: Sequence[AdmissionRequest]
    ) -> list[Grant]:
        """Record the calls that ended and answer the requests to start one: one message for many
        calls of one owner.
        """
        now, call_log = self._clock(), self.call_log
        self._update_senders(now)
        for entry in entries:
            self._settle(entry, owner, now)
        if asks:
            self._other_runs.refresh()
        grants = [self._answer(ask, owner, now) for ask in asks]
        if call_log.local:
            call_log.keep()
        return grants

    def _update_senders(self, now: float) -> None:
        """Release the calls of senders that have disconnected."""
        for signal in self._liveness.signals() if self._liveness else ():
            self._expected.discard(signal.sender)
            if signal.here:
                self._orphaned.discard(signal.sender)  # only the network was down
            else:
                self.release_worker(signal.sender, signal.still)
        if self._expected and now > self._reunion_deadline:
            for sender in list(self._expected):
                self.release_worker(sender)

    def release_worker(self, sender: str, still: Collection[str] = ()) -> None:
        """Release the calls of a sender whose worker died, except those `still` in flight, so that
        others may make them. Their cost is unknown, so they count with their greatest cost.
        """
        now, in_flight = self._clock(), frozenset(still)
        self._orphaned.add(sender)
        self._expected.discard(sender)
        for key in [k for k, f in self._calls_in_flight.items() if _sender(f.owner) == sender]:
            if key not in in_flight:
                self._release(key, now, used=0.0)
                self.call_log.record_lost(key)

    def _settle(self, entry: CallOutcome, owner: str, now: float) -> None:
        flight = self._calls_in_flight.get(entry.key)
        if entry.outcome == "done" and flight is None and entry.key in self.call_log.done:
            return  # Ray repeats a message that was handled just before a restart
        if entry.outcome == "cached" and flight is not None and flight.owner != owner:
            if _sender(flight.owner) not in self._orphaned:
                self.from_store(entry)  # the owner is about to report the call
                return
            entry, owner = replace(entry, outcome="done"), flight.owner
        elif entry.outcome == "cached" and self.call_log.is_unreported(entry.key):
            self.call_log.record_found(entry.key)  # paid for by a worker that died unreported
            entry = replace(entry, outcome="done")
        own = flight is not None and flight.owner == owner
        expected = self._budget.release(entry.key) if own else None
        if not self.call_log.record_end(entry, expected):
            self._restart_log.add("from_store", entry)
            return
        rates = self._rates.get(entry.account)
        if rates is not None:
            if entry.quotas:
                rates.record_quotas(entry.quotas, now)
            rates.last_message = entry.said or rates.last_message
            if entry.outcome in RETRY_OUTCOMES and entry.retry_after is not None:
                rates.pause(entry.retry_after, now)
        if flight is None or flight.owner != owner:
            return
        used = 0 if entry.outcome == "cached" else entry.tokens_in + entry.tokens_out
        self._release(entry.key, now, used=used)
        # The call remains its owner's, but holds neither budget nor limits until the retry.
        if entry.outcome in RETRY_OUTCOMES:
            self._calls_in_flight[entry.key] = _Flight(owner=owner, account=entry.account)
        if rates is not None and flight.call is not None:
            if entry.outcome == "done" and entry.seconds:
                rates.record_answer(flight.call, entry.prompt, entry.seconds)
            elif entry.outcome == "refused":
                rates.record_refusal(
                    flight.call, now, has_retry_after=entry.retry_after is not None
                )
            elif entry.outcome == "retry":
                rates.record_failure(now)

    def from_store(self, entry: CallOutcome) -> None:
        """Count a call that cost nothing, and that the call log does not hold."""
        self.call_log.now.add(entry)
        self._restart_log.add("from_store", entry)

    def _release(self, key: str, now: float, used: float) -> None:
        flight = self._calls_in_flight.pop(key)
        self._budget.release(key)
        if flight.account in self._rates and flight.call is not None:
            self._rates[flight.account].release(flight.tokens - used, now)

    def _answer(self, ask: AdmissionRequest, owner: str, now: float) -> Grant:
        flight = self._calls_in_flight.get(ask.key)
        if _sender(owner) in self._orphaned:
            return Grant("hold", 1.0)  # the worker is dead, and does not read the answer
        if self._other_runs.is_in_flight(ask.key) if flight is None else flight.owner != owner:
            return Grant("elsewhere", 0.25)
        if flight is not None:  # the owner asks again, now by batch or directly
            self._release(ask.key, now, used=0.0)
        if ask.joined:
            self.call_log.record_found(ask.key)
        cost = ask.cost
        if ask.joined:
            decision = self._budget.resume(cost)
        else:
            spent = self.call_log.now.total.usd + self.call_log.usd
            decision = self._budget.consider(cost, spent, batched=ask.batched)
        if not isinstance(decision, HeldAmount):
            return Grant(decision, BUDGET_WAIT_S if decision == "hold" else 0.0)
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
        self._budget.start(ask.key, decision)
        self.call_log.record_sent(ask.key, cost, owner)
        return Grant("go", admitted.wait)

    def begin(self, rows: Sequence[str]) -> list[int]:
        """Return how many workers have died with each row, before work on a block of rows begins.

        Rows that were begun earlier and have not ended died with their worker. Of rows begun
        together the first is blamed, because a plain part works in their order. If a worker has
        died with any row of a block, no row is begun: the caller begins them one by one.
        """
        self._restart_log.add("begin", rows)
        lost = [row for row in rows if row in self._begun_together]
        if lost:
            self._begun_together.difference_update(lost)
            self._starts_alone[lost[0]] = self._starts_alone.get(lost[0], 0) + 1
        deaths = [self._starts_alone.get(row, 0) for row in rows]
        if len(rows) == 1:
            self._starts_alone[rows[0]] = deaths[0] + 1
        elif not any(deaths):
            self._begun_together.update(rows)
        return deaths

    def record_overrun(self, row: str, beside: Sequence[str]) -> None:
        """Record that a worker ends because a row exceeded its timeout; rows `beside` are not
        blamed.
        """
        self._restart_log.add("record_overrun", row, beside)
        self._begun_together.difference_update(beside)
        self._starts_alone[row] = OVERRAN_DEATHS

    def event(
        self, stage: str, outcome: RowOutcome, took: WorkTimes = NOTHING, row: str | None = None,
        rows: int = 1,
    ) -> None:  # fmt: skip
        """Count `rows` of a stage. `row`: the row in progress that has ended with this event."""
        self._restart_log.add("event", stage, outcome, took, row, rows)
        self._stages[stage] = self._stages.get(stage, StageCounts()).plus(outcome, took, rows)
        if row is not None:
            self._begun_together.discard(row)
            self._starts_alone.pop(row, None)

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter of the run."""
        self._restart_log.add("count", name, n)
        self._counts[name] = self._counts.get(name, 0) + n

    def note_damage(self, damage: StoreDamage) -> None:
        """Record a damaged object of the store, which has been moved away."""
        self._restart_log.add("note_damage", damage)
        self._damaged_objects[damage.path] = damage.reason

    def acquire_helpers(self, stage: str, video: str, wanted: int, most: int) -> int:
        """Return how many of the `wanted` helpers a video may have that is processed in chunks
        (`actors.engine.chunks`). Helpers and workers with such videos are together at most `most`,
        the stage's `workers.max`. It is asked for each chunk: when other videos have begun since,
        the quota shrinks and the video dismisses helpers. So it is known again after a restart.
        """
        videos = self._helpers.setdefault(stage, {})
        others = sum(1 + n for name, n in videos.items() if name != video)
        videos[video] = max(0, min(wanted, most - 1 - others))
        return videos[video]

    def release_helpers(self, stage: str, video: str) -> None:
        """Record that a video is done and has no helpers."""
        self._helpers.get(stage, {}).pop(video, None)

    def abort(self, error: str, message: str) -> None:
        """Record why a worker ends the run. Ray passes a worker's error on as text only."""
        self._restart_log.add("abort", error, message)
        self._aborted = self._aborted or RunAbort(error=error, message=message)

    def snapshot(self) -> Snapshot:
        """The present counters."""
        if self.call_log.local:
            self.call_log.keep()  # and syncs the last entries of calls that have ended
        seconds_held, now = Counter[str](), self._clock()
        for rates in self._rates.values():
            seconds_held.update(rates.held_seconds)
        trouble = {account: rates.trouble_message(now) for account, rates in self._rates.items()}
        return Snapshot(
            stages=dict(self._stages),
            counts=dict(self._counts),
            damaged=dict(self._damaged_objects),
            llm=UsageTotals().plus(self.call_log.now),
            spent=self.call_log.spent(),
            in_batches=sum(flight.batched for flight in self._calls_in_flight.values()),
            held=seconds_held,
            trouble={account: message for account, message in trouble.items() if message},
            aborted=self._aborted,
        )


def _sender(owner: str) -> str:
    return owner.partition("/")[0]
