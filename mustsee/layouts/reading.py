"""What every layout's reader gives back, and the pieces that they share."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, cast

import pyarrow as pa

from mustsee.errors import UserError
from mustsee.records import Question, Video
from mustsee.tables import one_line_error, parse_json

T = TypeVar("T")
Row = Mapping[str, Any]
BATCH_ROWS = 64  # rows of a parquet table in memory at once
LINE_SUFFIXES = (".csv", ".tsv", ".jsonl")  # files whose records begin on lines
BEYOND = "(cells beyond the last column)"  # the column of those of a .csv
FACTS = (  # of a video, that a layout tells
    "video_id", "uri", "title", "license", "source_url", "movie_name", "year", "genre", "source",
    "start", "end", "digest", "duration", "has_audio", "language", "transcribed_by",
    "perceived_age", "perceived_gender", "perceived_by",
)  # fmt: skip


class Rereadable(Generic[T]):
    """What may be more than memory holds, and can be gone through again: `begin` starts anew."""

    def __init__(self, begin: Callable[[], Iterator[T]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[T]:
        return self._begin()


Questions: TypeAlias = Sequence[Question] | Rereadable[Question]  # what every layout's writer takes


@dataclass(frozen=True, kw_only=True)
class FileFault:
    """Something wrong in a file: what, and the value that the file has, in `repr`. `row`: the
    record, counted from 0, or -1 where it is about none; `line`: the line of the file on which the
    record begins, counted from 1, null where the file has no lines. `broken`: the question cannot
    be used as it stands.
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
        """ "line 4" of a file with lines, "row 3" of another, counted from 1; empty for neither."""
        if self.line is not None:
            return f"line {self.line}"
        return f"row {self.row + 1}" if self.row >= 0 else ""

    def plain(self) -> dict[str, Any]:
        """The finding as it is written into `audit.json` and `results.json`."""
        return {
            "file": self.file, "place": self.place, "question_id": self.question_id,
            "what": self.what, "value": self.value, "broken": self.broken,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class QuestionFile:
    """Questions in file order, the videos that they are about (as far as the file knows), and
    everything that was wrong. Iterating gives the questions.
    """

    layout: str
    questions: tuple[Question, ...]
    videos: tuple[Video, ...] = ()
    findings: tuple[FileFault, ...] = ()

    @property
    def unusable_reasons(self) -> dict[str, str]:
        """By id the questions that cannot be used as they stand, and why not."""
        return {f.question_id: f.what for f in reversed(self.findings) if f.broken}

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, index: int) -> Question:
        return self.questions[index]


@dataclass(frozen=True, kw_only=True)
class QuestionSource:
    """The same where it may be more than memory holds: questions and videos are gone through as
    often as is wanted, and read anew each time.
    """

    layout: str
    questions: Questions
    videos: Sequence[Video] | Rereadable[Video]
    findings: tuple[FileFault, ...] = ()


