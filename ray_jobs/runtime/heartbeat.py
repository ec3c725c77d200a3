"""A line at least every 15 seconds while a job is at work, whatever it does.

    with heartbeat("templates"):                      # around a whole job
        with doing("clustering 5,000 questions"):     # [0:45] templates: clustering 5,000 questions

A step that has figures gives a function in place of its name. `quiet` is for a step that says lines
of its own.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator

from mustsee.run.report import clock

HEARTBEAT_S = 15.0  # seconds between two lines of a plain log

Told = str | Callable[[], str]

_steps: list[Told | None] = []  # what the job of this process does, the innermost step last
_between: list[str | None] = ["at work"]  # what it does where no step is named


class Heartbeat:
    """Says what the job `name` does, `HEARTBEAT_S` seconds, as `beat` is called often enough."""

    def __init__(self, name: str, now: Callable[[], float] = time.monotonic) -> None:
        self._name, self._now = name, now
        self._started = self._spoken = now()

    def beat(self) -> str | None:
        """The line that is due, if one is."""
        now = self._now()
        step = _steps[-1] if _steps else _between[0]
        if step is None:
            self._spoken = now
        if now - self._spoken < HEARTBEAT_S or step is None:
            return None
        self._spoken = now
        told = step if isinstance(step, str) else step()
        return f"[{clock(now - self._started)}] {self._name}: {told}"


@contextlib.contextmanager
def heartbeat(name: str) -> Generator[None]:
    """Beats on a thread while the block runs."""
    heart, over = Heartbeat(name), threading.Event()

    def run() -> None:
        while not over.wait(1.0):
            if line := heart.beat():
                print(line, file=sys.stderr, flush=True)

    thread = threading.Thread(target=run, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=5)


@contextlib.contextmanager
def show_step(step: Told | None) -> Generator[None]:
    """What the heartbeat says while the block runs."""
    _between[0] = "at work"
    _steps.append(step)
    try:
        yield
    finally:
        _steps.pop()


def quiet() -> contextlib.AbstractContextManager[None]:
    """While the block runs, the heartbeat says nothing."""
    return show_step(None)


def stop_heartbeat() -> None:
    """Say nothing more, until another step begins: the result is said, and only Ray is stopped."""
    _between[0] = None
