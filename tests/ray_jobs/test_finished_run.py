"""A job whose rows are all in the store starts no Ray, and writes what the first run wrote."""

import dataclasses
import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.engine.hardware import Hardware
from mustsee.calls.usage import UsageTotals
from mustsee.files import schemas
from mustsee.questions.decision import Decider, Decision
from mustsee.records import Video
from mustsee.run.record import Snapshot, StageCounts
from ray_jobs.runtime import cluster
from ray_jobs.runtime.cluster import Cluster
from ray_jobs.runtime.run import JobSettings
from tests.support.parts import Upper, calls

FILES = ("videos.parquet", "questions.parquet", "problems.parquet")
URIS = ("x", "bad", "dull", "x")
OTHER = ("git", "seconds", "cpu_seconds", "computed", "reused", "pace")  # differ by their nature


class RayStartedError(Exception):
    pass


@dataclass(frozen=True, kw_only=True)
class DropsFirst:
    columns: Sequence[str] = ()

    def __call__(self, rows: pa.Table) -> Decision:
        return Decision(drops={"v0": "first: one too many"})


@pytest.fixture(autouse=True)
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def connect_ray() -> Generator[None]:
        raise RayStartedError
        yield

    monkeypatch.setattr(cluster, "connect_ray", connect_ray)


@pytest.fixture
def job(tmp_path: Path) -> JobSettings:
    (tmp_path / "calls").mkdir()
    hardware = Hardware(cpus=0.2)
    return JobSettings(
        out=str(tmp_path / "out"),
        store=str(tmp_path / "store"),
        cluster=Cluster(stages={"probe": hardware, "look": hardware}),
    )


def run(
    job: JobSettings, *, light: bool = False, mark: str = "!", decide: Decider | None = None
) -> Mapping[str, Any]:
    """The record of a run. `light`: this process computes the rows. `decide`: a last barrier."""
    folder = str(Path(job.out).parent / "calls")

    def dull(row: Video) -> str | None:
        return "dull: no" if row.uri == "dull" else None

    with job.open("toy", light=light) as running:
        videos = [Video(video_id=f"v{n}", uri=uri) for n, uri in enumerate(URIS)]
        running.read(schemas.table([*videos, Video(video_id="v9", uri="x", drop="no")], Video))
        running.stage("probe", Upper(folder=folder), filters=(dull,))
        running.stage("look", Upper(folder=folder, mark=mark))
        if decide is not None:
            running.together(decide)
        assert running.publish() == 0
    return json.loads((Path(job.out) / "run.json").read_bytes())


def tables(job: JobSettings) -> list[bytes]:
    return [(Path(job.out) / name).read_bytes() for name in FILES]


def test_a_finished_run_writes_the_same_without_ray(job: JobSettings, tmp_path: Path) -> None:
    first = run(job, light=True)
    expected, worked = tables(job), calls(tmp_path / "calls")
    (tmp_path / "out" / "videos.parquet").unlink()
    again = run(job)
    assert tables(job) == expected
    assert calls(tmp_path / "calls") == worked
    assert again["computed"] == {"probe": 0, "look": 0}
    assert again["reused"] == {"probe": 4, "look": 2}
    assert {k: v for k, v in again.items() if k not in OTHER} == {
        k: v for k, v in first.items() if k not in OTHER
    }


def test_a_new_decision_over_finished_rows_is_written_without_ray(job: JobSettings) -> None:
    run(job, light=True)
    for computed, reused in ((2, 0), (0, 2)):
        record = run(job, decide=DropsFirst())
        assert (record["computed"]["decide"], record["reused"]["decide"]) == (computed, reused)
        rows = pq.read_table(Path(job.out) / "videos.parquet").to_pylist()
        assert {row["video_id"]: row["drop"] for row in rows} == {
            "v0": "first: one too many", "v1": None, "v2": "dull: no", "v3": None, "v9": "no",
        }  # fmt: skip


def test_a_row_that_the_store_lacks_starts_ray(job: JobSettings, tmp_path: Path) -> None:
    run(job, light=True)
    next(p for p in (tmp_path / "store" / "look").rglob("*") if p.is_file()).unlink()
    with pytest.raises(RayStartedError):
        run(job)


def test_a_changed_setting_starts_ray(job: JobSettings) -> None:
    run(job, light=True)
    with pytest.raises(RayStartedError):
        run(job, mark="?")


def test_a_problem_that_is_tried_again_starts_ray(job: JobSettings) -> None:
    run(job, light=True)
    with pytest.raises(RayStartedError):
        run(dataclasses.replace(job, retry_problems=True))


def test_counts_of_look_ups_and_workers_are_added() -> None:
    def counts(reused: int, damaged: str, **stage: int) -> Snapshot:
        return Snapshot(
            stages={"probe": StageCounts(reused=reused, **stage)}, counts={"calls": reused},
            llm=UsageTotals(), damaged={damaged: "empty"},
        )  # fmt: skip

    worked = counts(2, "a", computed=3).with_lookups(counts(5, "b"))
    assert worked.stage("probe") == StageCounts(reused=7, computed=3)
    assert worked.damaged == {"a": "empty", "b": "empty"}
    assert worked.counts == {"calls": 2}
