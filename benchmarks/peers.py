"""`look` beside what others do with the same videos, each in an environment of its own.

    python -m benchmarks.bench what=peers [what.videos=[FILE,...]]

Each program (`peer_programs/`) is run with no video, then with all of them: the difference is its
CPU time, user and system, of it and of the processes that it waits for. All take turns, best of
`rounds`. A peer that does not install, or does not run, is a row with the reason.
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
    """`packages`: what pip installs for it, with versions; none: it runs in this environment."""

    does: str
    packages: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class PeerTime:
    """CPU seconds without a video and with all, and what the program printed last."""

    alone: float = math.inf
    whole: float = math.inf
    said: str = ""

    @property
    def cost(self) -> float:
        """Beyond start-up; 0 where start-up varies by more."""
        return max(self.whole - self.alone, 0.0)


@dataclass(frozen=True, kw_only=True)
class PeersBench:
    """`peers`: by the name of their program. `folder`: where their environments are kept.
    `minutes`: the longest that an installation, or a program, may take.
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
        taken = self._taken(pythons, reasons)
        base = taken["pyav"].cost
        rows: list[tuple[Cell, ...]] = []
        for name, peer in self.peers.items():
            if name in reasons:
                rows.append((name, peer.does, None, None, None, None, reasons[name]))
                continue
            took = taken[name]
            speed = 3600 * hours / took.cost if took.cost else None
            rows.append(
                (name, peer.does, took.alone, took.cost, took.cost / base, speed, took.said)
            )
        return BenchTable(
            title=f"{len(self.videos)} videos, {hours:.3f} hours",
            columns=("program", "what it does", "start-up, CPU s", "CPU s", "of decoding",
                     "times real time, a core", "what came of it"),
            rows=tuple(rows),
            notes=(f"best of {self.rounds} rounds in turn; start-up is not in the rest",),
        )  # fmt: skip

    def _taken(self, pythons: Mapping[str, str], reasons: dict[str, str]) -> dict[str, PeerTime]:
        """What each program takes, in turns; those that fail are given their reason."""
        taken = {name: PeerTime() for name in pythons}
        for _ in range(self.rounds):
            for name in [n for n in pythons if n not in reasons]:
                try:
                    nothing, _ = self._run(self._command(name, pythons[name], ()))
                    took, told = self._run(self._command(name, pythons[name], self.videos))
                except subprocess.SubprocessError as error:
                    reasons[name] = f"not run: {_reason(error)}"
                else:
                    best = taken[name]
                    taken[name] = PeerTime(
                        alone=min(best.alone, nothing),
                        whole=min(best.whole, took),
                        said=told.strip().splitlines()[-1],
                    )
        return taken

    def _installed(self, name: str, packages: Sequence[str]) -> str:
        """The Python of the peer's environment, made where it is not there yet."""
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
        """CPU seconds, and what it printed."""
        with tempfile.TemporaryDirectory() as folder:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            said = subprocess.run(
                command, check=True, capture_output=True, text=True, cwd=folder,
                timeout=60 * self.minutes, env={**os.environ, "PYTHONPATH": _path(command[0])},
            ).stdout  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said


def _path(python: str) -> str:
    return str(ROOT) if python == sys.executable else ""


def _reason(error: Exception) -> str:
    """The last line that it said itself."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it was not done after {error.timeout / 60:g} minutes"
    told = str(getattr(error, "stderr", None) or error).strip().splitlines()
    return told[-1][:160] if told else type(error).__name__


def _seconds(video: str) -> float:
    with av.open(video) as container:
        return (container.duration or 0) / av.time_base
