"""Parts of a table of questions: planned in one pass, read and written one at a time.

    for part in plan_parts("train.jsonl", 1000): read_part(part)

A part is some rows of a `.jsonl`, `.json` (a list), `.csv`, `.tsv` or `.parquet`, found again by
its bytes or row groups. Written rows keep the text of the input; columns are added behind it.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from mustsee.errors import UserError
from mustsee.files.parquet import open_parquet, parquet_writer
from mustsee.files.tables import (
    csv_records,
    find_delimiter,
    header_lines,
    one_line_error,
    parse_json,
)
from mustsee.layouts.reading import BEYOND, check_kind
from mustsee.records import group_pairs

FLOATS = ("clean_weight", "clean_learned")  # added columns that are numbers; others are texts
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
CHUNK_BYTES = 1 << 20  # bytes of a .json that are read at once
MAX_ROW_CHARACTERS = 1 << 26  # characters of one row of a .json; more is not valid JSON
MAX_GROUP_PARTS = 4  # parts that a row group may be worth before it is split


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """Rows `first` to `first + rows` of a table.

    `number`: of the part among all. `start`, `end`: its bytes, or its row groups in `source`, which
    is the `file` itself or a copy with smaller row groups. `name`: of the file in the output.
    """

    number: int
    file: str
    source: str
    name: str
    start: int
    end: int
    first: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One row: its values, its text in the file (empty in a .parquet), and why it is not read."""

    values: Mapping[str, Any]
    text: str = ""
    fault: str = ""


def table_files(source: str) -> list[Path]:
    """Return the file that `source` names, or the files of one kind in a folder, in order. Raises
    UserError.
    """
    place = Path(source.removeprefix("file://"))
    if not place.exists():
        raise UserError(f"questions={source!r}: no such file or folder (clean reads local files)")
    if place.is_dir():
        files = sorted(p for p in place.rglob("*") if p.suffix in SUFFIXES and p.is_file())
        kinds = sorted({p.suffix for p in files})
        if len(kinds) != 1:
            found = f"files of the kinds {', '.join(kinds)}" if kinds else "none"
            raise UserError(
                f"questions={source!r}: expected a folder with tables of one kind "
                f"({', '.join(SUFFIXES)}), found {found}"
            )
        return files
    check_kind(place)
    if place.suffix not in SUFFIXES:
        raise UserError(f"questions={source!r}: expected one of {', '.join(SUFFIXES)}")
    return [place]


def plan_parts(source: str, rows: int, copies: Path) -> Iterator[TablePart]:
    """Yield the parts of all files, of about `rows` rows each. A .parquet with row groups of many
    parts is copied into the folder `copies` first. Raises UserError for a file that is not read.
    """
    files = table_files(source)
    root = Path(source.removeprefix("file://"))
    number = 0
    for file in files:
        name = str(file.relative_to(root)) if root.is_dir() else file.name
        read_from, spans, first = file, _text_spans, 0
        try:
            if file.suffix == ".parquet":
                read_from, spans = _with_small_groups(file, name, rows, copies), _group_spans
            for start, end, count in spans(read_from, rows):
                yield TablePart(
                    number=number, file=str(file), source=str(read_from), name=name,
                    start=start, end=end, first=first, rows=count,
                )  # fmt: skip
                number, first = number + 1, first + count
        except (OSError, ValueError, pa.ArrowException, csv.Error) as error:
            raise UserError(f"cannot read {str(file)!r}: {one_line_error(error)}") from error
        if not first:
            raise UserError(f"{str(file)!r} has no rows")


def _text_spans(file: Path, rows: int) -> Iterator[tuple[int, int, int]]:
    """Yield the bytes from the first row of a part to that of the next, and its rows."""
    start, count, end = 0, 0, 0
    for begins, ends in _row_places(file):
        if count == rows:
            yield start, begins, count
            count = 0
        start = begins if not count else start
        count, end = count + 1, ends
    if count:
        yield start, end, count


