"""A whole job over many rows, with models that cost nothing: what a row costs as rows grow, and
what the driver holds.

Every row is looked at (a film of an hour's shots and lines, 20 kB) and asked about (two calls, four
questions). Each size is a process of its own, run twice: the second finds everything in the store.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import psutil

from actors.hardware import Hardware
from actors.part import Opened, RunContext
from mustsee import schemas
from mustsee.errors import MustseeError
from mustsee.llm import Llm, Message, Reply, Request
from mustsee.records import Line, Question, Span, Video
from ray_jobs.benches.figures import Cell, Figures
from ray_jobs.running.cluster import Cluster
from ray_jobs.running.heartbeat import doing
from ray_jobs.running.run import Run

SHOTS, LINES, CALLS, QUESTIONS = 200, 200, 2, 4
START = "from ray_jobs.benches.large import main; main()"
WARM = 64  # rows of the run whose cost is taken off: start-up


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A film as it looks after it was watched and heard."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("duration", "shots", "lines")

    def open(self, run: RunContext) -> Opened:
        shots = tuple(Span(18.0 * i, 18.0 * (i + 1)) for i in range(SHOTS))

        def see(row: Video) -> Video:
            lines = tuple(
                Line(start=s.start, end=s.end, text=f"{row.video_id} says the {i}th of its things")
                for i, s in enumerate(shots[:LINES])
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
class Asked:
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
    """A job for each of so many `rows`."""

    rows: Sequence[int] = (1000, 3000, 10_000)

    def __call__(self) -> Figures:
        with tempfile.TemporaryDirectory(prefix="mustsee-") as root:
            warm = [_measured(WARM, f"{root}/warm") for _ in range(2)]
            found: list[tuple[Cell, ...]] = []
            for rows in self.rows:
                for which, none in zip(("new", "again"), warm, strict=True):
                    with doing(f"{rows:,} rows, {which}"):
                        did = _measured(rows, f"{root}/{rows}")
                    more = {k: did[k] - none[k] for k in ("cpu", "driver", "wall", "memory")}
                    each = 1000 / (rows - WARM)
                    found.append(
                        (rows, which, more["cpu"] * each, more["driver"] * each,
                         more["wall"] * each, did["memory"], 1000 * more["memory"] / (rows - WARM))
                    )  # fmt: skip
        return Figures(
            title="a whole job over many rows",
            columns=(
                "rows", "run", "CPU ms a row", "of it the driver", "wall ms", "driver MB",
                "more MB for 1,000 rows",
            ),
            rows=tuple(found),
            notes=(
                f"beyond what a run over {WARM} rows takes, which is start-up; {os.cpu_count()} "
                "cores; 'again' finds every row in the store; driver MB: the most that it held",
            ),
        )  # fmt: skip


def _measured(rows: int, out: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", START, str(rows), out],
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


def main() -> None:
    """One job, of the rows and into the folder that this process was started with; it prints
    seconds of CPU and by the clock, and MB.
    """
    rows, out = int(sys.argv[1]), sys.argv[2]
    started = time.monotonic()
    hardware = {"look": Hardware(cpus=0.5), "ask": Hardware(cpus=0.1, concurrency=32)}
    run = Run(out=out, store=f"{out}/store", cluster=Cluster(stages=hardware))
    with run.open("large") as running:
        videos = (Video(video_id=f"v{i:07d}", uri="x") for i in range(rows))
        running.read(schemas.table(list(videos), Video))
        running.stage("look", Seen())
        running.stage("ask", Asked())
        running.publish({"none": lambda questions, folder, videos: None})
        cpu = _cpu()
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "cpu": cpu,
        "driver": used.ru_utime + used.ru_stime,
        "wall": time.monotonic() - started,
        "memory": used.ru_maxrss / 1000,
    }
    print(json.dumps(told))
