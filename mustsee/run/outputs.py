"""Writes the output folder of a run, whole or not at all.

Rows arrive in any order while the job streams. Each goes to a scratch file, and its place in the
file to a database on disk. At the end they are read in the order of their ids, so that the same
input gives the same bytes, in memory that does not grow with their number. They are read once, for
`videos.parquet` and `questions.parquet`; all other files are derived from the columns of these two
(`mustsee.run.tables`).

Scratch folders belong to a process and are removed after its end: it holds a lock on a file in each
of its folders. The system releases the lock however the
process ends, so a later run recognises abandoned folders, even if another process has the same
number by then.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from mustsee.errors import ACCOUNT, MustseeError, UserError, hide_secrets
from mustsee.files import schemas
from mustsee.files.parquet import DIGESTS, digests_of, parquet_writer
from mustsee.files.store import in_folder, resolve, writable
from mustsee.records import Question, Video

LOCK = ".in-use"
UNCLAIMED_AFTER_S = 86_400.0  # age after which a folder without a lock file is abandoned
_lock_files: dict[Path, int] = {}  # folder -> descriptor of its locked file


def claim_folder(prefix: str, parent: str | None = None) -> Path:
    """Make a new folder of this process, and remove abandoned ones with the same prefix."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    claim(folder)
    sweep(p for p in folder.parent.glob(f"{prefix}*") if p != folder)
    return folder


def claim(folder: Path) -> None:
    """Hold a folder until `release`, or until this process ends."""
    if folder in _lock_files:
        return
    # The lock file gets its name when it is locked, so that no other process sees it unlocked.
    unlocked = folder / f"{LOCK}-soon"
    _lock_files[folder] = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(_lock_files[folder], fcntl.LOCK_EX | fcntl.LOCK_NB)
    unlocked.rename(folder / LOCK)


def release(folder: Path) -> None:
    """Remove a folder of this process."""
    shutil.rmtree(folder, ignore_errors=True)
    if (handle := _lock_files.pop(folder, None)) is not None:
        os.close(handle)


