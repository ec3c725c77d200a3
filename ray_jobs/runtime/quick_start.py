"""Keeps work out of the start of a job that the job has no use for."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def without_collection() -> Generator[None]:
    """Collect no garbage meanwhile, and never scan what is there at the end: what imports make
    stays, and to search it for garbage takes a tenth of a start.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
