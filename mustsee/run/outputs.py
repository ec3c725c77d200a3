"""The output folder: what a run writes, and how it gets there in one piece.

Rows arrive in any order while the job streams. Each is kept in a scratch file; at the end they are
merged in the order of their ids, so that the same input gives the same bytes, in bounded memory.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from mustsee import schemas
from mustsee.errors import MustseeError
from mustsee.records import Problem, Question, Video
from mustsee.store import resolve

HIDDEN = ("keyframes", "frames", "size", "modified", "subtitles_digest")
ROWS_PER_GROUP = 64


class Scratch:
    """Finished rows on the local disk, one file each, in a folder that `close` removes."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mustsee-"))
        self._ids: list[str] = []

    def add(self, table: pa.Table) -> None:
        """Keep the rows of a block."""
        for index in range(table.num_rows):
            row = table.slice(index, 1).combine_chunks()
            path = self.folder / f"{len(self._ids)}.arrow"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, row.schema) as writer:
                writer.write_table(row)
            self._ids.append(row["video_id"][0].as_py())

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[pa.Table]:
        """The rows, one a table, in the order of their ids."""
        for _, index in sorted((name, number) for number, name in enumerate(self._ids)):
            with pa.OSFile(str(self.folder / f"{index}.arrow")) as source:
                yield pa.ipc.open_stream(source).read_all()

    def videos(self, *columns: str) -> Iterator[Video]:
        """The rows as records; with `columns`, only these and the id are filled in."""
        wanted = {"video_id", "uri", *columns} if columns else set(schemas.schema(Video).names)
        for row in self:
            known = [c for c in row.column_names if c in wanted]
            yield schemas.load(Video, row.select(known).to_pylist()[0])

    def asked(self) -> Iterator[Question]:
        """The questions of all rows as they are, those of dropped and failed rows included."""
        for row in self.videos("questions"):
            yield from row.questions or ()

    def questions(self) -> Iterator[Question]:
        """The questions of all rows; those that stood when their row was dropped or failed fall
        with it: nobody has made its file, or looked at them since.
        """
        for row in self.videos("questions", "drop", "problem"):
            reason = row.drop
            if row.problem is not None:
                reason = f"failed in {row.problem.stage}: {row.problem.message}"
            for question in row.questions or ():
                falls = reason is not None and question.drop is None
                yield replace(question, drop=f"video: {reason}") if falls else question

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _video_schema(rows: Scratch) -> pa.Schema:
    """The contract's columns, then the input table's own ones as first seen."""
    contract = schemas.schema(Video)
    fields = {f.name: f for f in contract if f.name not in (*HIDDEN, "questions")}
    for row in rows:
        for item in row.schema:
            if item.name not in contract.names and (
                item.name not in fields or pa.types.is_null(fields[item.name].type)
            ):
                fields[item.name] = item
    return pa.schema(list(fields.values()))


