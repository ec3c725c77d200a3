"""Puts a new export into its folder, in place of the files of an earlier one.

A list of an export's files (`.mustsee-files`) lies beside them. Files that a later export no longer
writes are removed by it, so that nothing of another dataset is published; files that are in no list
are never touched.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyarrow import fs

from mustsee.errors import UserError
from mustsee.store import resolve

LIST = ".mustsee-files"
UNPLACED = ".export-"  # start of the name of a folder in which an export is written
MAX_NAMED_FILES = 3  # files named in a message


def place_export(written: Path, out: str) -> list[str]:
    """Move the files below the folder `written` to `out`, local or in an object store, and remove
    those of the last export there that are not among them.

    Returns the files in `out` that no export has written. Raises UserError, before anything is
    changed, where `out` has other files and no list of an export.
    """
    filesystem, path = resolve(out)
    own = sorted(p.relative_to(written).as_posix() for p in written.rglob("*") if p.is_file())
    there, listed = _files(filesystem, path), _listed(filesystem, path)
    foreign = sorted(there - set(own) - set(listed or ()))
    if listed is None and foreign:
        raise UserError(
            f"out={out!r} holds {name_some(foreign)}, which this export does not write, and no "
            f"list of an earlier export ({LIST}): remove what is no longer needed, or give "
            "another out="
        )
    for name in sorted(set(listed or ()) & there - set(own)):
        filesystem.delete_file(f"{path}/{name}")
    (written / LIST).write_text("".join(f"{name}\n" for name in own), encoding="utf-8")
    if isinstance(filesystem, fs.LocalFileSystem):
        for name in (*own, LIST):
            target = Path(path) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(written / name, target)
        _remove_empty_folders(Path(path))
    else:
        fs.copy_files(str(written), path, fs.LocalFileSystem(), filesystem)
    return foreign


def _files(filesystem: fs.FileSystem, folder: str) -> set[str]:
    selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
    infos = filesystem.get_file_info(selector)
    paths = (info.path for info in infos if info.type == fs.FileType.File)
    files = {path[len(folder.rstrip("/")) + 1 :] for path in paths} - {LIST}
    return {file for file in files if not file.startswith(UNPLACED)}


def _listed(filesystem: fs.FileSystem, folder: str) -> list[str] | None:
    """Return the files of the last export to a folder; None without a list."""
    if filesystem.get_file_info(f"{folder}/{LIST}").type != fs.FileType.File:
        return None
    with filesystem.open_input_file(f"{folder}/{LIST}") as file:
        return file.read().decode().splitlines()


def _remove_empty_folders(folder: Path) -> None:
    folders = (p for p in folder.rglob("*") if p.is_dir() and UNPLACED not in p.name)
    for inside in sorted(folders, reverse=True):
        if not inside.is_symlink() and not any(inside.iterdir()):
            inside.rmdir()


def name_some(names: list[str]) -> str:
    """Return the number of files, and the names of the first ones."""
    rest = len(names) - MAX_NAMED_FILES
    more = f" and {rest} more" if rest > 0 else ""
    return f"{len(names)} file{'s' * (len(names) > 1)} ({', '.join(names[:MAX_NAMED_FILES])}{more})"
