"""A whole job over many rows, with models that cost nothing: what a row costs as rows grow, and
what the driver holds.

Every row is looked at (a video of an hour's shots and lines, 20 kB) and asked about (two calls,
four questions). Each size is a process of its own, run twice: the second finds everything in the
store.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pyarrow as pa

from actors.engine.hardware import Hardware
from actors.part import Opened, RunContext
from benchmarks.figures import BenchTable, Cell
from mustsee.calls.llm import Llm, Message, Reply, Request
from mustsee.errors import MustseeError
from mustsee.records import Line, Question, Span, Video
from ray_jobs.runtime.cluster import Cluster
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.run import JobSettings

CALLS, QUESTIONS = 2, 4
START = "from benchmarks.large import main; main()"
WARM = 64  # rows of the run whose cost is taken off: start-up
BLOCK = 16  # rows that travel together, however many there are: else a short run's cost more each


@dataclass(frozen=True, kw_only=True)
class FakeLook:
    """A video as it looks after it was watched and heard."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("duration", "shots", "lines")
    shots: int = 200

    def open(self, run: RunContext) -> Opened:
        shots = tuple(Span(18.0 * i, 18.0 * (i + 1)) for i in range(self.shots))

        def see(row: Video) -> Video:
            lines = tuple(
                Line(start=s.start, end=s.end, text=f"{row.video_id} says the {i}th of its things")
                for i, s in enumerate(shots)
            )
            return dataclasses.replace(row, duration=3600.0, shots=shots, lines=lines)

        return see


@dataclass(frozen=True)
class Echo:
    """A model that says what it is asked."""

    identity: str = "echo"

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        return Reply(text=request.messages[0].text, model=self.identity)


@dataclass(frozen=True, kw_only=True)
class AskOneWord:
    """Questions about what the model said, through the gateway."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "lines")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)
    llm: Echo = Echo()

    def open(self, run: RunContext) -> Opened:
        llm = run.llm(self.llm)

        async def ask(row: Video) -> Video:
            said = [
                (await llm.complete(_request(f"{number}: {(row.lines or ())[number].text}"))).text
                for number in range(CALLS)
            ]
            questions = tuple(
                Question(
                    question_id=f"{row.video_id}-{i}", video_id=row.video_id, recipe="large",
                    question=f"What is said, {i}?", question_type="Other",
                    options=(*said, *map(str, range(3))), answer_index=0, answer=said[0],
                    evidence=(Span(0.0, 18.0),),
                )
                for i in range(QUESTIONS)
            )  # fmt: skip
            return dataclasses.replace(row, questions=questions)

        return ask


def _request(text: str) -> Request:
    return Request(prompt="large", digest="", messages=(Message(role="user", text=text),))


@dataclass(frozen=True, kw_only=True)
class LargeBench:
    """A job for each of so many `rows`, of `shots` shots and lines each; where `half` is set one
    more over so many rows, of which half are finished.
    """

    rows: Sequence[int] = (1000, 3000, 10_000)
    shots: int = 200
    half: int = 0

    def __call__(self) -> BenchTable:
        with tempfile.TemporaryDirectory(prefix="mustsee-") as root:
            warm = [self._measured(WARM, f"{root}/warm") for _ in range(2)]
            found: list[tuple[Cell, ...]] = []
            for rows in self.rows:
                for which, none in zip(("new", "again"), warm, strict=True):
                    did = self._measured(rows, f"{root}/{rows}", which)
                    each = 1000 / (rows - WARM)
                    beyond = [(did[k] - none[k]) * each for k in ("cpu", "driver", "wall")]
                    held = (did["own"], did["memory"])
                    found.append((rows, which, *beyond, *held, did["first"]))
            if self.half:
                self._measured(self.half // 2, f"{root}/half", "new")
                did = self._measured(self.half, f"{root}/half", "half of them finished")
                held = (did["own"], did["memory"])
                found.append((self.half, "half", None, None, None, *held, did["first"]))
        return BenchTable(
            title=f"a whole job over many rows of {self.shots} shots and lines",
            columns=(
                "rows", "run", "CPU ms a row", "of it the driver", "wall ms", "driver's own MB",
                "with mapped pages", "first s",
            ),
            rows=tuple(found),
            notes=(
                f"ms: beyond what a run over {WARM} rows takes, which is start-up; "
                f"{os.cpu_count()} cores; 'again' finds all rows in the store, 'half' half of them",
                "MB: the most that the driver held; what it maps are libraries and the pages of "
                "Ray's object store; first s: from the start to the first result of a stage",
            ),
        )  # fmt: skip

    def _measured(self, rows: int, out: str, which: str = "to warm up") -> dict[str, Any]:
        with show_step(f"{rows:,} rows, {which}"):
            done = subprocess.run(
                [sys.executable, "-c", START, str(rows), out, str(self.shots)],
                capture_output=True,
                text=True,
            )
        if done.returncode != 0:
            raise MustseeError(f"a run over {rows} rows failed: {done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])


def _cpu() -> float:
    """Seconds of this process, of all that it started, and of what those have seen end."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _own() -> float:
    """MB in memory that are this process's alone."""
    held = psutil.Process().memory_info()
    return (held.rss - held.shared) / 1e6


def _first(store: Path, since: float) -> float | None:
    """When the first result of a stage was stored, in seconds since a UNIX time."""
    times = (entry.stat().st_mtime for entry in store.glob("look/*/*"))
    return min((time - since for time in times if time >= since), default=None)


def main() -> None:
    """One job, of the rows and into the folder that this process was started with; it prints
    seconds of CPU and by the clock, and MB.
    """
    rows, out, shots = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    started, ended, own = time.time(), threading.Event(), [0.0]

    def watch() -> None:
        while not ended.wait(0.2):
            own[0] = max(own[0], _own())

    threading.Thread(target=watch, daemon=True).start()
    hardware = {"look": Hardware(cpus=0.5), "ask": Hardware(cpus=0.1, concurrency=32)}
    cluster = Cluster(stages=hardware)
    run = JobSettings(out=out, store=f"{out}/store", cluster=cluster, rows_per_block=BLOCK)
    with run.open("large") as running:
        names = [f"v{i:07d}" for i in range(rows)]
        running.read(pa.table({"video_id": names, "uri": ["x"] * rows}))
        running.stage("look", FakeLook(shots=shots))
        running.stage("ask", AskOneWord())
        running.publish({"none": lambda questions, folder, videos: None})
        cpu = _cpu()
    ended.set()
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "cpu": cpu,
        "driver": used.ru_utime + used.ru_stime,
        "wall": time.time() - started,
        "own": own[0],
        "memory": used.ru_maxrss / 1000,
        "first": _first(Path(out) / "store", started),
    }
    print(json.dumps(told))