def _row_places(file: Path) -> Iterator[tuple[int, int]]:
    """Yield the first byte of each row, and the byte behind it."""
    with file.open("rb") as stream:
        if file.suffix == ".jsonl":
            place = _skip_byte_order_mark(stream)
            for line in stream:
                if line.strip():
                    yield place, place + len(line)
                place += len(line)
        elif file.suffix == ".json":
            yield from _element_places(stream, file)
        else:
            yield from _record_places(stream, file)


def _record_places(stream: BinaryIO, file: Path) -> Iterator[tuple[int, int]]:
    """Yield the places of a .csv's records, the header apart. A record may have several lines."""
    places, reached = dict[int, int](), _skip_byte_order_mark(stream)

    def lines() -> Iterator[str]:
        nonlocal reached
        for number, line in enumerate(stream, 1):
            places[number] = reached
            reached += len(line)
            yield line.decode("utf-8")

    begun: int | None = None
    records = csv_records(lines(), file.suffix)
    next(records, None)
    for line, _ in records:
        begins = places[line]
        for old in [n for n in places if n < line]:
            del places[old]
        if begun is not None:
            yield begun, begins
        begun = begins
    if begun is not None:
        yield begun, reached


def _element_places(stream: BinaryIO, file: Path) -> Iterator[tuple[int, int]]:
    """Yield the places of the objects in a list of JSON, which is never read whole."""
    decode, scan = codecs.getincrementaldecoder("utf-8")(), json.JSONDecoder().raw_decode
    place, buffer, at, ended = _skip_byte_order_mark(stream), "", 0, False

    def grow() -> bool:
        nonlocal buffer, at, place, ended
        chunk = stream.read(CHUNK_BYTES)
        place += len(buffer[:at].encode())
        buffer, at = buffer[at:] + decode.decode(chunk, not chunk), 0
        ended = not chunk
        return not ended

    def next_character() -> str:
        nonlocal at
        while True:
            while at < len(buffer) and buffer[at].isspace():
                at += 1
            if at < len(buffer) or not grow():
                return buffer[at : at + 1]

    if next_character() != "[":
        raise ValueError("expected a list of questions ([{...}, ...])")
    at += 1
    number = 0
    while (character := next_character()) != "]":
        if character == "," and number:
            at += 1
            character = next_character()
        if character != "{":
            raise ValueError(
                f"row {number + 1}: expected an object with a question, got {character!r}"
            )
        while True:
            try:
                _, end = scan(buffer, at)
                break
            except json.JSONDecodeError as error:
                if len(buffer) - at > MAX_ROW_CHARACTERS or not grow():
                    raise ValueError(f"row {number + 1} is not valid JSON: {error.msg}") from None
        begins = place + len(buffer[:at].encode())
        place, buffer, at = begins, buffer[at:], end - at
        yield begins, begins + len(buffer[:at].encode())
        number += 1


def _skip_byte_order_mark(stream: BinaryIO) -> int:
    """Skip a byte order mark, and return the bytes skipped."""
    if stream.read(3) == codecs.BOM_UTF8:
        return 3
    stream.seek(0)
    return 0


def _with_small_groups(file: Path, name: str, rows: int, copies: Path) -> Path:
    """Return a .parquet whose row groups are of a part's size: the file, or a copy of it."""
    with open_parquet(file) as table:
        groups = range(table.num_row_groups)
        if all(table.metadata.row_group(n).num_rows <= MAX_GROUP_PARTS * rows for n in groups):
            return file
        copy = copies / f"{name.replace('/', '%')}.groups"
        copy.parent.mkdir(parents=True, exist_ok=True)
        unfinished = copy.with_suffix(".new")
        with parquet_writer(unfinished, table.schema_arrow) as writer:
            for batch in table.iter_batches(rows):
                writer.write_batch(batch, row_group_size=rows)
        return unfinished.replace(copy)


