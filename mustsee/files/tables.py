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
from mustsee.files.parquet import check_digests, open_parquet
from mustsee.files.store import address_of, refuse_special, resolve

BATCH_ROWS = 4096  # rows of a Parquet file that are in memory as plain values
TABLES = frozenset({"csv", "tsv", "jsonl", "parquet"})
DELIMITERS = ",;\t"  # what may stand between the cells of a .csv
_QUOTED_CELL = re.compile(rf'(?:^|(?<=[{DELIMITERS}]))"(?:[^"]|"")*("|$)')
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
    starts, counted from 1. Empty lines are left out. The header says what is between the cells
    (`find_delimiter`).

    A quotation mark is text where it does not enclose its cell: `"Hi" he says`, or one that never
    closes on a line which has all of its cells. It would otherwise take the next rows into its
    cell.
    """
    source, number, width = iter(lines), 1, 0
    waiting = deque(header_lines(source))
    delimiter = find_delimiter("".join(waiting), suffix)
    is_tsv = suffix.lstrip(".") == "tsv"

    def next_lines(taken: list[str]) -> Iterator[str]:
        while (line := waiting.popleft() if waiting else next(source, None)) is not None:
            taken.append(line)
            yield line

    while True:
        taken: list[str] = []
        too_long: csv.Error | None = None
        try:
            record = next(csv.reader(next_lines(taken), delimiter=delimiter), None)
        except csv.Error as error:
            record, too_long = [], error
        if record is None:
            return
        literal = next(csv.reader(taken[:1], delimiter=delimiter, quoting=csv.QUOTE_NONE))
        is_whole = len(literal) == width and literal != record
        if too_long is not None and not is_whole:
            raise too_long
        if is_whole and _is_stray_quote(taken, delimiter, is_tsv=is_tsv):
            record = literal
            waiting.extendleft(reversed(taken[1:]))
            taken = taken[:1]
        if record:
            width = width or len(record)
            yield number, record
        number += len(taken)


def find_delimiter(header: str, suffix: str) -> str:
    """Return what is between the cells of a .csv or .tsv: the comma, semicolon or tab that is most
    often in its header, outside of quotes. In doubt it is that of the suffix: a comma, or a tab.
    """
    own = "\t" if suffix.lstrip(".") == "tsv" else ","
    bare = _QUOTED_CELL.sub("", header)
    if own == "\t" and own in bare:
        return own
    return max(own + DELIMITERS, key=bare.count)


def header_lines(source: Iterable[str]) -> list[str]:
    """Take the lines of the first record, and empty ones before it."""
    taken: list[str] = []
    for line in source:
        taken.append(line)
        text = "".join(taken)
        if text.strip() and all(cell[1] for cell in _QUOTED_CELL.finditer(text)):
            break
    return taken


def _is_stray_quote(lines: list[str], delimiter: str, *, is_tsv: bool) -> bool:
    """Whether the lines of one record are no well-formed record, or are several of a .tsv, whose
    cells have no tabs.
    """
    try:
        next(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error:
        return True
    return len(lines) > 1 and is_tsv


def one_line_error(error: Exception) -> str:
    """Return a library's message on a file, which may have several lines, as one line."""
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return f"its text is not UTF-8 (byte 0x{byte:02x}): save it as UTF-8"
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
