"""A plain table: one question a row, its options in columns of their own or in one list.

    read(Path("val.csv"))                                       (NExT-QA's columns are known)
    read(Path("q.tsv"), Columns(video="clip", question="ask", options=("w", "x"), answer="key"))

What an answer is (text, letter, number) is told from all rows together; where they leave it open,
the table is refused, not guessed at. A row with an odd answer, or without one of its texts, is a
finding and refuses no other row.
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
NAMES: Mapping[str, tuple[str, ...]] = {  # as released tables name them
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
# times the rows that speak against one kind of answers must speak against any other
MIN_CLEAR_RATIO = 3


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """Which column holds what. `options`: one column for each option, in order, or the one that
    holds them as a list. `answers`: what `answer` is; null: told from the rows. `start`, `end`: of
    the evidence, in seconds.
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
    """The columns by their released names; None where there is no video, question or option."""
    found, options = _known(names)
    video, question = found["video"], found["question"]
    if video is None or question is None or not options:
        return None
    return TableColumns(
        video=video, question=question, options=options, answer=found["answer"],
        question_type=found["question_type"], question_id=found["question_id"],
    )  # fmt: skip


def _known(names: Collection[str]) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Of `names` the one that is known to hold each thing, and those of the options."""
    found = {key: next((n for n in some if n in names), None) for key, some in NAMES.items()}
    keyed = [(m[1] or m[2], n) for n in names if (m := OPTION.fullmatch(n))]
    options = tuple(n for _, n in sorted(keyed, key=lambda pair: pair[0].lower()))
    return found, options if len(options) > 1 else tuple(n for n in LISTED if n in names)[:1]


def to_name(names: Collection[str]) -> str:
    """What to write so that the columns are known, as far as they are, with capitals for what is
    not.
    """
    found, options = _known(names)
    listed = f"[{', '.join(options) or 'A, B, C'}]"
    single = {"video": "V", "question": "Q", "answer": "K"}
    video, question, answer = (found[key] or blank for key, blank in single.items())
    return f"table={{video: {video}, question: {question}, options: {listed}, answer: {answer}}}"


def missing_columns(names: Collection[str]) -> str:
    """Which things no column of a table is known to hold, and how to name them."""
    found, options = _known(names)
    told = {"the video": found["video"], "the question": found["question"], "the options": options,
            "the right answer": found["answer"]}  # fmt: skip
    lacking = [what for what, column in told.items() if not column]
    return (
        f"no column that is known to hold {', '.join(lacking)} among {', '.join(names)}; name them "
        f"for an audit: '{to_name(names)}'"
    )


def named_in(path: str | Path) -> str:
    """`to_name` for the table at a path."""
    _, rows, _ = _table(Path(path), None)
    return to_name([name for name in rows[0] if name != BEYOND])


def read(path: Path, given: TableColumns | None = None) -> QuestionFile:
    """The questions of a .csv, .tsv, .json, .jsonl or .parquet table. Raises UserError where a
    column is missing, or where it cannot be told what the answers are.
    """
    file, rows, named = _table(path, given)
    notes, ids = Notes(file), _ids(rows, named)
    listed = [_options(row, named.options) for row in rows]
    if all(options is None for options in listed):
        (column,) = named.options
        raise UserError(
            f"{str(file)!r}: {column}={rows[0].get(column)!r}: expected a list of options"
        )
    for number, options in enumerate(listed):
        if options is None:
            value = rows[number].get(named.options[0])
            notes.add(number, ids[number], "options are not a list", value, broken=True)
    _doubled(rows, ids, notes)
    listed = [options or () for options in listed]
    kind = named.answers or _kind(rows, listed, named, file)
    questions = [
        _question(number, row, named, notes, options, kind, ids[number])
        for number, (row, options) in enumerate(zip(rows, listed, strict=True))
    ]
    videos = dict.fromkeys(q.video_id for q in questions)
    return QuestionFile(
        layout="table",
        questions=notes.unique(questions),
        videos=tuple(Video(video_id=name, uri="") for name in videos),
        findings=notes.findings,
    )


def _doubled(rows: Sequence[Row], ids: Sequence[str], notes: Notes) -> None:
    """Note the rows that are all as an earlier one, and those with cells too many. (An audit finds
    the former among its duplicates, too, and leaves the first.)
    """
    first: dict[str, int] = {}
    for number, row in enumerate(rows):
        same = first.setdefault(json.dumps(row, default=repr), number)
        if same != number:
            notes.add(number, ids[number], f"all as in {notes.place(same)}")
        if BEYOND in row:
            notes.add(number, ids[number], "more cells than columns", row[BEYOND], broken=True)


def _table(path: Path, given: TableColumns | None) -> tuple[Path, list[Row], TableColumns]:
    file = path
    if path.is_dir():
        found = sorted(p for kind in KINDS for p in path.rglob(f"*.{kind}"))
        if len(found) != 1:
            raise UserError(
                f"{str(path)!r} holds {[p.name for p in found[:6]]}: a plain table is one file; "
                "give its path"
            )
        file = found[0]
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
    """The texts of a row's options; empty cells at the end are none. Null where the one column of
    them holds no list.
    """
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


def _kind(
    rows: Sequence[Row], listed: Sequence[Sequence[str]], named: TableColumns, file: Path
) -> Answers:
    """What all answers can be read as, where that is one thing; else what more than half of them
    can be read as, where that is plain. Raises UserError where it is not.
    """
    if named.answer is None:
        return "text"
    pairs = [(text, options) for row, options in zip(rows, listed, strict=True)
             if (text := _answer(row, named))]  # fmt: skip
    if not pairs:
        return "text"
    odd: dict[Answers, list[str]] = {
        kind: [t for t, o in pairs if not fits(t, o)] for kind, fits in FITS.items()
    }
    best, second = sorted(odd, key=lambda kind: len(odd[kind]))[:2]
    wrong, others = len(odd[best]), len(odd[second])
    if 2 * wrong < len(pairs) and others >= max(1, MIN_CLEAR_RATIO * wrong):
        return best
    fitting: list[Answers] = [kind for kind, texts in odd.items() if not texts]
    some = ", ".join(map(repr, sorted({t for t, _ in pairs})[:4]))
    told = " or ".join(map(repr, fitting)) or (
        f"neither all texts, nor letters, nor numbers of the options; nearest is {best!r}, but for "
        f"{wrong} of {len(pairs)}: {', '.join(map(repr, dict.fromkeys(odd[best][:6])))}"
    )
    raise UserError(
        f"{str(file)!r}: its {named.answer!r} ({some}, ...) can be {told}: say what the answers "
        f"are: 'table={{video: {named.video}, question: {named.question}, options: "
        f"[{', '.join(named.options)}], answer: {named.answer}, answers: letter}}' (table.answers: "
        f"{', '.join(FITS)})"
    )


def _number(text: str) -> int | None:
    return int(float(text)) if re.fullmatch(r"\d+(?:\.0)?", text) else None


def _counts(text: str, options: Sequence[str], first: int) -> bool:
    number = _number(text)
    return number is not None and first <= number < len(options) + first


FITS: Mapping[Answers, Callable[[str, Sequence[str]], bool]] = {
    "text": lambda text, options: text in options,
    "letter": lambda text, options: len(text) == 1 and text.upper() in LETTERS[: len(options)],
    "number from 0": lambda text, options: _counts(text, options, 0),
    "number from 1": lambda text, options: _counts(text, options, 1),
}


def _answer(row: Row, named: TableColumns) -> str:
    value = row.get(named.answer) if named.answer else None
    return "" if value is None else str(value).strip()


def _ids(rows: Sequence[Row], named: TableColumns) -> list[str]:
    """The table's ids; behind the video's where they only count within one, as NExT-QA's do."""
    videos = [_video(row, named) for row in rows]
    if named.question_id is None:
        return [f"{video}/{n}" for n, video in enumerate(videos)]
    ids = [str(row.get(named.question_id)) for row in rows]
    alone = len(set(ids)) == len(ids)
    return ids if alone else [f"{v}/{i}" for v, i in zip(videos, ids, strict=True)]


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
        index = notes.index(number, name, options, **_key(text, kind))
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


