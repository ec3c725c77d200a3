"""Which layout a path is in, by what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.layouts import ours, shards, table, tempcompass
from mustsee.layouts.reading import BEYOND, QuestionFile, QuestionSource, each_row
from mustsee.layouts.table import TableColumns
from mustsee.papers import papers
from mustsee.tables import one_line_error

Reader = Callable[[Path], QuestionFile]


@cache
def readers() -> dict[str, Reader]:
    """Return the reader of each layout by its name: ours, each paper's, and others' of no paper."""
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
    """Questions from a file or folder in any of the layouts (`layout` names it where the content
    does not tell). `columns`: it is a plain table, and these hold them. Raises UserError when there
    is nothing to read.
    """
    place = _there(path, layout)
    if columns is not None:
        return _read(place, "table", partial(table.read, given=columns))
    name = layout or _layout(place)
    return _read(place, name, readers()[name])


def _read(place: Path, name: str, reader: Reader) -> QuestionFile:
    """Raises UserError also where a value is of a type that the layout knows nothing of."""
    try:
        return reader(place)
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise UserError(
            f"{str(place)!r} is not of the layout {name!r}: a value is of another type than there "
            f"({type(error).__name__}: {one_line_error(error)})"
        ) from error


def open_streamed(path: str | Path, layout: str | None = None) -> QuestionSource:
    """The same, without holding the questions of our own layout in memory."""
    place = _there(path, layout)
    name = layout or _layout(place)
    if name == "ours":
        return ours.open_streamed(place)
    reading = _read(place, name, readers()[name])
    return QuestionSource(
        layout=reading.layout,
        questions=reading.questions,
        videos=reading.videos,
        findings=reading.findings,
    )


def _there(path: str | Path, layout: str | None) -> Path:
    place = Path(path)
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
        if shards.there(place):
            return "webdataset"
        for name, layout in _released(shares_signs=True):
            if layout.is_folder(place):
                return name
        endings = ("parquet", "csv", "tsv", "jsonl")
        tables = [found for e in endings for found in sorted(place.rglob(f"*.{e}"))]
        if not tables:
            raise UserError(f"no questions in {str(place)!r}: none of the known files is there")
        return _layout(tables[0])
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
    plain = table.columns(columns)
    if plain is not None:
        return "table"
    if not columns:
        raise UserError(f"{str(place)!r} has no rows")
    raise UserError(
        f"{str(place)!r} is in no known layout ({', '.join(readers())}). As a plain table it has "
        f"{table.missing_columns(columns)}"
    )


def _released(*, shares_signs: bool) -> Iterator[tuple[str, Any]]:
    """Yield the papers' layouts whose signs other layouts may have, or those whose signs are their
    own, with their names.
    """
    for name, paper in papers().items():
        if paper.layout is not None and paper.shares_signs == shares_signs:
            yield name, paper.load_layout()


def _columns(place: Path) -> Sequence[str]:
    """The names of a table's columns, in their order."""
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
