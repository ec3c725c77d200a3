"""Our own layout: `questions.parquet`, one row per question, with verdicts and provenance.

Folders with the same columns are read too: a dataset (`layout=hf`), and the tasks for other
frameworks, whose questions are in a .jsonl, or in a .tsv with lists as JSON.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.parquet import Parquet, check_digests, parts
from mustsee.files.tables import parse_json, resolve_uri
from mustsee.layouts.reading import (
    FileFault,
    Notes,
    QuestionFile,
    Questions,
    QuestionSource,
    Rereadable,
    Row,
    each_row,
)
from mustsee.layouts.ticks import apply_tick, read_ticks
from mustsee.records import Question, Video

VIDEOS = "videos.parquet"
TABLES = ("parquet", "jsonl", "tsv")
VIDEO_COLUMNS = ("video", "start", "end", "source")  # columns of its video in a question's row
CHECKED_COLUMNS = ("options", "answer_index", "answer", "drop", *VIDEO_COLUMNS)
REQUIRED_COLUMNS = {
    f.name for f in fields(Question) if f.default is MISSING and f.default_factory is MISSING
}


def read(path: Path) -> QuestionFile:
    """Read `questions.parquet` (or a .jsonl with its columns), or the output folder with it.

    Videos come from `videos.parquet` beside it, and ticks from `ticks.jsonl`. Dropped questions are
    read too.
    """
    source = open_streamed(path)
    return QuestionFile(
        layout=source.layout,
        questions=tuple(source.questions),
        videos=tuple(source.videos),
        findings=source.findings,
    )


def open_streamed(path: Path) -> QuestionSource:
    """Scan the questions for faults, and return them without holding them in memory. What a person
    has ticked counts (`mustsee.layouts.ticks`).
    """
    file = table_of(path)
    is_dataset = not file.exists()  # a folder of `layout=hf`, with video paths relative to it
    if not is_dataset:
        check_digests(file.parent, file.name, VIDEOS)
    files = _find_tables(path) if is_dataset else parts(file)
    scan = _scan_tables(path, files)
    ticks = {} if is_dataset else read_ticks(file.parent)
    videos_file = file.parent / VIDEOS
    stored_videos = videos_file if videos_file.exists() else None
    derived_videos = _derive_videos(scan.firsts) if is_dataset and stored_videos is None else []

    def videos() -> Iterator[Video]:
        rows = derived_videos if stored_videos is None else each_row(stored_videos)
        missing = dict(scan.firsts)
        for row in rows:
            missing.pop(row["video_id"], None)
            stored = resolve_uri(dict(row), str(videos_file)) if is_dataset else row
            yield schemas.load(Video, stored)
        yield from (Video(video_id=name, uri="") for name in missing)

    return QuestionSource(
        layout="ours",
        questions=Rereadable(
            lambda: (apply_tick(q, ticks) for q in _read_questions(files, scan.repeated))
        ),
        videos=Rereadable(videos),
        findings=scan.findings,
    )


@dataclass(frozen=True, kw_only=True)
class _Scan:
    """`firsts`: video id -> the video's columns in its first row. `repeated`: repeated ids."""

    firsts: Mapping[str, Row]
    repeated: frozenset[str]
    findings: tuple[FileFault, ...]


def _scan_tables(path: Path, files: Sequence[Path]) -> _Scan:
    """Collect the faults of answers and ids. Raises UserError if a column is missing."""
    firsts, again = dict[str, Row](), list[tuple[Path, int, str]]()
    every, count = {file: Notes(file) for file in files}, Counter[str]()
    columns = (*sorted(REQUIRED_COLUMNS), *CHECKED_COLUMNS)
    numbered = ((f, n, r) for f in files for n, r in enumerate(_read_rows(f, columns)))
    for file, number, row in numbered:
        if missing := REQUIRED_COLUMNS - set(row):
            there = sorted(map(str, next(_read_rows(file))))
            raise UserError(
                f"{str(path)!r}, row {number}: no {', '.join(sorted(missing))}; the columns found "
                f"are {there}"
            )
        count[row["question_id"]] += 1
        if count[row["question_id"]] > 1:
            again.append((file, number, row["question_id"]))
        _note_faults(row, number, _unique_id(row["question_id"], count), every[file])
        video_facts = {k: row[k] for k in ("video_id", *VIDEO_COLUMNS) if k in row}
        firsts.setdefault(row["video_id"], video_facts)
    for file, number, name in again:
        every[file].add(number, name, "this id occurs again", name)
    repeated = frozenset(name for _, _, name in again)
    findings = tuple(f for notes in every.values() for f in notes.findings)
    return _Scan(firsts=firsts, repeated=repeated, findings=findings)


