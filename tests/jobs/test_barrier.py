"""A decision over all rows, where the store has some of them: the same bytes as without a store."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from actors.hardware import Hardware
from mustsee import schemas
from mustsee.decision import Decision
from mustsee.records import Video
from ray_jobs.running.cluster import Cluster, connected
from ray_jobs.running.run import Run
from tests.support.parts import Upper, calls

FILES = ("videos.parquet", "questions.parquet", "problems.parquet")
ROWS = 6


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    with connected():
        yield


@dataclass(frozen=True, kw_only=True)
class Odd:
    """Drops every second row, by what it sees of all of them."""

    columns: Sequence[str] = ()

    def __call__(self, rows: pa.Table) -> Decision:
        stood = [row for row in rows.to_pylist() if row["problem"] is None]
        names = sorted(row["video_id"] for row in stood)
        assert {row["title"] for row in stood} == {f"{name.upper()}!" for name in names}
        return Decision(drops=dict.fromkeys(names[1::2], "odd: one of two"))


def run(out: Path, store: Path, folder: Path) -> dict[str, bytes]:
    hardware = Hardware(cpus=0.2)
    stages = dict.fromkeys(("probe", "look", "ask"), hardware)
    job = Run(out=str(out), store=str(store), cluster=Cluster(stages=stages))
    with job.open("toy") as running:
        videos = [Video(video_id=f"v{i}", uri="bad" if i == 3 else "x") for i in range(ROWS)]
        running.read(schemas.table(videos, Video))
        running.stage("probe", Upper(folder=str(folder)))
        running.stage("look", Upper(folder=str(folder)))
        running.together(Odd())
        running.stage("ask", Upper(folder=str(folder), mark="?"))
        assert running.publish() == 0
    return {name: (out / name).read_bytes() for name in FILES}


def test_rows_from_the_store_and_new_ones_meet_at_the_barrier(tmp_path: Path) -> None:
    folder, store = tmp_path / "calls", tmp_path / "store"
    folder.mkdir()
    first = run(tmp_path / "one", store, folder)
    worked = calls(folder)
    assert run(tmp_path / "two", store, folder) == first
    assert calls(folder) == worked
    for kept in sorted(p for p in (store / "look").rglob("*") if p.is_file())[::2]:
        kept.unlink()
    assert run(tmp_path / "three", store, folder) == first
    assert calls(folder) != worked
    shutil.rmtree(store / "probe")
    assert run(tmp_path / "four", store, folder) == first
