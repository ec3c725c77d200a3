"""The files of the call log: one for each run on a local disk, some on an object store. Their lines
are JSON objects, each with a checksum of its content.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import xxhash
from pyarrow import fs

from mustsee.errors import MustseeError
from mustsee.files.store import refuse_special

SUM = "sum"  # the checksum, the last field of a line


def write_line(entry: Mapping[str, Any]) -> bytes:
    """Return an entry as a line."""
    content = _json_of(entry)
    return b'%s,"%s":"%s"}\n' % (content[:-1], SUM.encode(), _checksum(content).encode())


def read_lines(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the entries of a file's lines, and the number of lines that are damaged.

    A damaged line is skipped; if it ended a call, that call counts as lost. Blank lines are none.
    """
    entries, damaged = list[dict[str, Any]](), 0
    for line in content.splitlines():
        if not line:
            continue
        entry = _read_line(line)
        damaged += entry is None
        if entry is not None:
            entries.append(entry)
    return entries, damaged


def _read_line(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    entry = cast(dict[str, Any], entry)
    checksum = entry.pop(SUM, None)  # lines of early versions have none
    return entry if checksum in (None, _checksum(_json_of(entry))) else None


def _json_of(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()


def _checksum(content: bytes) -> str:
    return xxhash.xxh3_64_hexdigest(content)


ENDING = ".jsonl"
# A file on an object store is rewritten with each entry, so a new one begins at this size.
LARGE_FILE_BYTES = 1 << 20
SYNC_S = 1.0  # seconds between two syncs of a local file; more where a sync takes more than
SYNC_SHARE = 0.02  # share of the time that writing through to the disk may take


class RunFile:
    """The file, or files, of one run, to which its entries are written. `number`: how many the run
    has already, before it was restarted.
    """

    def __init__(
        self, filesystem: fs.FileSystem, folder: str, run: str, number: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._filesystem, self._folder, self._run, self._clock = filesystem, folder, run, clock
        self.local = isinstance(filesystem, fs.LocalFileSystem)
        self._opened: int | None = None  # descriptor on a local disk
        self._unsynced, self._next_sync = False, -float("inf")
        self._number, self._content = number, b""  # of the current file on an object store

    def write(self, content: bytes) -> None:
        """Write lines; without any, only sync. Raises MustseeError."""
        try:
            if content and self.local:
                self._append(content)
            elif content:
                self._put(content)
            self._sync()
        except OSError as error:
            raise MustseeError(
                f"cannot write the call log {self._folder!r}, which gets every call before it is "
                f"paid for: {error.strerror or error}; free space, or choose another out="
            ) from error

    def _append(self, content: bytes) -> None:
        if self._opened is None:
            self._filesystem.create_dir(self._folder)
            path = f"{self._folder}/{self._run}{ENDING}"
            self._opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            _sync_folder(self._folder)  # which holds the file's name
        while content:
            content = content[os.write(self._opened, content) :]
        self._unsynced = True

    def _sync(self) -> None:
        """Have the disk keep what was written, unless that was done a moment ago."""
        began = self._clock()
        if self._opened is not None and self._unsynced and began >= self._next_sync:
            os.fsync(self._opened)
            self._unsynced = False
            self._next_sync = began + max(SYNC_S, (self._clock() - began) / SYNC_SHARE)

    def _put(self, content: bytes) -> None:
        self._content += content
        path = f"{self._folder}/{self._run}-{self._number:05d}{ENDING}"
        with self._filesystem.open_output_stream(path) as file:
            file.write(self._content)
        if len(self._content) > LARGE_FILE_BYTES:
            self._number, self._content = self._number + 1, b""


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def list_files(filesystem: fs.FileSystem, folder: str) -> list[str]:
    """Return the paths of the call log, in the order of the runs' starts. Raises MustseeError."""
    try:
        infos = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    except OSError as error:
        raise _unreadable(folder, error) from error
    return sorted(info.path for info in infos if info.base_name.endswith(ENDING))


def read_content(filesystem: fs.FileSystem, path: str, max_bytes: int | None = None) -> bytes:
    """Return the content of a file. Raises MustseeError."""
    if isinstance(filesystem, fs.LocalFileSystem):
        refuse_special(path)
    try:
        with filesystem.open_input_file(path) as file:
            return file.read(max_bytes)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> MustseeError:
    return MustseeError(
        f"cannot read {path!r}, the call log of earlier runs: {error.strerror or error}; make it "
        "readable, or choose another out="
    )
