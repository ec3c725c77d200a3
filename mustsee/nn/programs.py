"""Compiled programs on disk, so that a new process need not compile them."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import Any


def keep() -> None:
    """Let JAX keep compiled programs in the user's cache folder. Call it before the first program.

    Does nothing where JAX already has a folder (JAX_COMPILATION_CACHE_DIR) or the user has no home.
    Where the folder cannot be written JAX compiles without it. Programs for a CPU contain its own
    instructions, so different machines with the same home use different folders.
    """
    import jax

    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return
    config: Any = jax.config
    if config.jax_compilation_cache_dir is None:
        folder = home / "mustsee" / "programs" / _processor()
        config.update("jax_compilation_cache_dir", str(folder))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def _processor() -> str:
    """A name for this kind of processor."""
    cpu_info = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    cpu_lines = {
        x for x in cpu_info.splitlines() if x.startswith(("model name", "flags", "Features"))
    }
    text = "\n".join([platform.machine(), *sorted(cpu_lines)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
