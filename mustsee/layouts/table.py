"""A plain table: one question a row, its options in columns of their own or in one list.

    read(Path("val.csv"))                                       (NExT-QA's columns are known)
    read(Path("q.tsv"), Columns(video="clip", question="ask", options=("w", "x"), answer="key"))

What an answer is (text, letter, number) is told from all rows together; where they leave it open,
the table is refused, not guessed at.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mustsee.errors import UserError
from mustsee.layouts.reading import Notes, Reading, Row, dump_json, rows_of
from mustsee.records import Question, Span, Video
from mustsee.tables import parse_json
from mustsee.text import LETTERS

Answers = Literal["text", "letter", "number from 0", "number from 1"]
NAMES: Mapping[str, tuple[str, ...]] = {  # as released tables name them
    "video": ("video", "video_id", "video_name", "vid_name", "vid"),
    "question": ("question", "q"),
    "answer": ("answer", "answer_idx", "correct", "label"),
    "question_type": ("question_type", "type", "task_type", "category"),
    "question_id": ("question_id", "qid", "id"),
}
OPTION = re.compile(r"(?:a|option_?|choice_?|answer_)([0-9a-e])|([A-H])", re.IGNORECASE)
LISTED = ("options", "choices", "candidates")
KINDS = ("parquet", "csv", "tsv", "jsonl")


@dataclass(frozen=True, kw_only=True)
class Columns:
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
    def named(self) -> list[str]:
        single = (self.video, self.question, self.answer, self.question_type, self.question_id)
        return [c for c in (*single, self.start, self.end, *self.options) if c is not None]


def columns(names: Collection[str]) -> Columns | None:
    """The columns by their released names; None where there is no video, question or option."""
    found = {key: next((n for n in some if n in names), None) for key, some in NAMES.items()}
    keyed = [(m[1] or m[2], n) for n in names if (m := OPTION.fullmatch(n))]
    options = tuple(n for _, n in sorted(keyed, key=lambda pair: pair[0].lower()))
    options = options if len(options) > 1 else tuple(n for n in LISTED if n in names)[:1]
    video, question = found["video"], found["question"]
    if video is None or question is None or not options:
        return None
    return Columns(
        video=video, question=question, options=options, answer=found["answer"],
        question_type=found["question_type"], question_id=found["question_id"],
    )  # fmt: skip


def read(path: Path, given: Columns | None = None) -> Reading:
    """The questions of a .csv, .tsv, .json, .jsonl or .parquet table. Raises UserError where a
    column is missing, or where it cannot be told what the answers are.
    """
    file, rows, named = _table(path, given)
    listed = [_options(row, named.options, number, file) for number, row in enumerate(rows)]
    kind = named.answers or _kind(rows, listed, named, file)
    notes = Notes(file.name)
    ids = _ids(rows, named)
    questions = [
        _question(number, row, named, notes, options, kind, ids[number])
        for number, (row, options) in enumerate(zip(rows, listed, strict=True))
    ]
    videos = dict.fromkeys(q.video_id for q in questions)
    return Reading(
        layout="table",
        questions=notes.unique(questions),
        videos=tuple(Video(video_id=name, uri="") for name in videos),
        findings=tuple(notes.found),
    )


def _table(path: Path, given: Columns | None) -> tuple[Path, list[Row], Columns]:
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
    names = list(dict.fromkeys(name for row in rows[:20] for name in row))
    named = given or columns(names)
    if named is None:
        raise UserError(
            f"{str(file)!r} has the columns {sorted(names)}: which of them hold the video, the "
            "question and the options is not known; name them"
        )
    if missing := [c for c in named.named if c not in names]:
        raise UserError(f"{str(file)!r} has no column {missing}; it has {sorted(names)}")
    return file, rows, named


def _options(row: Row, names: Sequence[str], number: int, file: Path) -> tuple[str, ...]:
    """The texts of a row's options; empty cells at the end are none."""
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
    if not isinstance(value, list | tuple):
        raise UserError(
            f"{str(file)!r}, row {number}: {names[0]}={row.get(names[0])!r}: expected a list"
        )
    return tuple(str(v) for v in value)


def _kind(
    rows: Sequence[Row], listed: Sequence[Sequence[str]], named: Columns, file: Path
) -> Answers:
    """What all answers can be read as, where that is one thing."""
    if named.answer is None:
        return "text"
    pairs = [(str(r[named.answer]).strip(), o) for r, o in zip(rows, listed, strict=True)
             if r.get(named.answer) not in (None, "")]  # fmt: skip
    fits: list[Answers] = []
    if all(a in o for a, o in pairs):
        fits.append("text")
    if all(a.upper() in LETTERS[: len(o)] and len(a) == 1 for a, o in pairs):
        fits.append("letter")
    if all(re.fullmatch(r"\d+(?:\.0)?", a) for a, _ in pairs):
        numbers = [(int(float(a)), len(o)) for a, o in pairs]
        if all(n < count for n, count in numbers):
            fits.append("number from 0")
        if all(1 <= n <= count for n, count in numbers):
            fits.append("number from 1")
    if len(fits) == 1 or not pairs:
        return fits[0] if fits else "text"
    some = sorted({a for a, _ in pairs})[:4]
    told = " or ".join(map(repr, fits)) or "neither a text, a letter nor a number of the options"
    raise UserError(
        f"{str(file)!r}: its {named.answer!r} ({', '.join(map(repr, some))}, ...) can be {told}: "
        "name the columns, and say what the answers are (table.answers=)"
    )


def _ids(rows: Sequence[Row], named: Columns) -> list[str]:
    """The table's ids; behind the video's where they only count within one, as NExT-QA's do."""
    videos = [_video(row, named) for row in rows]
    if named.question_id is None:
        return [f"{video}/{n}" for n, video in enumerate(videos)]
    ids = [str(row.get(named.question_id)) for row in rows]
    alone = len(set(ids)) == len(ids)
    return ids if alone else [f"{v}/{i}" for v, i in zip(videos, ids, strict=True)]


def _video(row: Row, named: Columns) -> str:
    return re.sub(r"\.\w{2,4}$", "", str(row.get(named.video) or "").rsplit("/", 1)[-1])


def _question(
    number: int, row: Row, named: Columns, notes: Notes, options: tuple[str, ...], kind: Answers,
    name: str,
) -> Question:  # fmt: skip
    given: Any = row.get(named.answer) if named.answer else None
    text = "" if given is None else str(given).strip()
    index = None
    if not text:
        notes.add(number, name, "no answer")
    elif kind == "text":
        index = notes.index(number, name, options, answer=text)
    elif kind == "letter":
        index = notes.index(number, name, options, given=LETTERS.find(text.upper()))
    else:
        index = notes.index(number, name, options, given=int(float(text)) - int(kind[-1]))
    times = [row.get(c) if c else None for c in (named.start, named.end)]
    evidence = (
        () if None in times or "" in times else (Span(*(float(t) for t in times if t is not None)),)
    )
    return Question(
        question_id=name,
        video_id=_video(row, named),
        recipe="table",
        question=notes.text(number, name, row, named.question),
        question_type=str(row.get(named.question_type) or "") if named.question_type else "",
        options=options,
        answer_index=index,
        answer=options[index] if index is not None else "",
        evidence=evidence,
    )


def write(
    questions: Sequence[Question],
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    source: Path,
    given: Columns | None = None,
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
            made = csv.DictWriter(out, list(rows[0]), dialect=dialect, lineterminator="\n")
            made.writeheader()
            made.writerows(chosen)