def write_videos(rows: Scratch, path: Path) -> None:
    """`videos.parquet`: one row per video or clip."""
    schema = _video_schema(rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _grouped(rows, ROWS_PER_GROUP):
            writer.write_table(pa.concat_tables(_fitted(row, schema) for row in group))


def _fitted(row: pa.Table, schema: pa.Schema) -> pa.Table:
    # Built from plain values: what lies in memory under a null differs between a computed row and
    # one from the store, and would make other bytes of the same rows.
    columns = [
        pa.array(row[f.name].to_pylist() if f.name in row.column_names else [None], f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _grouped(items: Any, size: int) -> Iterator[list[Any]]:
    group: list[Any] = []
    for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def write_questions(questions: Iterator[Question], path: Path, git: str = "") -> None:
    """`questions.parquet`: one row per question, dropped ones included, with the source revision
    that published them.
    """
    questions = (
        q if q.provenance is None else replace(q, provenance=replace(q.provenance, git=git))
        for q in questions
    )
    with pq.ParquetWriter(path, schemas.schema(Question), compression="zstd") as writer:
        for group in _grouped(questions, 1024):
            writer.write_table(schemas.table(group, Question))


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One row of `problems.parquet`: what failed, where, and the input that it came from."""

    video_id: str
    uri: str
    stage: str
    error: str
    message: str
    attempts: int


def write_problems(rows: Scratch, path: Path) -> None:
    """`problems.parquet`: every row that failed."""
    failures = [
        Failure(video_id=v.video_id, uri=v.uri, **schemas.dump(problem))
        for v in rows.videos("problem")
        if isinstance(problem := v.problem, Problem)
    ]
    pq.write_table(schemas.table(failures, Failure), path, compression="zstd")


def funnel(rows: Scratch, stages: Sequence[str]) -> list[dict[str, Any]]:
    """Rows into and out of each stage, why some were dropped, how many failed there.

    A row falls at the last stage that it went through (the last in its lineage).
    """
    steps: list[dict[str, Any]] = [
        {"stage": s, "in": 0, "out": 0, "dropped": {}, "problems": 0} for s in ("read", *stages)
    ]
    for row in rows.videos("lineage", "drop", "problem"):
        seen = [i for i, s in enumerate(("read", *stages)) if s == "read" or s in row.lineage]
        last = len(stages) if row.drop is None and row.problem is None else max(seen)
        if row.problem is not None and row.problem.stage in stages:
            last = stages.index(row.problem.stage) + 1
        for position in range(last + 1):
            steps[position]["in"] += 1
            steps[position]["out"] += position < last or (row.drop or row.problem) is None
        if row.problem is not None:
            steps[last]["problems"] += 1
        elif row.drop is not None:
            reason = row.drop.split(":")[0]
            steps[last]["dropped"][reason] = steps[last]["dropped"].get(reason, 0) + 1
    return steps


def question_funnel(questions: Iterator[Question]) -> dict[str, Any]:
    """How many questions were made, dropped by which filter, kept, and kept in each subset."""
    made, kept, dropped, subsets, kinds = 0, 0, dict[str, int](), dict[str, int](), dict[str, int]()
    for question in questions:
        made += 1
        if question.drop is not None:
            reason = question.drop.split(":")[0]
            dropped[reason] = dropped.get(reason, 0) + 1
            continue
        kept += 1
        kinds[question.question_type] = kinds.get(question.question_type, 0) + 1
        for name in question.subsets:
            subsets[name] = subsets.get(name, 0) + 1
    return {"made": made, "kept": kept, "dropped": dropped, "subsets": subsets, "types": kinds}


def publish(out: str, write: Callable[[Path], Mapping[str, Any]]) -> None:
    """Let `write` fill a fresh folder, then move what it wrote into `out`, file by file.

    On a local disk each entry is replaced by one rename; on an object store each file is one PUT.
    The mapping that `write` returns becomes `run.json`, which comes last: where it is, the rest is.
    Raises MustseeError when the folder cannot be written; results in the store are kept.
    """
    try:
        _publish(out, write)
    except OSError as error:
        raise MustseeError(
            f"cannot write the output folder {out!r}: {error.strerror or error}; free space or "
            "choose another out=, and run the same command again: what is finished is reused"
        ) from error


def _publish(out: str, write: Callable[[Path], Mapping[str, Any]]) -> None:
    filesystem, path = resolve(out)
    local = isinstance(filesystem, fs.LocalFileSystem)
    if local:
        os.makedirs(path, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=path if local else None))
    try:
        record = write(fresh)
        (fresh / "run.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        entries = sorted(fresh.iterdir(), key=lambda p: (p.name == "run.json", p.name))
        if filesystem.get_file_info(f"{path}/run.json").type == fs.FileType.File:
            filesystem.delete_file(f"{path}/run.json")  # an earlier run's: its rest goes now
        if local:
            for entry in entries:
                target = Path(path) / entry.name
                if target.is_dir() and not target.is_symlink():
                    shutil.rmtree(target)
                os.replace(entry, target)
        else:
            for entry in entries:
                fs.copy_files(str(entry), f"{path}/{entry.name}", fs.LocalFileSystem(), filesystem)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
