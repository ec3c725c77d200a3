"""Reads and writes Parquet tables with a checksum in each page, and compares the tables of a run
with the digests in its `run.json`.

The checksums find changed values in a table that is alone; the digests find every change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from mustsee.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

T = TypeVar("T")
RECORD = "run.json"
ROW_GROUP_ROWS = 1024  # the same as in a run's questions.parquet
DIGESTS = "tables"  # key of `run.json`: path of a table in the folder -> its SHA-256


def open_parquet(source: Path | IO[bytes]) -> pq.ParquetFile:
    """Open a file; a page that does not match its checksum raises OSError when it is read."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(source, page_checksum_verification=True)


def read_parquet(path: Path, **options: Any) -> pa.Table:
    """Return a whole table, which may be a folder of files. Raises OSError for a page that does not
    match its checksum. `options`: of `pyarrow.parquet.read_table`.
    """
    import pyarrow.parquet as pq

    return pq.read_table(path, page_checksum_verification=True, **options)


def parquet_writer(path: Path, schema: pa.Schema, compression: str = "zstd") -> pq.ParquetWriter:
    """Return a writer whose pages have checksums."""
    import pyarrow.parquet as pq

    return pq.ParquetWriter(path, schema, compression=compression, write_page_checksum=True)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a table whose pages have checksums."""
    with parquet_writer(path, table.schema) as file:
        file.write_table(table)


class Parquet(Generic[T]):
    """Writer of a parquet file; `table` turns `group` rows at a time into a table."""

    def __init__(
        self,
        path: Path,
        table: Callable[[Sequence[T]], pa.Table],
        *,
        group: int = ROW_GROUP_ROWS,
        compression: str = "zstd",
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.schema = table(()).schema
        self._table, self._group, self._rows = table, group, list[T]()
        self._file = parquet_writer(path, self.schema, compression)
        self._empty = True

    def add(self, row: T) -> None:
        self._rows.append(row)
        if len(self._rows) == self._group:
            self._write()

    def _write(self) -> None:
        self._file.write_table(self._table(self._rows))
        self._rows, self._empty = [], False

    def __enter__(self) -> Parquet[T]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._rows or self._empty:
            self._write()
        self._file.close()


def parts(table: Path) -> list[Path]:
    """Return the files of a local table: the file itself, or all in the folder of a large one."""
    return sorted(table.glob("*.parquet")) if table.is_dir() else [table]


def digests_of(folder: Path, *tables: str) -> dict[str, str]:
    """Return the SHA-256 of each file of the `tables` in a folder, of all without names. A file is
    named by its path in the folder.
    """
    names = tables or sorted(p.name for p in folder.glob("*.parquet"))
    files = [part for name in names for part in parts(folder / name)]
    return {file.relative_to(folder).as_posix(): file_digest(file) for file in files}


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_digests(folder: Path, *tables: str) -> None:
    """Raise UserError if a table in a run's folder is not as `run.json` says.

    `tables`: names of those to check, all in the folder without names. Tables that `run.json` has
    no digest of are not checked, nor is a folder without `run.json`.
    """
    expected = recorded_digests(folder)
    for name in tables or sorted(p.name for p in folder.glob("*.parquet")):
        known = {f: d for f, d in expected.items() if f.split("/")[0] == name}
        if not known or not (folder / name).exists():
            continue
        found = digests_of(folder, name)
        for file in sorted({*known, *found}):
            if known.get(file) != found.get(file):
                raise UserError(
                    f"{str(folder / file)!r} is not as the run wrote it: {RECORD} expects "
                    f"{_described(known.get(file))}, found {_described(found.get(file))}; restore "
                    "the file from a copy, or run the command that wrote it again, which reuses "
                    f"finished work (a table that you changed yourself: put it into a folder "
                    f"without {RECORD}, or have mustsee add questions= test what you edited)"
                )


def _described(digest: str | None) -> str:
    return "no file" if digest is None else f"sha256 {digest}"


def recorded_digests(folder: Path) -> Mapping[str, str]:
    """Return the digests in the `run.json` of a folder; none without it. Raises UserError for a
    `run.json` that is not JSON.
    """
    path = folder / RECORD
    if not path.is_file():
        return {}
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"{str(path)!r} cannot be read: {error}; restore it from a copy, or run the command "
            "that wrote it again, which reuses finished work"
        ) from None
    digests = record.get(DIGESTS) if isinstance(record, dict) else None
    return digests if isinstance(digests, dict) else {}
