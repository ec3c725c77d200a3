"""Lists of files, local or in an object store. Names that are not UTF-8 come as `os.fsdecode` gives
them: with lone surrogates, which `is_text` finds.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from collections import deque
from collections.abc import Iterator

from pyarrow import fs

from mustsee.errors import UserError

_NO_NAME = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def files_under(filesystem: fs.FileSystem, folder: str, pattern: str | None = None) -> list[str]:
    """The paths of all files below a folder, sorted, those of them that a glob names if there is
    one. Hidden files are left out; nothing where there is no such folder.

    On a local disk a file that links lead to several times is met once, at its own path before
    that of a link. Raises UserError for a folder that cannot be listed.
    """
    if not isinstance(filesystem, fs.LocalFileSystem):
        selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
        infos = filesystem.get_file_info(selector)
        paths = sorted(info.path for info in infos if info.type == fs.FileType.File)
        visible = [p for p in paths if not p.rsplit("/", 1)[-1].startswith(".")]
        return fnmatch.filter(visible, pattern) if pattern else visible
    kept: dict[tuple[int, int] | str, str] = {}
    for path, _ in sorted(_walk(folder, whole=pattern is None), key=lambda p: (p[1], p[0])):
        if pattern is None or fnmatch.fnmatchcase(path, pattern):
            found = os.stat(path)
            kept.setdefault((found.st_dev, found.st_ino) if found.st_ino else path, path)
    return sorted(kept.values())


def file_names(filesystem: fs.FileSystem, folder: str) -> list[str]:
    """The names of the files in a folder, sorted; nothing where there is no such folder, or where
    it cannot be listed.
    """
    if isinstance(filesystem, fs.LocalFileSystem):
        try:
            return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
        except (OSError, ValueError):
            return []
    selector = fs.FileSelector(folder, allow_not_found=True)
    infos = filesystem.get_file_info(selector)
    return sorted(info.base_name for info in infos if info.type == fs.FileType.File)


def is_text(path: str) -> bool:
    """Whether a path can be written as UTF-8, which tables and addresses need."""
    return not any("\ud800" <= c <= "\udfff" for c in path)


def readable_path(path: str) -> str:
    """A path for people: bytes that are not UTF-8 as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def file_name(text: str, most: int = 120) -> str:
    """A text as the name of one file: itself where it is one, else with `_` for what is not, and a
    hash, so that different texts have different names.
    """
    name = _NO_NAME.sub("_", text)
    if name.startswith("."):
        name = "_" + name[1:]
    name = name.encode()[:most].decode(errors="ignore")
    if name == text:
        return name
    return f"{name}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _walk(top: str, *, whole: bool) -> Iterator[tuple[str, bool]]:
    """The files below a local folder, each with whether a link led to it.

    Folders that are no links come first, so that a link adds only what they do not hold. Where not
    the `whole` is wanted but what a glob names, a path through a link may be the one that it names:
    each link is followed then, but only once.
    """
    folders, links = deque([(top, 0)]), deque[tuple[str, int]]()
    met = set[tuple[int, int, int]]()
    while folders or links:
        folder, link = folders.popleft() if folders else links.popleft()
        try:
            found = os.stat(folder)
            key = (found.st_dev, found.st_ino, 0 if whole else link)
            if key in met:
                continue
            met.add(key)
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


__all__ = ["file_name", "file_names", "files_under", "is_text", "readable_path"]
