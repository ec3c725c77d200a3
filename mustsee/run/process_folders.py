"""Folders that belong to a process, and go when it is gone.

A process holds a lock on a file in each folder of its own. The system lets go of it however the
process ends, so that a later run can tell what nobody works in any more, whoever started it, and
whatever the number of its process is by now.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

LOCK = ".in-use"
# seconds after which a folder that nobody ever claimed counts as left behind
UNCLAIMED_AFTER_S = 86_400.0
_held: dict[Path, int] = {}  # folder -> the open file that holds it


def claim_folder(prefix: str, parent: str | None = None) -> Path:
    """A fresh folder of this process; those of the same prefix that dead processes left are
    removed.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    claim(folder)
    sweep(p for p in folder.parent.glob(f"{prefix}*") if p != folder)
    return folder


def claim(folder: Path) -> None:
    """Hold a folder until `release`, or until this process ends."""
    if folder in _held:
        return
    unlocked = folder / f"{LOCK}-soon"  # nobody takes it for an abandoned one meanwhile
    _held[folder] = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(_held[folder], fcntl.LOCK_EX | fcntl.LOCK_NB)
    unlocked.rename(folder / LOCK)


def release(folder: Path) -> None:
    """Remove a folder of this process."""
    shutil.rmtree(folder, ignore_errors=True)
    if (handle := _held.pop(folder, None)) is not None:
        os.close(handle)


def sweep(folders: Iterable[Path]) -> None:
    """Remove those folders that nobody holds."""
    for folder in folders:
        if not _in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        if not (folder / LOCK).exists():  # just made, or by a program that claims nothing
            return time.time() - folder.stat().st_mtime < UNCLAIMED_AFTER_S
        with (folder / LOCK).open("r") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    return True
