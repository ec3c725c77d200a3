"""Detect the layout of a file or folder from its content, and read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.files.store import refuse_special
from mustsee.files.tables import one_line_error
from mustsee.layouts import ours, shards, table, tempcompass
from mustsee.layouts.columns import TableColumns, known_columns, missing_columns
from mustsee.layouts.reading import BEYOND, QuestionFile, QuestionSource, each_row
from mustsee.papers import papers

Reader = Callable[[Path], QuestionFile]


@cache
def readers() -> dict[str, Reader]:
    """Return layout name -> reader: our own layout, the papers' layouts, and general ones."""
    released = {name: paper.load_layout().read for name, paper in papers().items() if paper.layout}
    return {
        "ours": ours.read,
        **released,
        "webdataset": shards.read,
        "tempcompass": tempcompass.read,
        "table": table.read,
    }


def read(
    path: str | Path, layout: str | None = None, columns: TableColumns | None = None
) -> QuestionFile:
    """Read questions from a file or folder in any layout.

    `layout` names the layout if the content is ambiguous; `columns` names the columns of a plain
    table. Raises UserError if there is nothing to read.
    """
    place = _existing_path(path, layout)
    if columns is not None:
        return _read(place, "table", partial(table.read, given=columns))
    name = layout or _layout(place)
    return _read(place, name, readers()[name])


def _read(place: Path, name: str, reader: Reader) -> QuestionFile:
    """Read with `reader`. Raises UserError also for values of an unexpected type."""
    try:
        return reader(place)
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise UserError(
            f"{str(place)!r} is not in the layout {name!r}: a value has an unexpected type "
            f"({type(error).__name__}: {one_line_error(error)})"
        ) from error


def open_streamed(
    path: str | Path, layout: str | None = None, columns: TableColumns | None = None
) -> QuestionSource:
    """Read like `read`, without holding the questions of our own layout in memory."""
    place = _existing_path(path, layout)
    if columns is None and (layout or _layout(place)) == "ours":
        return ours.open_streamed(place)
    return read(place, layout, columns)


def _existing_path(path: str | Path, layout: str | None) -> Path:
    place = Path(path)
    refuse_special(str(place))
    if not place.exists():
        raise UserError(f"no such file or folder: {str(place)!r}")
    if layout is not None and layout not in readers():
        raise UserError(f"layout={layout!r}: expected one of {', '.join(readers())}")
    return place


def _layout(place: Path) -> str:
    if place.is_dir():
        if (place / "questions.parquet").exists():
            return "ours"
        for name, layout in _released(shares_signs=False):
            if layout.is_folder(place):
                return name
        if shards.shard_files(place):
            return "webdataset"
        for name, layout in _released(shares_signs=True):
            if layout.is_folder(place):
                return name
        endings = ("parquet", "csv", "tsv", "jsonl")
        tables = [file for e in endings for file in sorted(place.rglob(f"*.{e}"))]
        if not tables:
            raise UserError(
                f"no questions in {str(place)!r}: it has no file of a known layout "
                f"({', '.join(readers())})"
            )
        return _layout(tables[0])
    refuse_special(str(place))  # of a folder's tables
    if place.suffix == ".tar":
        return "webdataset"
    if tempcompass.is_list(place):
        return "tempcompass"
    columns = _columns(place)
    if "question_id" in columns and "answer_index" in columns:
        return "ours"
    for shares_signs in (False, True):
        for name, layout in _released(shares_signs=shares_signs):
            if layout.is_table(columns):
                return name
    if known_columns(columns) is not None:
        return "table"
    if not columns:
        raise UserError(f"{str(place)!r} has no rows")
    raise UserError(
        f"{str(place)!r} is in no known layout ({', '.join(readers())}). As a plain table it has "
        f"{missing_columns(columns)}"
    )


def _released(*, shares_signs: bool) -> Iterator[tuple[str, Any]]:
    """Yield (name, layout) of the papers whose signs are unique, or are shared with others."""
    for name, paper in papers().items():
        if paper.layout is not None and paper.shares_signs == shares_signs:
            yield name, paper.load_layout()


def _columns(place: Path) -> Sequence[str]:
    """Return the names of a table's columns, in order."""
    if place.suffix == ".parquet":
        import pyarrow.parquet as pq

        try:
            return list(pq.read_schema(place).names)
        except (OSError, ValueError) as error:
            raise UserError(
                f"cannot read questions from {str(place)!r}: {one_line_error(error)}"
            ) from error
    names = dict.fromkeys(key for row in islice(each_row(place), 20) for key in row)
    return [name for name in names if name != BEYOND]
