"""The output folder: what a run writes, and how it gets there in one piece.

Rows arrive in any order while the job streams. Each is kept in a scratch file; at the end they are
read in the order of their ids, so that the same input gives the same bytes, in bounded memory.
They are read once, for `videos.parquet` and `questions.parquet`; all else is told from the columns
of these two (`mustsee.run.tables`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from mustsee import schemas
from mustsee.errors import MustseeError, UserError, hide_secrets
from mustsee.records import Question, Video
from mustsee.run import process_folders
from mustsee.store import resolve, writable

HIDDEN = ("keyframes", "frames", "size", "modified", "subtitles_digest")
VIDEOS_AT_ONCE = 64  # as plain values
VIDEOS_PER_GROUP, GROUP_BYTES = 1024, 1 << 24  # of videos.parquet; a group costs 0.1 MB of notes
QUESTIONS_PER_GROUP = 1024
GROUPS_PER_FILE = 256  # of questions, about 1 GB; what has more is a folder of files


def check_writable(key: str, folder: str) -> None:
    """Raises UserError where nothing can be written into the folder that `key`= names."""
    if reason := writable(folder):
        raise UserError(
            f"{key}={folder!r} cannot be written: {reason}; choose another {key}=, a folder that "
            "is yours on a disk with room"
        )


class ScratchFile:
    """Finished rows on the local disk, in one file, in a folder that `close` removes."""

    def __init__(self) -> None:
        self.folder = process_folders.claim_folder("mustsee-rows-")
        self._file = (self.folder / "rows").open("wb")
        self._kinds: dict[pa.Schema, int] = {}  # the columns that rows have, few sets of them
        # the id of each row, where it begins, and which columns it has
        self._places: list[tuple[str, int, int]] = []
        self._own: dict[str, pa.Field] = {}

    def add(self, table: pa.Table) -> None:
        """Keep the rows of a block."""
        contract = schemas.schema(Video).names
        for item in table.schema:
            first = self._own.get(item.name)
            if item.name not in contract and (first is None or pa.types.is_null(first.type)):
                self._own[item.name] = item
        kept = table.select([c for c in table.column_names if c not in HIDDEN])
        kept = kept.replace_schema_metadata().combine_chunks()
        kind = self._kinds.setdefault(kept.schema, len(self._kinds))
        for batch in kept.to_batches():
            for index, name in enumerate(batch["video_id"].to_pylist()):
                self._places.append((name, self._file.tell(), kind))
                self._file.write(batch.slice(index, 1).serialize())

    @property
    def schema(self) -> pa.Schema:
        """The contract's columns, then the input table's own ones as first seen."""
        shown = [f for f in schemas.schema(Video) if f.name not in (*HIDDEN, "questions")]
        return pa.schema([*shown, *self._own.values()])

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[pa.Table]:
        """The rows, one a table, in the order of their ids."""
        self._file.flush()
        kinds = list(self._kinds)
        self._places.sort()
        with pa.OSFile(str(self.folder / "rows")) as source:
            for _, place, kind in self._places:
                source.seek(place)
                batch = pa.ipc.read_record_batch(pa.ipc.read_message(source), kinds[kind])
                yield pa.Table.from_batches([batch])

    def close(self) -> None:
        self._file.close()
        process_folders.release(self.folder)


def write_rows(rows: ScratchFile, folder: Path, *, git: str = "", fall: bool = True) -> None:
    """Write `videos.parquet`, one row per video or clip, and `questions.parquet`, one row per
    question, dropped ones included, in one pass.

    `git`: the source revision that publishes the questions. `fall`: questions that stood when their
    row was dropped or failed fall with it: nobody has made its file, or looked at them since.
    """
    schema = rows.schema
    with (
        pq.ParquetWriter(folder / "videos.parquet", schema, compression="zstd") as videos,
        contextlib.closing(_Questions(folder / "questions.parquet")) as questions,
    ):
        waiting, fitted = list[Question](), list[pa.Table]()
        for group in _grouped(rows, VIDEOS_AT_ONCE):
            table = pa.concat_tables(group, promote_options="permissive")
            fitted.append(_fitted(table, schema))
            if _full(fitted):
                videos.write_table(pa.concat_tables(fitted))
                fitted.clear()
            waiting += (_signed(q, git) for q in _asked(table, fall=fall))
            while len(waiting) >= QUESTIONS_PER_GROUP:
                questions.add(waiting[:QUESTIONS_PER_GROUP])
                del waiting[:QUESTIONS_PER_GROUP]
        if fitted:
            videos.write_table(pa.concat_tables(fitted))
        if waiting:
            questions.add(waiting)


def _full(tables: Sequence[pa.Table]) -> bool:
    rows, size = sum(t.num_rows for t in tables), sum(t.nbytes for t in tables)
    return rows >= VIDEOS_PER_GROUP or size >= GROUP_BYTES


class _Questions:
    """A file, and from its second part on a folder of them."""

    def __init__(self, path: Path) -> None:
        self._path, self._parts, self._groups = path, 0, 0
        self._open = self._writer(path)

    def _writer(self, path: Path) -> pq.ParquetWriter:
        return pq.ParquetWriter(path, schemas.schema(Question), compression="zstd")

    def add(self, group: Sequence[Question]) -> None:
        if self._groups == GROUPS_PER_FILE:
            self._open.close()
            if not self._parts:
                first = self._path.rename(self._path.with_suffix(".first"))
                self._path.mkdir()
                first.rename(self._path / f"{0:05d}.parquet")
            self._parts, self._groups = self._parts + 1, 0
            self._open = self._writer(self._path / f"{self._parts:05d}.parquet")
        self._open.write_table(schemas.table(group, Question))
        self._groups += 1

    def close(self) -> None:
        self._open.close()


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    # Built from plain values: what lies in memory under a null differs between a computed row and
    # one from the store, and would make other bytes of the same rows.
    columns = [
        pa.array(rows[f.name].to_pylist(), f.type)
        if f.name in rows.column_names
        else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _asked(rows: pa.Table, *, fall: bool) -> Iterator[Question]:
    wanted = ("video_id", "uri", "questions", "drop", "problem")
    known = [c for c in wanted if c in rows.column_names]
    for row in rows.select(known).to_pylist():
        video = schemas.load(Video, row)
        reason = video.drop
        if video.problem is not None:
            reason = f"failed in {video.problem.stage}: {video.problem.message}"
        for question in video.questions or ():
            falls = fall and reason is not None and question.drop is None
            yield replace(question, drop=f"video: {reason}") if falls else question


def _signed(question: Question, git: str) -> Question:
    made = question.provenance
    return question if made is None else replace(question, provenance=replace(made, git=git))


def _grouped(items: Iterable[pa.Table], size: int) -> Iterator[list[pa.Table]]:
    group: list[pa.Table] = []
    for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _clear(filesystem: fs.FileSystem, path: str) -> None:
    """Remove what an earlier run left: of a folder not all need be written again."""
    found = filesystem.get_file_info(path).type
    if found == fs.FileType.Directory:
        filesystem.delete_dir(path)
    elif found == fs.FileType.File:
        filesystem.delete_file(path)


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
    fresh = process_folders.claim_folder(
        ".new-" if local else "mustsee-out-", path if local else None
    )
    try:
        record = write(fresh)
        text = hide_secrets(json.dumps(record, indent=2, ensure_ascii=False))
        (fresh / "run.json").write_text(text + "\n")
        entries = sorted(
            (p for p in fresh.iterdir() if p.name != process_folders.LOCK),
            key=lambda p: (p.name == "run.json", p.name),
        )
        if filesystem.get_file_info(f"{path}/run.json").type == fs.FileType.File:
            filesystem.delete_file(f"{path}/run.json")  # an earlier run's: its rest goes now
        if local:
            for entry in entries:
                target = Path(path) / entry.name
                if target.is_dir() and not target.is_symlink():
                    shutil.rmtree(target)
                elif entry.is_dir():
                    target.unlink(missing_ok=True)
                os.replace(entry, target)
        else:
            for entry in entries:
                _clear(filesystem, f"{path}/{entry.name}")
                fs.copy_files(str(entry), f"{path}/{entry.name}", fs.LocalFileSystem(), filesystem)
    finally:
        process_folders.release(fresh)
