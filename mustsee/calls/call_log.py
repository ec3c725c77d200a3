"""The call log of an output folder: an entry for every call before it is sent, and when it ends.

All runs of an `out=` write to `<out>/call_log/`, each run to files of its own, so that a budget
covers all of them and the money spent survives a kill. A call without an end was sent, but its
reply is unknown: it counts with the most that it may have cost.

On a local disk entries are appended, which survives a killed process, and synced about once a
second, so that a machine that fails loses the entries of the last second. On an object store the
current file is rewritten whole until it is large. The coordinator of a run that restarts under the
same name continues its files. Each entry carries a checksum; where damaged ones were skipped, or
`run.json` knows of more calls, the money that is missing is found (`read_recorded`)
and entered once. The entries also show what calls were billed against their estimates
(`mustsee.calls.budget`).
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from pyarrow import fs

from mustsee.calls.budget import BillingHistory, CallCost, Pair
from mustsee.calls.call_log_files import (
    ENDING,
    RunFile,
    list_files,
    read_content,
    read_lines,
    write_line,
)
from mustsee.calls.usage import CallCounts, CallOutcome, UsageTotals
from mustsee.errors import MustseeError
from mustsee.files.store import Store, in_folder, resolve

FOLDER = "call_log"
START_FORMAT = "%Y%m%dT%H%M%S%f"  # how a run's start stands in its name
UNWRITTEN_FIELDS = ("account", "said", "quotas")  # they concern limits, not money
DEFAULTS = {f.name: f.default for f in fields(CallOutcome)}
COSTS = [f.name for f in fields(CallCost)]
RECORD = "run.json"
REPLIES = "llm"  # the store's folder of replies
ROUNDING_USD = 1e-6  # dollars; `run.json` has rounded sums


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Calls and money of all runs of an output folder.

    `runs`: runs that made calls. `by_stage`: dollars. `unknown`: calls sent without a known reply.
    `unknown_usd`: the most that these may have cost, by the bills of their model and prompt.
    `unanswered`, `unanswered_usd`: the same of calls that timed out, or whose connection was lost.
    `damaged`: lines of the call log that were skipped, and files without any. `missing_usd`: the
    dollars that it lacks, by `run.json` and the store's replies.
    """

    runs: int = 0
    total: CallCounts = field(default_factory=CallCounts)
    by_stage: Mapping[str, float] = field(default_factory=dict[str, float])
    unknown: int = 0
    unknown_usd: float = 0.0
    unanswered: int = 0
    unanswered_usd: float = 0.0
    damaged: int = 0
    missing_usd: float = 0.0

    def plain(self) -> dict[str, Any]:
        counts = self.total.plain()
        names = ("calls", "batched", "retries", "failed", "tokens_in", "tokens_out", "usd")
        return {
            "runs": self.runs,
            **{name: counts[name] for name in names},
            "by_stage": {name: round(usd, 8) for name, usd in sorted(self.by_stage.items())},
            "unknown": self.unknown,
            "unknown_usd": round(self.unknown_usd, 8),
            "unanswered": self.unanswered,
            "unanswered_usd": round(self.unanswered_usd, 8),
            "damaged": self.damaged,
            "missing_usd": round(self.missing_usd, 8),
        }


@dataclass(frozen=True)
class SentCall:
    """A call in flight: the most that it may cost, and its sender."""

    cost: CallCost
    by: str = ""


class CostSums:
    """Calls whose bill is unknown, and what they are likely to have cost by present bills."""

    def __init__(self, history: BillingHistory) -> None:
        self._history = history
        self._sums: dict[Pair, tuple[int, CallCost]] = {}

    def add(self, cost: CallCost, calls: int) -> None:
        """Add calls of this cost; with `calls` below 0, take them away."""
        before, total = self._sums.pop(cost.pair, (0, replace(cost, usd=0.0, usd_in=0.0)))
        if before + calls:
            usd, usd_in = total.usd + calls * cost.usd, total.usd_in + calls * cost.usd_in
            self._sums[cost.pair] = before + calls, replace(total, usd=usd, usd_in=usd_in)

    @property
    def calls(self) -> int:
        return sum(calls for calls, _ in self._sums.values())

    @property
    def usd(self) -> float:
        return sum(self._history.likely_cost(cost) for _, cost in self._sums.values())


