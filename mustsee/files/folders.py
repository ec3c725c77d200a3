"""Lists files, local or in an object store, and writes one whole.

A name that is not UTF-8 has lone surrogates, as `os.fsdecode` returns it; `is_text` detects them.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import math
import os
import re
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from mustsee.errors import UserError

SUFFIXES = frozenset(
    {"mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "mpeg", "ts", "m2ts", "mts", "wmv", "flv"}
    | {"3gp", "ogv", "vob", "mxf"}
)
MEDIA_SUFFIXES = SUFFIXES | {
    "mp3", "wav", "flac", "m4a", "ogg", "opus", "aac", "jpg", "jpeg", "png", "gif", "webp",
}  # fmt: skip

MAX_LISTINGS = 16  # folders whose names are kept
RECENT_S = 2.0  # seconds in which two changes of a folder may have the same time
LISTING_SHARE = 20  # a listing of an object store is used for this many times what it took
_NOT_IN_NAMES = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def files_under(filesystem: fs.FileSystem, folder: str, pattern: str | None = None) -> list[str]:
    """Return the paths of all files below a folder that match the glob `pattern`, sorted.

    Hidden files are left out. A folder that does not exist has no files. On a local disk, a file
    that several links lead to is listed once, at its own path rather than a link's. Raises
    UserError for a folder that cannot be listed.
    """
    if not isinstance(filesystem, fs.LocalFileSystem):
        selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
        infos = filesystem.get_file_info(selector)
        paths = sorted(info.path for info in infos if info.type == fs.FileType.File)
        visible = [p for p in paths if not p.rsplit("/", 1)[-1].startswith(".")]
        return fnmatch.filter(visible, pattern) if pattern else visible
    path_by_file: dict[tuple[int, int] | str, str] = {}
    for path, _ in sorted(_walk(folder, whole=pattern is None), key=lambda p: (p[1], p[0])):
        if pattern is None or fnmatch.fnmatchcase(path, pattern):
            info = os.stat(path)
            path_by_file.setdefault((info.st_dev, info.st_ino) if info.st_ino else path, path)
    return sorted(path_by_file.values())


@dataclass(frozen=True)
class _Listing:
    """The names in a folder, as of its time of change, and until a time of the monotonic clock."""

    filesystem: fs.FileSystem
    folder: str
    changed: int | None
    until: float
    names: list[str]


_listings = deque[_Listing](maxlen=MAX_LISTINGS)
_locks = [threading.Lock() for _ in range(64)]  # each for some folders, which are listed once


def names_starting(filesystem: fs.FileSystem, folder: str, start: str) -> list[str]:
    """Return the names of the files in a folder that begin with `start`, sorted; none for a folder
    that does not exist or cannot be listed.

    The folder is not listed anew for each call, because a run asks once a video, and a folder may
    have a million. A local folder is listed again when it has changed.
    """
    with _locks[hash(folder) % len(_locks)]:
        names = _known_names(filesystem, folder)
    first = end = bisect_left(names, start)
    while end < len(names) and names[end].startswith(start):
        end += 1
    return names[first:end]


def _known_names(filesystem: fs.FileSystem, folder: str) -> list[str]:
    is_local = isinstance(filesystem, fs.LocalFileSystem)
    changed, began = _time_of_change(folder) if is_local else None, time.monotonic()
    for listing in list(_listings):
        if (
            (listing.folder, listing.changed) == (folder, changed)
            and began < listing.until
            and listing.filesystem.equals(filesystem)
        ):
            return listing.names
    names, now = _list_names(filesystem, folder), time.monotonic()
    until = now + LISTING_SHARE * (now - began)
    if is_local:
        until = math.inf if changed is not None else now
    _listings.append(_Listing(filesystem, folder, changed, until, names))
    return names


def _list_names(filesystem: fs.FileSystem, folder: str) -> list[str]:
    """Return the names of the files in a folder, sorted."""
    if isinstance(filesystem, fs.LocalFileSystem):
        try:
            return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
        except (OSError, ValueError):
            return []
    selector = fs.FileSelector(folder, allow_not_found=True)
    infos = filesystem.get_file_info(selector)
    return sorted(info.base_name for info in infos if info.type == fs.FileType.File)


def _time_of_change(folder: str) -> int | None:
    """Return when a local folder changed, in nanoseconds; None if it may change in this instant."""
    try:
        changed = os.stat(folder).st_mtime_ns
    except (OSError, ValueError):
        return None
    return changed if time.time() - changed / 1e9 > RECENT_S else None


def is_text(path: str) -> bool:
    """Whether a path is valid UTF-8, as tables and addresses need."""
    return not any("\ud800" <= c <= "\udfff" for c in path)


def readable_path(path: str) -> str:
    """Return a path for messages, with bytes that are not UTF-8 written as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def file_name(text: str, most: int = 120) -> str:
    """Return a text as the name of a file of at most `most` bytes and a hash.

    A text that is a valid name stays as it is. In others `_` replaces each invalid character, and a
    hash of the text follows, so that different texts have different names.
    """
    name = _NOT_IN_NAMES.sub("_", text)
    if name.startswith("."):
        name = "_" + name[1:]
    name = name.encode()[:most].decode(errors="ignore")
    if name == text:
        return name
    return f"{name}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _walk(top: str, *, whole: bool) -> Iterator[tuple[str, bool]]:
    """Yield the files below a local folder, each with whether a link led to it.

    Links to folders come last, so that they add only files that were not met before. Without
    `whole` (that is, with a glob) each link is followed once, because the glob may match only the
    path through the link.
    """
    folders, links = deque([(top, 0)]), deque[tuple[str, int]]()
    visited = set[tuple[int, int, int]]()
    while folders or links:
        folder, link = folders.popleft() if folders else links.popleft()
        try:
            info = os.stat(folder)
            key = (info.st_dev, info.st_ino, 0 if whole else link)
            if key in visited:
                continue
            visited.add(key)
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(
                f"cannot list the folder {readable_path(folder)!r}: {error.strerror}"
            ) from error
        for entry in entries:
            if entry.is_dir():
                target = links if entry.is_symlink() else folders
                target.append((entry.path, entry.inode() if entry.is_symlink() else link))
            elif entry.is_file() and not entry.name.startswith("."):
                yield entry.path, bool(link) or entry.is_symlink()


