"""Libraries that are loaded before libc, so that its functions answer as a test needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def compile_library(source: str, place: Path) -> Path:
    """Compile a library of C into a folder; skip the test where that is not possible."""
    compiler = shutil.which("gcc")
    if compiler is None or not Path("/proc/self/fd").exists():
        pytest.skip("no gcc, or not Linux: a library that is loaded before libc cannot be made")
    code, library = place / "before_libc.c", place / "before_libc.so"
    code.write_text(source)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(code), "-ldl"]
    subprocess.run(command, check=True)
    return library