def _key(text: str, kind: Answers) -> dict[str, Any]:
    """An answer as `Notes.index` takes it."""
    if kind == "text":
        return {"answer": text}
    if kind == "letter":
        return {"given": LETTERS.find(text.upper()) if len(text) == 1 else -1, "value": text}
    place = _number(text)
    return {"given": -1 if place is None else place - int(kind[-1]), "value": text}


def _evidence(
    number: int, row: Row, named: TableColumns, notes: Notes, name: str
) -> tuple[Span, ...]:
    """The stretch of evidence; none where a time is missing or is not one."""
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
    """The rows of the table at `source` whose questions are kept, with all its columns, into the
    folder `path` under the same name.
    """
    file, rows, _ = _table(source, given)
    dropped = {q.question_id for q in questions if q.drop is not None}
    asked = read(source, given).questions
    chosen = [r for r, q in zip(rows, asked, strict=True) if q.question_id not in dropped]
    target = Path(path) / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pq.read_schema(file)
        pq.write_table(pa.Table.from_pylist([dict(r) for r in chosen], schema=schema), target)
    elif file.suffix == ".jsonl":
        lines = [json.dumps(r, ensure_ascii=False) + "\n" for r in chosen]
        target.write_text("".join(lines), encoding="utf-8")
    elif file.suffix == ".json":
        dump_json(chosen, target)
    else:
        with target.open("w", newline="", encoding="utf-8") as out:
            dialect = "excel-tab" if file.suffix == ".tsv" else "excel"
            names = [n for n in rows[0] if n != BEYOND]
            made = csv.writer(out, dialect, lineterminator="\n")
            made.writerow(names)
            made.writerows([*(row[n] for n in names), *row.get(BEYOND, ())] for row in chosen)
