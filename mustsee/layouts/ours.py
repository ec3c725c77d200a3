"""Our own layout: `questions.parquet`, one row per question, with verdicts and provenance.

Folders with the same columns are read too: a dataset (`layout=hf`), and the tasks for other
frameworks, whose questions are lines of JSON or of a .tsv with JSON for what is a list.
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

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.layouts.growing import Parquet
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
from mustsee.records import Question, Video
from mustsee.tables import parse_json, parts, resolve_uri

VIDEOS = "videos.parquet"
TABLES = ("parquet", "jsonl", "tsv")
VIDEO_COLUMNS = ("video", "start", "end", "source")  # of the video, in a row of a dataset or a task
LOOKED_AT = ("options", "answer_index", "answer", "drop", *VIDEO_COLUMNS)
NEEDED = {f.name for f in fields(Question) if f.default is MISSING and f.default_factory is MISSING}


def read(path: Path) -> QuestionFile:
    """`questions.parquet` (or .jsonl of the same columns), or the output folder that holds it; the
    videos come from `videos.parquet` beside it. Dropped questions are read too.
    """
    source = open_streamed(path)
    return QuestionFile(
        layout=source.layout,
        questions=tuple(source.questions),
        videos=tuple(source.videos),
        findings=source.findings,
    )


def open_streamed(path: Path) -> QuestionSource:
    """The same, looked through for what is wrong, but not held in memory."""
    file = table_of(path)
    dataset = not file.exists()  # a folder of `layout=hf`: its videos count from it
    files = _tables(path) if dataset else parts(file)
    found = _looked_through(path, files)
    beside = file.parent / VIDEOS
    known = beside if beside.exists() else None
    told = _videos(found.firsts) if dataset and known is None else []

    def videos() -> Iterator[Video]:
        rows = told if known is None else each_row(known)
        unknown = dict(found.firsts)
        for row in rows:
            unknown.pop(row["video_id"], None)
            yield schemas.load(Video, resolve_uri(dict(row), str(beside)) if dataset else row)
        yield from (Video(video_id=name, uri="") for name in unknown)

    return QuestionSource(
        layout="ours",
        questions=Rereadable(lambda: _questions(files, found.repeated)),
        videos=Rereadable(videos),
        findings=found.findings,
    )


@dataclass(frozen=True, kw_only=True)
class _Found:
    """`firsts`: by video what the first row on it says of it. `repeated`: ids of more than one."""

    firsts: Mapping[str, Row]
    repeated: frozenset[str]
    findings: tuple[FileFault, ...]


def _looked_through(path: Path, files: Sequence[Path]) -> _Found:
    """What is wrong with the answers and ids. Raises UserError where a column is missing."""
    firsts, again = dict[str, Row](), list[tuple[Path, int, str]]()
    every, count = {file: Notes(file) for file in files}, Counter[str]()
    columns = (*sorted(NEEDED), *LOOKED_AT)
    for file, number, row in ((f, n, r) for f in files for n, r in enumerate(_rows(f, columns))):
        if missing := NEEDED - set(row):
            there = sorted(map(str, next(_rows(file))))
            raise UserError(
                f"{str(path)!r}, row {number}: no {', '.join(sorted(missing))}; the columns found "
                f"are {there}"
            )
        count[row["question_id"]] += 1
        if count[row["question_id"]] > 1:
            again.append((file, number, row["question_id"]))
        _check(row, number, _own(row["question_id"], count), every[file])
        told = {k: row[k] for k in ("video_id", *VIDEO_COLUMNS) if k in row}
        firsts.setdefault(row["video_id"], told)
    for file, number, name in again:
        every[file].add(number, name, "this id occurs again", name)
    repeated = frozenset(name for _, _, name in again)
    findings = tuple(f for notes in every.values() for f in notes.findings)
    return _Found(firsts=firsts, repeated=repeated, findings=findings)


def _check(row: Row, number: int, name: str, notes: Notes) -> None:
    """Note what is wrong with a question that stands."""
    if row.get("drop") is not None:
        return
    options, index = row.get("options") or (), row.get("answer_index")
    notes.text(number, name, row, "question")
    if not row["video_id"]:
        notes.add(number, name, "no video_id", broken=True)
    notes.options(number, name, options)
    if options and index is None:
        notes.add(number, name, "no answer index")
    elif options and index is not None and not 0 <= index < len(options):
        notes.add(number, name, "answer number is outside the options", index, broken=True)
    elif options and row.get("answer") and options[index] != row["answer"]:
        notes.add(number, name, "answer number and answer text disagree", row["answer"])


def _own(name: str, count: Mapping[str, int]) -> str:
    """The id of the latest question of this name."""
    return name if count[name] == 1 else f"{name}#{count[name]}"


def _questions(files: Sequence[Path], repeated: Collection[str]) -> Iterator[Question]:
    """With ids of their own; an index outside the options is none."""
    count = Counter[str]()
    for row in (r for f in files for r in _rows(f)):
        question = schemas.load(Question, row)
        name, options, index = question.question_id, question.options, question.answer_index
        if options and index is not None and not 0 <= index < len(options):
            question = replace(question, answer_index=None)
        if name in repeated:
            count[name] += 1
            question = replace(question, question_id=_own(name, count))
        yield question


def table_of(path: Path) -> Path:
    """The questions of a run: what is named, or what the named output folder should hold."""
    named = path.is_file() or path.suffix == ".parquet"
    return path if named else path / "questions.parquet"


def _tables(folder: Path) -> list[Path]:
    """The questions of a dataset folder: of the first kind of file that is there."""
    kinds = ([p for p in sorted(folder.rglob(f"*.{k}")) if p.name != VIDEOS] for k in TABLES)
    return next(filter(None, kinds), [])


def _rows(file: Path, columns: Iterable[str] | None = None) -> Iterator[Row]:
    rows = each_row(file, columns)
    if file.suffix == ".parquet":
        return rows
    return _checked(file, map(_row, rows) if file.suffix == ".tsv" else rows)


def _checked(file: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of a text, whose values may be of any type. Raises UserError."""
    for number, row in enumerate(rows):
        lacking = [name for name in ("question_id", "video_id") if not row.get(name)]
        wrong = schemas.fault(Question, row) or (f"no {lacking[0]}" if lacking else "")
        if not wrong:
            times = [x for s in row.get("evidence") or () for x in (s["start"], s["end"])]
            beyond = [x for x in times if not 0 <= x < math.inf]
            wrong = f"evidence at {beyond[0]!r}: expected seconds, 0 or more" if beyond else ""
        if wrong:
            raise UserError(f"{str(file)!r}, row {number}: {wrong}")
        yield row


