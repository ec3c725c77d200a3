"""The last line of a run whose process is ended from outside, as Ray ends it when its own process
on this machine has died: no handler of Python runs then, so a small process of its own says it.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Generator

LINE = (
    "mustsee: the run was ended from outside (killed, or its Ray died): everything that is "
    "finished is kept, and the same command goes on from here"
)
# Reads until the run has closed the pipe; one that ended by itself has written into it.
WATCH = "import sys; sys.stdin.buffer.read() or print(sys.argv[1], file=sys.stderr)"


@contextlib.contextmanager
def last_words() -> Generator[None]:
    """Have `LINE` written to stderr if this process ends inside the block without leaving it."""
    watch = [sys.executable, "-I", "-S", "-c", WATCH, LINE]
    with subprocess.Popen(
        watch, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as watcher:
        try:
            yield
        finally:
            watcher.communicate(b"ended")