def _group_spans(file: Path, rows: int) -> Iterator[tuple[int, int, int]]:
    with open_parquet(file) as table:
        start, count = 0, 0
        for number in range(table.num_row_groups):
            count += table.metadata.row_group(number).num_rows
            if count >= rows or number == table.num_row_groups - 1:
                if count:
                    yield start, number + 1, count
                start, count = number + 1, 0


def read_part(part: TablePart) -> list[TableRow]:
    """Return the rows of a part, in order. A row that is no object, or has too many cells, has a
    `fault`.
    """
    if part.source.endswith((".parquet", ".groups")):
        return [TableRow(values=row) for row in read_table_part(part).to_pylist()]
    with open(part.source, "rb") as stream:
        header = _header(stream, part.file)
        stream.seek(part.start)
        text = stream.read(part.end - part.start).decode("utf-8")
    if part.file.endswith(".jsonl"):
        return [_json_row(line) for line in text.split("\n") if line.strip()]
    if part.file.endswith(".json"):
        return list(_listed_rows(text))
    return list(_csv_rows(header, text, Path(part.file).suffix))


def read_table_part(part: TablePart) -> pa.Table:
    """Return the rows of a .parquet's part as a table."""
    with open_parquet(Path(part.source)) as table:
        return table.read_row_groups(list(range(part.start, part.end)))


def _header(stream: BinaryIO, file: str) -> str:
    """Return the header line of a .csv or .tsv."""
    if not file.endswith((".csv", ".tsv")):
        return ""
    _skip_byte_order_mark(stream)
    return "".join(header_lines(line.decode("utf-8") for line in stream))


def _delimiter(part: TablePart) -> str:
    """Return what is between the cells of a .csv or .tsv."""
    with open(part.source, "rb") as stream:
        return find_delimiter(_header(stream, part.file), Path(part.file).suffix)


def _json_row(text: str) -> TableRow:
    try:
        value = parse_json(text)
    except ValueError:
        return TableRow(values={}, text=text.strip(), fault="not valid JSON")
    if not isinstance(value, dict):
        return TableRow(values={}, text=text.strip(), fault="not an object")
    return TableRow(values=value, text=text.strip())


def _listed_rows(text: str) -> Iterator[TableRow]:
    scan, at = json.JSONDecoder().raw_decode, 0
    while at < len(text):
        if text[at] != "{":
            at += 1
            continue
        _, end = scan(text, at)
        yield _json_row(text[at:end])
        at = end


def _lines(text: str) -> list[str]:
    """Return the lines of a text with their ends, which only a line feed makes, as in a file."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _csv_rows(header: str, text: str, suffix: str) -> Iterator[TableRow]:
    lines, head = _lines(text), _lines(header)
    records = list(csv_records(chain(head, lines), suffix))
    names, starts = records[0][1], [line - 1 - len(head) for line, _ in records[1:]]
    for (_, cells), start, end in zip(records[1:], starts, [*starts[1:], len(lines)], strict=True):
        own = "".join(lines[start:end]).rstrip("\r\n")
        values: dict[str, Any] = dict.fromkeys(names)
        values.update(zip(names, cells, strict=False))
        if len(cells) > len(names):
            surplus = {**values, BEYOND: list(cells[len(names) :])}
            yield TableRow(values=surplus, text=own, fault="more cells than columns")
        else:
            yield TableRow(values=values, text=own if len(cells) == len(names) else "")


def write_part(
    part: TablePart,
    rows: Sequence[TableRow],
    chosen: Sequence[int],
    columns: Mapping[str, Sequence[Any]],
    target: Path,
) -> None:
    """Write the `chosen` rows of a part, with `columns` (a value for each row of the part) behind
    their own, as a piece that `join_pieces` joins.
    """
    suffix = Path(part.file).suffix
    if suffix == ".parquet":
        _write_table(read_table_part(part), chosen, columns, target)
        return
    if suffix in (".csv", ".tsv"):
        end, delimiter = _line_end(part), _delimiter(part)
        pieces = (_csv_text(rows[n], columns, n, delimiter) + end for n in chosen)
    else:
        behind = "\n" if suffix == ".jsonl" else ",\n"
        pieces = (_json_text(rows[n], columns, n) + behind for n in chosen)
    target.write_text("".join(pieces), encoding="utf-8", newline="")


def _json_text(row: TableRow, columns: Mapping[str, Sequence[Any]], n: int) -> str:
    """Return the row's own text with the columns behind its last key."""
    added = {name: values[n] for name, values in columns.items()}
    if not added or not row.text.endswith("}") or row.fault:
        return row.text
    if added.keys() & row.values.keys() or not row.values:
        return json.dumps({**row.values, **added}, ensure_ascii=False)
    return f"{row.text[:-1].rstrip()}, {json.dumps(added, ensure_ascii=False)[1:]}"


