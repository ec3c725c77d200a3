"""A whole job over many rows, with models that cost nothing: the cost of a row as rows grow, and
the driver's memory.

Every row gets the shots and lines of an hour's video (20 kB), two calls and four questions. Each
size is a process of its own, run twice; the second run finds everything in the store. Further runs
are killed, have their store and output on an S3 that fails, or filter and export their questions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pyarrow as pa

from actors.engine.hardware import Hardware
from actors.part import Opened, RunContext
from actors.stages.vet import Vet
from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import run_json_child
from loopback import s3
from mustsee.calls.llm import Llm, Message, Reply, Request
from mustsee.errors import MustseeError
from mustsee.records import Line, Question, Span, Video
from mustsee.verify.giveaways import Giveaways
from ray_jobs.cli.launch import build, compose
from ray_jobs.runtime.cluster import Cluster
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.run import JobSettings

CALLS, QUESTIONS = 2, 4
VETTED_QUESTIONS = 40  # questions of a row, where they are filtered and exported
START = "from benchmarks.large import main; main()"
EXPORT = "from benchmarks.large import export; export()"
VETTED = "vetted"  # argument of a run whose questions go through filters, too
WARM_ROWS = 64  # rows of the run whose cost counts as start-up and is subtracted
BLOCK_ROWS = 16  # fixed, because smaller blocks would make the rows of a short run cost more


@dataclass(frozen=True, kw_only=True)
class FakeLook:
    """A part that adds the shots and transcript lines of an hour's video."""

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
    """A model that repeats its prompt."""

    identity: str = "echo"

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        return Reply(text=request.messages[0].text, model=self.identity)


