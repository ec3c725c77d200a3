"""Memory that is free in a process goes back to the system.

The C library keeps what was freed for what is allocated next. A worker that looked at an hour of
video and then hears it would hold the memory of both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

LONG_WORK_S = 10.0  # seconds of work after which giving memory back (0.1 s at most) costs little


@cache
def _trim() -> Callable[[int], int] | None:
    """glibc's function that gives free memory back; None for other C libraries."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def free_memory(worked: float) -> None:
    """Give free memory back to the system after `worked` seconds of work, if that was long."""
    if worked >= LONG_WORK_S and (trim := _trim()) is not None:
        trim(0)