def sweep(folders: Iterable[Path]) -> None:
    """Remove the folders that no process holds."""
    for folder in folders:
        if not _is_in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_in_use(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        if not (folder / LOCK).exists():  # it was just made, or by a program without locks
            return time.time() - folder.stat().st_mtime < UNCLAIMED_AFTER_S
        with (folder / LOCK).open("r") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    return True


HIDDEN = ("keyframes", "frames", "image_vectors", "size", "modified", "subtitles_digest")
VIDEOS_AT_ONCE = 64  # rows that are in memory as plain values
# The most rows and bytes of a row group of videos.parquet; each has 0.1 MB of metadata.
VIDEOS_PER_GROUP, GROUP_BYTES = 1024, 1 << 24
QUESTIONS_PER_GROUP = 1024
# A file of questions has about 1 GB then; with more groups, questions.parquet becomes a folder.
GROUPS_PER_FILE = 256


def check_writable(key: str, folder: str) -> None:
    """Raise UserError if the folder that `key`= names is not writable."""
    if reason := writable(folder):
        raise UserError(
            f"{key}={folder!r} cannot be written: {reason}; choose another {key}=, a folder with "
            "write permission on a disk with free space"
        )


def check_not_another_recipes(out: str, recipe: str) -> None:
    """Raise UserError if the folder `out` holds the tables of another recipe, which a run would
    replace.
    """
    filesystem, path = resolve(out)
    try:
        with filesystem.open_input_file(f"{path}/run.json") as file:
            record: Any = json.loads(file.read())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        record = {"recipe": f"a run whose run.json cannot be read ({error})"}
    found = record.get("recipe") if isinstance(record, dict) else None
    if found != recipe:
        raise UserError(
            f"out={out!r} holds the tables of {found or 'another program'}, which {recipe} would "
            "replace: choose another out=, or allow it with overwrite=true"
        )


def store_of_run(out: str, record: Mapping[str, Any]) -> str:
    """Return the store of the run in `out` with this `run.json`, or `out`/store if the folder was
    moved.
    """
    beside = in_folder(out, "store")
    stored = (record.get("config") or {}).get("store") or beside
    filesystem, path = resolve(stored)
    exists = filesystem.get_file_info(path).type == fs.FileType.Directory
    return stored if exists else beside


class ScratchFile:
    """Finished rows in one file on the local disk, in a folder that `close` removes."""

    def __init__(self) -> None:
        self.folder = claim_folder("mustsee-rows-")
        self._file = (self.folder / "rows").open("wb")
        self._schemas: dict[pa.Schema, int] = {}  # schema -> its number; rows share a few
        self._places = sqlite3.connect(self.folder / "places")  # of each row in the file
        self._places.execute("PRAGMA journal_mode = OFF")
        self._places.execute("CREATE TABLE places (id TEXT, offset INTEGER, schema INTEGER)")
        self._input_columns: dict[str, pa.Field] = {}

    def add(self, table: pa.Table) -> None:
        """Add the rows of a block."""
        contract = schemas.schema(Video).names
        for item in table.schema:
            first = self._input_columns.get(item.name)
            if item.name not in contract and (first is None or pa.types.is_null(first.type)):
                self._input_columns[item.name] = item
        visible = table.select([c for c in table.column_names if c not in HIDDEN])
        visible = visible.replace_schema_metadata().combine_chunks()
        number = self._schemas.setdefault(visible.schema, len(self._schemas))
        for batch in visible.to_batches():
            for index, name in enumerate(batch["video_id"].to_pylist()):
                place = (name, self._file.tell(), number)
                self._places.execute("INSERT INTO places VALUES (?, ?, ?)", place)
                self._file.write(batch.slice(index, 1).serialize())

    def map_table(self, table: pa.Table) -> pa.Table:
        """Return the table with its content in a file, whose pages the system may drop from memory
        and read again.
        """
        path = str(self.folder / "input")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return pa.ipc.open_file(pa.memory_map(path)).read_all()

    @property
    def schema(self) -> pa.Schema:
        """The contract's columns, then the input table's other ones with their first types."""
        contract = [f for f in schemas.schema(Video) if f.name not in (*HIDDEN, "questions")]
        return pa.schema([*contract, *self._input_columns.values()])

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield each row as a table, in the order of their ids."""
        self._file.flush()
        row_schemas = list(self._schemas)
        places = self._places.execute("SELECT offset, schema FROM places ORDER BY id, offset")
        with pa.OSFile(str(self.folder / "rows")) as source:
            for offset, number in places:
                source.seek(offset)
                batch = pa.ipc.read_record_batch(pa.ipc.read_message(source), row_schemas[number])
                yield pa.Table.from_batches([batch])

    def close(self) -> None:
        self._file.close()
        self._places.close()
        release(self.folder)


def write_rows(
    rows: ScratchFile, folder: Path, *, git: str = "", drops_with_row: bool = True
) -> None:
    """Write `videos.parquet` and `questions.parquet` in one pass.

    They have one row per video or clip, and one per question, dropped ones included. `git`: the
    source revision that publishes the questions. `drops_with_row`: the questions of a row that was
    dropped or failed are dropped too, because no later stage has made its file or checked them.
    """
    schema = rows.schema
    with (
        parquet_writer(folder / "videos.parquet", schema) as videos,
        contextlib.closing(_QuestionWriter(folder / "questions.parquet")) as questions,
    ):
        waiting, cast_tables = list[Question](), list[pa.Table]()
        for group in _groups_of(rows, VIDEOS_AT_ONCE):
            table = pa.concat_tables(group, promote_options="permissive")
            cast_tables.append(_cast_to(table, schema))
            if _is_full_group(cast_tables):
                videos.write_table(pa.concat_tables(cast_tables))
                cast_tables.clear()
            waiting += (_with_revision(q, git) for q in _questions_of(table, drops_with_row))
            while len(waiting) >= QUESTIONS_PER_GROUP:
                questions.add(waiting[:QUESTIONS_PER_GROUP])
                del waiting[:QUESTIONS_PER_GROUP]
        if cast_tables:
            videos.write_table(pa.concat_tables(cast_tables))
        if waiting:
            questions.add(waiting)


def _is_full_group(tables: Sequence[pa.Table]) -> bool:
    rows, size = sum(t.num_rows for t in tables), sum(t.nbytes for t in tables)
    return rows >= VIDEOS_PER_GROUP or size >= GROUP_BYTES


class _QuestionWriter:
    """Writes a Parquet file of questions, or a folder of files where there are many."""

    def __init__(self, path: Path) -> None:
        self._path, self._file_number, self._groups = path, 0, 0
        self._writer = self._open(path)

    def _open(self, path: Path) -> pq.ParquetWriter:
        return parquet_writer(path, schemas.schema(Question))

    def add(self, group: Sequence[Question]) -> None:
        if self._groups == GROUPS_PER_FILE:
            self._writer.close()
            if not self._file_number:
                first = self._path.rename(self._path.with_suffix(".first"))
                self._path.mkdir()
                first.rename(self._path / f"{0:05d}.parquet")
            self._file_number, self._groups = self._file_number + 1, 0
            self._writer = self._open(self._path / f"{self._file_number:05d}.parquet")
        self._writer.write_table(schemas.table(group, Question))
        self._groups += 1

    def close(self) -> None:
        self._writer.close()


def _cast_to(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    # The columns are rebuilt from plain values: the memory under a null differs between a computed
    # row and one from the store, so that the same rows would give different bytes.
    values = {f.name: rows[f.name].to_pylist() for f in schema if f.name in rows.column_names}
    for name in {"uri", "subtitles"} & set(values):
        values[name] = [v and re.sub(f"{ACCOUNT.pattern}@", "", v) for v in values[name]]
    columns = [
        pa.array(values[f.name], f.type) if f.name in values else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _questions_of(rows: pa.Table, drops_with_row: bool) -> Iterator[Question]:
    needed = ("video_id", "uri", "questions", "drop", "problem")
    columns = [c for c in needed if c in rows.column_names]
    for row in rows.select(columns).to_pylist():
        video = schemas.load(Video, row)
        reason = video.drop
        if video.problem is not None:
            reason = f"failed in {video.problem.stage}: {video.problem.message}"
        for question in video.questions or ():
            if drops_with_row and reason is not None and question.drop is None:
                question = replace(question, drop=f"video: {reason}")
            yield question


def _with_revision(question: Question, git: str) -> Question:
    provenance = question.provenance
    if provenance is None:
        return question
    return replace(question, provenance=replace(provenance, git=git))


def _groups_of(items: Iterable[pa.Table], size: int) -> Iterator[list[pa.Table]]:
    group: list[pa.Table] = []
    for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _clear(filesystem: fs.FileSystem, path: str) -> None:
    """Remove a file or folder of an earlier run: a new folder may have fewer files."""
    kind = filesystem.get_file_info(path).type
    if kind == fs.FileType.Directory:
        filesystem.delete_dir(path)
    elif kind == fs.FileType.File:
        filesystem.delete_file(path)


def publish(out: str, write: Callable[[Path], Mapping[str, Any]]) -> None:
    """Let `write` fill a new folder, then move its files into `out`, one by one.

    On a local disk each entry is replaced by one rename; on an object store each file is one PUT.
    The mapping that `write` returns becomes `run.json`, with the digest of each table (`tables`).
    It is moved last: if it exists, so does everything else. Raises MustseeError when the folder
    cannot be written; results in the store are kept.
    """
    try:
        _publish(out, write)
    except OSError as error:
        raise MustseeError(
            f"cannot write the output folder {out!r}: {error.strerror or error}; free space or "
            "choose another out=, and run the same command again: finished work is reused"
        ) from error


def _publish(out: str, write: Callable[[Path], Mapping[str, Any]]) -> None:
    filesystem, path = resolve(out)
    local = isinstance(filesystem, fs.LocalFileSystem)
    if local:
        os.makedirs(path, exist_ok=True)
    fresh = claim_folder(".new-" if local else "mustsee-out-", path if local else None)
    try:
        record = {**write(fresh), DIGESTS: digests_of(fresh)}
        text = hide_secrets(json.dumps(record, indent=2, ensure_ascii=False))
        (fresh / "run.json").write_text(text + "\n")
        entries = sorted(
            (p for p in fresh.iterdir() if p.name != LOCK),
            key=lambda p: (p.name == "run.json", p.name),
        )
        if filesystem.get_file_info(f"{path}/run.json").type == fs.FileType.File:
            # The record of an earlier run is removed first, because its files are replaced now.
            filesystem.delete_file(f"{path}/run.json")
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
        release(fresh)
