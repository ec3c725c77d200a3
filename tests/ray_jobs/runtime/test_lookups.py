"""Rows looked up in the store equal those of the workers and are counted alike."""

import itertools
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from actors.calls.coordinator import Coordinator
from actors.engine.local import LocalSession
from actors.engine.stage import Stage, WorkerChain
from mustsee.errors import MustseeError
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Video
from ray_jobs.runtime import lookups as module
from ray_jobs.runtime.lookups import LookedUpBlock, Lookups, longest_first, look_up_rows, spread
from tests.support.parts import Upper, calls

URIS = ("x", "bad", "dull", "x", "x")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "calls").mkdir()
    return tmp_path / "calls"


def stages(folder: Path) -> list[Stage]:
    def dull(row: Video) -> str | None:
        return "dull: no" if row.uri == "dull" else None

    part = Upper(folder=str(folder))
    return [Stage(name="look", part=part, filters=(dull,)), Stage(name="hear", part=part)]


def rows() -> pa.Table:
    videos = [Video(video_id=f"v{i}", uri=uri) for i, uri in enumerate(URIS)]
    videos.append(Video(video_id="v5", uri="x", drop="fell earlier"))
    return schemas.table(videos, Video)


def session(tmp_path: Path) -> LocalSession:
    return LocalSession(store=Store(str(tmp_path / "s")), coordinator=Coordinator())


def look_up_all(
    queued: Sequence[Stage], table: pa.Table, asked: LocalSession
) -> tuple[list[pa.Table], pa.Table]:
    """Return the finished rows and the others."""
    with Lookups(look_up_rows(queued, table, asked)) as looked:
        return portion(looked)


def portion(looked: Lookups) -> tuple[list[pa.Table], pa.Table]:
    """Return the finished rows before the portion, and the portion."""
    done, looking = list[pa.Table](), looked.portion()
    while True:
        try:
            done.append(next(looking))
        except StopIteration as over:
            return done, over.value


def plain(table: pa.Table) -> list[dict[str, object]]:
    return sorted(table.to_pylist(), key=lambda row: row["video_id"])


def test_the_longest_videos_come_first_by_length_or_file_size() -> None:
    videos = [
        Video(video_id="probed", uri="x", size=9_000_000, duration=30.0),
        Video(video_id="clip", uri="x", size=9_000_000, start=100.0, end=110.0),
        Video(video_id="unknown", uri="x"),
        Video(video_id="sized", uri="x", size=5_000_000),
        Video(video_id="again", uri="x", start=0.0, end=10.0),
        Video(video_id="long", uri="x", size=1_000_000_000),
    ]
    ordered = longest_first(schemas.table(videos, Video))["video_id"].to_pylist()
    assert ordered == ["long", "probed", "sized", "clip", "again", "unknown"]


def test_a_portion_begins_with_its_longest_video(tmp_path: Path, folder: Path) -> None:
    """This holds for rows from several blocks and in any order."""
    videos = [Video(video_id=f"v{n:03}", uri="x", size=n) for n in range(150)]
    done, rest = look_up_all(stages(folder), schemas.table(videos, Video), session(tmp_path))
    assert not done
    assert rest["video_id"].to_pylist() == [f"v{n:03}" for n in reversed(range(150))]


def test_an_empty_store_is_not_searched_for_each_row(tmp_path: Path, folder: Path) -> None:
    done, rest = look_up_all(stages(folder), rows(), session(tmp_path))
    assert (done, rest) == ([], rows())


@pytest.mark.parametrize("block", [1, 64])
def test_finished_rows_equal_those_of_the_workers(
    block: int, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", block)
    WorkerChain(stages(folder), session(tmp_path))(rows())
    again = session(tmp_path)
    expected = WorkerChain(stages(folder), again)(rows())
    before, counted = calls(folder), session(tmp_path)
    done, rest = look_up_all(stages(folder), rows(), counted)
    assert rest.num_rows == 0
    assert plain(pa.concat_tables(done)) == plain(expected)
    assert calls(folder) == before
    for stage in ("look", "hear"):
        counts, worker_counts = (s.coordinator.snapshot().stage(stage) for s in (counted, again))
        assert (counts.reused, counts.dropped) == (worker_counts.reused, worker_counts.dropped)


def test_unfinished_rows_are_left_to_the_workers(tmp_path: Path, folder: Path) -> None:
    look, hear = stages(folder)
    WorkerChain([look], session(tmp_path))(rows())
    WorkerChain([look, hear], session(tmp_path))(rows().slice(0, 4))
    counted = session(tmp_path)
    done, rest = look_up_all([look, hear], rows(), counted)
    assert rest["video_id"].to_pylist() == ["v4"]
    assert rest == rows().slice(4, 1)
    assert {row["video_id"] for t in done for row in t.to_pylist()} == {
        "v0",
        "v1",
        "v2",
        "v3",
        "v5",
    }
    assert counted.coordinator.snapshot().stage("look").reused == 4
    assert counted.coordinator.snapshot().stage("hear").reused == 2


def test_problems_are_retried_if_the_settings_say_so(tmp_path: Path, folder: Path) -> None:
    WorkerChain(stages(folder), session(tmp_path))(rows())
    again = LocalSession(
        store=Store(str(tmp_path / "s")), coordinator=Coordinator(), retry_problems=True
    )
    _, rest = look_up_all(stages(folder), rows(), again)
    assert rest["video_id"].to_pylist() == ["v1"]


def test_portions_hold_each_row_once_and_in_order(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PORTION_ROWS", 4)
    monkeypatch.setattr(module, "BLOCK_ROWS", 2)
    with Lookups(look_up_rows(stages(folder), rows(), session(tmp_path))) as looked:
        portions = list[pa.Table]()
        while (rest := portion(looked)[1]).num_rows:
            portions.append(rest)
    assert [p.num_rows for p in portions] == [4, 2]
    assert pa.concat_tables(portions) == rows()


def test_unfinished_rows_are_met_early_in_either_half() -> None:
    assert sorted(spread(100)) == list(range(100))
    for half in (range(50), range(50, 100)):
        assert set(half) & set(spread(100)[:2])


def looked(blocks: Sequence[LookedUpBlock]) -> Iterator[LookedUpBlock]:
    yield from blocks
    raise MustseeError("the store is away")


def test_unfinished_rows_are_handed_out_before_the_look_up_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two blocks have unfinished rows, and the look-up of the others never ends."""
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    one = rows().slice(0, 1)
    blocks = looked(
        [LookedUpBlock(1, one, rows().slice(3, 3)), LookedUpBlock(0, one, rows().slice(1, 2))]
    )
    with Lookups(blocks) as lookups:
        assert portion(lookups) == ([one], rows().slice(3, 3))
        assert portion(lookups) == ([one], rows().slice(1, 2))
        with pytest.raises(MustseeError, match="away"):
            portion(lookups)


def test_leaving_early_ends_the_look_up_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C while Ray works the look-up ends, however many rows are left."""
    endless = (LookedUpBlock(n, None, rows()) for n in itertools.count())
    with Lookups(endless) as lookups:
        portion(lookups)
    assert "look-up" not in {thread.name for thread in threading.enumerate()}
