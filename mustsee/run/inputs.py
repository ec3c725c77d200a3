"""Reads `videos=`, a folder, a glob, a list or a table, into a table with one row per video."""

from __future__ import annotations

import hashlib
import io
import json
import math
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.folders import SUFFIXES, files_under, is_text, names_starting, readable_path
from mustsee.files.store import address_of, file_digest, in_folder, resolve, strip_options
from mustsee.files.tables import TABLES, resolve_uri, rows_of, suffix_of
from mustsee.media.subtitle_cues import FORMATS
from mustsee.media.subtitles import UNREAD
from mustsee.media.video_names import VideoNames, path_parts
from mustsee.records import Problem, Video
from mustsee.text import printable

KNOWN = (
    "video_id", "uri", "size", "modified", "title", "views", "published", "tags", "license",
    "source_url", "subtitles", "subtitles_digest", "movie_name", "year", "genre", "actors", "plot",
    "split", "start", "end",
)  # fmt: skip
# Columns that stages compute, and that an input table cannot set.
COMPUTED = frozenset(schemas.schema(Video).names) - (
    frozenset(KNOWN) - {"size", "modified", "subtitles_digest"}
)
ROWS_AT_ONCE = 4096  # rows that are in memory as plain values
REQUESTS_AT_ONCE = 64  # requests to an object store
# Parquet cannot be read back with deeper nesting, so deeper lists and objects become JSON.
MAX_NESTING = 16
_NO_PATH = re.compile(r"[\x00\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def read_videos(source: str, *, keep: Collection[str] = ()) -> pa.Table:
    """Return one row per video, in the order of their ids.

    The columns are those in `KNOWN`, then the other ones of the input table.

    `source`: a folder (searched recursively), a glob, one media file, a `.txt` list of addresses,
    a `.csv .tsv .jsonl .parquet` table with a `uri` column, or the folder of a run without media
    files, which stands for its `videos.parquet`; local, `s3://` or `gs://`. Relative
    addresses in a list or table start at its folder (`subtitles` at the video's). A glob without an
    extension finds media files only. A listed file that does not exist becomes a row too, and later
    a problem. Columns of a table that stages compute (`duration`, `captions`) are left out, except
    the columns to `keep` of the `videos.parquet` of an earlier run. Raises UserError.
    """
    table = _with_unique_ids(_as_table(_listed(source), keep))
    if not table.num_rows:
        raise UserError(
            f"no videos in {source!r}: expected files ending in {', '.join(sorted(SUFFIXES))}, "
            "or a .txt list or .csv/.jsonl/.parquet table of them"
        )
    return table.sort_by("video_id")


def _as_table(listed: Iterator[dict[str, Any]], keep: Collection[str]) -> pa.Table:
    """Return the listed rows as a table, in their order.

    It is made of `ROWS_AT_ONCE` rows at a time, because dicts take several times the memory.
    """
    names, count = (*KNOWN, "drop", "problem"), 0
    tables = [pa.table({name: pa.nulls(0) for name in names})]
    others: dict[str, list[Any]] = {}  # columns that are not of the contract
    while rows := _with_facts([_given(row, keep) for row in islice(listed, ROWS_AT_ONCE)]):
        for row in rows:  # an id is the given one, or the file's stem
            stem = printable(PurePosixPath(strip_options(row["uri"])).stem)
            row["video_id"] = str(row.get("video_id") or stem)
        typed = ([_typed(name, row.get(name), row) for row in rows] for name in KNOWN)
        problems = [row.get("problem") for row in rows]
        values = dict(zip(names, (*typed, [None] * len(rows), problems), strict=True))
        tables.append(pa.table({name: _column(name, of) for name, of in values.items()}))
        for name in dict.fromkeys(key for row in rows for key in row if key not in names):
            others.setdefault(name, [None] * count)
        for name, of in others.items():
            of += (row.get(name) for row in rows)
        count += len(rows)
    table = pa.concat_tables(tables, promote_options="permissive")
    if table["problem"].null_count == count:
        table = table.drop_columns(["problem"])
    for name, of in others.items():
        table = table.append_column(name, _extra_column(of))
    return table


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    """Return a column of the contract; one without values needs no memory."""
    return (
        schemas.column(name, values)
        if any(v is not None for v in values)
        else pa.nulls(len(values))
    )


def _given(row: Mapping[str, Any], keep: Collection[str]) -> dict[str, Any]:
    """Return the columns of a row that stages do not compute, or that are to be kept."""
    kept = {k for k, v in row.items() if k in keep and not isinstance(v, str)}
    return {k: v for k, v in row.items() if k not in COMPUTED or k in kept}


def read_names(source: str, *, keep: Collection[str] = ()) -> VideoNames:
    """Return the videos of `source` (as `videos=`) by their names. `keep`: as in `read_videos`.

    Raises UserError.
    """
    columns = schemas.schema(Video).names
    table = read_videos(source, keep=keep)
    rows = table.select([c for c in table.column_names if c in columns]).to_pylist()
    return VideoNames(schemas.load(Video, row) for row in rows)


def with_videos(videos: Mapping[str, Video], source: str | None) -> dict[str, Video]:
    """Return a run's videos with the addresses in `source` (as `videos=`), if it is given: those of
    the same id, or of a file with the same name.

    Raises UserError.
    """
    if source is None:
        return {**videos}
    names = read_names(source)

    def place(video: Video) -> Video:
        file = path_parts(strip_options(video.uri))[-1]
        match = names.find(video.video_id, video.uri) or names.find(file, video.uri)
        return video if match is None else replace(video, uri=match.uri)

    return {name: place(video) for name, video in videos.items()}


def _listed(source: str) -> Iterator[dict[str, Any]]:
    filesystem, path = resolve(source)
    suffix = suffix_of(path)
    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.NotFound and any(mark in path for mark in "*?["):
        base = path.split("*")[0].split("?")[0].split("[")[0].rsplit("/", 1)[0] or "/"
        has_extension = suffix and not any(mark in suffix for mark in "*?[")
        for file in files_under(filesystem, base, path):
            if has_extension or suffix_of(file) in SUFFIXES:
                yield {"uri": address_of(file, source)}
        return
    if info.type == fs.FileType.NotFound:
        raise UserError(
            f"videos={source!r} does not exist: give a folder, a glob, a list or a table"
        )
    if info.type == fs.FileType.Directory:
        is_empty = True
        for file in files_under(filesystem, path):
            if suffix_of(file) in SUFFIXES:
                is_empty = False
                yield {"uri": address_of(file, source)}
        table = in_folder(source, "videos.parquet")
        if is_empty and filesystem.get_file_info(resolve(table)[1]).type == fs.FileType.File:
            yield from _listed(table)
    elif suffix in TABLES or suffix == "txt":
        for row in _table(filesystem, path, suffix):
            yield resolve_uri(row, source)
    elif suffix in SUFFIXES:
        yield {"uri": address_of(path, source)}
    else:
        raise UserError(
            f"videos={source!r} is neither a folder, a glob, a video, a .txt list nor a "
            f"{'/'.join(sorted(TABLES))} table"
        )


def _table(filesystem: fs.FileSystem, path: str, suffix: str) -> Iterator[dict[str, Any]]:
    if suffix == "txt":
        for number, line in enumerate(_lines(filesystem, path), 1):
            uri = line.strip()
            if uri and not uri.startswith("#"):
                _check(f"{path!r}, line {number}", {"uri": uri})
                yield {"uri": uri}
        return
    for number, row in enumerate(rows_of(filesystem, path), 1):
        if not row.get("uri"):
            raise UserError(
                f"{path!r}, row {number}: no 'uri'; its columns are {sorted(map(str, row))}"
            )
        _check(f"{path!r}, row {number}", row)
        yield row


def _lines(filesystem: fs.FileSystem, path: str) -> Iterable[str]:
    try:
        text = filesystem.open_input_file(path).read().decode("utf-8-sig")
        return io.StringIO(text, newline="\n")
    except (UnicodeError, OSError) as error:
        raise UserError(f"cannot read the list {path!r}: {error}") from error


def _check(where: str, row: Mapping[str, Any]) -> None:
    """Raise UserError for invalid addresses, ids and times."""
    for name in ("uri", "subtitles", "video_id"):
        value = row.get(name)
        if value is None or value == "":
            continue
        allowed = str | int if name == "video_id" else str
        if isinstance(value, bool) or not isinstance(value, allowed):
            kind = type(value).__name__
            raise UserError(f"{where}: {name}={value!r} is of type {kind}: expected text")
        forbidden = _CONTROL if name == "video_id" else _NO_PATH
        if match := forbidden.search(str(value)):
            raise UserError(
                f"{where}: {name}={value!r} contains {match.group()!r}, which is not allowed: "
                "remove it"
            )
    place = strip_options(row["uri"])
    if PurePosixPath(place).name in ("", "..") or place.endswith("/"):
        raise UserError(f"{where}: uri={row['uri']!r} names no file")
    name = row.get("video_id")
    if {"..", "."} & set(str(name or "").split("/")) or str(name or "").startswith("/"):
        raise UserError(
            f"{where}: video_id={name!r}: exports name files by it, so it must not begin with a "
            "slash or have '.' or '..' between slashes"
        )
    times = [_seconds(where, name, row.get(name)) for name in ("start", "end")]
    if times[0] is not None and times[1] is not None and times[1] <= times[0]:
        raise UserError(f"{where}: end={times[1]:g} is not after start={times[0]:g}")


def _seconds(where: str, name: str, value: Any) -> float | None:
    """Return a time of a table row, or None where it is empty. Raises UserError."""
    if value is None or value == "":
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UserError(f"{where}: {name}={value!r}: expected seconds, 0 or more")
    return seconds


def _with_facts(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the facts of the files to the rows; of an object store's, many at once, since each takes
    a request.
    """
    if not any("://" in row["uri"] for row in rows):
        return [_with_file_facts(row) for row in rows]
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        return list(pool.map(_with_file_facts, rows))


def _with_file_facts(row: dict[str, Any]) -> dict[str, Any]:
    """Add the file's size, its time of change, and the digest of its subtitle files to the row.

    Size and time identify a file before it is read.
    """
    if not is_text(row["uri"]):
        path = row["uri"] = readable_path(row["uri"])
        message = f"{path!r}: the file name is not UTF-8: rename the file"
        return {**row, "problem": Problem(stage="read", error="BadRow", message=message)}
    filesystem, path = resolve(row["uri"])
    row["subtitles_digest"] = _subtitles_digest(filesystem, path, row.get("subtitles"))
    try:
        info = filesystem.get_file_info(path)
    except OSError:  # the name is too long for a file, which `probe` reports
        return row
    if info.type == fs.FileType.File:
        row["size"] = info.size
        row["modified"] = info.mtime.isoformat() if info.mtime else None
    return row


def _subtitles_digest(filesystem: fs.FileSystem, path: str, given: Any) -> str | None:
    """Return the digest of a video's subtitle files: those with its stem, and the `given` one."""
    folder, name = posixpath.split(path)
    with_stem = names_starting(filesystem, folder, name.rsplit(".", 1)[0] + ".")
    formats = (*FORMATS, *UNREAD)
    beside = [n for n in with_stem if is_text(n) and n.rsplit(".", 1)[-1].lower() in formats]
    files = [(filesystem, posixpath.join(folder, n)) for n in beside]
    if given and "://" in str(given):
        files.append(resolve(str(given)))
    elif given:
        files.append((filesystem, posixpath.join(folder, str(given))))
    digest = hashlib.sha256()
    for place, file in files:
        content = _content_digest(place, file)
        digest.update(posixpath.basename(file).encode() + b"\0" + content.encode())
    return digest.hexdigest() if files else None


def _with_unique_ids(table: pa.Table) -> pa.Table:
    """Add the file's digest to equal ids, and drop repeated rows of the same file."""
    counted = table["video_id"].value_counts()
    several = counted.filter(pa.array(counted.field("counts").to_numpy() > 1))
    if not len(several):
        return table
    repeated = set(several.field("values").to_pylist())
    ids, drops = list[str](), list[str | None]()
    seen: Counter[str] = Counter()
    for name, uri in zip(*(table[c].to_pylist() for c in ("video_id", "uri")), strict=True):
        unique, drop = name, None
        if name in repeated:
            unique = f"{name}-{_content_digest(*resolve(uri))[:8]}"
        seen[unique] += 1
        if (number := seen[unique]) > 1:
            drop = f"duplicate: the same video as {unique!r} is already listed"
            unique = f"{unique}-{number}"
        ids.append(unique)
        drops.append(drop)
    for column, values in (("video_id", ids), ("drop", drops)):
        place = table.schema.get_field_index(column)
        table = table.set_column(place, column, schemas.column(column, values))
    return table


def _content_digest(filesystem: fs.FileSystem, path: str) -> str:
    """Return the digest of a file's content, or of its path where it cannot be read."""
    try:
        return file_digest(filesystem, path)
    except OSError:
        return hashlib.sha256(path.encode()).hexdigest()


def _typed(name: str, value: Any, row: Mapping[str, Any]) -> Any:
    """Convert a value to its column's type: numbers from text, lists from `a, b` or JSON."""
    hint = schemas.hints(Video)[name]
    if value is None or value == "":
        return None
    try:
        if name in ("tags", "genre", "actors"):
            if isinstance(value, str):
                text = value.strip()
                value = json.loads(text) if text.startswith("[") else text.split(",")
            return tuple(str(item).strip() for item in value)
        if isinstance(value, bytes | list | dict):
            raise TypeError("not a plain value")
        if name in ("views", "year", "size"):
            number = value if isinstance(value, int) else int(float(value))  # pandas writes "100.0"
            return int(np.int64(number))  # OverflowError for a number that a column cannot hold
        return float(value) if name in ("start", "end") else str(value)
    except (TypeError, ValueError, OverflowError) as error:
        kind = getattr(hint, "__name__", "list")
        raise UserError(
            f"video {row.get('uri')!r}: column {name!r} has {value!r}, expected {kind}"
        ) from error


def _extra_column(values: list[Any]) -> pa.Array:
    values = [_shallow(value) for value in values]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if v is None else str(v) for v in values])


def _shallow(value: Any) -> Any:
    """Return the value, or its JSON where it is nested deeper than `MAX_NESTING`."""
    level, depth = [value], 0
    while level := [x for x in level if isinstance(x, list | dict)]:
        depth += 1
        if depth > MAX_NESTING:
            return json.dumps(value, ensure_ascii=False, default=str)
        level = [x for each in level for x in (each.values() if isinstance(each, dict) else each)]
    return value


def first_rows(rows: pa.Table) -> pa.Table:
    """Return the rows with which a run begins.

    Columns of the contract that are empty in every row are removed, because each block would pay
    for them. The columns that every stage fills are added.
    """
    contract = schemas.schema(Video)
    empty = [
        name
        for name in rows.column_names
        if name in contract.names and 0 < rows[name].null_count == rows.num_rows
    ]
    rows = rows.drop_columns(empty)
    for name in ("drop", "problem", "lineage"):
        if name not in rows.column_names:
            kind = contract.field(name).type
            rows = rows.append_column(name, pa.nulls(rows.num_rows, kind))
    return rows
