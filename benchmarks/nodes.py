"""Whether a pool fills the nodes of a cluster, and follows a node that leaves and comes back.

The nodes are processes of this machine (Ray's `cluster_utils`), so the work only waits: what is
measured is how Ray Data and the stages spread rows, not how fast they compute.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from unittest import mock

import pyarrow as pa
import ray

from actors.calls.coordinator_actor import start_coordinator
from actors.engine.hardware import Hardware
from actors.engine.session import Session
from actors.engine.stage import Stage
from actors.part import Opened, RunContext
from benchmarks.figures import BenchTable, Cell
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Video
from ray_jobs.runtime.cluster import connect_ray


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A part that waits, and writes its node and the time at which it was done."""

    seconds: float

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "title")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("title",)

    def open(self, run: RunContext) -> Opened:
        node = ray.get_runtime_context().get_node_id()

        def wait(row: Video) -> Video:
            time.sleep(self.seconds)
            return dataclasses.replace(row, title=f"{node} {time.time()}")

        return wait


@dataclass(frozen=True, kw_only=True)
class NodesBench:
    """Run rows that wait `seconds` on clusters that grow by nodes of `cpus`, one worker on each
    CPU, `each` rows for a CPU; then again on all of them, while the node named `leaves` (its place
    in `cpus`) dies and comes back.
    """

    cpus: Sequence[int] = (1, 2, 4)
    seconds: float = 0.5
    each: int = 40
    leaves: int = 1

    def __call__(self) -> BenchTable:
        # Imported here: it brings the tools of Ray's tests, which only this needs.
        from ray.cluster_utils import Cluster

        if os.environ.get("RAY_AUTH_MODE") != "disabled":  # Ray reads it when it is imported
            raise UserError(
                "what=nodes starts a cluster without a token: set RAY_AUTH_MODE=disabled"
            )
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        try:
            rows = list(self._rows(cluster))
        finally:
            cluster.shutdown()
        return BenchTable(
            title=f"rows that wait {self.seconds} s, on nodes of {list(self.cpus)} CPUs",
            columns=("nodes", "CPUs", "rows", "rows by node", "rows a second", "speed-up", "full"),
            rows=tuple(rows),
            notes=(
                f"{os.cpu_count()} cores hold all nodes; rows a second: in the middle half of "
                "the rows; full: share of what workers "
                "without any pause would do",
            ),
        )

    def _rows(self, cluster: Any) -> Iterator[tuple[Cell, ...]]:
        nodes: list[Any] = []
        first = 0.0
        for count, cpus in enumerate(self.cpus, 1):
            nodes.append(cluster.add_node(num_cpus=cpus))
            total = sum(self.cpus[:count])
            with _connected(cluster):
                done = [*self._pass(total, self.each * total)]
            speed = _steady_speed(done)
            first = first or speed
            yield (
                f"{count}", total, len(done), _by_node(done), round(speed, 2),
                round(speed / first, 2), round(speed * self.seconds / total, 3),
            )  # fmt: skip
        yield from self._with_a_change(cluster, nodes, first)

    def _with_a_change(
        self, cluster: Any, nodes: list[Any], first: float
    ) -> Iterator[tuple[Cell, ...]]:
        """Kill a node after a third of the rows, and start it again after two thirds."""
        total, gone = sum(self.cpus), self.cpus[self.leaves]
        count = 3 * self.each * total
        done: list[tuple[str, float]] = []
        marks = [0.0]
        with _connected(cluster):
            for number, row in enumerate(self._pass(total, count), 1):
                done.append(row)
                if number == count // 3:
                    marks.append(time.time())
                    cluster.remove_node(nodes[self.leaves], allow_graceful=False)
                elif number == 2 * count // 3:
                    marks.append(time.time())
                    cluster.add_node(num_cpus=gone)
        marks.append(time.time())
        names = ("all, before", f"without the node of {gone}", "it is back")
        sizes = (total, total - gone, total)
        for name, size, start, end in zip(names, sizes, marks, marks[1:], strict=False):
            part = [row for row in done if start < row[1] <= end]
            speed = _steady_speed(part)
            yield (
                name, size, len(part), _by_node(part), round(speed, 2), round(speed / first, 2),
                round(speed * self.seconds / size, 3),
            )  # fmt: skip
        yield "rows in, rows out", total, f"{count}, {len(done)}", "", "", "", ""

    def _pass(self, workers: int, count: int) -> Iterator[tuple[str, float]]:
        """Yield (node, time) of each row as it comes out of the stage."""
        with tempfile.TemporaryDirectory(prefix="mustsee-") as root:
            stage = Stage(
                name="wait",
                part=Wait(seconds=self.seconds),
                hardware=Hardware(workers={"min": 1, "max": workers}),
            )
            session = Session(store=Store(root), coordinator=start_coordinator())
            table = schemas.table([Video(video_id=f"v{i}", uri="x") for i in range(count)], Video)
            data = ray.data.from_blocks([table.slice(i, 1) for i in range(count)])
            done = stage.apply(data, session, rows_per_block=1)
            for batch in done.iter_batches(batch_size=None, batch_format="pyarrow"):
                yield from map(_node_and_time, _titles(batch))


def _titles(batch: Any) -> list[str]:
    assert isinstance(batch, pa.Table)
    return batch["title"].to_pylist()


def _node_and_time(title: str) -> tuple[str, float]:
    node, _, seconds = title.partition(" ")
    return node, float(seconds)


def _by_node(done: Sequence[tuple[str, float]]) -> str:
    counts = Counter(node for node, _ in done)
    return " + ".join(str(n) for n in sorted(counts.values()))


def _steady_speed(done: Sequence[tuple[str, float]]) -> float:
    """Rows a second in the middle half of the rows, while no worker starts or ends."""
    times = sorted(seconds for _, seconds in done)
    middle = times[len(times) // 4 : -(len(times) // 4)]
    return (len(middle) - 1) / (middle[-1] - middle[0])


@contextmanager
def _connected(cluster: Any) -> Generator[None]:
    with mock.patch.dict(os.environ, {"RAY_ADDRESS": cluster.address}), connect_ray():
        yield