def run_name(out: str | None = None, now: datetime | None = None) -> str:
    """Return a new name for a run of `out`.

    Names sort in the order of the runs' starts, even if the clock was set back in between.
    """
    start = now or datetime.now(UTC)
    if out is not None:
        filesystem, folder = resolve(out)
        for path in list_files(filesystem, f"{folder}/{FOLDER}")[-1:]:
            start_of_last = os.path.basename(path).partition("-")[0]
            with contextlib.suppress(ValueError):
                last = datetime.strptime(start_of_last, START_FORMAT).replace(tzinfo=UTC)
                start = max(start, last + timedelta(microseconds=1))
    return f"{start:{START_FORMAT}}-{uuid.uuid4().hex[:8]}"


def check_readable(out: str) -> None:
    """Raise MustseeError if the entries of earlier runs cannot be read."""
    filesystem, folder = resolve(out)
    for path in list_files(filesystem, f"{folder}/{FOLDER}"):
        read_content(filesystem, path, 1)


class CallLog:
    """The entries of all runs of an `out=`, and of this one (`run`) as they are made.

    Without `out`, the log has only this run's entries, in memory. `store`: the run's store, whose
    replies are compared where the log is damaged. Raises MustseeError where the folder cannot be
    read or written.
    """

    def __init__(
        self,
        out: str | None = None,
        run: str | None = None,
        store: str | None = None,
    ) -> None:
        self.before = UsageTotals()  # of earlier runs
        self.now = UsageTotals()  # of this run
        self.done: set[str] = set()  # calls that this run finished before it was restarted
        self.history = BillingHistory()
        self.runs = 0
        self._in_flight: dict[str, SentCall] = {}  # calls of this run
        self._lost: dict[str, list[CallCost]] = {}  # calls sent without a known reply
        self._lost_sums = CostSums(self.history)
        self._unanswered = CostSums(self.history)  # calls that nobody will answer any more
        self._repeated: set[str] = set()  # lost calls that were made a second time
        self._lines: list[bytes] = []
        self._entered = self._kept = 0
        self._damaged, self._missing_usd = 0, 0.0
        self._name = run or run_name(out)
        self._file: RunFile | None = None
        if out is not None:
            filesystem, folder = resolve(out)
            place = f"{folder}/{FOLDER}"
            number = self._read(filesystem, place)
            self._file = RunFile(filesystem, place, self._name, number)
            self._find_missing(filesystem, folder, store if is_own(store, out) else None)

    @property
    def local(self) -> bool:
        """Whether entries are written to a local disk or only to memory, within microseconds."""
        return self._file is None or self._file.local

    @property
    def usd(self) -> float:
        """Dollars that earlier runs paid, and that calls without a reply may have cost."""
        unknown = self._lost_sums.usd + self._unanswered.usd
        return self.before.total.usd + unknown + self._missing_usd

    def spent(self) -> Spent:
        """Return the spending of all runs."""
        every = self.before.plus(self.now)
        return Spent(
            runs=self.runs + bool(self._entered),
            total=every.total,
            by_stage={n: t.usd for n, t in every.by_stage.items() if t.usd},
            unknown=sum(map(len, self._lost.values())),
            unknown_usd=self._lost_sums.usd,
            unanswered=self._unanswered.calls,
            unanswered_usd=self._unanswered.usd,
            damaged=self._damaged,
            missing_usd=self._missing_usd,
        )

    @property
    def calls_in_flight(self) -> Mapping[str, SentCall]:
        """This run's calls in flight, by key."""
        return self._in_flight

    def record_sent(self, key: str, cost: CallCost, by: str = "") -> None:
        """Enter a call that is about to be sent."""
        self._in_flight[key] = SentCall(cost, by)
        self._enter({"sent": key, **vars(cost), "by": by})

    def record_found(self, key: str) -> None:
        """Enter that a lost call is awaited again, or that its reply arrived."""
        if self._pop_lost(key) is not None:
            self._enter({"rejoined": key})

    def record_lost(self, key: str) -> None:
        """Enter that the sender of a call is gone and its reply unknown."""
        if key in self._in_flight:
            cost = self._in_flight.pop(key).cost
            self._lost.setdefault(key, []).append(cost)
            self._lost_sums.add(cost, 1)
            self._enter({"lost": key})

    def is_unreported(self, key: str) -> bool:
        """Whether a stored reply to this call would be that of a lost call, not entered yet."""
        return key in self._lost and key not in self._repeated

    def record_end(self, entry: CallOutcome, expected: float | None = None) -> bool:
        """Count the end of a call, enter it unless it was free, and return whether it was entered.

        `expected`: the most that the budget reserved for it, where it was in flight with others.
        """
        self.now.add(entry)
        return self._apply_end(entry, expected)

    def _apply_end(self, entry: CallOutcome, expected: float | None = None) -> bool:
        sent = self._in_flight.pop(entry.key, None)
        was_sent = sent is not None
        if sent is not None and entry.has_unknown_bill:
            self._unanswered.add(sent.cost, 1)
        elif sent is not None and (entry.outcome == "done" or entry.usd):
            billed = self.history.billing_of(sent.cost.pair)
            billed.add(sent.cost, entry.usd, entry.tokens_in, expected)
        if not was_sent and self.is_unreported(entry.key) and entry.outcome in ("done", "cached"):
            was_sent = self._pop_lost(entry.key) is not None
        elif entry.outcome == "done" and entry.key in self._lost:
            self._repeated.add(entry.key)
        if was_sent or entry.outcome != "cached":
            self._enter(_written_fields(entry))
        return was_sent or entry.outcome != "cached"

    def _pop_lost(self, key: str) -> CallCost | None:
        """Remove one lost call with this key and return its cost; None if there is none."""
        costs = self._lost.get(key)
        if not costs:
            return None
        cost = costs.pop()
        if costs:
            self._repeated.add(key)  # a reply belongs to one call, so the others stay unknown
        else:
            del self._lost[key]
            self._repeated.discard(key)
        self._lost_sums.add(cost, -1)
        return cost

    def _enter(self, entry: Mapping[str, Any]) -> None:
        self._entered += 1
        if self._file is not None:
            self._lines.append(write_line(entry))

    @property
    def entry_count(self) -> int:
        """Entries of this run."""
        return self._entered

    @property
    def kept_count(self) -> int:
        """Entries of this run that are written."""
        return self._kept

    def keep(self) -> None:
        """Write all entries that are not written yet."""
        self.write(*self.take())

    def take(self) -> tuple[bytes, int]:
        """Return the bytes to write, and the number of entries that are then written."""
        lines, self._lines = self._lines, []
        return b"".join(lines), self._entered

    def write(self, content: bytes, entered: int) -> None:
        """Write the result of `take`; may run on another thread."""
        if self._file is not None:
            self._file.write(content)
        self._kept = entered

    def _read(self, filesystem: fs.FileSystem, folder: str) -> int:
        """Load the entries of earlier runs, and of this one before its restart. Returns the number
        of files of this one.
        """
        runs: dict[str, list[str]] = {}
        for path in list_files(filesystem, folder):
            run = "-".join(os.path.basename(path).removesuffix(ENDING).split("-")[:2])
            runs.setdefault(run, []).append(path)
        own = runs.pop(self._name, [])
        for paths in runs.values():
            self._load(filesystem, paths, self.before)
            for key in list(self._in_flight):
                self.record_lost(key)
        self.runs = len(runs)
        if own:
            self._load(filesystem, own, self.now)
            self._lines = [b"\n"]  # a kill may have cut off the last line
        self._entered = self._kept = len(own)
        return len(own)

    def _find_missing(self, filesystem: fs.FileSystem, folder: str, own: str | None) -> None:
        """Enter the money that `run.json`, or the replies in a store of its own, know of beyond the
        call log. If both do, the greater sum counts. A log that was deleted whole counts from zero.
        """
        paths = list_files(filesystem, f"{folder}/{FOLDER}")
        spent, recorded = self.spent(), read_recorded(filesystem, folder)
        lacks_calls = spent.total.calls < recorded.calls or spent.unanswered < recorded.unanswered
        if not paths or (not self._damaged and not lacks_calls):
            return
        missing = recorded.usd - spent.total.usd - self._lost_sums.usd - self._unanswered.usd
        if own is not None:
            missing = max(missing, usd_of_replies(own, {*_ended(filesystem, paths), *self._lost}))
        if missing > self._missing_usd + ROUNDING_USD:
            self._enter({"missing": missing - self._missing_usd})
            self._missing_usd = missing

    def _load(self, filesystem: fs.FileSystem, paths: Iterable[str], usage: UsageTotals) -> None:
        files = [read_content(filesystem, path) for path in paths]
        entries, damaged = read_lines(b"".join(files))
        self._damaged += damaged + files.count(b"")  # a file begins with its first line
        for entry in entries:
            if "sent" in entry:
                cost = CallCost(**{name: entry[name] for name in COSTS if name in entry})
                self._in_flight[entry["sent"]] = SentCall(cost, entry.get("by", ""))
            elif "lost" in entry:
                self.record_lost(entry["lost"])
            elif "rejoined" in entry:
                self._pop_lost(entry["rejoined"])
            elif "missing" in entry:
                self._missing_usd += entry["missing"]
            else:
                outcome = CallOutcome(**{k: v for k, v in entry.items() if k in DEFAULTS})
                self._apply_end(outcome)
                usage.add(outcome)
                if usage is self.now and outcome.outcome == "done":
                    self.done.add(outcome.key)


