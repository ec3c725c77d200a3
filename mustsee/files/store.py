"""A content-addressed store on `pyarrow.fs`: a local folder, S3 or GCS.

A key is the hash of everything that decides a value. Writes are atomic (temporary file and rename,
or one PUT), so that several processes can share a store and a kill leaves no half-written value.
Every object begins with a checksum of its name and content, which each read checks. A damaged or
unreadable object is moved to `damaged/` and counts as absent.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import stat
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, BinaryIO, cast
from urllib.parse import quote

import pyarrow as pa
import xxhash
from pyarrow import fs

from mustsee.errors import ACCOUNT, DiskFull, MustseeError, Unwritable, UserError, secrets_in

PLAIN = frozenset({str, int, float, bool, type(None)})
MAGIC = b"mustsee\1"  # the first bytes of an object, before the checksum
HEADER_BYTES = 16  # bytes before an object's content; a multiple of 8 keeps Arrow's buffers aligned
FORMAT_VERSION = "1"  # part of an object's name: objects of another version are ignored
DAMAGED = "damaged"  # the folder of damaged objects
# Errors of a file that the disk can no longer read. If the whole disk is lost, the first write ends
# the run.
UNREADABLE_ERRNO = frozenset({errno.EIO, errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EIO)})
MAX_DAMAGED = 100  # objects kept in DAMAGED; a further one is deleted
SPECIAL_FILES = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)  # rows are too small to gain from threads


def resolve(path: str) -> tuple[fs.FileSystem, str]:
    """Return the filesystem of a path, and the path within it.

    Takes a local path or an `s3://` or `gs://` address, whose spaces and non-ASCII letters need no
    escape. Raises UserError, also for a pipe or a device.
    """
    secrets_in(path)  # s3://KEY:SECRET@bucket
    if path.startswith(("http://", "https://")):
        raise UserError(
            f"cannot open {path!r}: web addresses are not read; download the file first, or put it "
            "into s3:// or gs://"
        )
    if "://" in path:
        address = quote(path, safe="/:?#@!$&'()*+,;=%~")
        if path.startswith("s3://"):  # without it a write takes three requests
            address += ("&" if "?" in path else "?") + "allow_delayed_open=true"
        try:
            return fs.FileSystem.from_uri(address)
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(
                f"cannot open {path!r}: {error}; use a local path, s3://bucket/... or gs://bucket/..."
            ) from error
    place = os.path.abspath(os.path.expanduser(path))
    refuse_special(place)
    return fs.LocalFileSystem(), place


def refuse_special(path: str) -> None:
    """Raise UserError if a local path, or what it links to, is a pipe, a device or a socket: to
    open one may wait for ever, and to read one may never end.
    """
    if kind := _special_kind(path):
        raise UserError(f"{path!r} is {kind}: it is not read; give a file or a folder")


def _special_kind(path: str) -> str | None:
    """What a local path is that is neither a file nor a folder; None for these, or for nothing."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # whoever opens it says what is wrong
        return None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return SPECIAL_FILES.get(stat.S_IFMT(mode), "neither a file nor a folder")


def address_of(path: str, root: str) -> str:
    """Return the address of a path that was found in the filesystem of the address `root`: with
    its scheme, account and options.
    """
    scheme, mark, rest = root.partition("://")
    if not mark:
        return path
    account = ACCOUNT.search(root)
    user = f"{account.group()}@" if account else ""
    return f"{scheme}://{user}{path}{''.join(rest.partition('?')[1:])}"


def in_folder(folder: str, name: str) -> str:
    """Return the path or address of a file or folder in the folder `folder`."""
    place = strip_options(folder)
    return f"{place.rstrip('/')}/{name}{folder[len(place) :]}"


def strip_options(address: str) -> str:
    """Return an address without `?OPTIONS`, so that it ends with the file's name. In the name of a
    local file a question mark is a letter.
    """
    return address.partition("?")[0] if "://" in address else address


def is_local(path: str) -> bool:
    """Whether a path is on a local disk, where files can be appended to and renamed."""
    return isinstance(resolve(path)[0], fs.LocalFileSystem)


