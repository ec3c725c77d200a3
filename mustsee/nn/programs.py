"""Compiled programs kept on disk, so that a process that is started anew need not compile them."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import Any


def keep() -> None:
    """Let JAX keep what it compiles in the user's cache folder. Call it before the first program.

    Does nothing where JAX has been given a folder (JAX_COMPILATION_CACHE_DIR) or the user has no
    home; where nothing can be written JAX compiles as if there were no folder. Programs for a CPU
    hold its own instructions, so machines of different kinds that share a home share no programs.
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
    told = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    kinds = {x for x in told.splitlines() if x.startswith(("model name", "flags", "Features"))}
    text = "\n".join([platform.machine(), *sorted(kinds)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
