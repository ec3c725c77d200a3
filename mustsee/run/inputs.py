"""`videos=`: a folder, a glob, a list or a table of videos becomes one row per video."""

from __future__ import annotations

import hashlib
import json
import math
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.folders import file_names, files_under, is_text, readable_path
from mustsee.media.files import SUFFIXES
from mustsee.media.subtitles import FORMATS
from mustsee.records import Problem, Video
from mustsee.store import resolve
from mustsee.tables import TABLES, resolve_uri, rows_of, suffix_of
from mustsee.text import printable

KNOWN = (
    "video_id", "uri", "size", "modified", "title", "views", "published", "tags", "license",
    "source_url", "subtitles", "subtitles_digest", "movie_name", "year", "genre", "split", "start",
    "end",
)  # fmt: skip
# What the house finds out by itself, and a table cannot say.
OWN = frozenset(schemas.schema(Video).names) - (
    frozenset(KNOWN) - {"size", "modified", "subtitles_digest"}
)
# lists and objects within each other in a table's own column; deeper ones become JSON
MAX_NESTING = 16
_NO_PATH = re.compile(r"[\x00\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def read_videos(source: str, *, keep: Collection[str] = ()) -> pa.Table:
    """One row per video, in the order of their ids: the columns in `KNOWN`, then the table's own.

    `source`: a folder (searched through), a glob, one media file, a `.txt` list of addresses, or a
    `.csv .tsv .jsonl .parquet` table with a `uri` column; local, `s3://` or `gs://`. Relative
    addresses in a list or table count from its folder (`subtitles` from the video's). A glob that
    does not name an extension finds media files only. A file that is named but absent becomes a
    row all the same: it ends as a problem, not in silence. A table's columns with the names of
    those that stages write (`duration`, `captions`) are left out, but for those to `keep` of the
    `videos.parquet` of an earlier run. Raises UserError.
    """
    rows = [
        {k: v for k, v in row.items() if k not in OWN or (k in keep and not isinstance(v, str))}
        for row in _listed(source)
    ]
    if not rows:
        raise UserError(
            f"no videos in {source!r}: expected files ending in {', '.join(sorted(SUFFIXES))}, "
            "or a .txt list or .csv/.jsonl/.parquet table of them"
        )
    beside: dict[str, list[str]] = {}
    rows = _named([_described(row, beside) for row in rows])
    columns = {n: schemas.column(n, [_typed(n, r.get(n), r) for r in rows]) for n in KNOWN}
    for name in ("drop", "problem"):
        if name == "drop" or any(name in r for r in rows):
            columns[name] = schemas.column(name, [r.get(name) for r in rows])
    for name in dict.fromkeys(key for row in rows for key in row):
        if name not in columns:
            columns[name] = _extra([r.get(name) for r in rows])
    return pa.table(columns)


def with_videos(videos: Mapping[str, Video], source: str | None) -> dict[str, Video]:
    """A run's videos, with the addresses that `videos=` has for them now; without it, where the run
    found them. Raises UserError.
    """
    if source is None:
        return {**videos}
    rows = read_videos(source).select(["video_id", "uri"]).to_pylist()
    uris = {row["video_id"]: row["uri"] for row in rows}
    return {name: replace(v, uri=uris.get(name, v.uri)) for name, v in videos.items()}


def _listed(source: str) -> Iterator[dict[str, Any]]:
    filesystem, path = resolve(source)
    suffix = suffix_of(path)
    scheme = source.split("://")[0] + "://" if "://" in source else ""
    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.NotFound and any(mark in path for mark in "*?["):
        base = path.split("*")[0].split("?")[0].split("[")[0].rsplit("/", 1)[0] or "/"
        named = suffix and not any(mark in suffix for mark in "*?[")
        for found in files_under(filesystem, base, path):
            if named or suffix_of(found) in SUFFIXES:
                yield {"uri": scheme + found}
        return
    if info.type == fs.FileType.NotFound:
        raise UserError(
            f"videos={source!r} does not exist: give a folder, a glob, a list or a table"
        )
    if info.type == fs.FileType.Directory:
        for found in files_under(filesystem, path):
            if suffix_of(found) in SUFFIXES:
                yield {"uri": scheme + found}
    elif suffix in TABLES or suffix == "txt":
        for row in _table(filesystem, path, suffix):
            yield resolve_uri(row, source)
    elif suffix in SUFFIXES:
        yield {"uri": scheme + path}
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
                f"{path!r}, row {number}: no 'uri'; the columns found are {sorted(map(str, row))}"
            )
        _check(f"{path!r}, row {number}", row)
        yield row


def _lines(filesystem: fs.FileSystem, path: str) -> list[str]:
    try:
        return filesystem.open_input_file(path).read().decode("utf-8-sig").split("\n")
    except (UnicodeError, OSError) as error:
        raise UserError(f"cannot read the list {path!r}: {error}") from error


def _check(where: str, row: Mapping[str, Any]) -> None:
    """Raises UserError for addresses, ids and times that no video can have."""
    for name in ("uri", "subtitles", "video_id"):
        value = row.get(name)
        if value is None or value == "":
            continue
        known = str | int if name == "video_id" else str
        if isinstance(value, bool) or not isinstance(value, known):
            kind = type(value).__name__
            raise UserError(f"{where}: {name}={value!r} is of type {kind}: expected text")
        wrong = _CONTROL if name == "video_id" else _NO_PATH
        if found := wrong.search(str(value)):
            raise UserError(
                f"{where}: {name}={value!r} holds {found.group()!r}, which it cannot: take it out"
            )
    if PurePosixPath(row["uri"]).name in ("", "..") or row["uri"].endswith("/"):
        raise UserError(f"{where}: uri={row['uri']!r} names no file")
    name = row.get("video_id")
    if {"..", "."} & set(str(name or "").split("/")) or str(name or "").startswith("/"):
        raise UserError(
            f"{where}: video_id={name!r}: exports name files by it; leave out '.' and '..' between "
            "slashes, and a slash at its beginning"
        )
    times = [_seconds(where, name, row.get(name)) for name in ("start", "end")]
    if times[0] is not None and times[1] is not None and times[1] <= times[0]:
        raise UserError(f"{where}: end={times[1]:g} is not after start={times[0]:g}")