def _ended(filesystem: fs.FileSystem, paths: Iterable[str]) -> Iterable[str]:
    """Return the keys of the calls that have an end."""
    for path in paths:
        yield from (
            entry["key"]
            for entry in read_lines(read_content(filesystem, path))[0]
            if "key" in entry
        )


def _written_fields(entry: CallOutcome) -> dict[str, Any]:
    """Return the fields to write: not the unwritten ones, and not those with default values."""
    return {
        name: value
        for name, value in vars(entry).items()
        if name not in UNWRITTEN_FIELDS and value != DEFAULTS[name]
    }


@dataclass(frozen=True, kw_only=True)
class RecordedSpent:
    """What `run.json` says that all runs had spent: calls, those without an answer, and dollars,
    those that lost calls may have cost included.
    """

    calls: int = 0
    unanswered: int = 0
    usd: float = 0.0


def read_recorded(filesystem: fs.FileSystem, folder: str) -> RecordedSpent:
    """Return what the last finished run of a folder recorded; nothing where that cannot be read."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        if filesystem.get_file_info(f"{folder}/{RECORD}").type != fs.FileType.File:
            return RecordedSpent()
        with filesystem.open_input_file(f"{folder}/{RECORD}") as file:
            spent: dict[str, Any] = json.loads(file.read())["llm"]["all_runs"]
        names = ("usd", "unknown_usd", "unanswered_usd")
        return RecordedSpent(
            calls=int(spent["calls"]),
            unanswered=int(spent.get("unanswered", 0)),
            usd=sum(float(spent.get(name, 0.0)) for name in names),
        )
    return RecordedSpent()


def is_own(store: str | None, out: str) -> bool:
    """Whether a store lies in the output folder, so that its replies were paid for by its runs."""
    return store is not None and store.startswith(in_folder(out, "").partition("?")[0])


def usd_of_replies(store: str, known: Container[str]) -> float:
    """Return the dollars of the stored replies to calls that are not `known`."""
    total, replies = 0.0, Store(store)
    with contextlib.suppress(OSError, MustseeError):
        for key in replies.keys(REPLIES):
            if key not in known and (content := replies.get(REPLIES, key)) is not None:
                with contextlib.suppress(ValueError, TypeError, AttributeError):
                    total += float(cast(dict[str, Any], json.loads(content)).get("usd", 0.0))
    return total
