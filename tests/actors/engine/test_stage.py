"""The stage on a real Ray: no row is computed twice or lost, and a bad row affects no other."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ray

from actors.calls.coordinator_actor import start_coordinator
from actors.engine.hardware import Hardware
from actors.engine.session import Session
from actors.engine.stage import Stage
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Video
from ray_jobs.runtime.cluster import connect_ray
from tests.support.parts import Closed, Crowd, Meet, MeetAlike, Upper, calls


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    with connect_ray():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "calls").mkdir()
    return tmp_path / "calls"


def run(
    tmp_path: Path,
    stages: Sequence[Stage | tuple[Stage, ...]],
    uris: Sequence[str],
    size: int = 1,
    **options: Any,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The resulting rows by id, and the coordinator's counters by stage. Stages in a tuple share
    workers.
    """
    rows = [Video(video_id=f"v{i}", uri=uri) for i, uri in enumerate(uris)]
    table = schemas.table(rows, Video).append_column("channel", pa.array(["news"] * len(rows)))
    coordinator = options.pop("coordinator", None) or start_coordinator()
    session = Session(store=Store(str(tmp_path / "s")), coordinator=coordinator, **options)
    data = ray.data.from_arrow([table.slice(i, size) for i in range(0, len(rows), size)])
    for pool in stages:
        first, *then = pool if isinstance(pool, tuple) else (pool,)
        data = first.apply(data, session, rows_per_block=size, then=then)
    rows_out = [
        r for b in data.iter_batches(batch_size=None, batch_format="pyarrow") for r in b.to_pylist()
    ]
    return sorted(rows_out, key=lambda r: r["video_id"]), ray.get(
        coordinator.snapshot.remote()
    ).stages


def upper(folder: Path, **options: Any) -> Stage:
    return Stage(
        name="look", part=Upper(folder=str(folder), **options), hardware=Hardware(cpus=0.2)
    )


def test_rows_are_computed_once_and_then_reused(tmp_path: Path, folder: Path) -> None:
    rows, counts = run(tmp_path, [upper(folder)], ["x", "x", "x"])
    assert [r["title"] for r in rows] == ["V0!", "V1!", "V2!"]
    assert {r["channel"] for r in rows} == {"news"}
    assert counts["look"].computed == 3
    repeated, counts = run(tmp_path, [upper(folder)], ["x", "y", "x"])
    assert repeated[0] == rows[0]
    assert counts["look"].computed == 0
    assert counts["look"].reused == 3
    assert sum(calls(folder).values()) == 3
    run(tmp_path, [upper(folder, mark="?")], ["x", "x", "x"])
    assert sum(calls(folder).values()) == 6


def test_bad_rows_become_problems_without_affecting_others(tmp_path: Path, folder: Path) -> None:
    uris = ["x", "bad", "bug", "x"]
    rows, counts = run(tmp_path, [upper(folder), upper(folder)], uris)
    assert [r["title"] for r in rows] == ["V0!", None, None, "V3!"]
    assert rows[1]["problem"] == {
        "stage": "look", "error": "BadRow", "message": "'v1' is bad", "attempts": 1,
    }  # fmt: skip
    assert rows[2]["problem"]["error"] == "ZeroDivisionError"
    assert "parts.py" in rows[2]["problem"]["message"]
    assert counts["look"].problem == 2
    # A bad row is stored; a bug is not, so that its fix takes effect.
    run(tmp_path, [upper(folder)], uris)
    assert calls(folder) == {"v0": 1, "v1": 1, "v2": 2, "v3": 1}
    run(tmp_path, [upper(folder)], uris, retry_problems=True)
    assert calls(folder)["v1"] == 2


def test_errors_of_the_whole_run_are_raised(tmp_path: Path, folder: Path) -> None:
    coordinator = start_coordinator()
    with pytest.raises(ray.exceptions.RayTaskError):
        run(tmp_path, [upper(folder)], ["x", "user"], coordinator=coordinator)
    error = ray.get(coordinator.snapshot.remote()).aborted.to_error()
    assert isinstance(error, UserError)
    assert str(error) == "no such model"


def test_a_model_that_cannot_be_opened_ends_the_run_in_one_line(
    tmp_path: Path, folder: Path
) -> None:
    coordinator = start_coordinator()
    stage = Stage(name="look", part=Closed(folder=str(folder)), hardware=Hardware(cpus=0.2))
    with pytest.raises(ray.exceptions.RayTaskError):
        run(tmp_path, [stage], ["x"], coordinator=coordinator)
    error = ray.get(coordinator.snapshot.remote()).aborted.to_error()
    assert isinstance(error, UserError)
    assert str(error) == "no weights here"


def test_a_worker_killed_once_loses_no_row(tmp_path: Path, folder: Path) -> None:
    rows, _ = run(tmp_path, [upper(folder)], ["x", "die-once", "x"])
    assert [r["title"] for r in rows] == ["V0!", "V1!", "V2!"]
    assert calls(folder) == {"v0": 1, "v1": 2, "v2": 1}


def test_a_row_that_kills_its_worker_becomes_a_problem(tmp_path: Path, folder: Path) -> None:
    rows, _ = run(tmp_path, [upper(folder)], ["x", "die", "x"])
    assert [r["title"] for r in rows] == ["V0!", None, "V2!"]
    assert rows[1]["problem"]["error"] == "WorkerKilled"
    assert calls(folder)["v1"] == 2