def writable(path: str) -> str | None:
    """Return in a few words why the folder at `path` cannot be written, or None if it can.

    Creates nothing that stays. Raises UserError for an address that cannot be parsed.
    """
    if kind := _special_kind(path):
        return f"it is {kind}"
    filesystem, place = resolve(path)
    name = f".mustsee-{uuid.uuid4().hex}"
    try:
        if not isinstance(filesystem, fs.LocalFileSystem):
            with filesystem.open_output_stream(f"{place}/{name}") as stream:
                stream.write(b"?")
            filesystem.delete_file(f"{place}/{name}")
            return None
        folder = place
        while not os.path.lexists(folder):  # the nearest existing parent must be writable
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder):
            return f"{folder!r} is a file, not a folder"
        trial = os.path.join(folder, name)
        try:
            with open(trial, "wb") as file:
                file.write(b"?" * 4096)  # a full disk still accepts an empty file
        finally:
            with contextlib.suppress(OSError):
                os.unlink(trial)
    except OSError as error:
        return error.strerror or str(error)
    return None


def hardware(default: Any) -> Any:
    """Return a dataclass field that does not change the result, and is left out of store keys."""
    return field(default=default, metadata={"identity": False})


def keyed_by(value_of: Callable[[Any], Any], **options: Any) -> Any:
    """A field that counts in the store's key with `value_of(owner)`, such as the prompts' text in
    place of their folder. `options`: of `dataclasses.field`.
    """
    return field(metadata={"identity": value_of}, **options)


