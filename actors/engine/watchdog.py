"""Kills a worker whose row exceeds its timeout: native code that hangs cannot be cancelled.

Ray starts another worker, to which the coordinator reports what happened to the row.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator

REPLY_TIMEOUT_S = 15.0  # seconds for an answer of the coordinator, which is lost if it takes longer


@contextlib.contextmanager
def kill_after(seconds: float | None, report: Callable[[], None]) -> Generator[None]:
    """After `seconds` in the block, call `report` and kill this process. Where the block lets no
    other thread run, nothing is reported and the process is killed `REPLY_TIMEOUT_S` later.
    """
    if seconds is None:
        yield
        return

    def end() -> None:
        with contextlib.suppress(Exception):
            report()
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
