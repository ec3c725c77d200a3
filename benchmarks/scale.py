"""The overhead of a run: many tiny rows through stages that do nothing."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import ray

from actors.calls.coordinator_actor import start_coordinator
from actors.engine.hardware import Hardware
from actors.engine.session import Session
from actors.engine.stage import Stage
from actors.part import Opened, RunContext
from benchmarks.figures import BenchTable, Cell
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Video
from ray_jobs.runtime.cluster import connect_ray
from ray_jobs.runtime.lookups import look_up_rows


@dataclass(frozen=True, kw_only=True)
class CopyId:
    """A part that copies the id into the title."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "title")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("title",)

    def open(self, run: RunContext) -> Opened:
        return lambda row: dataclasses.replace(row, title=row.video_id)


@dataclass(frozen=True, kw_only=True)
class ScaleBench:
    """Send `rows` rows through `stages` stages, once for each block size of `blocks`."""

    rows: int = 512
    stages: int = 4
    blocks: Sequence[int] = (1, 4, 16)

    def __call__(self) -> BenchTable:
        with connect_ray():
            self._pass(16, Store(tempfile.mkdtemp(prefix="mustsee-")), rows=16)  # warm
            rows = [row for size in self.blocks for row in self._sized(size)]
        return BenchTable(
            title=f"{self.rows} rows through {self.stages} stages that do nothing",
            columns=("rows a block", "run", "wall s", "ms per row and stage"),
            rows=tuple(rows),
            notes=(
                f"{os.cpu_count()} cores; 'store' computes and stores every row, 'again' finds "
                "every row in the store, both with the start of the workers; 'known' is what a "
                "job does with finished rows",
            ),
        )

    def _sized(self, size: int) -> list[tuple[Cell, ...]]:
        with tempfile.TemporaryDirectory(prefix="mustsee-") as root:
            results: list[tuple[Cell, ...]] = []
            for name in ("store", "again", "known"):
                work = self._known if name == "known" else self._pass
                seconds = work(size, Store(root), rows=self.rows)
                results.append((size, name, seconds, 1000 * seconds / self.rows / self.stages))
            return results

    def _stages(self) -> list[Stage]:
        hardware = Hardware(cpus=0.2)
        return [Stage(name=f"s{n}", part=CopyId(), hardware=hardware) for n in range(self.stages)]

    def _known(self, size: int, store: Store, *, rows: int) -> float:
        """Look up finished rows as a job does, without Ray; return the seconds."""
        session = Session(store=store, coordinator=start_coordinator())
        started = time.monotonic()
        blocks = look_up_rows(self._stages(), _rows(rows), session)
        finished = sum(block.done.num_rows for block in blocks if block.done is not None)
        assert finished == rows, "an earlier pass stored all rows"
        return time.monotonic() - started

    def _pass(self, size: int, store: Store, *, rows: int) -> float:
        table = _rows(rows)
        session = Session(store=store, coordinator=start_coordinator())
        data = ray.data.from_arrow([table.slice(i, size) for i in range(0, rows, size)])
        for stage in self._stages():
            data = stage.apply(data, session, rows_per_block=size)
        started = time.monotonic()
        for _ in data.iter_batches(batch_size=None, batch_format="pyarrow"):
            pass
        return time.monotonic() - started


def _rows(count: int) -> pa.Table:
    return schemas.table([Video(video_id=f"v{i}", uri="x") for i in range(count)], Video)
