"""A long video in chunks: the same result as in one, and no chunk is computed twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray

from actors.calls.coordinator_actor import call_coordinator, start_coordinator
from actors.engine.hardware import Hardware
from actors.engine.session import Session
from actors.engine.stage import Stage
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Video
from mustsee.run.record import Snapshot
from ray_jobs.runtime.cluster import connect_ray, cores
from tests.support.parts import InPieces, calls

LIMIT = {"row": 120.0, "video": 0.0}
TWO = Hardware(workers={"min": 1, "max": 2}, cpus=0.2, limit=LIMIT)


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    with connect_ray():
        yield


@pytest.fixture
def part(tmp_path: Path) -> InPieces:
    (tmp_path / "calls").mkdir()
    return InPieces(folder=str(tmp_path / "calls"))


def run(
    tmp_path: Path, part: InPieces, pieces: int, hardware: Hardware = TWO
) -> tuple[dict[str, Any], dict[str, int]]:
    """The row of a video with `pieces` chunks, and the counters."""
    row, snapshot = watched(tmp_path, part, pieces, hardware)
    return row, dict(snapshot.counts)


def watched(
    tmp_path: Path, part: InPieces, pieces: int, hardware: Hardware = TWO
) -> tuple[dict[str, Any], Snapshot]:
    """The row, and all counters."""
    (row,), snapshot = videos(tmp_path, part, {"v": pieces}, hardware)
    return row, snapshot


def videos(
    tmp_path: Path, part: InPieces, pieces: dict[str, int], hardware: Hardware
) -> tuple[list[dict[str, Any]], Snapshot]:
    """The rows of several videos with their numbers of chunks."""
    session = Session(store=Store(str(tmp_path / "s")), coordinator=start_coordinator())
    videos = [Video(video_id=name, uri=str(count)) for name, count in pieces.items()]
    rows = ray.data.from_arrow([schemas.table([video], Video) for video in videos])
    stage = Stage(name="hear", part=part, hardware=hardware)
    result_rows = stage.apply(rows, session, rows_per_block=1).take_all()
    return result_rows, call_coordinator(session.coordinator.snapshot.remote())


def whole(pieces: int) -> str:
    return " ".join(f"V-{n}" for n in range(pieces))


def test_helpers_compute_some_chunks_and_results_are_in_order(
    tmp_path: Path, part: InPieces
) -> None:
    row, counts = run(tmp_path, replace(part, met=4), 8)
    assert row["title"] == whole(8)
    assert len(set(row["tags"])) == 2
    helped = sum(tag != row["tags"][0] for tag in row["tags"])
    assert counts == {"hear.pieces.helped": helped}
    assert set(calls(Path(part.folder)).values()) == {1}


def test_the_work_of_helpers_is_counted(tmp_path: Path, part: InPieces) -> None:
    _, snapshot = watched(tmp_path, replace(part, met=4, cpu=0.3), 8)
    assert snapshot.counts["hear.pieces.helped"] >= 3
    assert snapshot.stage("hear").cpu_seconds >= 8 * 0.3


def test_two_long_videos_on_two_workers_have_no_helpers(tmp_path: Path, part: InPieces) -> None:
    """A pool of two workers at most; the cluster has room for more. A helper that started for the
    first video, before the second video had begun, gets no chunk after that.
    """
    two = replace(TWO, workers=2)
    rows, _ = videos(tmp_path, replace(part, met=2, cpu=0.4), {"v": 12, "w": 12}, two)
    begun = {path.name.split(".")[0]: path.stat().st_mtime for path in Path(part.folder).iterdir()}
    both = max(begun["v-1"], begun["w-1"])
    late = {
        tag
        for row in rows
        for n, tag in enumerate(row["tags"])
        if begun[f"{row['video_id']}-{n}"] > both
    }
    assert len(late) <= 2
    assert len(begun) == 24


def test_a_short_video_uses_no_helpers(tmp_path: Path, part: InPieces) -> None:
    row, counts = run(tmp_path, part, 1)
    assert (row["title"], counts) == (whole(1), {})
    assert not Store(str(tmp_path / "s")).has("hear-pieces")


@pytest.mark.parametrize("fate", ["die", "fail"])
def test_the_worker_computes_a_chunk_that_a_helper_failed(
    fate: str, tmp_path: Path, part: InPieces
) -> None:
    row, counts = run(tmp_path, replace(part, met=2, helpers=fate), 4)
    assert row["title"] == whole(4)
    assert len(set(row["tags"])) == 1
    assert counts == {"hear.helpers.lost": 1}
    assert sum(calls(Path(part.folder)).values()) == 5


def test_a_worker_death_loses_no_finished_chunk(tmp_path: Path, part: InPieces) -> None:
    one = Hardware(cpus=0.2, limit=LIMIT)
    row, _ = run(tmp_path, replace(part, dies="v-5"), 8, one)
    assert row["title"] == whole(8)
    assert len(set(row["tags"][:5])) == len(set(row["tags"][5:])) == 1
    assert row["tags"][0] != row["tags"][5]
    assert calls(Path(part.folder)) == {f"v-{n}": 1 + (n == 5) for n in range(8)}


def test_no_helper_starts_without_free_resources(tmp_path: Path, part: InPieces) -> None:
    full = Hardware(workers={"min": 1, "max": 2}, cpus=cores(), limit=LIMIT)
    row, counts = run(tmp_path, part, 4, full)
    assert (row["title"], counts) == (whole(4), {})
    assert len(set(row["tags"])) == 1


def test_chunks_of_a_video_are_found_in_the_store(tmp_path: Path, part: InPieces) -> None:
    """As after a killed run: the chunks are stored, and the video's own result is missing."""
    first, _ = run(tmp_path, part, 4)
    hear = tmp_path / "s/hear"
    hear.rename(tmp_path / "gone")
    repeated, counts = run(tmp_path, replace(part, folder=part.folder), 5)
    assert first["tags"] == repeated["tags"][:4]
    assert (repeated["title"], counts) == (whole(5), {})
    assert set(calls(Path(part.folder)).values()) == {1}
