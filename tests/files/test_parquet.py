"""A table that changed after its run wrote it is refused, by its digest or by its checksums."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mustsee
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.parquet import RECORD, check_digests
from mustsee.files.tables import read_table
from mustsee.layouts.reading import rows_of
from mustsee.raters import votes
from mustsee.records import Line, Question, Span, Video
from mustsee.run.outputs import ScratchFile, publish, write_rows
from ray_jobs.cli.launch import build, compose

FLIPS = 150
REFUSED = r"(?s)questions\.parquet.*expects sha256 \w{64}, found sha256 \w{64}; restore"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The output folder of a run with 30 questions on 3 videos."""
    rows, words = ScratchFile(), random.Random(1)

    def sentence() -> str:
        return " ".join(f"w{words.randrange(400)}" for _ in range(12))

    for name in "abc":
        questions = tuple(
            Question(
                question_id=f"{name}{n}", video_id=name, recipe="r", question=sentence(),
                question_type="k", options=(sentence(), sentence()), answer_index=n % 2,
                evidence=(Span(float(n), n + 1.0),),
            )
            for n in range(10)
        )  # fmt: skip
        lines = tuple(Line(start=float(n), end=n + 1.0, text=sentence()) for n in range(20))
        video = Video(video_id=name, uri=f"{name}.mp4", lines=lines, questions=questions)
        rows.add(schemas.table([video], Video))
    out = tmp_path / "out"

    def write(folder: Path) -> dict[str, str]:
        write_rows(rows, folder)
        return {"recipe": "r"}

    publish(str(out), write)
    rows.close()
    return out


def flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("table", ["questions.parquet", "videos.parquet"])
def test_every_flipped_bit_of_a_table_is_found_in_its_runs_folder(run: Path, table: str) -> None:
    data, chance = (run / table).read_bytes(), random.Random(3)
    assert len(mustsee.Dataset(str(run)).questions) == 30
    for _ in range(FLIPS):
        (run / table).write_bytes(flipped(data, chance))
        with pytest.raises(UserError, match=REFUSED.replace("questions", table.split(".")[0])):
            _ = mustsee.Dataset(str(run)).questions
        with pytest.raises(UserError, match="sha256"):
            read_table(str(run / table))


def test_checksums_find_most_of_what_would_be_believed_in_a_table_that_is_alone(
    run: Path, tmp_path: Path
) -> None:
    """The metadata of a file has no checksum: a few flips in it give another value."""
    chance, checked, unchecked = random.Random(3), 0, 0
    for table in ("questions.parquet", "videos.parquet"):
        data, file, right = (run / table).read_bytes(), tmp_path / table, rows_of(run / table)
        for _ in range(FLIPS):
            file.write_bytes(flipped(data, chance))
            with contextlib.suppress(UserError):
                checked += str(rows_of(file)) != str(right)
            with contextlib.suppress(OSError, ValueError, pa.ArrowException):
                unchecked += str(pq.read_table(file).to_pylist()) != str(right)
    assert 2 * checked < unchecked


def test_every_job_that_reads_a_run_refuses_a_changed_table(run: Path, tmp_path: Path) -> None:
    table = pq.read_table(run / "questions.parquet")
    pq.write_table(table.slice(1), run / "questions.parquet")
    for job, *keys in (
        ("export", f"questions={run}", f"out={tmp_path}/exported", "layout=hf"),
        ("report", f"out={run}"),
        ("rate", f"questions={run}", "form=verify"),
    ):
        with pytest.raises(UserError, match=REFUSED):
            build(compose(job, keys))()
    shutil.copy(run / "questions.parquet", tmp_path / "questions.parquet")  # Alone it is readable.
    assert len(mustsee.read(tmp_path / "questions.parquet").questions) == 29


def test_missing_and_added_files_of_a_large_table_are_named(run: Path) -> None:
    """A table of several files is a folder."""
    record = json.loads((run / RECORD).read_text())
    file = run / "questions.parquet"
    digest = record["tables"].pop(file.name)
    first = file.rename(run / "x")
    file.mkdir()
    first.rename(file / "00000.parquet")
    record["tables"][f"{file.name}/00000.parquet"] = digest
    (run / RECORD).write_text(json.dumps(record))
    check_digests(run)
    shutil.copy(file / "00000.parquet", file / "00001.parquet")
    with pytest.raises(UserError, match=r"00001\.parquet.*expects no file, found sha256"):
        check_digests(run)
    (file / "00000.parquet").unlink()
    with pytest.raises(UserError, match=r"00000\.parquet.*found no file"):
        check_digests(run)


def test_a_record_that_is_no_json_is_refused_and_one_without_digests_is_not(run: Path) -> None:
    (run / RECORD).write_text('{"recipe": "r"}')
    assert len(mustsee.Dataset(str(run)).questions) == 30
    (run / RECORD).write_text('{"recipe')
    with pytest.raises(UserError, match=r"run\.json' cannot be read"):
        _ = mustsee.Dataset(str(run)).questions


def test_votes_that_change_the_table_change_its_digest(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, before = run / "questions.parquet", (run / "questions.parquet").read_bytes()
    fewer = list(mustsee.Dataset(str(run)).questions)[:20]
    assert votes.replace_table(table, fewer) == run / "questions.1.parquet"
    check_digests(run)
    assert len(mustsee.Dataset(str(run)).questions) == 20
    assert (run / "questions.1.parquet").read_bytes() == before

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(votes, "_put_in_place", killed)
        with pytest.raises(KeyboardInterrupt):
            votes.replace_table(table, fewer[:10])
    votes.complete_replacement(table)  # what `rate` does first
    check_digests(run)
    assert len(mustsee.Dataset(str(run)).questions) == 10


def test_a_table_without_checksums_is_still_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"video_id": ["a"]}), tmp_path / "old.parquet")
    assert read_table(str(tmp_path / "old.parquet")) == [{"video_id": "a"}]
