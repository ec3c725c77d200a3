"""The whole Neptune job: wall time over the ideal, then a second run that computes nothing."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import run_child
from ray_jobs.runtime.cluster import local_cores


@dataclass(frozen=True, kw_only=True)
class EndToEndBench:
    """`videos` and `overrides` are those of the job's command line."""

    videos: str
    overrides: Sequence[str] = ()

    def __call__(self) -> BenchTable:
        with tempfile.TemporaryDirectory(prefix="mustsee-") as name:
            empty = self._fastest(f"{name}/nothing", videos="examples/videos/broken.mp4")
            first, second = self._run(f"{name}/out"), self._fastest(f"{name}/out")
        work: Mapping[str, float] = first["cpu_seconds"]
        cores = local_cores()
        ideal, startup = sum(work.values()) / cores, empty["wall"]
        rows: list[tuple[Cell, ...]] = [
            ("start-up: a run over one unreadable file", startup, None, None, None),
            ("first run", *_counts(first), (first["wall"] - startup) / ideal),
            ("second run", *_counts(second),
             (second["wall"] - startup) / max(first["wall"] - startup, 1e-9)),
        ]  # fmt: skip
        return BenchTable(
            title="end to end",
            columns=("run", "wall s", "computed", "reused", "ratio"),
            rows=tuple(rows),
            notes=(
                f"first run's ratio: wall beyond start-up over the ideal, {ideal:.1f} s: the CPU "
                f"time of all stages spread evenly over {cores} cores (without waits for replies)",
                "second run's ratio: its wall over the first run's, both beyond start-up",
                "start-up and second run: the faster of two tries",
                "CPU seconds of work: " + ", ".join(f"{s} {v:.1f}" for s, v in work.items()),
            ),
        )

    def _fastest(self, out: str, videos: str | None = None) -> Mapping[str, Any]:
        return min((self._run(out, videos) for _ in range(2)), key=lambda run: run["wall"])

    def _run(self, out: str, videos: str | None = None) -> Mapping[str, Any]:
        arguments = ["-m", "ray_jobs.neptune", f"videos={videos or self.videos}", f"out={out}",
                     "max_problem_share=1", *self.overrides]  # fmt: skip
        started = time.monotonic()
        run_child(arguments, "the job")
        wall = time.monotonic() - started
        return {**json.loads((Path(out) / "run.json").read_text()), "wall": wall}


def _counts(run: Mapping[str, Any]) -> tuple[float, int, int]:
    """Return a run's wall seconds, its computed rows and its reused rows."""
    return run["wall"], sum(run["computed"].values()), sum(run["reused"].values())
