"""Folders that belong to a process and are removed after its end.

A process holds a lock on a file in each of its folders. The system releases the lock however the
process ends, so a later run recognises abandoned folders, even if another process has the same
number by then.
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
UNCLAIMED_AFTER_S = 86_400.0  # age after which a folder without a lock file is abandoned
_lock_files: dict[Path, int] = {}  # folder -> descriptor of its locked file


def claim_folder(prefix: str, parent: str | None = None) -> Path:
    """Make a new folder of this process, and remove abandoned ones with the same prefix."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    claim(folder)
    sweep(p for p in folder.parent.glob(f"{prefix}*") if p != folder)
    return folder


def claim(folder: Path) -> None:
    """Hold a folder until `release`, or until this process ends."""
    if folder in _lock_files:
        return
    # The lock file gets its name when it is locked, so that no other process sees it unlocked.
    unlocked = folder / f"{LOCK}-soon"
    _lock_files[folder] = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(_lock_files[folder], fcntl.LOCK_EX | fcntl.LOCK_NB)
    unlocked.rename(folder / LOCK)


def release(folder: Path) -> None:
    """Remove a folder of this process."""
    shutil.rmtree(folder, ignore_errors=True)
    if (handle := _lock_files.pop(folder, None)) is not None:
        os.close(handle)


def sweep(folders: Iterable[Path]) -> None:
    """Remove the folders that no process holds."""
    for folder in folders:
        if not _is_in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_in_use(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        if not (folder / LOCK).exists():  # it was just made, or by a program without locks
            return time.time() - folder.stat().st_mtime < UNCLAIMED_AFTER_S
        with (folder / LOCK).open("r") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    return True
