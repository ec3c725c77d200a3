"""A disk for one test, small enough to be filled."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, mib: int = 8) -> Generator[Path]:
    """Mount a disk of `mib` MiB at `folder`; skip the test where that is not possible."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill_disk(folder: Path) -> Path:
    """Fill the disk and return the file that fills it."""
    with (folder / "filled").open("wb", 0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return folder / "filled"