def identity(value: Any) -> Any:
    """Return the part of a configured object that decides its results, as plain data.

    An object with an `identity` property gives that. A dataclass gives its class name, `version`
    and fields: none that is declared with `hardware()` (batch sizes, devices, connection counts);
    for one declared with `keyed_by()`, the value that it names.
    """
    if type(value) in PLAIN:
        return value
    if hasattr(value, "identity"):
        return value.identity
    if is_dataclass(value) and not isinstance(value, type):
        marked: dict[str, Any] = {}
        for name, mark in _identity_marks(type(value)).items():
            content = getattr(value, name)
            if callable(mark):
                marked[name] = identity(mark(value))
            elif mark:  # most fields of rows are plain, and need no call
                marked[name] = content if type(content) in PLAIN else identity(content)
        return {
            "class": type(value).__name__,
            "version": str(getattr(value, "version", "")),
            **marked,
        }
    if isinstance(value, Mapping):
        return {str(k): identity(v) for k, v in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [identity(v) for v in cast(list[Any], value)]
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return value


@functools.cache
def _identity_marks(cls: type) -> dict[str, Any]:
    return {f.name: f.metadata.get("identity", True) for f in fields(cls)}


def file_digest(filesystem: fs.FileSystem, path: str) -> str:
    """Return the SHA-256 (hex) of a file's bytes. Raises OSError."""
    total = hashlib.sha256()
    with filesystem.open_input_stream(path) as stream:
        while block := stream.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def digest(value: Any) -> str:
    """Return the SHA-256 (hex) of the canonical JSON of a value's `identity`."""
    return hashlib.sha256(
        json.dumps(identity(value), sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


@dataclass(frozen=True)
class StoreDamage:
    """A damaged object of the store: its path below the root, and what is wrong with it."""

    path: str
    reason: str


@dataclass(frozen=True)
class Store:
    """Bytes by key under `root`, in one folder per `kind` ("look", "llm", ...).

    `on_damage` is called with each damaged object that a read meets.
    """

    root: str
    on_damage: Callable[[StoreDamage], object] | None = field(
        default=None, repr=False, compare=False
    )

    @cached_property
    def _place(self) -> tuple[fs.FileSystem, str]:
        return resolve(self.root)

    @cached_property
    def _local(self) -> bool:
        return isinstance(self._place[0], fs.LocalFileSystem)

    def _path(self, kind: str, key: str) -> str:
        return f"{self._place[1]}/{kind}/{key[:2]}/{key}.{FORMAT_VERSION}"

    def get(self, kind: str, key: str) -> bytes | None:
        """Return the value, or None. Raises MustseeError when the store cannot be read."""
        content = self._read(kind, key)
        return None if content is None else bytes(content)

    def _read(self, kind: str, key: str) -> memoryview | None:
        path = self._path(kind, key)
        if self._local:
            refuse_special(path)
        try:
            with open(path, "rb") if self._local else self._place[0].open_input_file(path) as file:
                value = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in UNREADABLE_ERRNO:
                self._set_aside(kind, key, f"cannot be read: {error.strerror}")
                return None
            raise MustseeError(
                f"cannot read the store {self.root!r}: {error}; check that it is a readable "
                "folder, or set store="
            ) from error
        content = memoryview(value)[HEADER_BYTES:]
        if value[:HEADER_BYTES] == _header(kind, key, content):
            return content
        self._set_aside(kind, key, _reason(value))
        return None

    def _set_aside(self, kind: str, key: str, reason: str) -> None:
        """Move a damaged object to DAMAGED, and report it to `on_damage`."""
        filesystem, root = self._place
        path, folder = self._path(kind, key), f"{root}/{DAMAGED}"
        with contextlib.suppress(OSError):  # another process moved it, or the store is read-only
            filesystem.create_dir(folder)
            damaged = filesystem.get_file_info(fs.FileSelector(folder))
            if len(damaged) < MAX_DAMAGED:
                filesystem.move(path, f"{folder}/{kind}.{key}")
            else:
                filesystem.delete_file(path)
        if self.on_damage is not None:
            self.on_damage(StoreDamage(path.removeprefix(f"{root}/"), reason))

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Store a value. Raises DiskFull when the disk is full, Unwritable when the store cannot be
        written otherwise.
        """
        filesystem, path = self._place[0], self._path(kind, key)
        header = _header(kind, key, value)
        try:
            if not self._local:
                with filesystem.open_output_stream(path) as stream:
                    stream.write(header)
                    stream.write(value)
                return
            folder = os.path.dirname(path)
            temporary = f"{folder}/.{uuid.uuid4().hex}"
            try:
                with _create(temporary) as file:
                    file.write(header)
                    file.write(value)
                os.replace(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            message = f"cannot write to the store {self.root!r}: {error.strerror or error}; "
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(
                    f"{message}free some space and run the same command again: what is finished is "
                    "kept"
                ) from error
            raise Unwritable(
                f"{message}check that the folder exists, is writable and its disk sound, or set "
                "store=; what is finished is kept"
            ) from error

    def has(self, kind: str) -> bool:
        """Whether the store may hold values of a kind."""
        return self._place[0].get_file_info(f"{self._place[1]}/{kind}").type != fs.FileType.NotFound

    def keys(self, kind: str, since: float = 0.0) -> list[str]:
        """Return the keys of a kind, sorted, that were stored since a UNIX time."""
        place = fs.FileSelector(f"{self._place[1]}/{kind}", recursive=True, allow_not_found=True)
        return sorted(
            info.base_name.removesuffix(f".{FORMAT_VERSION}")
            for info in self._place[0].get_file_info(place)
            if info.type == fs.FileType.File
            and info.base_name.endswith(f".{FORMAT_VERSION}")
            and info.mtime.timestamp() >= since
        )

    def get_table(self, kind: str, key: str) -> pa.Table | None:
        """Return a stored Arrow table, or None."""
        content = self._read(kind, key)
        if content is None:
            return None
        return pa.ipc.open_stream(pa.py_buffer(content), options=_ONE_THREAD).read_all()

    def put_table(self, kind: str, key: str, table: pa.Table) -> None:
        """Store an Arrow table (IPC stream, zstd)."""
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        self.put(kind, key, sink.getvalue().to_pybytes())


def _header(kind: str, key: str, content: bytes | memoryview) -> bytes:
    """Return the header of an object: MAGIC and the checksum of its name and content."""
    checksum = xxhash.xxh3_64(f"{kind}/{key}\n".encode())
    checksum.update(content)
    return MAGIC + checksum.digest()


def _reason(value: bytes) -> str:
    """Return in words what is wrong with an object that does not match its checksum."""
    if not value:
        return "empty"
    if len(value) < HEADER_BYTES:
        return f"cut off after {len(value)} bytes"
    return f"{len(value)} bytes that do not match their checksum"


def _create(path: str) -> BinaryIO:
    """Open a new file; create its folder only if opening fails, since it nearly always exists."""
    try:
        return open(path, "wb")
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")


@dataclass(frozen=True)
class ReadOnlyStore(Store):
    """A store that writes nothing to disk: new values stay in this process."""

    own: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])

    def _read(self, kind: str, key: str) -> memoryview | None:
        value = self.own.get((kind, key))
        return super()._read(kind, key) if value is None else memoryview(value)

    def _set_aside(self, kind: str, key: str, reason: str) -> None:
        return

    def put(self, kind: str, key: str, value: bytes) -> None:
        self.own[kind, key] = value