def _row(row: Row) -> dict[str, Any]:
    """A line of a .tsv: empty cells are nothing, and what is no text is JSON. Raises UserError."""
    texts = {name for name, hint in schemas.hints(Question).items() if hint is str}
    told = {"video", "source", *texts}
    try:
        return {k: v if k in told else parse_json(v) for k, v in row.items() if k and v}
    except ValueError as error:
        raise UserError(f"{row.get('question_id')!r}: a list that is no JSON: {error}") from error


def _videos(firsts: Mapping[str, Row]) -> list[Row]:
    """What the rows of a task say of their videos."""
    found: list[Row] = []
    for name, row in firsts.items():
        source_video, file = row.get("source"), row.get("video")
        source = source_video if source_video != name else None
        uri = f"videos/{PurePosixPath(file).name}" if file and file != name else ""
        told = {"uri": uri, "source": source, "start": row.get("start"), "end": row.get("end")}
        found.append({"video_id": name, **told})
    return found if any("source" in row for row in firsts.values()) else []


def write(questions: Questions, path: str | Path, videos: Iterable[Video] = ()) -> None:
    """All questions, dropped ones included, as `path` (a .parquet) or `path/questions.parquet`;
    `videos.parquet` beside it where videos are given.
    """
    path = Path(path)
    file = path if path.suffix == ".parquet" else path / "questions.parquet"
    with Parquet(file, schemas.questions_table) as rows:
        for question in questions:
            rows.add(question)
    remaining = iter(videos)
    if (video := next(remaining, None)) is not None:
        table = partial(schemas.table, cls=Video)
        with Parquet(file.parent / VIDEOS, table, group=64, compression="snappy") as known:
            for one in chain([video], remaining):
                known.add(one)
