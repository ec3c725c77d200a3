"""`look` beside other tools on the same videos, each in an environment of its own.

    python -m benchmarks.bench what=peers [what.videos=[FILE,...]]

Each program (`peer_programs/`) runs without videos, then with all of them; the difference is its
CPU time, user and system, child processes included. All take turns; the best of `rounds` counts. A
peer that does not install or run is a row with the reason.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import av

from benchmarks.figures import BenchTable, Cell
from ray_jobs.runtime.cluster import ROOT

PROGRAMS = Path(__file__).parent / "peer_programs"


@dataclass(frozen=True)
class Peer:
    """`packages`: requirements for pip; none: the program runs in this environment."""

    does: str
    packages: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class PeerTime:
    """CPU seconds without and with the videos, and the last line that the program printed."""

    alone: float = math.inf
    whole: float = math.inf
    last_line: str = ""

    @property
    def cost(self) -> float:
        """CPU seconds beyond start-up; 0 where start-up varies by more."""
        return max(self.whole - self.alone, 0.0)


@dataclass(frozen=True, kw_only=True)
class PeersBench:
    """`peers`: by the name of the program. `folder`: folder of the environments. `minutes`: timeout
    of an installation and of a program.
    """

    videos: Sequence[str]
    peers: Mapping[str, Peer]
    folder: str = ".cache/peers"
    rounds: int = 3
    minutes: float = 15.0

    def __call__(self) -> BenchTable:
        hours = sum(map(_seconds, self.videos)) / 3600
        pythons, reasons = dict[str, str](), dict[str, str]()
        for name, peer in self.peers.items():
            try:
                pythons[name] = self._installed(name, peer.packages)
            except (subprocess.SubprocessError, OSError) as error:
                reasons[name] = f"not installed: {_reason(error)}"
        times = self._measure(pythons, reasons)
        base = times["pyav"].cost
        rows: list[tuple[Cell, ...]] = []
        for name, peer in self.peers.items():
            if name in reasons:
                rows.append((name, peer.does, None, None, None, None, reasons[name]))
                continue
            time = times[name]
            speed = 3600 * hours / time.cost if time.cost else None
            rows.append(
                (name, peer.does, time.alone, time.cost, time.cost / base, speed, time.last_line)
            )
        return BenchTable(
            title=f"{len(self.videos)} videos, {hours:.3f} hours",
            columns=("program", "what it does", "start-up, CPU s", "CPU s", "of decoding",
                     "times real time, a core", "what came of it"),
            rows=tuple(rows),
            notes=(f"best of {self.rounds} rounds in turn; start-up is not in the rest",),
        )  # fmt: skip

    def _measure(self, pythons: Mapping[str, str], reasons: dict[str, str]) -> dict[str, PeerTime]:
        """Measure the programs in turns; add the reason of each that fails to `reasons`."""
        times = {name: PeerTime() for name in pythons}
        for _ in range(self.rounds):
            for name in [n for n in pythons if n not in reasons]:
                try:
                    alone, _ = self._run(self._command(name, pythons[name], ()))
                    whole, stdout = self._run(self._command(name, pythons[name], self.videos))
                except subprocess.SubprocessError as error:
                    reasons[name] = f"not run: {_reason(error)}"
                else:
                    best = times[name]
                    times[name] = PeerTime(
                        alone=min(best.alone, alone),
                        whole=min(best.whole, whole),
                        last_line=stdout.strip().splitlines()[-1],
                    )
        return times

    def _installed(self, name: str, packages: Sequence[str]) -> str:
        """Return the Python of the peer's environment, which is created if it is missing."""
        if not packages:
            return sys.executable
        place = Path(self.folder).resolve() / name
        python = place / "bin" / "python"
        done = place / "installed"
        if not done.exists() or done.read_text() != "\n".join(packages):
            venv.create(place, clear=True, with_pip=True)
            self._run([str(python), "-m", "pip", "install", "--quiet", *packages])
            done.write_text("\n".join(packages))
        return str(python)

    def _command(self, name: str, python: str, videos: Sequence[str]) -> list[str]:
        program = str(PROGRAMS / f"{name}.py")
        return [python, "-P", program, *(str(Path(video).resolve()) for video in videos)]

    def _run(self, command: Sequence[str]) -> tuple[float, str]:
        """Run a command; return its CPU seconds and its stdout."""
        with tempfile.TemporaryDirectory() as folder:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            stdout = subprocess.run(
                command, check=True, capture_output=True, text=True, cwd=folder,
                timeout=60 * self.minutes, env={**os.environ, "PYTHONPATH": _path(command[0])},
            ).stdout  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, stdout


def _path(python: str) -> str:
    return str(ROOT) if python == sys.executable else ""


def _reason(error: Exception) -> str:
    """Return the last line that the program printed to stderr, or the error."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"not done after {error.timeout / 60:g} minutes"
    lines = str(getattr(error, "stderr", None) or error).strip().splitlines()
    return lines[-1][:160] if lines else type(error).__name__


def _seconds(video: str) -> float:
    with av.open(video) as container:
        return (container.duration or 0) / av.time_base