class Notes:
    """Findings of one file while it is read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: list[FileFault] = []
        self._ids: dict[int, str] = {}  # of rows whose id was not their own

    def add(
        self, row: int, question_id: str, what: str, value: object = "", *, broken: bool = False
    ) -> None:
        shown = "" if value == "" else repr(value)
        self._found.append(
            FileFault(
                file=self._file.name, row=row, question_id=question_id, what=what, value=shown,
                broken=broken,
            )
        )  # fmt: skip

    @property
    def findings(self) -> tuple[FileFault, ...]:
        """All of them, with the lines of the file and the ids that the questions end up with."""
        lines = self._lines if self._found else None
        return tuple(
            replace(
                f,
                line=None if lines is None or f.row < 0 else lines[f.row],
                question_id=self._ids.get(f.row, f.question_id),
            )
            for f in self._found
        )

    def place(self, row: int) -> str:
        """Where a record is in the file, in words."""
        return FileFault(
            file="", row=row, question_id="", what="",
            line=None if self._lines is None else self._lines[row],
        ).place  # fmt: skip

    @cached_property
    def _lines(self) -> list[int] | None:
        return _lines(self._file)

    def text(self, row: int, question_id: str, source: Row, key: str) -> str:
        """A text column; missing and empty ones are noted, without a question it is broken."""
        value = source.get(key)
        if value is None or not str(value).strip():
            self.add(row, question_id, f"no {key}", broken=key == "question")
            return ""
        return str(value)

    def options(self, row: int, question_id: str, options: Sequence[str]) -> None:
        """What is wrong with the options of a question, whatever its answer is."""
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
        """The answer's index from its number and its text; noted when they are missing, disagree,
        or lie outside the options. Where both are given and disagree, there is no index. `value`:
        what the file has where `given` was made from it.
        """
        value = given if value is None else value
        at = options.index(answer) if answer is not None and answer in options else None
        if answer is not None and options and at is None:
            close = [i for i, o in enumerate(options) if _same(o, answer)]
            at = close[0] if len(close) == 1 else None
            what = "answer differs from its option in spelling" if close else "answer is no option"
            self.add(row, question_id, what, answer, broken=at is None and given is None)
        self.options(row, question_id, options)
        if given is None:
            return at
        try:
            number = int(cast(Any, given))
        except (TypeError, ValueError):
            self.add(row, question_id, "answer number is no number", value, broken=at is None)
            return at
        if not 0 <= number < len(options):
            what = "answer number is outside the options"
            self.add(row, question_id, what, value, broken=at is None)
            return at
        if at is not None and options[number] != options[at]:
            what = "answer number and answer text disagree"
            self.add(row, question_id, what, value, broken=True)
            return None
        return number

    def unique(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """The questions with ids of their own; a repeated id is noted and numbered."""
        seen: dict[str, int] = {}
        result: list[Question] = []
        for row, question in enumerate(questions):
            name = question.question_id
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                self.add(row, name, "this id occurs again", name)
                self._ids[row] = f"{name}#{seen[name]}"
                question = replace(question, question_id=self._ids[row])
            result.append(question)
        return tuple(result)


def _lines(path: Path) -> list[int] | None:
    """For each record the line of the file on which it begins, counted from 1; null where the file
    has no lines of records, or more files are meant.
    """
    if path.suffix not in LINE_SUFFIXES or not path.is_file():
        return None
    return [line for line, _ in _numbered(path)]


def _same(left: str, right: str) -> bool:
    return " ".join(left.split()).strip(" .").lower() == " ".join(right.split()).strip(" .").lower()


def rows_of(path: Path) -> list[Row]:
    """The records of a .json (list), .jsonl, .csv, .tsv or .parquet file. Raises UserError."""
    return list(each_row(path))


def each_row(path: Path, columns: Iterable[str] | None = None) -> Iterator[Row]:
    """Those records one by one, none but the last few in memory (of a .json all); of a .parquet
    only the `columns`. Raises UserError.
    """
    try:
        for number, row in enumerate(_loaded(path, columns)):
            if not isinstance(row, dict):
                raise UserError(f"{str(path)!r}, row {number}: not an object with a question")
            yield cast(Row, row)
    except (OSError, ValueError, OverflowError, pa.ArrowException, csv.Error) as error:
        raise UserError(
            f"cannot read questions from {str(path)!r}: {one_line_error(error)}"
        ) from error


def _loaded(path: Path, columns: Iterable[str] | None) -> Iterator[Any]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as table:
            there = table.schema_arrow.names
            wanted = there if columns is None else [c for c in columns if c in there]
            for batch in table.iter_batches(BATCH_ROWS, columns=wanted):
                yield from batch.to_pylist()
        return
    if path.suffix in LINE_SUFFIXES:
        yield from (record for _, record in _numbered(path))
        return
    with path.open(encoding="utf-8-sig") as file:
        value: Any = parse_json(file.read())
    if not isinstance(value, list):
        raise UserError(
            f"{str(path)!r} holds a {type(value).__name__}: expected a list of questions"
        )
    yield from cast(list[Any], value)


def _numbered(path: Path) -> Iterator[tuple[int, Any]]:
    """The records of a file with lines, each with the line on which it begins, counted from 1."""
    line_end = "\n" if path.suffix == ".jsonl" else ""  # JSON lines may hold a carriage return
    with path.open(newline=line_end, encoding="utf-8-sig") as file:
        if path.suffix == ".jsonl":
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, parse_json(line, f"line {number}")
            return
        cells = csv.reader(file, "excel-tab" if path.suffix == ".tsv" else "excel")
        names: list[str] | None = None
        begins = 1
        for record in cells:
            if record and names is None:
                names = record
            elif record and names is not None:
                yield begins, _named(names, record)
            begins = cells.line_num + 1


def _named(names: Sequence[str], cells: Sequence[str]) -> Row:
    """The cells of a record by the names of their columns; those beyond the last name are a list
    under `BEYOND`.
    """
    row: dict[Any, Any] = {**dict.fromkeys(names), **dict(zip(names, cells, strict=False))}
    return {**row, BEYOND: list(cells[len(names) :])} if len(cells) > len(names) else row


def kept_questions(questions: Questions) -> Rereadable[Question]:
    """Those that no filter dropped: exports hold only these."""
    return Rereadable(lambda: (q for q in questions if q.drop is None))


def first(questions: Questions) -> Rereadable[Question]:
    """The kept ones that were not made from another: released layouts know no twins."""
    return Rereadable(lambda: (q for q in kept_questions(questions) if q.sibling_of is None))


def answer_of(question: Question) -> str:
    """The answer as text."""
    if question.answer or question.answer_index is None:
        return question.answer
    return question.options[question.answer_index]


def by_id(videos: Iterable[Video]) -> dict[str, Video]:
    """Their facts."""
    return {v.video_id: facts(v) for v in videos}


def facts(video: Video) -> Video:
    """The video without what stages found in it (transcript, captions, shots), which no memory
    holds for thousands of videos.
    """
    return Video(**{name: getattr(video, name) for name in FACTS})


def dump_json(value: object, path: Path) -> None:
    """Write JSON as the releases do: UTF-8, indented; the folder is made."""
    os.makedirs(path.parent, exist_ok=True)
    path.write_text(json.dumps(value, indent=4, ensure_ascii=False) + "\n", encoding="utf-8")
