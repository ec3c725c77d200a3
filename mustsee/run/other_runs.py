"""Calls that other runs on this machine have in flight, with the same store.

A run writes a file to `<store>/runs/` with its process and the path of its call log. A call that
another living run has sent is not sent a second time, because its reply will be in the shared
store. Runs on different machines, and runs with a store or an output folder on an object store, do
not see each other's calls in flight: they share only what is stored already.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Generator
from pathlib import Path

from mustsee.calls import call_log
from mustsee.files.folders import write_whole
from mustsee.files.store import is_local, resolve
from mustsee.run.lease import machine_id, process_start

FOLDER = "runs"
REFRESH_S = 1.0  # seconds between two searches for runs that started or ended


@contextlib.contextmanager
def register_run(store: str, out: str | None, run: str) -> Generator[str]:
    """Announce the call log file of `run` in `out` to other runs of this machine, inside the block.

    Yields the store's address, absolute for a local store, so that all processes can use it.
    """
    if not is_local(store):
        yield store
        return
    root = Path(resolve(store)[1])
    announcement = root / FOLDER / f"{run}.json"
    content = {
        "call_log": f"{out}/{call_log.FOLDER}/{run}.jsonl", "machine": machine_id(),
        "pid": os.getpid(), "process": process_start(os.getpid()),
    }  # fmt: skip
    if out is not None and is_local(out):
        with contextlib.suppress(OSError):  # a read-only store gets no replies to share
            announcement.parent.mkdir(parents=True, exist_ok=True)
            write_whole(announcement, json.dumps(content).encode())
    try:
        yield str(root)
    finally:
        with contextlib.suppress(OSError):
            announcement.unlink()


class RunFollower:
    """The calls in flight of one run, read from its call log."""

    def __init__(self, path: str) -> None:
        self._path, self._read, self._incomplete_line = path, 0, b""
        self.in_flight: set[str] = set()

    def read_new(self) -> None:
        """Read the entries that are new since the last call."""
        with contextlib.suppress(OSError):  # the run has made no entry yet
            info = os.stat(self._path)
            if info.st_size == self._read or not stat.S_ISREG(info.st_mode):
                return
            with open(self._path, "rb") as file:
                file.seek(self._read)
                new = file.read()
            self._read += len(new)
            *lines, self._incomplete_line = (self._incomplete_line + new).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    self._apply(json.loads(line))

    def _apply(self, entry: dict[str, str]) -> None:
        if "sent" in entry:
            self.in_flight.add(entry["sent"])
        else:
            self.in_flight.discard(entry.get("lost") or entry.get("key", ""))


class OtherRuns:
    """The other runs of a store, for the coordinator of `run`."""

    def __init__(
        self,
        store: str | None,
        run: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = Path(resolve(store)[1], FOLDER) if store and is_local(store) else None
        self._run, self._clock = run, clock
        self._runs: dict[str, RunFollower] = {}
        self._due = 0.0

    def refresh(self) -> None:
        """Read the new entries of the other runs."""
        if self._folder is None:
            return
        if self._clock() >= self._due:
            self._due = self._clock() + REFRESH_S
            living = self._living_call_logs(self._folder)
            self._runs = {path: self._runs.get(path) or RunFollower(path) for path in living}
        for run in self._runs.values():
            run.read_new()

    def is_in_flight(self, key: str) -> bool:
        """Whether another run has this call in flight."""
        return any(key in run.in_flight for run in self._runs.values())

    def _living_call_logs(self, folder: Path) -> list[str]:
        """Return the call logs of runs whose process lives, and remove the files of dead ones."""
        call_logs = list[str]()
        for path in folder.glob("*.json"):
            if path.stem == self._run:
                continue
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                run = json.loads(path.read_text())
                if run["machine"] != machine_id():
                    continue
                if process_start(run["pid"]) == run["process"]:
                    call_logs.append(run["call_log"])
                else:
                    path.unlink()
        return call_logs
