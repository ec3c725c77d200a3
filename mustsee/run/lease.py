"""The lease of an output folder: one run at a time works on it.

A run writes a claim of its own into `<out>/lease/`, then lists the claims of all, and holds the
folder where there is no other. Of two that start together, at least the one that lists last meets
the other's claim: a local disk, S3 and GCS list whatever was written before, and so does NFS for
one who has just written into the folder. Of two that meet before either holds it, the one whose
name is greater withdraws.

A holder renews its claim every `BEAT_S` seconds. It is taken for dead where its process is gone, if
that is of this machine; else where its claim has not changed for `DEAD_S` seconds by the clock of
the one who watches. No two clocks are compared.
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
from mustsee.store import resolve

FOLDER = "lease"
BEAT_S = 10.0  # between two signs of life of a holder
DEAD_S = 30.0  # without one, after which a holder of another machine is taken for dead
POLL_S = 0.5  # between two looks at another's claim while one wants the folder
JOIN_S = 2.0  # between two looks at the holder's claim while one waits for its end
LONGEST_COMMAND = 300  # characters of it that are shown


@dataclass(frozen=True, kw_only=True)
class LeaseClaim:
    """Who wants a folder, or holds it. `machine`: tells the processes of one kernel and one
    container from all others; `process`: tells the process from a later one of the same `pid`;
    `beat`: how often it was renewed.
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
    """This run's hold on the folder `out`, from `acquire` to `release`. `say` gets a line for the
    user; `lost` is called on a thread of its own where another run has taken the folder over.
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
        self._watched: dict[str, tuple[Any, float, bool]] = {}  # content, since when, ever renewed
        self._made: list[str] = []  # folders that were not there before, the outermost first
        self._over = threading.Event()
        self._beats = threading.Thread(target=self._renew, name="lease", daemon=True)

    def acquire(self, *, join: bool = False) -> None:
        """Hold the folder. `join`: wait for the end of the run that holds it.

        Raises UserError where another run holds it, and MustseeError where it cannot be written.
        """
        waits = False
        while holder := self._guarded(self._try):
            if not join:
                raise UserError(
                    f"out={self._out!r} is in use by another run: {holder}; wait for its end or "
                    "stop it, choose another out=, or set join=true to wait and then go on with "
                    "what it has stored"
                )
            if not waits:
                self._say(f"waiting for the end of the run that holds {self._out!r}: {holder}")
            waits = True
            self._sleep(JOIN_S)
        self._beats.start()

    def release(self) -> None:
        """Let go of the folder."""
        self._over.set()
        if self._beats.is_alive():
            self._beats.join()
        with contextlib.suppress(OSError):
            self._remove(self._path(self._claim.name))
            while self._made:  # of a job that wrote nothing, nothing stays
                os.rmdir(self._made.pop())

    def _guarded(self, work: Callable[[], LeaseClaim | None]) -> LeaseClaim | None:
        try:
            return work()
        except OSError as error:
            raise MustseeError(
                f"cannot write the lease of out={self._out!r}: {error.strerror or error}; make the "
                "folder writable, or choose another out="
            ) from error

    def _try(self) -> LeaseClaim | None:
        """Hold the folder, or return who does."""
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
        """The run that holds the folder, once it has shown that it lives. Claims before which this
        run's would have to be withdrawn are waited for.
        """
        said = False
        while others := [each for each in self._others() if self._must_yield_to(each[0])]:
            holders = [(claim, lives) for claim, lives in others if claim.holds]
            if living := [claim for claim, lives in holders if lives]:
                return living[0]
            if holders and not said:
                said = True
                self._say(
                    f"out={self._out!r} was last held by {holders[0][0]}; looking for a sign of "
                    f"life of it, for {DEAD_S:g} s at most"
                )
            self._sleep(POLL_S)
        return None

    def _must_yield_to(self, other: LeaseClaim) -> bool:
        """Whether this run has no right to the folder while there is this other claim."""
        return other.holds or other.name < self._claim.name

    def _is_alone(self) -> bool:
        """Whether no other run holds the folder, or is about to, now that the claim is written.
        Those of greater names withdraw, unless they have not seen the claim.
        """
        while others := [claim for claim, _ in self._others()]:
            if any(map(self._must_yield_to, others)):
                return False
            self._sleep(POLL_S)
        return True

    def _others(self) -> Iterator[tuple[LeaseClaim, bool]]:
        """The claims of other runs, and whether they are known to live. The dead are removed."""
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        try:
            found = self._filesystem.get_file_info(selector)
        except FileNotFoundError:  # another run removed the folder while it was listed
            found = []
        for info in found:
            own = info.base_name == f"{self._claim.name}.json"
            if own or info.type != fs.FileType.File or not info.base_name.endswith(".json"):
                continue
            if (read := self._read(info.path)) is None:
                continue  # it was let go meanwhile
            claim, content = read
            lives = self._is_alive(claim, content)
            if lives is False:
                self._remove(info.path)
            else:
                yield claim, bool(lives)

    def _is_alive(self, claim: LeaseClaim, content: Any) -> bool | None:
        """Whether who wrote a claim lives; None: it is not known yet."""
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
            with contextlib.suppress(OSError):  # the next one may get through
                if (taken := self.renew()) is not None:
                    self._lost(taken)
                    return

    def renew(self) -> LeaseClaim | None:
        """Give a sign of life; the claim of another run, where one has taken the folder over."""
        path = self._path(self._claim.name)
        self._claim = replace(self._claim, beat=self._claim.beat + 1)
        if self._local:
            with contextlib.suppress(FileNotFoundError):
                os.utime(path)  # which a full disk takes as well
                return None
        elif self._filesystem.get_file_info(path).type == fs.FileType.File:
            self._write()
            return None
        for claim, _ in self._others():
            return claim
        self._write()  # somebody has cleared the folder
        return None

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}.json"

    def _read(self, path: str) -> tuple[LeaseClaim, Any] | None:
        """A claim, and what changes whenever it is renewed. None where it is gone."""
        try:
            with self._filesystem.open_input_file(path) as file:
                content = file.read()
            changed = os.stat(path).st_mtime_ns if self._local else 0
        except OSError:
            # Of what goes between opening and reading, S3 says no more than that it failed.
            if self._filesystem.get_file_info(path).type == fs.FileType.NotFound:
                return None
            raise
        try:
            claim = LeaseClaim(**json.loads(content))
        except (ValueError, TypeError):  # of another version: it counts as a holder
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
        for last in (False, False, True):
            try:
                self._make_folder()
                with open(f"{path}.new", "wb") as file:
                    file.write(content)
                os.replace(f"{path}.new", path)
                return
            except FileNotFoundError:  # another run has just let go of the folder, and removed it
                if last:
                    raise

    def _make_folder(self) -> None:
        missing, folder = list[str](), self._folder
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        os.makedirs(self._folder, exist_ok=True)
        self._made = [*reversed(missing), *self._made] if missing else self._made or [self._folder]

    def _remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(path)


@contextlib.contextmanager
def hold_lease(out: str, recipe: str, *, join: bool = False) -> Generator[None]:
    """Hold the output folder for a run in this process. Where another run takes it over, which may
    only be when this one gave no sign of life, the block ends with MustseeError.
    """
    taken: list[LeaseClaim] = []

    def on_lost(claim: LeaseClaim) -> None:
        taken.append(claim)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    lease = Lease(out, command_line(["mustsee", recipe, *sys.argv[1:]]), say=_say, lost=on_lost)
    try:
        lease.acquire(join=join)
        yield
    except KeyboardInterrupt:
        if taken:
            raise MustseeError(
                f"this run gave no sign of life for {DEAD_S:g} s, and out={out!r} was taken over "
                f"by {taken[0]}; what is finished is kept"
            ) from None
        raise
    finally:
        lease.release()


def _say(line: str) -> None:
    print(hide_secrets(f"mustsee: {line}"), file=sys.stderr, flush=True)


def command_line(arguments: list[str]) -> str:
    """A command line without what stands before the @ of an address."""
    line = re.sub(r"(://)[^/@\s]+@", r"\1(key)@", hide_secrets(shlex.join(arguments)))
    return line if len(line) <= LONGEST_COMMAND else f"{line[:LONGEST_COMMAND]}..."


@functools.cache
def machine_id() -> str:
    """What all processes that see each other's numbers have in common, and no others."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()} {uuid.getnode():x}"


def process_start(pid: int) -> str | None:
    """When a process of this machine started, as a text that no other process of its number has; an
    empty one where there is no such process; None where that cannot be seen.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass  # it is there, and of another user
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