def test_a_row_that_kills_its_worker_does_not_affect_its_block(
    tmp_path: Path, folder: Path
) -> None:
    uris = ["x", "die", "x", "bug", "die", "x"]
    rows, _ = run(tmp_path, [upper(folder)], uris, size=6)
    assert [r["title"] for r in rows] == ["V0!", None, "V2!", None, None, "V5!"]
    errors = [r["problem"] and r["problem"]["error"] for r in rows]
    killed = "WorkerKilled"
    assert errors == [None, killed, None, "ZeroDivisionError", killed, None]
    assert [rows[i]["problem"]["attempts"] for i in (1, 4)] == [2, 2]
    assert [calls(folder)[f"v{i}"] for i in (0, 1, 2, 4, 5)] == [1, 2, 1, 2, 1]


LIMIT = {"row": 2.0, "video": 0.0}


@pytest.mark.parametrize("size", [1, 4])
def test_a_row_that_hangs_becomes_a_problem_without_affecting_others(
    tmp_path: Path, folder: Path, size: int
) -> None:
    stage = upper(folder)
    limited = Stage(name="look", part=stage.part, hardware=Hardware(cpus=0.2, limit=LIMIT))
    uris = ["x", "hang", "x", "hang"]
    rows, counts = run(tmp_path, [limited], uris, size=size)
    assert [r["title"] for r in rows] == ["V0!", None, "V2!", None]
    for row in (rows[1], rows[3]):
        assert row["problem"]["error"] == "TooLong"
        assert "longer than 2 s" in row["problem"]["message"]
        assert "cluster.stages.look.limit" in row["problem"]["message"]
    begun = calls(folder)  # a hanging row leaves its trace, too
    assert [begun[name] for name in ("v0", "v1", "v2", "v3")] == [1, 2, 1, 2]
    if size == 1:  # rows of a repeated block are computed again
        assert counts["look"].problem == 2


@pytest.mark.long
def test_code_that_blocks_all_threads_is_killed_too(tmp_path: Path, folder: Path) -> None:
    stage = upper(folder)
    limited = Stage(name="look", part=stage.part, hardware=Hardware(cpus=0.2, limit=LIMIT))
    rows, _ = run(tmp_path, [limited], ["x", "seize", "x"])
    assert [r["title"] for r in rows] == ["V0!", None, "V2!"]
    assert rows[1]["problem"]["error"] == "WorkerKilled"
    assert calls(folder)["v1"] == 2


def test_filters_drop_rows_and_later_stages_skip_them(tmp_path: Path, folder: Path) -> None:
    stage = upper(folder)
    sifted = Stage(
        name="look",
        part=stage.part,
        hardware=stage.hardware,
        filters=(lambda row: "dull: no" if row.video_id == "v1" else None,),
    )
    later = Stage(name="hear", part=Upper(folder=str(folder)), hardware=Hardware(cpus=0.2))
    rows, counts = run(tmp_path, [sifted, later], ["x", "x"])
    assert [r["drop"] for r in rows] == [None, "dull: no"]
    assert rows[1]["title"] == "V1!"
    assert [k["name"] for k in rows[0]["lineage"]] == ["look", "hear"]
    assert [k["name"] for k in rows[1]["lineage"]] == ["look"]
    assert counts["hear"].computed == 1


def test_stages_that_share_workers_do_the_same_work(tmp_path: Path, folder: Path) -> None:
    look, uris = upper(folder), ["x", "bad", "die-once", "x"]
    hear = Stage(name="hear", part=look.part, hardware=Hardware(cpus=0.1))
    expected, counts = run(tmp_path, [look, hear], uris)
    assert counts["hear"].started == 1
    for stage in ("look", "hear"):
        shutil.rmtree(tmp_path / "s" / stage)
    for path in folder.iterdir():
        path.unlink()
    rows, together = run(tmp_path, [(look, hear)], uris)
    assert rows == expected
    for stage in ("look", "hear"):
        mine, theirs = together[stage], counts[stage]
        assert (mine.computed, mine.problem) == (theirs.computed, theirs.problem)


def test_a_pool_grows_while_rows_wait(tmp_path: Path, folder: Path) -> None:
    """With a single worker the rows would become problems."""
    hardware = Hardware(workers={"min": 1, "max": 3}, cpus=0.2)
    stage = Stage(name="look", part=Crowd(folder=str(folder), together=2), hardware=hardware)
    rows, counts = run(tmp_path, [stage], ["x"] * 12)
    assert {row["title"] for row in rows} == {"crowd"}
    assert counts["look"].started >= 2


def test_async_rows_of_several_blocks_run_at_the_same_time(tmp_path: Path) -> None:
    stage = Stage(name="ask", part=Meet(together=6), hardware=Hardware(cpus=0.2, concurrency=6))
    rows, _ = run(tmp_path, [stage], ["x"] * 6)
    assert {r["title"] for r in rows} == {"met"}


def test_equal_rows_do_not_count_as_attempts_of_each_other(tmp_path: Path) -> None:
    part = MeetAlike(together=6)
    stage = Stage(name="vet", part=part, hardware=Hardware(cpus=0.2, concurrency=6))
    rows, _ = run(tmp_path, [stage], ["x"] * 6)
    assert [(r["title"], r["problem"]) for r in rows] == [("met", None)] * 6


def test_a_row_may_take_longer_than_ray_expects() -> None:
    """A long video at a slow endpoint takes an hour; its calls have timeouts of their own."""
    context = ray.data.DataContext.get_current()
    assert getattr(context, "execution_no_progress_timeout_s", -1) == -1