def _note_faults(row: Row, number: int, name: str, notes: Notes) -> None:
    """Note the faults of a question that was not dropped."""
    if row.get("drop") is not None:
        return
    options, index = row.get("options") or (), row.get("answer_index")
    notes.text(number, name, row, "question")
    if not row["video_id"]:
        notes.add(number, name, "no video_id", broken=True)
    notes.options(number, name, options)
    if options and index is None:
        notes.add(number, name, "no answer index")
    elif index is not None and not 0 <= index < len(options):
        notes.add(number, name, "answer is outside the options", index, broken=True)
    elif options and row.get("answer") and options[index] != row["answer"]:
        notes.add(number, name, "answer number and answer text disagree", row["answer"])


def _unique_id(name: str, count: Mapping[str, int]) -> str:
    """Return a unique id for the latest question of this name."""
    return name if count[name] == 1 else f"{name}#{count[name]}"


def _read_questions(files: Sequence[Path], repeated: Collection[str]) -> Iterator[Question]:
    """Yield the questions with unique ids; an index outside the options becomes null."""
    counts = Counter[str]()
    for row in (r for f in files for r in _read_rows(f)):
        question = schemas.load(Question, row)
        name, options, index = question.question_id, question.options, question.answer_index
        if index is not None and not 0 <= index < len(options):
            question = replace(question, answer_index=None)
        if name in repeated:
            counts[name] += 1
            question = replace(question, question_id=_unique_id(name, counts))
        yield question


def table_of(path: Path) -> Path:
    """Return the path of a run's questions: `path` itself, or the table in the folder `path`."""
    named = path.is_file() or path.suffix == ".parquet"
    return path if named else path / "questions.parquet"


def _find_tables(folder: Path) -> list[Path]:
    """Return the question files of a dataset folder, all of the first kind that exists."""
    kinds = ([p for p in sorted(folder.rglob(f"*.{k}")) if p.name != VIDEOS] for k in TABLES)
    return next(filter(None, kinds), [])


def _read_rows(file: Path, columns: Iterable[str] | None = None) -> Iterator[Row]:
    rows = each_row(file, columns)
    if file.suffix == ".parquet":
        return rows
    return _check_rows(file, map(_parse_cells, rows) if file.suffix == ".tsv" else rows)


def _check_rows(file: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of a text file. Raises UserError for values of a wrong type."""
    for number, row in enumerate(rows):
        empty = [name for name in ("question_id", "video_id") if not row.get(name)]
        fault = schemas.fault(Question, row) or (f"no {empty[0]}" if empty else "")
        if not fault:
            times = [x for s in row.get("evidence") or () for x in (s["start"], s["end"])]
            invalid_times = [x for x in times if not 0 <= x < math.inf]
            fault = (
                f"evidence at {invalid_times[0]!r}: expected seconds, 0 or more"
                if invalid_times
                else ""
            )
        if fault:
            raise UserError(f"{str(file)!r}, row {number}: {fault}")
        yield row


def _parse_cells(row: Row) -> dict[str, Any]:
    """Return a row of a .tsv without empty cells, and with JSON parsed. Raises UserError."""
    texts = (str, str | None)
    str_fields = {name for name, hint in schemas.hints(Question).items() if hint in texts}
    text_columns = {"video", "source", *str_fields}
    try:
        return {k: v if k in text_columns else parse_json(v) for k, v in row.items() if k and v}
    except ValueError as error:
        raise UserError(
            f"question {row.get('question_id')!r}: a list is not JSON: {error}"
        ) from error


def _derive_videos(firsts: Mapping[str, Row]) -> list[Row]:
    """Return the rows of the videos, from the questions' columns on them."""
    rows: list[Row] = []
    for name, row in firsts.items():
        source_video, file = row.get("source"), row.get("video")
        source = source_video if source_video != name else None
        uri = f"videos/{PurePosixPath(file).name}" if file and file != name else ""
        facts = {"uri": uri, "source": source, "start": row.get("start"), "end": row.get("end")}
        rows.append({"video_id": name, **facts})
    return rows if any("source" in row for row in firsts.values()) else []


def write(questions: Questions, path: str | Path, videos: Iterable[Video] = ()) -> None:
    """Write all questions, including dropped ones, to `path` (a .parquet) or
    `path/questions.parquet`, and the videos to `videos.parquet` beside it if there are any.
    """
    path = Path(path)
    file = path if path.suffix == ".parquet" else path / "questions.parquet"
    with Parquet(file, schemas.questions_table) as rows:
        for question in questions:
            rows.add(question)
    remaining = iter(videos)
    if (video := next(remaining, None)) is not None:
        table = partial(schemas.table, cls=Video)
        with Parquet(file.parent / VIDEOS, table, group=64, compression="snappy") as videos_table:
            for each_video in chain([video], remaining):
                videos_table.add(each_video)