def write_json(path: Path, value: object, indent: int = 2) -> None:
    """Write a value as indented JSON into a local file, which appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(value, indent=indent, ensure_ascii=False) + "\n").encode())


def write_json_lines(path: Path, values: Iterable[object]) -> None:
    """Write each value as a line of JSON into a local file, one after another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


class JsonItems:
    """Writer of a JSON list, or with `keyed` an object, indented like the releases."""

    def __init__(self, path: Path, *, keyed: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")
        self._open, self._close = "{}" if keyed else "[]"
        self._file.write(self._open)
        self._count = 0

    def add(self, value: object, key: str | None = None) -> None:
        """Write an item, in an object with its key."""
        text = json.dumps(value, indent=4, ensure_ascii=False).replace("\n", "\n    ")
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        self._file.write(f"{',' * (self._count > 0)}\n    {name}{text}")
        self._count += 1

    def __enter__(self) -> JsonItems:
        return self

    def __exit__(self, *_: object) -> None:
        end = "\n" if self._count else ""
        self._file.write(f"{end}{self._close}\n")
        self._file.close()


def write_whole(path: Path, content: bytes) -> None:
    """Write a local file that appears whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def without_media_suffix(name: str) -> str:
    """Return a file's name without the suffix of a media file, and any other name unchanged.

    >>> [without_media_suffix(name) for name in ("street.mp4", "kitchen.v1", "clip_10.50")]
    ['street', 'kitchen.v1', 'clip_10.50']
    """
    stem, _, suffix = name.rpartition(".")
    return stem if stem and suffix.lower() in MEDIA_SUFFIXES else name
