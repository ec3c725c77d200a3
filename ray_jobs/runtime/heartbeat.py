"""Prints a line at least every 15 seconds while a job runs.

    with heartbeat("templates"):                          # around a whole job
        with show_step("clustering 5,000 questions"):     # [0:45] templates: clustering 5,000 ...

A step with changing figures gives a function in place of a text. `quiet` is for a step that prints
its own lines.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator

from mustsee.text import clock

HEARTBEAT_S = 15.0  # seconds between two lines of a plain log

StepText = str | Callable[[], str]

_steps: list[StepText | None] = []  # open steps of this process, the innermost last
_between: list[str | None] = ["at work"]  # text while no step is open; None: silent


class Heartbeat:
    """Gives a line on the current step of job `name` every `HEARTBEAT_S` seconds."""

    def __init__(self, name: str, now: Callable[[], float] = time.monotonic) -> None:
        self._name, self._now = name, now
        self._started = self._last_line = now()

    def beat(self) -> str | None:
        """The line to print now; None if it is too early or the step is quiet."""
        now = self._now()
        step = _steps[-1] if _steps else _between[0]
        if step is None:
            self._last_line = now
        if now - self._last_line < HEARTBEAT_S or step is None:
            return None
        self._last_line = now
        text = step if isinstance(step, str) else step()
        return f"[{clock(now - self._started)}] {self._name}: {text}"


@contextlib.contextmanager
def heartbeat(name: str) -> Generator[None]:
    """Print the heartbeat from a thread while the block runs."""
    _between[0] = "at work"  # a job before this one in the same process may have ended it
    heart, ended = Heartbeat(name), threading.Event()

    def run() -> None:
        while not ended.wait(1.0):
            if line := heart.beat():
                print(line, file=sys.stderr, flush=True)

    thread = threading.Thread(target=run, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=5)


@contextlib.contextmanager
def show_step(step: StepText | None) -> Generator[None]:
    """Set the heartbeat's text while the block runs; None silences it."""
    _between[0] = "at work"
    _steps.append(step)
    try:
        yield
    finally:
        _steps.pop()


def quiet() -> contextlib.AbstractContextManager[None]:
    """Silence the heartbeat while the block runs."""
    return show_step(None)


def stop_heartbeat() -> None:
    """Silence the heartbeat until another step begins: only Ray has to stop now."""
    _between[0] = None
