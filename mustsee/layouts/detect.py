"""Detect the layout of a file or folder from its content, and read it.

What a finished run wrote is an object, too: `Dataset("runs/mine")`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee.errors import UserError, need
from mustsee.files.parquet import read_parquet
from mustsee.files.store import refuse_special
from mustsee.files.tables import one_line_error
from mustsee.layouts import ours, shards, table, tempcompass
from mustsee.layouts.columns import TableColumns, known_columns, missing_columns
from mustsee.layouts.reading import BEYOND, QuestionFile, QuestionSource, each_row
from mustsee.papers import papers
from mustsee.records import Question, Video

if TYPE_CHECKING:
    import datasets

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


@dataclass(frozen=True)
class Dataset:
    """The output folder of a run. Raises UserError, when first read, for another folder."""

    folder: str

    @cached_property
    def _file(self) -> Any:
        return read(self.folder, "ours")

    @property
    def questions(self) -> Sequence[Question]:
        """The questions that were kept."""
        return [q for q in self._file.questions if q.drop is None]

    @property
    def dropped_questions(self) -> Sequence[Question]:
        """The questions that were not kept, each with the reason in `drop`."""
        return [q for q in self._file.questions if q.drop is not None]

    @property
    def videos(self) -> Sequence[Video]:
        return self._file.videos

    @cached_property
    def record(self) -> dict[str, Any]:
        """`run.json`: settings, counts, calls, tokens, money."""
        path = Path(self.folder) / "run.json"
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{self.folder!r} is not the output folder of a run: {error}") from None

    def subset(self, name: str) -> Sequence[Question]:
        """The kept questions of a subset, such as "mma": those that passed every filter."""
        return [q for q in self.questions if name in q.subsets]

    def report(self) -> Path:
        """The page on the run, to be opened in a browser. Raises UserError if there is none."""
        page = Path(self.folder) / "report" / "index.html"
        if not page.is_file():
            raise UserError(f"no page in {self.folder!r}: mustsee report out={self.folder}")
        return page

    def to_hf(self) -> datasets.Dataset:
        """The kept questions as a dataset of the library `datasets`, a row each, with the columns
        of `questions.parquet`. Raises NotInstalled without the library.
        """
        need("to_hf()", "mustsee[hf]", "datasets")
        import datasets
        import pyarrow as pa

        table = read_parquet(Path(self.folder) / "questions.parquet")
        kept = {q.question_id for q in self.questions}
        standing = pa.array([name in kept for name in table["question_id"].to_pylist()])
        return datasets.Dataset(table.filter(standing))
