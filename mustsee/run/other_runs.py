"""Calls that other runs have in flight, where they share a store on this machine.

A run notes in `<store>/runs/` which process it is and where its call log is. What another living
run has entered there as sent, and not as ended, need not be sent again: the reply comes into the
store that they share. Runs on several machines, and those whose store or output folder is an object
store, do not know of each other: they find only what the other has stored by then.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path

from mustsee.calls import call_log
from mustsee.run.lease import machine_id, process_start
from mustsee.store import is_local, resolve

FOLDER = "runs"
LOOK_S = 1.0  # between two looks for runs that have come or gone


@contextlib.contextmanager
def register_run(store: str, out: str | None, run: str) -> Generator[str]:
    """Let other runs of this machine know, while this is entered, in which file this process enters
    its calls: that of `run` in the call log of `out`. Gives the store's address for all processes.
    """
    if not is_local(store):
        yield store
        return
    root = Path(resolve(store)[1])
    noted = root / FOLDER / f"{run}.json"
    told = {
        "call_log": f"{out}/{call_log.FOLDER}/{run}.jsonl", "machine": machine_id(),
        "pid": os.getpid(), "process": process_start(os.getpid()),
    }  # fmt: skip
    if out is not None and is_local(out):
        with contextlib.suppress(OSError):  # a store that is only read: nothing is shared
            noted.parent.mkdir(parents=True, exist_ok=True)
            fresh = noted.with_suffix(".new")
            fresh.write_text(json.dumps(told))
            fresh.rename(noted)
    try:
        yield str(root)
    finally:
        with contextlib.suppress(OSError):
            noted.unlink()


class RunFollower:
    """The calls in flight of one run, by its call log."""

    def __init__(self, path: str) -> None:
        self._path, self._read, self._half = path, 0, b""
        self.in_flight: set[str] = set()

    def read_new(self) -> None:
        """Read what was entered since."""
        with contextlib.suppress(OSError):  # it has entered nothing yet
            if os.stat(self._path).st_size == self._read:
                return
            with open(self._path, "rb") as file:
                file.seek(self._read)
                new = file.read()
            self._read += len(new)
            *lines, self._half = (self._half + new).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    self._take(json.loads(line))

    def _take(self, told: dict[str, str]) -> None:
        if "sent" in told:
            self.in_flight.add(told["sent"])
        else:
            self.in_flight.discard(told.get("lost") or told.get("key", ""))


class OtherRuns:
    """The runs of a store but for `run`, as the coordinator of that one sees them."""

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
        """Learn what the others have sent and got."""
        if self._folder is None:
            return
        if self._clock() >= self._due:
            self._due = self._clock() + LOOK_S
            living = self._living_daybooks(self._folder)
            self._runs = {path: self._runs.get(path) or RunFollower(path) for path in living}
        for run in self._runs.values():
            run.read_new()

    def is_in_flight(self, key: str) -> bool:
        """Whether another run has this call in flight."""
        return any(key in run.in_flight for run in self._runs.values())

    def _living_daybooks(self, folder: Path) -> list[str]:
        """The daybooks of the runs whose process lives; what the dead have left is removed."""
        found = list[str]()
        for path in folder.glob("*.json"):
            if path.stem == self._run:
                continue
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                told = json.loads(path.read_text())
                if told["machine"] != machine_id():
                    continue
                if process_start(told["pid"]) == told["process"]:
                    found.append(told["call_log"])
                else:
                    path.unlink()
        return found
