"""A plain table: one question per row, with a column per option or one column with a list.

    read(Path("val.csv"))                                       (NExT-QA's columns are known)
    read(Path("q.tsv"), TableColumns(video="clip", question="ask", options=("w", "x"),
                                     answer="key"))

The kind of answers (text, letter, number) is inferred from all rows together; an ambiguous table is
refused. A row with an invalid answer or a missing text is a finding, and other rows are read.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mustsee.errors import UserError
from mustsee.layouts.reading import (
    BEYOND,
    Notes,
    QuestionFile,
    Row,
    dump_json,
    rows_of,
)
from mustsee.records import Question, Span, Video
from mustsee.tables import parse_json
from mustsee.text import LETTERS

Answers = Literal["text", "letter", "number from 0", "number from 1"]
NAMES: Mapping[str, tuple[str, ...]] = {  # the columns' names in released tables
    "video": ("video", "video_id", "video_name", "vid_name", "vid"),
    "question": ("question", "q"),
    "answer": (
        "answer", "answer_idx", "correct", "label", "correct_answer", "correct_option", "key",
    ),
    "question_type": ("question_type", "type", "task_type", "category"),
    "question_id": ("question_id", "qid", "id"),
}  # fmt: skip
OPTION = re.compile(r"(?:a|option_?|choice_?|answer_)([0-9a-e])|([A-H])", re.IGNORECASE)
LISTED = ("options", "choices", "candidates")
KINDS = ("parquet", "csv", "tsv", "jsonl")
MIN_CLEAR_RATIO = 3  # of rows that contradict the second-best kind of answers to those of the best


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The names of a table's columns.

    `options` has one column per option, in order, or the one column with a list. `answers` is the
    kind of `answer` (None: inferred from the rows). `start` and `end` are those of the evidence, in
    seconds.
    """

    video: str
    question: str
    options: Sequence[str]
    answer: str | None = None
    question_type: str | None = None
    question_id: str | None = None
    start: str | None = None
    end: str | None = None
    answers: Answers | None = None

    @property
    def column_names(self) -> list[str]:
        single = (self.video, self.question, self.answer, self.question_type, self.question_id)
        return [c for c in (*single, self.start, self.end, *self.options) if c is not None]


def columns(names: Collection[str]) -> TableColumns | None:
    """Return the columns with known names; None if there is no video, question or option."""
    column_of, options = _known_columns(names)
    video, question = column_of["video"], column_of["question"]
    if video is None or question is None or not options:
        return None
    return TableColumns(
        video=video, question=question, options=options, answer=column_of["answer"],
        question_type=column_of["question_type"], question_id=column_of["question_id"],
    )  # fmt: skip


