"""The result types of layout readers, and the code that readers and writers share."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, cast

import pyarrow as pa

from mustsee.errors import UserError
from mustsee.files import tables
from mustsee.files.parquet import open_parquet
from mustsee.records import Question, Video

T = TypeVar("T")
Row = Mapping[str, Any]
BATCH_ROWS = 64  # rows of a parquet table in memory at once
LINE_SUFFIXES = (".csv", ".tsv", ".jsonl")  # files whose records start on lines
COMPRESSED = (".gz", ".zip", ".bz2", ".xz", ".zst", ".7z", ".rar")
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
BEYOND = "(cells beyond the last column)"  # name of the column for surplus cells of a .csv
FACTS = (  # the columns of a video that layouts contain
    "video_id", "uri", "title", "license", "source_url", "movie_name", "year", "genre", "actors",
    "plot", "source",
    "start", "end", "digest", "duration", "has_audio", "language", "transcribed_by",
    "perceived_age", "perceived_gender", "perceived_by",
)  # fmt: skip


class Rereadable(Generic[T]):
    """An iterable that can be iterated again; it may exceed memory. `begin` makes an iterator."""

    def __init__(self, begin: Callable[[], Iterator[T]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[T]:
        return self._begin()


Questions: TypeAlias = Sequence[Question] | Rereadable[Question]  # the input of layout writers


@dataclass(frozen=True, kw_only=True)
class FileFault:
    """A fault in a file: `what`, and the file's `value` as its `repr`.

    `row` is the record, counted from 0, or -1 for none. `line` is the line on which the record
    starts, counted from 1, or null if the file has no lines. A `broken` question cannot be used.
    """

    file: str
    row: int
    question_id: str
    what: str
    value: str = ""
    line: int | None = None
    broken: bool = False

    @property
    def place(self) -> str:
        """ "line 4" in a file with lines, else "row 3", counted from 1; empty without a record."""
        if self.line is not None:
            return f"line {self.line}"
        return f"row {self.row + 1}" if self.row >= 0 else ""

    def plain(self) -> dict[str, Any]:
        """Return the fault as written to `audit.json` and `results.json`."""
        return {
            "file": self.file, "place": self.place, "question_id": self.question_id,
            "what": self.what, "value": self.value, "broken": self.broken,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class QuestionSource:
    """Questions in file order, their videos as far as the file has them, and all faults.

    `questions` and `videos` may exceed memory: each iteration then reads the file. `video_paths`:
    video id -> what the file calls the video, where that may be a path.
    """

    layout: str
    questions: Questions
    videos: Sequence[Video] | Rereadable[Video] = ()
    findings: tuple[FileFault, ...] = ()
    video_paths: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class QuestionFile(QuestionSource):
    """A `QuestionSource` in memory. Iteration yields the questions."""

    questions: tuple[Question, ...]
    videos: tuple[Video, ...] = ()

    @property
    def unusable_reasons(self) -> dict[str, str]:
        """Question id -> the fault, for the questions that cannot be used."""
        return {f.question_id: f.what for f in reversed(self.findings) if f.broken}

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, index: int) -> Question:
        return self.questions[index]


class Notes:
    """Collector of the faults of one file while it is read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._faults: list[FileFault] = []
        self._ids: dict[int, str] = {}  # row -> new id, for rows with a repeated id
        self.is_csv = file.suffix in (".csv", ".tsv")

    def add(
        self, row: int, question_id: str, what: str, value: object = "", *, broken: bool = False
    ) -> None:
        text = "" if value == "" else repr(value)
        self._faults.append(
            FileFault(
                file=self._file.name, row=row, question_id=question_id, what=what, value=text,
                broken=broken,
            )
        )  # fmt: skip

    @property
    def findings(self) -> tuple[FileFault, ...]:
        """All faults, with lines of the file and the questions' final ids."""
        lines = self._lines if self._faults else None
        return tuple(
            replace(
                f,
                line=None if lines is None or f.row < 0 else lines[f.row],
                question_id=self._ids.get(f.row, f.question_id),
            )
            for f in self._faults
        )

    def place(self, row: int) -> str:
        """Return the place of a record in the file, such as "line 4"."""
        return FileFault(
            file="", row=row, question_id="", what="",
            line=None if self._lines is None else self._lines[row],
        ).place  # fmt: skip

    @cached_property
    def _lines(self) -> list[int] | None:
        return _record_lines(self._file)

    def text(self, row: int, question_id: str, source: Row, key: str) -> str:
        """Return a text column; a missing or empty one is a fault (broken for `question`)."""
        value = source.get(key)
        if value is None or not str(value).strip():
            self.add(row, question_id, f"no {key}", broken=key == "question")
            return ""
        return str(value)

    def options(self, row: int, question_id: str, options: Sequence[str]) -> None:
        """Note the faults of a question's options."""
        if any(not option.strip() for option in options):
            self.add(row, question_id, "an empty option", list(options), broken=True)
        elif len(set(options)) < len(options):
            self.add(row, question_id, "two options are the same", list(options), broken=True)

    def index(
        self,
        row: int,
        question_id: str,
        options: Sequence[str],
        *,
        answer: str | None = None,
        given: object = None,
        value: object = None,
    ) -> int | None:
        """Return the index of the answer from its number (`given`) and its text (`answer`).

        Values that are missing, disagree or are outside the options are faults; if both are present
        and disagree, the index is None. `value` is the file's value if `given` was computed from
        it.
        """
        value = given if value is None else value
        text_index = options.index(answer) if answer is not None and answer in options else None
        if answer is not None and options and text_index is None:
            similar = [i for i, o in enumerate(options) if _is_similar(o, answer)]
            text_index = similar[0] if len(similar) == 1 else None
            what = (
                "answer differs from its option in spelling"
                if similar
                else "answer is not an option"
            )
            self.add(row, question_id, what, answer, broken=text_index is None and given is None)
        self.options(row, question_id, options)
        if given is None:
            return text_index
        try:
            number = int(cast(Any, given))
        except (TypeError, ValueError):
            self.add(
                row, question_id, "answer number is not a number", value, broken=text_index is None
            )
            return text_index
        if not 0 <= number < len(options):
            what = "answer is outside the options"
            self.add(row, question_id, what, value, broken=text_index is None)
            return text_index
        if text_index is not None and options[number] != options[text_index]:
            what = "answer number and answer text disagree"
            self.add(row, question_id, what, value, broken=True)
            return None
        return number

    def unique(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Return the questions with unique ids; a repeated id is a fault and gets a number."""
        counts: dict[str, int] = {}
        result: list[Question] = []
        for row, question in enumerate(questions):
            name = question.question_id
            counts[name] = counts.get(name, 0) + 1
            if counts[name] > 1:
                self.add(row, name, "this id occurs again", name)
                self._ids[row] = f"{name}#{counts[name]}"
                question = replace(question, question_id=self._ids[row])
            result.append(question)
        return tuple(result)


def _record_lines(path: Path) -> list[int] | None:
    """Return the line on which each record starts, counted from 1; None for a folder and for files
    without lines.
    """
    if path.suffix not in LINE_SUFFIXES or not path.is_file():
        return None
    return [line for line, _ in _numbered_records(path)]


def _is_similar(left: str, right: str) -> bool:
    return " ".join(left.split()).strip(" .").lower() == " ".join(right.split()).strip(" .").lower()


def rows_of(path: Path) -> list[Row]:
    """Return the records of a .json (list), .jsonl, .csv, .tsv or .parquet. Raises UserError."""
    return list(each_row(path))


def each_row(path: Path, columns: Iterable[str] | None = None) -> Iterator[Row]:
    """Yield the records with only the last few in memory (a .json is read whole).

    Of a .parquet, only the `columns` are read. Raises UserError.
    """
    check_kind(path)
    try:
        for number, row in enumerate(_records(path, columns)):
            if not isinstance(row, dict):
                raise UserError(f"{str(path)!r}, row {number}: not an object with a question")
            yield cast(Row, row)
    except (OSError, ValueError, OverflowError, pa.ArrowException, csv.Error) as error:
        raise UserError(
            f"cannot read questions from {str(path)!r}: {tables.one_line_error(error)}"
        ) from error


def check_kind(path: Path) -> None:
    """Raise UserError for a file of a kind that is never read, with what to do about it."""
    kind = path.suffix.lower()
    if kind in COMPRESSED:
        raise UserError(
            f"{str(path)!r} is compressed ({kind}): unpack it, and give the file inside"
        )
    if kind in SPREADSHEETS:
        raise UserError(f"{str(path)!r} is a spreadsheet ({kind}): save its sheet as .csv")


def _records(path: Path, columns: Iterable[str] | None) -> Iterator[Any]:
    if path.suffix == ".parquet":
        with open_parquet(path) as table:
            existing = table.schema_arrow.names
            read_columns = existing if columns is None else [c for c in columns if c in existing]
            for batch in table.iter_batches(BATCH_ROWS, columns=read_columns):
                yield from batch.to_pylist()
        return
    if path.suffix in LINE_SUFFIXES:
        yield from (record for _, record in _numbered_records(path))
        return
    with path.open(encoding="utf-8-sig") as file:
        value: Any = tables.parse_json(file.read())
    if not isinstance(value, list):
        raise UserError(
            f"{str(path)!r} holds a {type(value).__name__}: expected a list of questions"
        )
    yield from cast(list[Any], value)


def _numbered_records(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line, record), with the line on which the record starts, counted from 1."""
    line_end = "\n" if path.suffix == ".jsonl" else ""  # JSON lines may hold a carriage return
    with path.open(newline=line_end, encoding="utf-8-sig") as file:
        if path.suffix == ".jsonl":
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, tables.parse_json(line, f"line {number}")
            return
        records = tables.csv_records(file, path.suffix)
        _, names = next(records, (1, []))
        for line, record in records:
            yield line, _row_by_name(names, record)


def delimiter_of(path: Path) -> str:
    """Return what is between the cells of a .csv or .tsv."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return tables.find_delimiter("".join(tables.header_lines(file)), path.suffix)


def _row_by_name(names: Sequence[str], cells: Sequence[str]) -> Row:
    """Return column name -> cell; surplus cells are a list under `BEYOND`."""
    row: dict[Any, Any] = {**dict.fromkeys(names), **dict(zip(names, cells, strict=False))}
    return {**row, BEYOND: list(cells[len(names) :])} if len(cells) > len(names) else row


def kept_questions(questions: Questions) -> Rereadable[Question]:
    """Return the questions that no filter dropped."""
    return Rereadable(lambda: (q for q in questions if q.drop is None))


def first(questions: Questions) -> Rereadable[Question]:
    """Return the kept questions without twins, which released layouts do not have."""
    return Rereadable(lambda: (q for q in kept_questions(questions) if q.sibling_of is None))


def answer_of(question: Question) -> str:
    """Return the answer as text."""
    if question.answer or question.answer_index is None:
        return question.answer
    return question.options[question.answer_index]


def by_id(videos: Iterable[Video]) -> dict[str, Video]:
    """Return video id -> `facts`."""
    return {v.video_id: facts(v) for v in videos}


def facts(video: Video) -> Video:
    """Return the video without the results of stages (transcript, captions, shots), which would
    not fit into memory for thousands of videos.
    """
    return Video(**{name: getattr(video, name) for name in FACTS})


def youtube_id(address: str) -> str | None:
    """Return the id of a video in an address of YouTube; None for another text."""
    found = re.search(r"(?:youtu\.be/|[?&]v=|/shorts/|/embed/)([\w-]{11})", address)
    return found[1] if found else None
