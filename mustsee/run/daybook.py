"""The daybook of an output folder: every call, entered before it is let go and again when it ends.

All runs of an `out=` enter their calls in `<out>/daybook/`, each run in files of its own, so that a
budget holds over all of them, and what was spent survives any kill. A call without an end was sent,
and its reply is unknown: it counts with the most that it may have cost. On a local disk entries are
appended (a process may be killed, but not the machine: nothing waits for the disk); on an object
store a file of them is written whole again until it is large.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from pyarrow import fs

from mustsee.errors import MustseeError
from mustsee.run.ledger import Entry, Ledger, Tally
from mustsee.store import resolve

FOLDER = "daybook"
LARGE = 1 << 20  # bytes of a file on an object store, which is written whole with each entry
UNTOLD = ("account", "again", "retry_after")  # of an entry: nothing that was spent depends on it
DEFAULTS = {f.name: f.default for f in fields(Entry)}


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What all runs of an output folder did and paid: `runs` that made calls, and `unknown` calls
    that were sent without a reply, which cost at most `unknown_usd`.
    """

    runs: int = 0
    total: Tally = field(default_factory=Tally)
    unknown: int = 0
    unknown_usd: float = 0.0

    def plain(self) -> dict[str, Any]:
        told = self.total.plain()
        counted = ("calls", "batched", "retries", "failed", "tokens_in", "tokens_out", "usd")
        return {
            "runs": self.runs,
            **{name: told[name] for name in counted},
            "unknown": self.unknown,
            "unknown_usd": round(self.unknown_usd, 8),
        }


class Daybook:
    """The entries of all runs of an `out=`, and of this one as they come; of this run alone and in
    memory where there is no `out`.

    Raises MustseeError where the folder cannot be read or written.
    """

    def __init__(self, out: str | None = None) -> None:
        self.before = Ledger()  # of earlier runs
        self.runs = 0
        self._open: dict[str, float] = {}  # sent by this run -> the most that it may cost
        self._lost: dict[str, list[float]] = {}  # the same, sent without a reply ever since
        self._lost_usd = 0.0
        self._lines: list[bytes] = []
        self._entered = self._kept = 0
        self._place: tuple[fs.FileSystem, str] | None = None
        if out is not None:
            filesystem, folder = resolve(out)
            self._read(filesystem, f"{folder}/{FOLDER}")
            self._place = filesystem, f"{folder}/{FOLDER}"
        self._name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:8]}"
        self._file: int | None = None  # an open file on a local disk
        self._part, self._whole = 0, b""  # of an object store's

    @property
    def local(self) -> bool:
        """Whether an entry costs microseconds to keep."""
        return self._place is None or isinstance(self._place[0], fs.LocalFileSystem)

    @property
    def usd(self) -> float:
        """What earlier runs paid, and what calls without a reply may have cost."""
        return self.before.total.usd + self._lost_usd

    def spent(self, now: Ledger) -> Spent:
        """Of all runs, where this one's own ledger is `now`."""
        return Spent(
            runs=self.runs + bool(self._entered),
            total=self.before.total.plus(now.total),
            unknown=sum(map(len, self._lost.values())),
            unknown_usd=self._lost_usd,
        )

    def sent(self, key: str, usd: float) -> None:
        """A call is let go, at the most that it may cost."""
        self._open[key] = usd
        self._enter({"sent": key, "usd": usd})

    def rejoin(self, key: str) -> None:
        """A call of an earlier run is still out, and is waited for again: it is not lost."""
        if self._found(key) is not None:
            self._enter({"rejoined": key})

    def lose(self, key: str) -> None:
        """Nobody waits for a call any more."""
        if key in self._open:
            usd = self._open.pop(key)
            self._lost.setdefault(key, []).append(usd)
            self._lost_usd += usd
            self._enter({"lost": key})

    def ended(self, entry: Entry) -> None:
        """A call ended, by whatever way."""
        known = self._open.pop(entry.key, None)
        if known is None:
            known = self._found(entry.key)
        if known is not None or entry.outcome != "cached":
            self._enter(_told(entry))

    def _found(self, key: str) -> float | None:
        """The cost of a lost call that is lost no more."""
        costs = self._lost.get(key)
        if not costs:
            return None
        usd = costs.pop()
        if not costs:
            del self._lost[key]
        self._lost_usd = self._lost_usd - usd if self._lost else 0.0
        return usd

    def _enter(self, told: Mapping[str, Any]) -> None:
        self._entered += 1
        if self._place is not None:
            self._lines.append(json.dumps(told, separators=(",", ":")).encode() + b"\n")

    @property
    def entered(self) -> int:
        """How many entries there are of this run."""
        return self._entered

    @property
    def kept(self) -> int:
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
        if len(self._whole) > LARGE:
            self._part, self._whole = self._part + 1, b""

    def _read(self, filesystem: fs.FileSystem, folder: str) -> None:
        """Take over what earlier runs entered."""
        runs: set[str] = set()
        for name, content in _files(filesystem, folder):
            run = "-".join(name.removesuffix(".jsonl").split("-")[:2])
            if run not in runs:
                self._lose_all()
            runs.add(run)
            for line in content.splitlines():
                try:
                    told = json.loads(line)
                except ValueError:  # a kill cut the last one off
                    continue
                self._take(told)
        self._lose_all()
        self.runs = len(runs)
        self._entered = 0

    def _take(self, told: Mapping[str, Any]) -> None:
        if "sent" in told:
            self._open[told["sent"]] = told["usd"]
        elif "lost" in told:
            self.lose(told["lost"])
        elif "rejoined" in told:
            self._found(told["rejoined"])
        else:
            entry = Entry(**{k: v for k, v in told.items() if k in DEFAULTS})
            self.ended(entry)
            self.before.add(entry)

    def _lose_all(self) -> None:
        for key in list(self._open):
            self.lose(key)


def _files(filesystem: fs.FileSystem, folder: str) -> Iterator[tuple[str, bytes]]:
    """What earlier runs entered, in the order of their beginning."""
    try:
        found = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        for info in sorted(found, key=lambda each: each.base_name):
            if info.base_name.endswith(".jsonl"):
                with filesystem.open_input_file(info.path) as file:
                    yield info.base_name, file.read()
    except OSError as error:
        raise MustseeError(
            f"cannot read {folder!r}, where earlier runs entered their calls: {error}"
        ) from error


def _told(entry: Entry) -> dict[str, Any]:
    """What an entry says, without what it leaves out."""
    return {
        name: value
        for name, value in vars(entry).items()
        if name not in UNTOLD and value != DEFAULTS[name]
    }
