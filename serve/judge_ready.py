"""Says when a judge that starts answers, and with which key.

    MADE_KEY=... python -m serve.judge_ready http://127.0.0.1:8000 $$ &   # as `make judge` does

It ends without a word when the process that started it ($$) ends before the judge answers.
MADE_KEY is a key made for this session, to be shown; without one the user knows the key. It is no
argument, since other users of a machine see those.
"""

from __future__ import annotations

import os
import sys
import time
import urllib.request

PAUSE_S = 1.0  # seconds between two tries


def is_ready(address: str) -> bool:
    """Whether the judge at `address` has scored a fixed pair correctly since it was started."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=10) as reply:
            return reply.status == 200
    except OSError:  # also an answer such as 503
        return False


def announce(address: str, parent: int, key: str, *, pause: float = PAUSE_S) -> None:
    """Wait until the judge at `address` answers, and print a line that says so.

    `parent`: the process that started this one. `key`: as MADE_KEY.
    """
    started = time.monotonic()
    while not is_ready(address):
        if os.getppid() != parent:
            return
        time.sleep(pause)
    shown = f"; the key of this session: export KEY={key}" if key else ""
    seconds = time.monotonic() - started
    print(f"\nthe judge answers at {address} (after {seconds:.0f} s){shown}", flush=True)


if __name__ == "__main__":
    announce(sys.argv[1], int(sys.argv[2]), os.environ.get("MADE_KEY", ""))
