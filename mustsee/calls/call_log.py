"""The call log of an output folder: every call, entered before it is let go and again when it ends.

All runs of an `out=` enter their calls in `<out>/call_log/`, each run in files of its own, so that
a budget holds over all of them, and what was spent survives any kill. A call without an end was
sent, and its reply is unknown: it counts with the most that it may have cost. On a local disk
entries are appended (a process may be killed, but not the machine: nothing waits for the disk); on
an object store a file of them is written whole again until it is large. The coordinator of a run
that is started again under the same name goes on in the same files. Each entry carries its
checksum. What calls were billed, against what was estimated for them, is learnt from the same
entries (`mustsee.calls.budget`).
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import xxhash
from pyarrow import fs

from mustsee.calls.budget import BillingHistory, CallCost, Pair
from mustsee.calls.usage import CallCounts, CallOutcome, UsageTotals
from mustsee.errors import MustseeError
from mustsee.store import resolve

FOLDER = "call_log"
STAMP = "%Y%m%dT%H%M%S%f"  # of a run's beginning
# bytes of a file on an object store, which is written whole with each entry
LARGE_FILE_BYTES = 1 << 20
UNWRITTEN_FIELDS = ("account", "said", "quotas")  # of an entry: limits are not kept here
DEFAULTS = {f.name: f.default for f in fields(CallOutcome)}
COSTS = [f.name for f in fields(CallCost)]


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What all runs of an output folder did and paid: `runs` that made calls, dollars `by_stage`,
    and `unknown` calls that were sent without a reply, which cost at most `unknown_usd`: as much as
    calls of their model and prompt were billed.
    """

    runs: int = 0
    total: CallCounts = field(default_factory=CallCounts)
    by_stage: Mapping[str, float] = field(default_factory=dict[str, float])
    unknown: int = 0
    unknown_usd: float = 0.0

    def plain(self) -> dict[str, Any]:
        told = self.total.plain()
        counted = ("calls", "batched", "retries", "failed", "tokens_in", "tokens_out", "usd")
        return {
            "runs": self.runs,
            **{name: told[name] for name in counted},
            "by_stage": {name: round(usd, 8) for name, usd in sorted(self.by_stage.items())},
            "unknown": self.unknown,
            "unknown_usd": round(self.unknown_usd, 8),
        }


@dataclass(frozen=True)
class SentCall:
    """A call that is out: what it may cost, and who makes it."""

    cost: CallCost
    by: str = ""


def run_name(out: str | None = None, now: datetime | None = None) -> str:
    """What no other run of `out` is called. Names stand in the order of the runs' beginning, also
    where the clock was set back in between.
    """
    since = now or datetime.now(UTC)
    if out is not None:
        filesystem, folder = resolve(out)
        for path in _files(filesystem, f"{folder}/{FOLDER}")[-1:]:
            before = os.path.basename(path).partition("-")[0]
            with contextlib.suppress(ValueError):
                last = datetime.strptime(before, STAMP).replace(tzinfo=UTC)
                since = max(since, last + timedelta(microseconds=1))
    return f"{since:{STAMP}}-{uuid.uuid4().hex[:8]}"


def check_readable(out: str) -> None:
    """Raises MustseeError where earlier runs' entries cannot be read."""
    filesystem, folder = resolve(out)
    for path in _files(filesystem, f"{folder}/{FOLDER}"):
        _content(filesystem, path, 1)