def _known_columns(names: Collection[str]) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return content -> the column with a known name, and the columns of the options."""
    column_of = {
        key: next((n for n in known_names if n in names), None)
        for key, known_names in NAMES.items()
    }
    keyed = [(m[1] or m[2], n) for n in names if (m := OPTION.fullmatch(n))]
    options = tuple(n for _, n in sorted(keyed, key=lambda pair: pair[0].lower()))
    return column_of, options if len(options) > 1 else tuple(n for n in LISTED if n in names)[:1]


def to_name(names: Collection[str]) -> str:
    """Return the override that names the columns, with capitals for unknown ones."""
    column_of, options = _known_columns(names)
    option_list = f"[{', '.join(options) or 'A, B, C'}]"
    single = {"video": "V", "question": "Q", "answer": "K"}
    video, question, answer = (column_of[key] or blank for key, blank in single.items())
    return (
        f"table={{video: {video}, question: {question}, options: {option_list}, answer: {answer}}}"
    )


def missing_columns(names: Collection[str]) -> str:
    """Return a message with the contents that no known column has, and how to name them."""
    column_of, options = _known_columns(names)
    contents = {
        "the video": column_of["video"],
        "the question": column_of["question"],
        "the options": options,
        "the right answer": column_of["answer"],
    }
    missing = [content for content, column in contents.items() if not column]
    return (
        f"no column that is known to hold {', '.join(missing)} among {', '.join(names)}; name them "
        f"for an audit: '{to_name(names)}'"
    )


def named_in(path: str | Path) -> str:
    """Return `to_name` for the table at a path."""
    _, rows, _ = _table(Path(path), None)
    return to_name([name for name in rows[0] if name != BEYOND])


def read(path: Path, given: TableColumns | None = None) -> QuestionFile:
    """Read the questions of a .csv, .tsv, .json, .jsonl or .parquet table.

    Raises UserError if a column is missing or the kind of answers is ambiguous.
    """
    file, rows, named = _table(path, given)
    notes, ids = Notes(file), _ids(rows, named)
    options_of_rows = [_options(row, named.options) for row in rows]
    if all(options is None for options in options_of_rows):
        (column,) = named.options
        raise UserError(
            f"{str(file)!r}: {column}={rows[0].get(column)!r}: expected a list of options"
        )
    for number, options in enumerate(options_of_rows):
        if options is None:
            value = rows[number].get(named.options[0])
            notes.add(number, ids[number], "options are not a list", value, broken=True)
    _note_repeats(rows, ids, notes)
    options_of_rows = [options or () for options in options_of_rows]
    kind = named.answers or _answer_kind(rows, options_of_rows, named, file)
    questions = [
        _question(number, row, named, notes, options, kind, ids[number])
        for number, (row, options) in enumerate(zip(rows, options_of_rows, strict=True))
    ]
    videos = dict.fromkeys(q.video_id for q in questions)
    return QuestionFile(
        layout="table",
        questions=notes.unique(questions),
        videos=tuple(Video(video_id=name, uri="") for name in videos),
        findings=notes.findings,
    )


def _note_repeats(rows: Sequence[Row], ids: Sequence[str], notes: Notes) -> None:
    """Note rows that are identical to an earlier one, and rows with surplus cells.

    An audit lists the former among its duplicates, too, and keeps the first.
    """
    first_rows: dict[str, int] = {}
    for number, row in enumerate(rows):
        earlier = first_rows.setdefault(json.dumps(row, default=repr), number)
        if earlier != number:
            notes.add(number, ids[number], f"identical to {notes.place(earlier)}")
        if BEYOND in row:
            notes.add(number, ids[number], "more cells than columns", row[BEYOND], broken=True)


def _table(path: Path, given: TableColumns | None) -> tuple[Path, list[Row], TableColumns]:
    file = path
    if path.is_dir():
        files = sorted(p for kind in KINDS for p in path.rglob(f"*.{kind}"))
        if len(files) != 1:
            raise UserError(
                f"{str(path)!r} holds {[p.name for p in files[:6]]}: a plain table is one file; "
                "give its path"
            )
        file = files[0]
    rows = rows_of(file)
    if not rows:
        raise UserError(f"{str(file)!r} has no rows")
    names = [n for n in dict.fromkeys(name for row in rows[:20] for name in row) if n != BEYOND]
    named = given or columns(names)
    if named is None:
        raise UserError(f"{str(file)!r}: {missing_columns(names)}")
    if missing := [c for c in named.column_names if c not in names]:
        raise UserError(f"{str(file)!r} has no column {missing}; it has {sorted(names)}")
    return file, rows, named


def _options(row: Row, names: Sequence[str]) -> tuple[str, ...] | None:
    """Return a row's options without empty cells at the end; None if the one column has no list."""
    if len(names) > 1:
        cells = ["" if row.get(n) is None else str(row[n]).strip() for n in names]
        while cells and not cells[-1]:
            cells.pop()
        return tuple(cells)
    value: Any = row.get(names[0])
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            try:
                value = ast.literal_eval(value)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                value = None
    if isinstance(value, Mapping):
        value = list(value.values())
    return tuple(str(v) for v in value) if isinstance(value, list | tuple) else None


def _answer_kind(
    rows: Sequence[Row], options_of_rows: Sequence[Sequence[str]], named: TableColumns, file: Path
) -> Answers:
    """Return the one kind that fits all answers, else the kind that clearly fits most of them.

    Raises UserError if there is no such kind.
    """
    if named.answer is None:
        return "text"
    pairs = [(text, options) for row, options in zip(rows, options_of_rows, strict=True)
             if (text := _answer(row, named))]  # fmt: skip
    if not pairs:
        return "text"
    unfit: dict[Answers, list[str]] = {
        kind: [t for t, o in pairs if not fits(t, o)] for kind, fits in FITS.items()
    }
    best_kind, second_kind = sorted(unfit, key=lambda kind: len(unfit[kind]))[:2]
    unfit_best, unfit_second = len(unfit[best_kind]), len(unfit[second_kind])
    if 2 * unfit_best < len(pairs) and unfit_second >= max(1, MIN_CLEAR_RATIO * unfit_best):
        return best_kind
    fitting: list[Answers] = [kind for kind, texts in unfit.items() if not texts]
    examples = ", ".join(map(repr, sorted({t for t, _ in pairs})[:4]))
    readings = " or ".join(map(repr, fitting)) or (
        "none of the kinds of answers for all rows; the nearest is "
        f"{best_kind!r}, except for {unfit_best} of {len(pairs)}: "
        f"{', '.join(map(repr, dict.fromkeys(unfit[best_kind][:6])))}"
    )
    raise UserError(
        f"{str(file)!r}: its {named.answer!r} ({examples}, ...) can be {readings}: name the kind "
        f"of answers: 'table={{video: {named.video}, question: {named.question}, options: "
        f"[{', '.join(named.options)}], answer: {named.answer}, answers: letter}}' (table.answers: "
        f"{', '.join(FITS)})"
    )


