"""A content-addressed store on `pyarrow.fs`: a local folder, S3 or GCS.

A key is the hash of everything that decides a value, so a value is never wrong, only present or
absent. Writes are atomic (temporary file and rename, or one PUT), so that several processes may
share a store and a kill leaves no half of a value.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, BinaryIO, cast
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from mustsee.errors import MustseeError, UserError, secrets_in

PLAIN = frozenset({str, int, float, bool, type(None)})
_ONE = pa.ipc.IpcReadOptions(use_threads=False)  # a row is small: handing it to threads costs more


def resolve(path: str) -> tuple[fs.FileSystem, str]:
    """The filesystem and the path within it, of a local path or an `s3://` or `gs://` address, in
    which spaces and foreign letters may stand as they are. Raises UserError.
    """
    secrets_in(path)  # s3://KEY:SECRET@bucket
    if path.startswith(("http://", "https://")):
        raise UserError(
            f"cannot open {path!r}: web addresses are not read; download the file first, or put it "
            "into s3:// or gs://"
        )
    if "://" in path:
        address = quote(path, safe="/:?#@!$&'()*+,;=%~")
        if path.startswith("s3://"):  # else what is written takes three requests in place of one
            address += ("&" if "?" in path else "?") + "allow_delayed_open=true"
        try:
            return fs.FileSystem.from_uri(address)
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(
                f"cannot open {path!r}: {error}; use a local path, s3://bucket/... or gs://bucket/..."
            ) from error
    return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(path))


def is_local(path: str) -> bool:
    """Whether a path is on a disk of this machine, where files can be appended to and renamed."""
    return isinstance(resolve(path)[0], fs.LocalFileSystem)


def writable(path: str) -> str | None:
    """Why nothing can be written into the folder at `path`, in a few words, or None. What is not
    there yet stays so. Raises UserError for an address that cannot be read.
    """
    filesystem, place = resolve(path)
    name = f".mustsee-{uuid.uuid4().hex}"
    try:
        if not isinstance(filesystem, fs.LocalFileSystem):
            with filesystem.open_output_stream(f"{place}/{name}") as stream:
                stream.write(b"?")
            filesystem.delete_file(f"{place}/{name}")
            return None
        folder = place
        while not os.path.lexists(folder):  # the nearest that is there is what must be written
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder):
            return f"{folder!r} is a file, not a folder"
        trial = os.path.join(folder, name)
        try:
            with open(trial, "wb") as file:
                file.write(b"?" * 4096)  # a disk that is full still takes an empty file
        finally:
            with contextlib.suppress(OSError):
                os.unlink(trial)
    except OSError as error:
        return error.strerror or str(error)
    return None


def identity(value: Any) -> Any:
    """What bears identity in a configured object, as plain data.

    A dataclass gives its class name, `version` and fields, without the fields marked
    `field(metadata={"identity": False})` (hardware: batch sizes, devices, connection counts); a
    function there makes a field's part of it from the object. An object with an `identity` property
    gives that.
    """
    if type(value) in PLAIN:
        return value
    if hasattr(value, "identity"):
        return value.identity
    if is_dataclass(value) and not isinstance(value, type):
        kept: dict[str, Any] = {}
        for name, mark in _marks(type(value)).items():
            part = getattr(value, name)
            if callable(mark):
                kept[name] = mark(value)
            elif mark:  # most parts are plain: rows are full of them
                kept[name] = part if type(part) in PLAIN else identity(part)
        return {
            "class": type(value).__name__,
            "version": str(getattr(value, "version", "")),
            **kept,
        }
    if isinstance(value, Mapping):
        return {str(k): identity(v) for k, v in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [identity(v) for v in cast(list[Any], value)]
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return value


@functools.cache
def _marks(cls: type) -> dict[str, Any]:
    return {f.name: f.metadata.get("identity", True) for f in fields(cls)}


def digest(value: Any) -> str:
    """SHA-256 (hex) of a value's canonical JSON; bytes inside are hashed, records count with their
    class name.
    """
    return hashlib.sha256(
        json.dumps(identity(value), sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


@dataclass(frozen=True)
class Store:
    """Bytes by key under `root`, in one folder per `kind` ("look", "llm", ...)."""

    root: str

    @cached_property
    def _place(self) -> tuple[fs.FileSystem, str]:
        return resolve(self.root)

    @cached_property
    def _local(self) -> bool:
        return isinstance(self._place[0], fs.LocalFileSystem)

    def _path(self, kind: str, key: str) -> str:
        return f"{self._place[1]}/{kind}/{key[:2]}/{key}"

    def get(self, kind: str, key: str) -> bytes | None:
        """The value, or None. Raises MustseeError when the store cannot be read."""
        path = self._path(kind, key)
        try:
            with open(path, "rb") if self._local else self._place[0].open_input_file(path) as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MustseeError(
                f"cannot read the store {self.root!r}: {error}; check that it is a folder that may "
                "be read, or set store="
            ) from error

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Store a value. Raises MustseeError when the store is full or cannot be written."""
        filesystem, path = self._place[0], self._path(kind, key)
        try:
            if not self._local:
                with filesystem.open_output_stream(path) as stream:
                    stream.write(value)
                return
            folder = os.path.dirname(path)
            temporary = f"{folder}/.{uuid.uuid4().hex}"
            try:
                with _created(temporary) as file:
                    file.write(value)
                os.replace(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            advice = "check that the folder exists and may be written, or set store="
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                advice = "free some space and run the same command again: what is finished is kept"
            raise MustseeError(
                f"cannot write to the store {self.root!r}: {error.strerror or error}; {advice}"
            ) from error

    def has(self, kind: str) -> bool:
        """Whether there may be values of a kind."""
        return self._place[0].get_file_info(f"{self._place[1]}/{kind}").type != fs.FileType.NotFound

    def keys(self, kind: str, since: float = 0.0) -> list[str]:
        """The keys of a kind's values that were stored since a UNIX time."""
        place = fs.FileSelector(f"{self._place[1]}/{kind}", recursive=True, allow_not_found=True)
        return sorted(
            info.base_name
            for info in self._place[0].get_file_info(place)
            if info.type == fs.FileType.File
            and not info.base_name.startswith(".")
            and info.mtime.timestamp() >= since
        )

    def get_table(self, kind: str, key: str) -> pa.Table | None:
        """A stored Arrow table, or None."""
        value = self.get(kind, key)
        return None if value is None else pa.ipc.open_stream(value, options=_ONE).read_all()

    def put_table(self, kind: str, key: str, table: pa.Table) -> None:
        """Store an Arrow table (IPC stream, zstd)."""
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        self.put(kind, key, sink.getvalue().to_pybytes())


def _created(path: str) -> BinaryIO:
    """A new file, in a folder that is nearly always there."""
    try:
        return open(path, "wb")
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")


@dataclass(frozen=True)
class Aside(Store):
    """A store that is only read; what is put stays in this process."""

    own: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])

    def get(self, kind: str, key: str) -> bytes | None:
        value = self.own.get((kind, key))
        return super().get(kind, key) if value is None else value

    def put(self, kind: str, key: str, value: bytes) -> None:
        self.own[kind, key] = value