class CallLog:
    """The entries of all runs of an `out=`, and of this one (`run`) as they come; of this run alone
    and in memory where there is no `out`.

    Raises MustseeError where the folder cannot be read or written.
    """

    def __init__(self, out: str | None = None, run: str | None = None) -> None:
        self.before = UsageTotals()  # of earlier runs
        self.now = UsageTotals()  # of this one; who enters a call's end adds it here
        self.done: set[str] = set()  # calls of this run that were done before it was started again
        self.history = BillingHistory()
        self.runs = 0
        self._open: dict[str, SentCall] = {}  # by this run
        self._lost: dict[str, list[CallCost]] = {}  # sent without a reply ever since
        self._lost_sums: dict[Pair, tuple[int, CallCost]] = {}  # how many of them, and their costs
        self._again: set[str] = set()  # lost calls that were made once more
        self._lines: list[bytes] = []
        self._entered = self._kept = 0
        self._place: tuple[fs.FileSystem, str] | None = None
        self._name = run or run_name(out)
        self._file: int | None = None  # an open file on a local disk
        self._part, self._whole = 0, b""  # of an object store's
        if out is not None:
            filesystem, folder = resolve(out)
            self._read(filesystem, f"{folder}/{FOLDER}")
            self._place = filesystem, f"{folder}/{FOLDER}"

    @property
    def local(self) -> bool:
        """Whether an entry costs microseconds to keep."""
        return self._place is None or isinstance(self._place[0], fs.LocalFileSystem)

    @property
    def usd(self) -> float:
        """What earlier runs paid, and what calls without a reply may have cost."""
        return self.before.total.usd + self._lost_usd

    @property
    def _lost_usd(self) -> float:
        return sum(self.history.likely_cost(cost) for _, cost in self._lost_sums.values())

    def spent(self, now: UsageTotals) -> Spent:
        """Of all runs, where this one's own usage totals is `now`."""
        return Spent(
            runs=self.runs + bool(self._entered),
            total=self.before.total.plus(now.total),
            by_stage={n: t.usd for n, t in self.before.plus(now).by_stage.items() if t.usd},
            unknown=sum(map(len, self._lost.values())),
            unknown_usd=self._lost_usd,
        )

    @property
    def calls_in_flight(self) -> Mapping[str, SentCall]:
        """This run's calls that are out."""
        return self._open

    def record_sent(self, key: str, cost: CallCost, by: str = "") -> None:
        """A call is let go."""
        self._open[key] = SentCall(cost, by)
        self._enter({"sent": key, **vars(cost), "by": by})

    def record_found(self, key: str) -> None:
        """A lost call is still out and waited for again, or its reply has come after all."""
        if self._found(key) is not None:
            self._enter({"rejoined": key})

    def record_lost(self, key: str) -> None:
        """Nobody waits for a call any more."""
        if key in self._open:
            cost = self._open.pop(key).cost
            self._lost.setdefault(key, []).append(cost)
            self._count_lost(cost, 1)
            self._enter({"lost": key})

    def is_unreported(self, key: str) -> bool:
        """Whether a reply to this call, if the store has one, is of a call that was lost."""
        return key in self._lost and key not in self._again

    def record_end(self, entry: CallOutcome, expected: float | None = None) -> bool:
        """A call ended, by whatever way; whether that was entered. What is free is not. `expected`:
        the most that was held back for it, where it was in flight with others.
        """
        sent = self._open.pop(entry.key, None)
        known = sent is not None
        if sent is not None and entry.outcome == "done":
            billed = self.history.billing_of(sent.cost.pair)
            billed.add(sent.cost, entry.usd, entry.tokens_in, expected)
        if not known and self.is_unreported(entry.key) and entry.outcome in ("done", "cached"):
            known = self._found(entry.key) is not None
        elif entry.outcome == "done" and entry.key in self._lost:
            self._again.add(entry.key)
        if known or entry.outcome != "cached":
            self._enter(_told(entry))
        return known or entry.outcome != "cached"

    def _found(self, key: str) -> CallCost | None:
        """The cost of a lost call that is lost no more."""
        costs = self._lost.get(key)
        if not costs:
            return None
        cost = costs.pop()
        if costs:
            self._again.add(key)  # one reply is that of one call: the others stay unknown
        else:
            del self._lost[key]
            self._again.discard(key)
        self._count_lost(cost, -1)
        return cost

    def _count_lost(self, cost: CallCost, calls: int) -> None:
        before, total = self._lost_sums.pop(cost.pair, (0, replace(cost, usd=0.0, usd_in=0.0)))
        if before + calls:
            usd, usd_in = total.usd + calls * cost.usd, total.usd_in + calls * cost.usd_in
            self._lost_sums[cost.pair] = before + calls, replace(total, usd=usd, usd_in=usd_in)

    def _enter(self, told: Mapping[str, Any]) -> None:
        self._entered += 1
        if self._place is not None:
            content = _content_of(told)
            self._lines.append(b'%s,"sum":"%s"}\n' % (content[:-1], _checksum(content)))

    @property
    def entry_count(self) -> int:
        """How many entries there are of this run."""
        return self._entered

    @property
    def kept_count(self) -> int:
        """How many of them are kept by now."""
        return self._kept

    def keep(self) -> None:
        """Write what was entered and is not kept yet."""
        self.write(*self.take())

    def take(self) -> tuple[bytes, int]:
        """What is to be written, and how many entries are kept then."""
        lines, self._lines = self._lines, []
        return b"".join(lines), self._entered

    def write(self, content: bytes, entered: int) -> None:
        """Write what `take` gave; on another thread, if need be."""
        if self._place is not None and content:
            filesystem, folder = self._place
            try:
                if self.local:
                    self._append(filesystem, folder, content)
                else:
                    self._put(filesystem, folder, content)
            except OSError as error:
                raise MustseeError(
                    f"cannot write {folder!r}, where calls are entered before they are paid for: "
                    f"{error.strerror or error}; free space, or choose another out="
                ) from error
        self._kept = entered

    def _append(self, filesystem: fs.FileSystem, folder: str, content: bytes) -> None:
        if self._file is None:
            filesystem.create_dir(folder)
            path = f"{folder}/{self._name}.jsonl"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(self._file, content)

    def _put(self, filesystem: fs.FileSystem, folder: str, content: bytes) -> None:
        self._whole += content
        with filesystem.open_output_stream(f"{folder}/{self._name}-{self._part:05d}.jsonl") as file:
            file.write(self._whole)
        if len(self._whole) > LARGE_FILE_BYTES:
            self._part, self._whole = self._part + 1, b""

    def _read(self, filesystem: fs.FileSystem, folder: str) -> None:
        """Take over what earlier runs entered, and this one before it was started again."""
        runs: dict[str, list[str]] = {}
        for path in _files(filesystem, folder):
            run = "-".join(os.path.basename(path).removesuffix(".jsonl").split("-")[:2])
            runs.setdefault(run, []).append(path)
        own = runs.pop(self._name, [])
        for paths in runs.values():
            self._take(filesystem, paths, self.before)
            for key in list(self._open):
                self.record_lost(key)
        self.runs = len(runs)
        if own:
            self._take(filesystem, own, self.now)
            self._part, self._lines = len(own), [b"\n"]  # a kill may have cut the last line off
        self._entered = self._kept = len(own)

    def _take(self, filesystem: fs.FileSystem, paths: Iterable[str], usage: UsageTotals) -> None:
        for line in b"".join(_content(filesystem, path) for path in paths).splitlines():
            try:
                told = json.loads(line)
            except ValueError:  # a kill cut the last one off
                continue
            if not isinstance(told, dict):
                continue
            told = cast(dict[str, Any], told)
            checksum = told.pop("sum", None)  # lines of earlier versions have none
            if checksum not in (None, _checksum(_content_of(told)).decode()):
                continue  # damaged: where it was a call's end, the call counts as lost
            if "sent" in told:
                cost = CallCost(**{name: told[name] for name in COSTS if name in told})
                self._open[told["sent"]] = SentCall(cost, told.get("by", ""))
            elif "lost" in told:
                self.record_lost(told["lost"])
            elif "rejoined" in told:
                self._found(told["rejoined"])
            else:
                entry = CallOutcome(**{k: v for k, v in told.items() if k in DEFAULTS})
                self.record_end(entry)
                usage.add(entry)
                if usage is self.now and entry.outcome == "done":
                    self.done.add(entry.key)


def _files(filesystem: fs.FileSystem, folder: str) -> list[str]:
    """What was entered, in the order of the runs' beginning."""
    try:
        found = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    except OSError as error:
        raise _unreadable(folder, error) from error
    return sorted(info.path for info in found if info.base_name.endswith(".jsonl"))


def _content(filesystem: fs.FileSystem, path: str, most: int | None = None) -> bytes:
    try:
        with filesystem.open_input_file(path) as file:
            return file.read(most)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> MustseeError:
    return MustseeError(
        f"cannot read {path!r}, where earlier runs entered their calls: "
        f"{error.strerror or error}; make it readable, or choose another out="
    )


def _content_of(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode()


def _checksum(content: bytes) -> bytes:
    return xxhash.xxh3_64_hexdigest(content).encode()


def _told(entry: CallOutcome) -> dict[str, Any]:
    """What an entry says, without what it leaves out."""
    return {
        name: value
        for name, value in vars(entry).items()
        if name not in UNWRITTEN_FIELDS and value != DEFAULTS[name]
    }