def _number(text: str) -> int | None:
    return int(float(text)) if re.fullmatch(r"\d+(?:\.0)?", text) else None


def _is_number_of(text: str, options: Sequence[str], first: int) -> bool:
    number = _number(text)
    return number is not None and first <= number < len(options) + first


FITS: Mapping[Answers, Callable[[str, Sequence[str]], bool]] = {
    "text": lambda text, options: text in options,
    "letter": lambda text, options: len(text) == 1 and text.upper() in LETTERS[: len(options)],
    "number from 0": lambda text, options: _is_number_of(text, options, 0),
    "number from 1": lambda text, options: _is_number_of(text, options, 1),
}


def _answer(row: Row, named: TableColumns) -> str:
    value = row.get(named.answer) if named.answer else None
    return "" if value is None else str(value).strip()


def _ids(rows: Sequence[Row], named: TableColumns) -> list[str]:
    """Return the questions' ids, prefixed with the video's id if they are unique per video only
    (NExT-QA).
    """
    videos = [_video(row, named) for row in rows]
    if named.question_id is None:
        return [f"{video}/{n}" for n, video in enumerate(videos)]
    ids = [str(row.get(named.question_id)) for row in rows]
    are_unique = len(set(ids)) == len(ids)
    return ids if are_unique else [f"{v}/{i}" for v, i in zip(videos, ids, strict=True)]


def _video(row: Row, named: TableColumns) -> str:
    return re.sub(r"\.\w{2,4}$", "", str(row.get(named.video) or "").rsplit("/", 1)[-1])


def _question(
    number: int,
    row: Row,
    named: TableColumns,
    notes: Notes,
    options: tuple[str, ...],
    kind: Answers,
    name: str,
) -> Question:
    text = _answer(row, named)
    question = str(row.get(named.question) or "")
    if not question.strip():
        notes.add(number, name, "no question", broken=True)
    if not _video(row, named):
        notes.add(number, name, "no video", broken=True)
    index = None
    if text:
        index = notes.index(number, name, options, **_index_arguments(text, kind))
    else:
        notes.options(number, name, options)
        notes.add(number, name, "no answer")
    return Question(
        question_id=name,
        video_id=_video(row, named),
        recipe="table",
        question=question,
        question_type=str(row.get(named.question_type) or "") if named.question_type else "",
        options=options,
        answer_index=index,
        answer=options[index] if index is not None else "",
        evidence=_evidence(number, row, named, notes, name),
    )


def _index_arguments(text: str, kind: Answers) -> dict[str, Any]:
    """Return the keyword arguments of `Notes.index` for an answer."""
    if kind == "text":
        return {"answer": text}
    if kind == "letter":
        return {"given": LETTERS.find(text.upper()) if len(text) == 1 else -1, "value": text}
    place = _number(text)
    return {"given": -1 if place is None else place - int(kind[-1]), "value": text}


def _evidence(
    number: int, row: Row, named: TableColumns, notes: Notes, name: str
) -> tuple[Span, ...]:
    """Return the span of evidence; empty if a time is missing or invalid."""
    times = [row.get(c) if c else None for c in (named.start, named.end)]
    if None in times or "" in times:
        return ()
    try:
        return (Span(*(float(str(t)) for t in times)),)
    except ValueError:
        notes.add(number, name, "start and end are not seconds", times)
        return ()


def write(
    questions: Sequence[Question],
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    source: Path,
    given: TableColumns | None = None,
) -> None:
    """Copy the table at `source` into the folder `path`, without the rows of dropped questions."""
    file, rows, _ = _table(source, given)
    dropped = {q.question_id for q in questions if q.drop is not None}
    read_questions = read(source, given).questions
    kept_rows = [
        r for r, q in zip(rows, read_questions, strict=True) if q.question_id not in dropped
    ]
    target = Path(path) / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pq.read_schema(file)
        pq.write_table(pa.Table.from_pylist([dict(r) for r in kept_rows], schema=schema), target)
    elif file.suffix == ".jsonl":
        lines = [json.dumps(r, ensure_ascii=False) + "\n" for r in kept_rows]
        target.write_text("".join(lines), encoding="utf-8")
    elif file.suffix == ".json":
        dump_json(kept_rows, target)
    else:
        with target.open("w", newline="", encoding="utf-8") as out:
            dialect = "excel-tab" if file.suffix == ".tsv" else "excel"
            names = [n for n in rows[0] if n != BEYOND]
            writer = csv.writer(out, dialect, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([*(row[n] for n in names), *row.get(BEYOND, ())] for row in kept_rows)