def _csv_text(row: TableRow, columns: Mapping[str, Sequence[Any]], n: int, delimiter: str) -> str:
    own = {k: v for k, v in row.values.items() if k != BEYOND and k not in columns}
    added = [_cell(values[n]) for values in columns.values()]
    text = row.text if row.text and not row.fault and len(own) == len(row.values) else None
    if text is None:
        text = _csv_line([_cell(v) for v in own.values()], delimiter)
    surplus = row.values.get(BEYOND, [])
    return delimiter.join(
        [text, *([_csv_line([*added, *surplus], delimiter)] if added or surplus else [])]
    )


def _cell(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _csv_line(cells: Sequence[str], delimiter: str) -> str:
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="").writerow(cells)
    return line.getvalue()


def _write_table(
    table: pa.Table, chosen: Sequence[int], columns: Mapping[str, Sequence[Any]], target: Path
) -> None:
    metadata = {k: v for k, v in (table.schema.metadata or {}).items() if k != b"huggingface"}
    for name, values in columns.items():
        array = pa.array(values, pa.float64() if name in FLOATS else pa.string())
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, array)
    table = table.replace_schema_metadata(metadata if columns else table.schema.metadata)
    with parquet_writer(target, table.schema) as writer:
        writer.write_table(table.take(list(chosen)))


def join_pieces(
    parts: Sequence[TablePart],
    piece_of: Callable[[TablePart], Path],
    columns: Iterable[str],
    folder: Path,
) -> None:
    """Write each file of the table from the pieces of its parts, in their order."""
    for name, own in group_pairs((part.name, part) for part in parts).items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        pieces = [piece_of(part) for part in own]
        if target.suffix == ".parquet":
            with parquet_writer(target, pq.read_schema(pieces[0])) as writer:
                for piece in pieces:
                    writer.write_table(pq.read_table(piece))
        else:
            _join_texts(own[0], pieces, list(columns), target)


def _join_texts(
    part: TablePart, pieces: Sequence[Path], columns: Sequence[str], target: Path
) -> None:
    is_list = target.suffix == ".json"
    with target.open("wb") as out:
        if is_list:
            out.write(b"[\n")
        elif target.suffix in (".csv", ".tsv"):
            out.write(_header_with(part, columns, target.suffix))
        for piece in pieces:
            with piece.open("rb") as text:
                while chunk := text.read(CHUNK_BYTES):
                    out.write(chunk)
        if is_list:
            if out.tell() > 2:
                out.seek(-2, io.SEEK_CUR)
                out.write(b"\n")
            out.write(b"]\n")


def _header_with(part: TablePart, columns: Sequence[str], suffix: str) -> bytes:
    with open(part.source, "rb") as stream:
        text = _header(stream, part.file)
    names, delimiter = next(csv_records(_lines(text), suffix))[1], find_delimiter(text, suffix)
    kept = [n for n in names if n not in columns]
    line = text.rstrip("\r\n") if kept == names else _csv_line(kept, delimiter)
    return (delimiter.join([line, *columns]) + _line_end(part)).encode()


def _line_end(part: TablePart) -> str:
    with open(part.source, "rb") as stream:
        return "\r\n" if _header(stream, part.file).endswith("\r\n") else "\n"
