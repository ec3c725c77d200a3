"""The lease of an output folder: one run at a time works on it.

A run writes a claim into `<out>/lease/`, then lists all claims, and holds the folder if there is no
other one. Of two runs that start together, at least the one that lists last sees the other's claim:
a local disk, S3 and GCS list everything written before, and so does NFS for a client that has just
written into the folder. If both see each other before either holds the folder, the one with the
greater name withdraws.

A holder renews its claim every `BEAT_S` seconds. A holder on this machine counts as dead when its
process is gone; another one when its claim has not changed for `DEAD_S` seconds of the observer's
clock. Clocks of different machines are never compared.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import re
import shlex
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import psutil
from pyarrow import fs

from mustsee.errors import MustseeError, UserError, hide_secrets
from mustsee.files.store import resolve

FOLDER = "lease"
BEAT_S = 10.0  # seconds between two renewals of a claim
DEAD_S = 30.0  # seconds without a renewal after which a holder on another machine counts as dead
POLL_S = 0.5  # seconds between two reads of another claim while acquiring the folder
JOIN_S = 2.0  # seconds between two reads of the holder's claim while waiting for its end
LAST_TRY = (*[False] * 9, True)  # tries to write a claim while other runs remove the folder
LONGEST_COMMAND = 300  # characters of a command that are shown


@dataclass(frozen=True, kw_only=True)
class LeaseClaim:
    """A run that wants or holds a folder.

    `machine`: identifies the kernel and container of the process.
    `process`: distinguishes the process from a later one with the same `pid`.
    `beat`: number of renewals.
    """

    name: str
    host: str
    machine: str
    pid: int
    process: str
    since: str
    command: str
    holds: bool = False
    beat: int = 0

    def __str__(self) -> str:
        return f"{self.command} (process {self.pid} on {self.host}, since {self.since})"


class Lease:
    """This run's lease of the folder `out`, from `acquire` to `release`.

    `say` gets a line for the user. `lost` is called, on a thread of its own, if another run has
    taken over the folder.
    """

    def __init__(
        self,
        out: str,
        command: str,
        *,
        say: Callable[[str], object],
        lost: Callable[[LeaseClaim], object],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        machine: str | None = None,
    ) -> None:
        self._out, self._say, self._lost = out, say, lost
        self._clock, self._sleep = clock, sleep
        self._filesystem, folder = resolve(out)
        self._folder = f"{folder}/{FOLDER}"
        self._local = isinstance(self._filesystem, fs.LocalFileSystem)
        self._claim = LeaseClaim(
            name=uuid.uuid4().hex,
            host=platform.node(),
            machine=machine or machine_id(),
            pid=os.getpid(),
            process=process_start(os.getpid()) or "",
            since=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
            command=command,
        )
        # By the name of a claim: its content, since when, and whether it was ever renewed.
        self._watched: dict[str, tuple[Any, float, bool]] = {}
        self._made: list[str] = []  # folders that this run made, the outermost first
        self._over = threading.Event()
        self._beats = threading.Thread(target=self._renew, name="lease", daemon=True)

    def acquire(self, *, join: bool = False) -> None:
        """Acquire the folder. `join`: wait for the end of the run that holds it.

        Raises UserError if another run holds it, and MustseeError if it cannot be written.
        """
        is_waiting = False
        while holder := self._guarded(self._try_to_acquire):
            if not join:
                raise UserError(
                    f"out={self._out!r} is in use by another run: {holder}; wait for its end or "
                    "stop it, choose another out=, or set join=true to wait for its end and then "
                    "continue its work"
                )
            if not is_waiting:
                self._say(f"waiting for the end of the run that holds {self._out!r}: {holder}")
            is_waiting = True
            self._sleep(JOIN_S)
        self._beats.start()

    def release(self) -> None:
        """Release the folder."""
        self._over.set()
        if self._beats.is_alive():
            self._beats.join()
        with contextlib.suppress(OSError):
            self._remove(self._path(self._claim.name))
            while self._made:  # a job that wrote nothing leaves no empty folders
                os.rmdir(self._made.pop())

    def _guarded(self, work: Callable[[], LeaseClaim | None]) -> LeaseClaim | None:
        try:
            return work()
        except OSError as error:
            raise MustseeError(
                f"cannot write the lease of out={self._out!r}: {error.strerror or error}; make the "
                "folder writable, or choose another out="
            ) from error

    def _try_to_acquire(self) -> LeaseClaim | None:
        """Acquire the folder, or return the claim of its holder."""
        while True:
            if holder := self._holder():
                return holder
            self._write()
            if self._is_alone():
                self._claim = replace(self._claim, holds=True)
                self._write()
                return None
            self._remove(self._path(self._claim.name))

    def _holder(self) -> LeaseClaim | None:
        """Return the claim of a living run that holds the folder, or None.

        Blocks while there are claims to which this run must yield and which may be of dead runs.
        """
        has_reported = False
        while others := [each for each in self._others() if self._must_yield_to(each[0])]:
            holders = [(claim, lives) for claim, lives in others if claim.holds]
            if living := [claim for claim, lives in holders if lives]:
                return living[0]
            if holders and not has_reported:
                has_reported = True
                self._say(
                    f"out={self._out!r} was last held by {holders[0][0]}; checking for at most "
                    f"{DEAD_S:g} s whether it still runs"
                )
            self._sleep(POLL_S)
        return None

    def _must_yield_to(self, other: LeaseClaim) -> bool:
        """Whether this run may not acquire the folder while the other claim exists."""
        return other.holds or other.name < self._claim.name

    def _is_alone(self) -> bool:
        """Whether no other run holds or acquires the folder, once this run's claim is written.

        Blocks until runs with greater names have withdrawn.
        """
        while others := [claim for claim, _ in self._others()]:
            if any(map(self._must_yield_to, others)):
                return False
            self._sleep(POLL_S)
        return True

    def _others(self) -> Iterator[tuple[LeaseClaim, bool]]:
        """Yield the claims of other runs, and whether they surely live; remove dead ones."""
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        try:
            infos = self._filesystem.get_file_info(selector)
        except FileNotFoundError:  # another run removed the folder while it was listed
            infos = []
        for info in infos:
            is_own = info.base_name == f"{self._claim.name}.json"
            if is_own or info.type != fs.FileType.File or not info.base_name.endswith(".json"):
                continue
            if (read := self._read(info.path)) is None:
                continue  # the claim was released after the listing
            claim, content = read
            lives = self._is_alive(claim, content)
            if lives is False:
                self._remove(info.path)
            else:
                yield claim, bool(lives)

    def _is_alive(self, claim: LeaseClaim, content: Any) -> bool | None:
        """Whether the run of a claim lives; None while it is unknown."""
        if claim.machine == self._claim.machine and (now := process_start(claim.pid)) is not None:
            return now == claim.process
        before, since, renewed = self._watched.get(claim.name, (content, self._clock(), False))
        if content != before:
            since, renewed = self._clock(), True
        self._watched[claim.name] = content, since, renewed
        if self._clock() - since >= DEAD_S:
            return False
        return renewed or None

    def _renew(self) -> None:
        while not self._over.wait(BEAT_S):
            with contextlib.suppress(OSError):  # the next renewal may succeed
                if (taken := self.renew()) is not None:
                    self._lost(taken)
                    return

    def renew(self) -> LeaseClaim | None:
        """Renew the claim, and return the claim of a run that has taken over the folder, if any."""
        path = self._path(self._claim.name)
        self._claim = replace(self._claim, beat=self._claim.beat + 1)
        if self._local:
            with contextlib.suppress(FileNotFoundError):
                os.utime(path)  # this succeeds on a full disk too
                return None
        elif self._filesystem.get_file_info(path).type == fs.FileType.File:
            self._write()
            return None
        if taken := next(self._others(), None):
            return taken[0]
        self._write()  # the folder was cleared
        if taken := next(self._others(), None):  # by a run that takes it over at this moment
            self._remove(path)
            return taken[0]
        return None

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}.json"

    def _read(self, path: str) -> tuple[LeaseClaim, Any] | None:
        """Return a claim, and a value that changes with each renewal; None if it is gone."""
        try:
            with self._filesystem.open_input_file(path) as file:
                content = file.read()
            changed = os.stat(path).st_mtime_ns if self._local else 0
        except OSError:
            # S3 reports a file that was deleted between opening and reading as a plain failure.
            if self._filesystem.get_file_info(path).type == fs.FileType.NotFound:
                return None
            raise
        try:
            claim = LeaseClaim(**json.loads(content))
        except (ValueError, TypeError):  # a claim of another version counts as a holder's
            name = os.path.basename(path).removesuffix(".json")
            claim = replace(
                self._claim, name=name, machine="", pid=0, host="?", command="?", holds=True
            )
        return claim, (content, changed)

    def _write(self) -> None:
        path, content = self._path(self._claim.name), json.dumps(asdict(self._claim)).encode()
        if not self._local:
            with self._filesystem.open_output_stream(path) as stream:
                stream.write(content)
            return
        for is_last_try in LAST_TRY:
            try:
                self._make_folder()
                with open(f"{path}.new", "wb") as file:
                    file.write(content)
                os.replace(f"{path}.new", path)
                return
            except FileNotFoundError:  # another run has just released and removed the folder
                if is_last_try:
                    raise

    def _make_folder(self) -> None:
        missing, folder = list[str](), self._folder
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for is_last_try in LAST_TRY:
            try:
                os.makedirs(self._folder, exist_ok=True)
                break
            except (FileExistsError, FileNotFoundError):  # another run removed it meanwhile
                if is_last_try:  # a file has its name, for example
                    raise
        self._made = [*reversed(missing), *self._made] if missing else self._made or [self._folder]

    def _remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(path)


@contextlib.contextmanager
def hold_lease(out: str, recipe: str, *, join: bool = False) -> Generator[None]:
    """Hold the lease of the output folder for a run in this process.

    The block ends with MustseeError if another run takes over the folder, which it does only after
    this run failed to renew its claim.
    """
    successors: list[LeaseClaim] = []

    def on_lost(claim: LeaseClaim) -> None:
        successors.append(claim)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    lease = Lease(out, command_line(["mustsee", recipe, *sys.argv[1:]]), say=_say, lost=on_lost)
    # SIGUSR1 instead of SIGINT, which is ignored by processes in the background of a script.
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGUSR1, _interrupt) if is_main else None
    try:
        lease.acquire(join=join)
        yield
    except KeyboardInterrupt:
        if successors:
            raise MustseeError(
                f"this run did not renew its lease for {DEAD_S:g} s, and out={out!r} was taken "
                f"over by {successors[0]}; finished work is kept"
            ) from None
        raise
    finally:
        lease.release()
        if is_main:
            signal.signal(signal.SIGUSR1, before)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(hide_secrets(f"mustsee: {line}"), file=sys.stderr, flush=True)


def command_line(arguments: list[str]) -> str:
    """Return a command line without the credentials in its addresses, shortened if it is long."""
    line = re.sub(r"(://)[^/@\s]+@", r"\1(key)@", hide_secrets(shlex.join(arguments)))
    return line if len(line) <= LONGEST_COMMAND else f"{line[:LONGEST_COMMAND]}..."


@functools.cache
def machine_id() -> str:
    """Return a text shared by exactly the processes that see each other's process numbers."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()} {uuid.getnode():x}"


def process_start(pid: int) -> str | None:
    """Return when a process of this machine started, as a text that is unique for its number.

    The text is empty if there is no such process. None: it cannot be determined.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass  # the process exists and belongs to another user
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *fields = file.read().rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]  # clock ticks since the machine started
    except OSError:
        pass
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return None