@dataclass(frozen=True, kw_only=True)
class AskOneWord:
    """A part that asks the model through the gateway and writes questions on its replies."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "lines")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)
    llm: Echo = Echo()
    questions: int = QUESTIONS

    def open(self, run: RunContext) -> Opened:
        llm = run.llm(self.llm)

        async def ask(row: Video) -> Video:
            replies = [
                (await llm.complete(_request(f"{number}: {(row.lines or ())[number].text}"))).text
                for number in range(CALLS)
            ]
            questions = tuple(
                Question(
                    question_id=f"{row.video_id}-{i}", video_id=row.video_id, recipe="large",
                    question=f"What is said, {i}?", question_type="Other",
                    options=(*replies, *map(str, range(3))), answer_index=0, answer=replies[0],
                    evidence=(Span(0.0, 18.0),),
                )
                for i in range(self.questions)
            )  # fmt: skip
            return dataclasses.replace(row, questions=questions)

        return ask


def _request(text: str) -> Request:
    return Request(prompt="large", digest="", messages=(Message(role="user", text=text),))


@dataclass(frozen=True, kw_only=True)
class LargeBench:
    """Run a job for each number of `rows`, with `shots` shots and lines in each row. `killed`: rows
    of one more job, which is killed when a share `done` of them is finished, and started again.
    `failing`: rows of one more job, on an S3 that fails a share `fails` of the requests. 0: none.
    `questions`: numbers of questions of further jobs, `runs` each, which go through the filters
    that need no model, and are exported in each of `layouts`; a row has forty.
    """

    rows: Sequence[int] = (1000, 3000, 10_000)
    shots: int = 200
    killed: int = 0
    done: float = 0.2
    failing: int = 0
    fails: float = 0.05
    questions: Sequence[int] = ()
    layouts: Sequence[str] = ("hf", "lmms_eval")
    runs: int = 1

    def __call__(self) -> BenchTable:
        with tempfile.TemporaryDirectory(prefix="mustsee-") as root:
            warm = [self._measure(WARM_ROWS, f"{root}/warm") for _ in range(2)]
            table: list[tuple[Cell, ...]] = []
            for rows in self.rows:
                for which, base in zip(("new", "again"), warm, strict=True):
                    run = self._measure(rows, f"{root}/{rows}", which)
                    each = 1000 / (rows - WARM_ROWS)
                    beyond = [(run[k] - base[k]) * each for k in ("cpu", "driver", "wall")]
                    memory = (run["own"], run["used"], run["memory"])
                    table.append((rows, which, *beyond, *memory, run["first"]))
            if self.questions:
                base = self._measure(WARM_ROWS, f"{root}/v", "to warm up", f"{root}/vs", VETTED)
                for count in [n for n in self.questions for _ in range(self.runs)]:
                    table += self._vet_and_export(count, f"{root}/vetted-{len(table)}", base)
            notes = [self._resume(f"{root}/killed")] if self.killed else []
            notes += [self._compare_on_s3(root)] if self.failing else []
        return BenchTable(
            title=f"a whole job over many rows of {self.shots} shots and lines",
            columns=(
                "rows", "run", "CPU ms a row", "of it the driver", "wall ms", "driver's own MB",
                "at the end", "with mapped pages", "first s",
            ),
            rows=tuple(table),
            notes=(
                f"ms: beyond what a run over {WARM_ROWS} rows takes, which is start-up; "
                f"{os.cpu_count()} cores; 'again' finds all rows in the store",
                "MB: the driver's peak; mapped pages are those of libraries and of Ray's object "
                "store; first s: from the start to the first result of a stage",
                *notes,
            ),
        )  # fmt: skip

    def _vet_and_export(
        self, count: int, out: str, base: Mapping[str, Any]
    ) -> Iterator[tuple[Cell, ...]]:
        """Yield the figures of a job with filters, then of each export, per question."""
        rows = count // VETTED_QUESTIONS
        each = 1000 / (count - VETTED_QUESTIONS * WARM_ROWS)
        run = self._measure(rows, out, "vetted", f"{out}/store", VETTED)
        beyond = [(run[k] - base[k]) * each for k in ("cpu", "driver", "wall")]
        yield (
            count,
            "questions made, vetted",
            *beyond,
            run["own"],
            run["used"],
            run["memory"],
            run["first"],
        )
        each = 1000 / count
        for layout in self.layouts:
            with show_step(f"{count:,} questions as {layout}"):
                arguments = [f"questions={out}", f"layout={layout}", f"out={out}-{layout}",
                             "subset=all"]  # fmt: skip
                used = run_json_child(EXPORT, arguments, f"the export as {layout}")
            cpu = used["cpu"] * each
            yield (
                count, f"questions as {layout}", cpu, cpu, used["wall"] * each, used["own"],
                used["used"], used["memory"], None,
            )  # fmt: skip

    def _measure(
        self,
        rows: int,
        out: str,
        which: str = "to warm up",
        store: str | None = None,
        *flags: str,
    ) -> dict[str, Any]:
        with show_step(f"{rows:,} rows, {which}"):
            arguments = [str(rows), out, str(self.shots), *filter(None, [store]), *flags]
            started = time.time()
            run = run_json_child(START, arguments, f"a run over {rows} rows")
        return {**run, "first": run["first"] and run["first"] - started}

    def _resume(self, out: str) -> str:
        """Kill a run, start it again, and return in words when its first new row was stored."""
        finished = Path(out, "store/ask")
        before = self._kill(out, lambda: _count(finished) >= self.done * self.killed)
        done = _count(finished)
        seconds = self._kill(out, lambda: _count(finished) > done)
        return (
            f"killed after {before:.0f} s with {done} of {self.killed} rows finished: started "
            f"again, the first new row is finished after {seconds:.1f} s"
        )

    def _kill(self, out: str, is_time: Callable[[], bool]) -> float:
        """Start a run, and kill it and its workers when it is time; return its seconds."""
        arguments, started = ["-c", START, str(self.killed), out, str(self.shots)], time.time()
        with (
            show_step(f"{self.killed:,} rows, to be killed"),
            subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL) as child,
        ):
            while child.poll() is None and not is_time():
                time.sleep(0.2)
            if child.returncode is not None:
                raise MustseeError(f"the run ended with {child.returncode} before it was killed")
            seconds, driver = time.time() - started, psutil.Process(child.pid)
            processes = [driver, *driver.children(recursive=True)]
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(processes, timeout=60)
        return seconds

    def _compare_on_s3(self, root: str) -> str:
        """Return in words whether a run on a failing S3 writes the same tables as on a disk."""
        self._measure(self.failing, f"{root}/disk", "on a disk")
        with s3.serve_objects(fails=self.fails) as (objects, address):
            out, store = address.format("out"), address.format("store")
            self._measure(self.failing, out, "on S3", store)
            names = ("videos.parquet", "questions.parquet", "problems.parquet")
            same = all(
                Path(root, "disk", name).read_bytes() == objects.kept[f"out/{name}"]
                for name in names
            )
        failed, asked = objects.failed.total() - objects.failed[""], objects.asked.total()
        return (
            f"{self.failing} rows on S3: {failed} of {asked} requests failed, the tables are "
            f"{'the same' if same else 'NOT the same'} as on a disk"
        )


def _cpu() -> float:
    """Return the CPU seconds of this process and of all its descendants, ended ones included."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _own() -> float:
    """Return the unshared resident memory of this process in MB."""
    memory = psutil.Process().memory_info()
    return (memory.rss - memory.shared) / 1e6


