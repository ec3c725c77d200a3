"""A whole job: wall time over the ideal, also at an endpoint, and a second run from the store.

The ideal is the CPU time of all stages spread evenly over the cores, or the time that an endpoint
takes for the calls if it always has as many as it answers at once.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import run_child
from loopback.endpoint import Loopback
from loopback.replies import recorded_replies
from ray_jobs.runtime.cluster import local_cores

SHORT_VIDEO = "examples/videos/teaser.mp4"


@dataclass(frozen=True, kw_only=True)
class EndToEndBench:
    """`job`, `videos` and `overrides` are those of the command line. `replies`: a recording of the
    calls about these videos; with one, a further run asks an endpoint that gives them, each after
    `latency` seconds, `in_flight` at once.
    """

    videos: str
    job: str = "make"
    overrides: Sequence[str] = ()
    replies: str | None = None
    latency: float = 2.0
    in_flight: int = 16

    def __call__(self) -> BenchTable:
        with tempfile.TemporaryDirectory(prefix="mustsee-") as name:
            start = self._run(f"{name}/start", f"videos={SHORT_VIDEO}")
            first, second = self._run(f"{name}/out"), self._run(f"{name}/out")
            asked = self._ask_endpoint(name, self.replies) if self.replies else None
        work: Mapping[str, float] = first["cpu_seconds"]
        cores = local_cores()
        ideal, startup = sum(work.values()) / cores, start["wall"]
        rows: list[tuple[Cell, ...]] = [
            ("start-up: a run over a video of 4 s", *_times(start), None, None, None),
            ("first run", *_times(first), *_counts(first), (first["wall"] - startup) / ideal),
            ("second run", *_times(second), *_counts(second), second["wall"] / first["wall"]),
        ]  # fmt: skip
        notes: list[str] = []
        if asked is not None:
            least = asked["calls"] * self.latency / self.in_flight
            ratio = (asked["wall"] - startup) / least
            rows.append(("at an endpoint", *_times(asked), *_counts(asked), ratio))
            notes.append(
                f"at an endpoint: {asked['calls']} calls of {self.latency:g} s, {self.in_flight} "
                f"at once; wall beyond start-up over {least:.1f} s"
            )
        return BenchTable(
            title=f"{self.job}, end to end",
            columns=("run", "wall s", "machine's CPU s", "computed", "reused", "ratio"),
            rows=tuple(rows),
            notes=(
                f"first run's ratio: wall beyond start-up over the ideal, {ideal:.1f} s: the CPU "
                f"time of all stages spread evenly over {cores} cores (without waits for replies)",
                "second run's ratio: its wall over the first run's",
                *notes,
                "machine's CPU: of all processes meanwhile; what others take makes ratios larger",
                "CPU seconds of work: " + ", ".join(f"{s} {v:.1f}" for s, v in work.items()),
            ),
        )

    def _ask_endpoint(self, folder: str, replies: str) -> Mapping[str, Any]:
        """Run the job at the endpoint, with all results but those of models in the store."""
        with Loopback(
            reply=recorded_replies(replies), latency=self.latency, in_flight=self.in_flight
        ) as server:
            endpoint = ("llm=openai", f"base_url={server.url}", "key_env=null")
            run = self._run(f"{folder}/asked", f"store={folder}/out/store", *endpoint)
            return {**run, "calls": server.counts["chat"]}

    def _run(self, out: str, *overrides: str) -> Mapping[str, Any]:
        arguments = ["-m", f"ray_jobs.{self.job}", f"videos={self.videos}", f"out={out}",
                     "max_problem_share=1", *self.overrides, *overrides]  # fmt: skip
        started, cpu = time.monotonic(), _machine_cpu_seconds()
        run_child(arguments, "the job")
        measured = {"wall": time.monotonic() - started, "machine": _machine_cpu_seconds() - cpu}
        return {**json.loads((Path(out) / "run.json").read_text()), **measured}


def _machine_cpu_seconds() -> float:
    """Return the CPU seconds that all processes of this machine have taken."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system


def _times(run: Mapping[str, Any]) -> tuple[float, float]:
    """Return a run's wall seconds and the machine's CPU seconds meanwhile."""
    return run["wall"], run["machine"]


def _counts(run: Mapping[str, Any]) -> tuple[int, int]:
    """Return a run's computed and reused rows."""
    return sum(run["computed"].values()), sum(run["reused"].values())
