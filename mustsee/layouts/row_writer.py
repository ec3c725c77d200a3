"""Files written row by row, with only the last few rows in memory.

Their bytes are the same as if all rows were written at once. A parquet table has a row group for
every `ROW_GROUP_ROWS` rows (fewer for videos).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from mustsee.files.parquet import parquet_writer

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
ROW_GROUP_ROWS = 1024  # the same as in a run's questions.parquet


class JsonItems:
    """Writer of a JSON list, or with `keyed` an object, indented like the releases."""

    def __init__(self, path: Path, *, keyed: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")
        self._open, self._close = "{}" if keyed else "[]"
        self._file.write(self._open)
        self._count = 0

    def add(self, value: object, key: str | None = None) -> None:
        """Write an item, in an object with its key."""
        text = json.dumps(value, indent=4, ensure_ascii=False).replace("\n", "\n    ")
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        self._file.write(f"{',' * (self._count > 0)}\n    {name}{text}")
        self._count += 1

    def __enter__(self) -> JsonItems:
        return self

    def __exit__(self, *_: object) -> None:
        end = "\n" if self._count else ""
        self._file.write(f"{end}{self._close}\n")
        self._file.close()


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
