"""A row that takes longer than it may ends its worker: native code that hangs cannot be called off.

Ray starts another worker in its place, which learns from the coordinator what became of the row.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator

REPLY_TIMEOUT_S = 15.0  # seconds: a coordinator that answers later is as good as dead


@contextlib.contextmanager
def kill_after(seconds: float | None, tell: Callable[[], None]) -> Generator[None]:
    """After `seconds` in the block, `tell` and kill this process. Where the block lets no other
    thread run, nothing is told: the process ends `REPLY_TIMEOUT_S` later, as any that is killed.
    """
    if seconds is None:
        yield
        return

    def end() -> None:
        with contextlib.suppress(Exception):
            tell()
        os.kill(os.getpid(), signal.SIGKILL)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(
        seconds + REPLY_TIMEOUT_S, exit=True, file=sys.__stderr__ or 2
    )
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        timer.cancel()
