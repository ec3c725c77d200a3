"""Reads users' tables, `.csv .tsv .jsonl .parquet`, local or in an object store, as dicts."""

from __future__ import annotations

import csv
import io
import json
import posixpath
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import fs

from mustsee.errors import UserError
from mustsee.parquet import check_digests, open_parquet
from mustsee.store import address_of, refuse_special, resolve

BATCH_ROWS = 4096  # rows of a Parquet file that are in memory as plain values
TABLES = frozenset({"csv", "tsv", "jsonl", "parquet"})
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def read_table(source: str) -> list[dict[str, Any]]:
    """Return the rows of a table as plain dicts. A relative `uri` is resolved from the table's
    folder. Raises UserError.
    """
    filesystem, path = resolve(source)
    rows = rows_of(filesystem, path)
    return [resolve_uri(row, source) for row in rows]


def resolve_uri(row: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the row with its `uri` resolved from the folder of `source`, if it is relative."""
    uri = row.get("uri")
    if isinstance(uri, str) and uri and "://" not in uri and not uri.startswith("/"):
        folder = posixpath.dirname(resolve(source)[1])
        return {**row, "uri": address_of(f"{folder}/{uri}", source)}
    return row


def rows_of(filesystem: fs.FileSystem, path: str) -> Iterator[dict[str, Any]]:
    """Return the rows of a table, unchanged. Empty cells of a `.csv` are None. Raises UserError."""
    suffix = suffix_of(path)
    if isinstance(filesystem, fs.LocalFileSystem):
        refuse_special(path)
        if suffix == "parquet":
            check_digests(Path(path).parent, Path(path).name)
    try:
        data = filesystem.open_input_file(path).read()
        if suffix == "parquet":
            for batch in open_parquet(io.BytesIO(data)).iter_batches(BATCH_ROWS):
                yield from batch.to_pylist()
            return
        text = data.decode("utf-8-sig")
        if suffix == "jsonl":
            for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
                if line.strip():
                    row = parse_json(line, f"line {number}")
                    if not isinstance(row, dict):
                        raise UserError(f"{path!r}, line {number}: expected an object")
                    yield row
        else:
            records = csv_records(io.StringIO(text, newline=""), suffix)
            _, names = next(records, (1, []))
            for number, (_, record) in enumerate(records, 1):
                check_cells(record, names, number)
                row = dict(zip_longest(names, record[: len(names)]))
                yield {k: (v if v != "" else None) for k, v in row.items() if k}
    except (pa.ArrowException, ValueError, OverflowError, csv.Error, OSError) as error:
        raise UserError(f"cannot read the table {path!r}: {one_line_error(error)}") from error


def check_cells(record: Sequence[str], names: Sequence[str], number: int) -> None:
    """Raise ValueError for a row with more cells than the table has columns, because then a cell is
    in the wrong column.
    """
    if beyond := [cell for cell in record[len(names) :] if cell]:
        raise ValueError(f"row {number}: more cells than columns, from {beyond[0]!r} on")


def csv_records(lines: Iterable[str], suffix: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of a .csv or .tsv: the header and each row, with the line on which it
    starts, counted from 1. Empty lines are left out.

    A quotation mark is text where it does not enclose its cell: `"Hi" he says`, or one that never
    closes on a line which has all of its cells. It would otherwise take the next rows into its
    cell.
    """
    dialect = csv.excel_tab if suffix.lstrip(".") == "tsv" else csv.excel
    waiting, source, number, width = deque[str](), iter(lines), 1, 0

    def next_lines(taken: list[str]) -> Iterator[str]:
        while (line := waiting.popleft() if waiting else next(source, None)) is not None:
            taken.append(line)
            yield line

    while True:
        taken: list[str] = []
        too_long: csv.Error | None = None
        try:
            record = next(csv.reader(next_lines(taken), dialect), None)
        except csv.Error as error:
            record, too_long = [], error
        if record is None:
            return
        literal = next(csv.reader(taken[:1], dialect, quoting=csv.QUOTE_NONE))
        is_whole = len(literal) == width and literal != record
        if too_long is not None and not is_whole:
            raise too_long
        if is_whole and _is_stray_quote(taken, dialect):
            record = literal
            waiting.extendleft(reversed(taken[1:]))
            taken = taken[:1]
        if record:
            width = width or len(record)
            yield number, record
        number += len(taken)


def _is_stray_quote(lines: list[str], dialect: type[csv.excel]) -> bool:
    """Whether the lines of one record are no well-formed record, or are several of a .tsv, whose
    cells have no tabs.
    """
    try:
        next(csv.reader(lines, dialect, strict=True))
    except csv.Error:
        return True
    return len(lines) > 1 and dialect is csv.excel_tab


def one_line_error(error: Exception) -> str:
    """Return a library's message on a file, which may have several lines, as one line."""
    return " ".join(str(error).split())


def parse_json(text: str, where: str = "") -> Any:
    """Parse a JSON value. Raises ValueError, also for values that no table can hold: too deeply
    nested ones, and lone surrogates (`\\ud800`). `where` begins the message.
    """
    before = f"{where}: " if where else ""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"{before}lists or objects are nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{before}{error}") from None
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start : error.end])
            raise ValueError(f"{before}{half} is half of a character") from None
    return value


def suffix_of(path: str) -> str:
    """Return the suffix of a path without its dot, in lower case."""
    return PurePosixPath(path).suffix.lower().lstrip(".")
