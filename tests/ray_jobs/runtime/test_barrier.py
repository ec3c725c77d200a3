"""A barrier with some rows in the store writes the same bytes as without a store."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.engine.hardware import Hardware
from mustsee.files import schemas
from mustsee.questions.decision import Decision
from mustsee.records import Video
from mustsee.run.record import StageCounts
from ray_jobs.runtime.cluster import Cluster, connect_ray
from ray_jobs.runtime.run import JobSettings
from tests.support.parts import Upper, calls

FILES = ("videos.parquet", "questions.parquet", "problems.parquet")
ROWS = 6


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    with connect_ray():
        yield


@dataclass(frozen=True, kw_only=True)
class Odd:
    """Drops every second row as they come, and checks that all rows reached it."""

    columns: Sequence[str] = ()

    def __call__(self, rows: pa.Table) -> Decision:
        stood = [row for row in rows.to_pylist() if row["problem"] is None]
        names = [row["video_id"] for row in stood]
        assert {row["title"] for row in stood} == {f"{name.upper()}!" for name in names}
        return Decision(drops=dict.fromkeys(names[1::2], "odd: one of two"))


def run(
    out: Path, store: Path, folder: Path, fourth: str = "bad"
) -> tuple[dict[str, bytes], Mapping[str, StageCounts]]:
    """The bytes of the tables, and the counts of the stages. `fourth`: uri of the fourth row."""
    hardware = Hardware(cpus=0.2)
    stages = dict.fromkeys(("probe", "look", "ask"), hardware)
    job = JobSettings(out=str(out), store=str(store), cluster=Cluster(stages=stages))
    with job.open("toy") as running:
        videos = [Video(video_id=f"v{i}", uri=fourth if i == 3 else "x") for i in range(ROWS)]
        running.read(schemas.table(videos, Video))
        running.stage("probe", Upper(folder=str(folder)))
        running.stage("look", Upper(folder=str(folder)))
        running.together(Odd())
        running.stage("ask", Upper(folder=str(folder), mark="?"))
        assert running.publish() == 0
    return {name: (out / name).read_bytes() for name in FILES}, running.record.stages


def test_a_barrier_sees_cached_and_new_rows_alike(tmp_path: Path) -> None:
    folder, store = tmp_path / "calls", tmp_path / "store"
    folder.mkdir()
    first, _ = run(tmp_path / "one", store, folder)
    worked = calls(folder)
    again, counts = run(tmp_path / "two", store, folder)
    assert again == first
    assert calls(folder) == worked
    assert {name: (c.started, c.reused) for name, c in counts.items()} == {
        "probe": (0, ROWS), "look": (0, ROWS - 1), "decide": (0, ROWS - 1), "ask": (0, 3),
    }  # fmt: skip
    for result in sorted(p for p in (store / "look").rglob("*") if p.is_file())[::2]:
        result.unlink()
    assert run(tmp_path / "three", store, folder)[0] == first
    assert calls(folder) != worked
    shutil.rmtree(store / "probe")
    assert run(tmp_path / "four", store, folder)[0] == first


def test_a_row_that_fails_before_a_barrier_is_tried_once(tmp_path: Path) -> None:
    (tmp_path / "calls").mkdir()
    tables, counts = run(tmp_path / "out", tmp_path / "store", tmp_path / "calls", fourth="bug")
    assert calls(tmp_path / "calls")["v3"] == 1  # Although the store has no result of it.
    assert counts["probe"].problem == 1
    problems = pq.read_table(pa.BufferReader(tables["problems.parquet"])).to_pylist()
    assert [(p["video_id"], p["error"]) for p in problems] == [("v3", "ZeroDivisionError")]
