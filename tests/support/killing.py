"""Finding and killing the processes of a run."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psutil

MARK = "MUSTSEE_TEST"  # an environment variable that all processes of a test's run inherit


def mark() -> str:
    """A value for it that no other run has."""
    return uuid.uuid4().hex


def processes(marked: str) -> Iterator[psutil.Process]:
    """Those of a run, alive."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == marked and process.status() != "zombie":
                yield process
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue


def named(marked: str, part: str) -> list[psutil.Process]:
    """Those of a run that have this in their command line."""
    found = list[psutil.Process]()
    for process in processes(marked):
        try:
            if part in " ".join(process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def kill(*victims: psutil.Process) -> None:
    """As `kill -9`; returns when they are gone."""
    for victim in victims:
        victim.kill()
    psutil.wait_procs(victims, timeout=60)


def until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def raylet(node: Any) -> int:
    """The process of a simulated node, whose children are the node's workers."""
    return node.all_processes["raylet"][0].process.pid
