"""Find and kill the processes of a run."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psutil

MARK = "MUSTSEE_TEST"  # an environment variable that all processes of a test's run inherit


def mark() -> str:
    """Return a value of `MARK` that no other run has."""
    return uuid.uuid4().hex


def processes(marked: str) -> Iterator[psutil.Process]:
    """Yield the living processes of a run."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == marked and process.status() != "zombie":
                yield process
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue


def named(marked: str, part: str) -> list[psutil.Process]:
    """Return the processes of a run with `part` in their command line."""
    matches = list[psutil.Process]()
    for process in processes(marked):
        try:
            if part in " ".join(process.cmdline()):
                matches.append(process)
        except psutil.NoSuchProcess:
            continue
    return matches


def kill(*victims: psutil.Process) -> None:
    """Kill processes as `kill -9` does; return when they have ended."""
    for victim in victims:
        victim.kill()
    psutil.wait_procs(victims, timeout=60)


def until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until a condition is true that another process brings about."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"the condition was still false after {seconds:g} s"
        time.sleep(0.02)


def raylet(node: Any) -> int:
    """Return the process id of a simulated node's raylet, the parent of the node's workers."""
    return node.all_processes["raylet"][0].process.pid