def _count(folder: Path) -> int:
    """Return the number of results of a stage, in its folder of the store."""
    return sum(len(os.listdir(part)) for part in folder.glob("*"))


def _first(store: Path, since: float) -> float | None:
    """Return when the first result of a stage was stored since a time (UNIX times)."""
    stored = (entry for stage in ("look", "ask") for entry in store.glob(f"{stage}/*/*"))
    times = (entry.stat().st_mtime for entry in stored)
    return min((time for time in times if time >= since), default=None)


@dataclass
class UsageMeter:
    """The peak of this process's unshared memory while it is open, and what it used then."""

    own: float = 0.0

    def __enter__(self) -> UsageMeter:
        self._started, self._ended = time.time(), threading.Event()
        self._cpu = time.process_time()
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            self.own = max(self.own, _own())

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        used = resource.getrusage(resource.RUSAGE_SELF)
        self.measures = {
            "driver": time.process_time() - self._cpu,
            "wall": time.time() - self._started,
            "own": self.own,
            "used": _own(),
            "memory": used.ru_maxrss / 1000,
        }


def main() -> None:
    """Run one job with the rows, the folders and the shots of the command line, and filters if it
    says so; print CPU and wall seconds and MB as JSON.
    """
    rows, out, shots = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    store = sys.argv[4] if len(sys.argv) > 4 else f"{out}/store"
    stages: dict[str, Any] = {"look": FakeLook(shots=shots), "ask": AskOneWord()}
    if VETTED in sys.argv[5:]:
        stages["ask"] = AskOneWord(questions=VETTED_QUESTIONS)
        stages["vet"] = Vet(filters={"giveaways": Giveaways()})
    started = time.time()
    with UsageMeter() as meter:
        hardware = {name: Hardware(cpus=0.1, concurrency=32) for name in stages}
        cluster = Cluster(stages={**hardware, "look": Hardware(cpus=0.5)})
        run = JobSettings(out=out, store=store, cluster=cluster, rows_per_block=BLOCK_ROWS)
        with run.open("large") as running:
            names = [f"v{i:07d}" for i in range(rows)]
            running.read(pa.table({"video_id": names, "uri": ["x"] * rows}))
            for name, part in stages.items():
                running.stage(name, part)
            running.publish({"none": lambda questions, folder, videos: None})
            cpu = _cpu()
    first = _first(Path(store), started)
    print(json.dumps({**meter.measures, "cpu": cpu, "first": first}))


def export() -> None:
    """Export as the command line's overrides say; print CPU and wall seconds and MB as JSON."""
    job = build(compose("export", sys.argv[1:]))
    with UsageMeter() as meter:
        job()
    print(json.dumps({**meter.measures, "cpu": meter.measures["driver"]}))