def _seconds(where: str, name: str, value: Any) -> float | None:
    """A time of a table, if it has one. Raises UserError."""
    if value is None or value == "":
        return None
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not 0 <= found < math.inf:
        raise UserError(f"{where}: {name}={value!r}: expected seconds, 0 or more")
    return found


def _described(row: dict[str, Any], beside: dict[str, list[str]]) -> dict[str, Any]:
    """Size and time of change, by which a file is recognised before it is read, and the digest of
    the subtitle files that belong to it. `beside`: the subtitle files by folder, as far as listed.
    """
    if not is_text(row["uri"]):
        path = row["uri"] = readable_path(row["uri"])
        message = f"{path!r}: the bytes of its name are not UTF-8: rename the file"
        return {**row, "problem": Problem(stage="read", error="BadRow", message=message)}
    filesystem, path = resolve(row["uri"])
    row["subtitles_digest"] = _subtitles(filesystem, path, row.get("subtitles"), beside)
    try:
        info = filesystem.get_file_info(path)
    except OSError:  # a name longer than any file's: `probe` says so
        return row
    if info.type == fs.FileType.File:
        row["size"] = info.size
        row["modified"] = info.mtime.isoformat() if info.mtime else None
    return row


def _subtitles(
    filesystem: fs.FileSystem, path: str, named: Any, beside: dict[str, list[str]]
) -> str | None:
    folder, name = posixpath.split(path)
    if folder not in beside:
        names = [name for name in file_names(filesystem, folder) if is_text(name)]
        beside[folder] = [n for n in names if n.rsplit(".", 1)[-1].lower() in FORMATS]
    stem = name.rsplit(".", 1)[0] + "."
    files = [(filesystem, posixpath.join(folder, n)) for n in beside[folder] if n.startswith(stem)]
    if named and "://" in str(named):
        files.append(resolve(str(named)))
    elif named:
        files.append((filesystem, posixpath.join(folder, str(named))))
    total = hashlib.sha256()
    for place, file in files:
        total.update(posixpath.basename(file).encode() + b"\0" + _content(place, file).encode())
    return total.hexdigest() if files else None


def _named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ids: the given one, else the file's stem; stems that collide get the file's digest."""
    for row in rows:
        stem = printable(PurePosixPath(row["uri"]).stem)
        row["video_id"] = str(row.get("video_id") or stem)
    given = Counter(row["video_id"] for row in rows)
    seen: Counter[str] = Counter()
    for row in rows:
        if given[row["video_id"]] > 1:
            row["video_id"] = f"{row['video_id']}-{_content(*resolve(str(row['uri'])))[:8]}"
        seen[row["video_id"]] += 1
        if seen[row["video_id"]] > 1:
            row["drop"] = f"duplicate: the same video as {row['video_id']!r} is listed already"
            row["video_id"] = f"{row['video_id']}-{seen[row['video_id']]}"
    return sorted(rows, key=lambda row: row["video_id"])


def _content(filesystem: fs.FileSystem, path: str) -> str:
    total = hashlib.sha256()
    try:
        with filesystem.open_input_stream(path) as stream:
            while chunk := stream.read(1 << 20):
                total.update(chunk)
    except OSError:
        total.update(path.encode())
    return total.hexdigest()


def _typed(name: str, value: Any, row: Mapping[str, Any]) -> Any:
    """A table's value as its column's type: numbers from text, lists from `a, b` or JSON."""
    hint = schemas.hints(Video)[name]
    if value is None or value == "":
        return None
    try:
        if name in ("tags", "genre"):
            if isinstance(value, str):
                text = value.strip()
                value = json.loads(text) if text.startswith("[") else text.split(",")
            return tuple(str(item).strip() for item in value)
        if isinstance(value, bytes | list | dict):
            raise TypeError("no plain value")
        if name in ("views", "year", "size"):
            number = value if isinstance(value, int) else int(float(value))  # "100.0", by pandas
            return int(np.int64(number))  # raises OverflowError for more than a column holds
        return float(value) if name in ("start", "end") else str(value)
    except (TypeError, ValueError, OverflowError) as error:
        kind = getattr(hint, "__name__", "list")
        raise UserError(
            f"video {row.get('uri')!r}: column {name!r} holds {value!r}, expected {kind}"
        ) from error


def _extra(values: list[Any]) -> pa.Array:
    values = [_shallow(value) for value in values]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if v is None else str(v) for v in values])


def _shallow(value: Any) -> Any:
    """The value, as JSON where lists and objects in it lie deeper within each other than Parquet
    can be read again.
    """
    level, depth = [value], 0
    while level := [x for x in level if isinstance(x, list | dict)]:
        depth += 1
        if depth > MAX_NESTING:
            return json.dumps(value, ensure_ascii=False, default=str)
        level = [x for part in level for x in (part.values() if isinstance(part, dict) else part)]
    return value


def begun(rows: pa.Table) -> pa.Table:
    """The rows as a run begins with them: without the contract's columns that are empty in every
    row, which would cost each block as much as the others, and with those that every stage fills.
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
