"""What every layout's reader gives back, and the pieces that they share."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, cast

from mustsee.errors import UserError
from mustsee.records import Question, Video

T = TypeVar("T")
Row = Mapping[str, Any]
BATCH = 64  # rows of a parquet table in memory at once
FACTS = (  # of a video, that a layout tells
    "video_id", "uri", "title", "license", "source_url", "movie_name", "year", "genre", "source",
    "start", "end", "digest", "duration", "has_audio", "language", "transcribed_by",
    "perceived_age", "perceived_gender", "perceived_by",
)  # fmt: skip


class Again(Generic[T]):
    """What may be more than memory holds, and can be gone through again: `begin` starts anew."""

    def __init__(self, begin: Callable[[], Iterator[T]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[T]:
        return self._begin()


Questions: TypeAlias = Sequence[Question] | Again[Question]  # what every layout's writer takes


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something wrong in a file: where (`row` counts from 0), what, and the value in `repr`."""

    file: str
    row: int
    question_id: str
    what: str
    value: str = ""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Questions in file order, the videos that they are about (as far as the file knows), and
    everything that was wrong. Iterating gives the questions.
    """

    layout: str
    questions: tuple[Question, ...]
    videos: tuple[Video, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, index: int) -> Question:
        return self.questions[index]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The same where it may be more than memory holds: questions and videos are gone through as
    often as is wanted, and read anew each time.
    """

    layout: str
    questions: Questions
    videos: Sequence[Video] | Again[Video]
    findings: tuple[Finding, ...] = ()


class Notes:
    """Findings of one file while it is read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Finding] = []

    def add(self, row: int, question_id: str, what: str, value: object = "") -> None:
        shown = "" if value == "" else repr(value)
        self.found.append(
            Finding(file=self.file, row=row, question_id=question_id, what=what, value=shown)
        )

    def text(self, row: int, question_id: str, source: Row, key: str) -> str:
        """A text column; missing and empty ones are noted."""
        value = source.get(key)
        if value is None or not str(value).strip():
            self.add(row, question_id, f"no {key}")
            return ""
        return str(value)

    def index(
        self,
        row: int,
        question_id: str,
        options: Sequence[str],
        *,
        answer: str | None = None,
        given: object = None,
    ) -> int | None:
        """The answer's index from its number and its text; noted when they are missing, disagree,
        or lie outside the options. Where both are given and disagree, there is no index.
        """
        at = options.index(answer) if answer is not None and answer in options else None
        if answer is not None and options and at is None:
            close = [i for i, o in enumerate(options) if _same(o, answer)]
            at = close[0] if len(close) == 1 else None
            what = "answer differs from its option in spelling" if close else "answer is no option"
            self.add(row, question_id, what, answer)
        if options and len(set(options)) < len(options):
            self.add(row, question_id, "two options are the same", list(options))
        if given is None:
            return at
        try:
            number = int(cast(Any, given))
        except (TypeError, ValueError):
            self.add(row, question_id, "answer number is no number", given)
            return at
        if not 0 <= number < len(options):
            self.add(row, question_id, "answer number is outside the options", given)
            return at
        if at is not None and options[number] != options[at]:
            self.add(row, question_id, "answer number and answer text disagree", given)
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
                self.add(row, name, "this id occurs again")
                question = replace(question, question_id=f"{name}#{seen[name]}")
            result.append(question)
        return tuple(result)


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
                raise UserError(
                    f"{str(path)!r}, row {number}: {row!r} is no object with a question"
                )
            yield cast(Row, row)
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"cannot read questions from {str(path)!r}: {error}") from error


def _loaded(path: Path, columns: Iterable[str] | None) -> Iterator[Any]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as table:
            there = table.schema_arrow.names
            wanted = there if columns is None else [c for c in columns if c in there]
            for batch in table.iter_batches(BATCH, columns=wanted):
                yield from batch.to_pylist()
        return
    line_end = "\n" if path.suffix == ".jsonl" else ""  # JSON lines may hold a carriage return
    with path.open(newline=line_end, encoding="utf-8-sig") as file:
        if path.suffix in (".csv", ".tsv"):
            yield from csv.DictReader(
                file, dialect="excel-tab" if path.suffix == ".tsv" else "excel"
            )
        elif path.suffix == ".jsonl":
            yield from (json.loads(line) for line in file if line.strip())
        else:
            value: Any = json.load(file)
            if not isinstance(value, list):
                raise UserError(
                    f"{str(path)!r} holds a {type(value).__name__}: expected a list of questions"
                )
            yield from cast(list[Any], value)


def kept(questions: Questions) -> Again[Question]:
    """Those that no filter dropped: exports hold only these."""
    return Again(lambda: (q for q in questions if q.drop is None))


def first(questions: Questions) -> Again[Question]:
    """The kept ones that were not made from another: released layouts know no twins."""
    return Again(lambda: (q for q in kept(questions) if q.sibling_of is None))


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
    holds for thousands of films.
    """
    return Video(**{name: getattr(video, name) for name in FACTS})


def dump_json(value: object, path: Path) -> None:
    """Write JSON as the releases do: UTF-8, indented; the folder is made."""
    os.makedirs(path.parent, exist_ok=True)
    path.write_text(json.dumps(value, indent=4, ensure_ascii=False) + "\n", encoding="utf-8")
