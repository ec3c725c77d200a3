"""Our own layout: `questions.parquet`, one row per question, with verdicts and provenance.

Folders with the same columns are read too: a dataset (`layout=hf`), and the tasks for other
frameworks, whose questions are lines of JSON or of a .tsv with JSON for what is a list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.layouts.reading import Notes, Reading, Row, rows_of
from mustsee.records import Question, Video
from mustsee.tables import parts, placed

FILMS = "videos.parquet"
TABLES = ("parquet", "jsonl", "tsv")
NEEDED = {f.name for f in fields(Question) if f.default is MISSING and f.default_factory is MISSING}


def read(path: Path) -> Reading:
    """`questions.parquet` (or .jsonl of the same columns), or the output folder that holds it; the
    videos come from `videos.parquet` beside it. Dropped questions are read too.
    """
    file = table_of(path)
    dataset = not file.exists()  # a folder of `layout=hf`: its films count from it
    files = _tables(path) if dataset else parts(file)
    notes = Notes(file.name)
    questions = list[Question]()
    rows = [_row(r) if f.suffix == ".tsv" else r for f in files for r in rows_of(f)]
    for number, row in enumerate(rows):
        if missing := NEEDED - set(row):
            raise UserError(
                f"{str(path)!r}, row {number}: no {', '.join(sorted(missing))}; the columns found "
                f"are {sorted(map(str, row))}"
            )
        question = schemas.load(Question, row)
        name, options = question.question_id, question.options
        if options and question.answer_index is None:
            notes.add(number, name, "no answer index")
        elif options and not 0 <= (question.answer_index or 0) < len(options):
            notes.add(number, name, "answer number is outside the options", question.answer_index)
            question = replace(question, answer_index=None)
        elif options and question.answer and options[question.answer_index or 0] != question.answer:
            notes.add(number, name, "answer number and answer text disagree", question.answer)
        questions.append(question)
    beside = file.parent / FILMS
    found = rows_of(beside) if beside.exists() else _films(rows) if dataset else []
    known = [_video(placed(dict(row), str(beside)) if dataset else row) for row in found]
    unknown = dict.fromkeys(q.video_id for q in questions if q.video_id not in _ids(known))
    return Reading(
        layout="ours",
        questions=notes.unique(questions),
        videos=(*known, *(Video(video_id=i, uri="") for i in unknown)),
        findings=tuple(notes.found),
    )


def table_of(path: Path) -> Path:
    """The questions of a run: what is named, or what the named output folder should hold."""
    named = path.is_file() or path.suffix == ".parquet"
    return path if named else path / "questions.parquet"


def _tables(folder: Path) -> list[Path]:
    """The questions of a dataset folder: of the first kind of file that is there."""
    kinds = ([p for p in sorted(folder.rglob(f"*.{k}")) if p.name != FILMS] for k in TABLES)
    return next(filter(None, kinds), [])


def _row(row: Row) -> dict[str, Any]:
    """A line of a .tsv: empty cells are nothing, and what is no text is JSON. Raises UserError."""
    texts = {name for name, hint in schemas.hints(Question).items() if hint is str}
    told = {"video", "film", *texts}
    try:
        return {k: v if k in told else json.loads(v) for k, v in row.items() if k and v}
    except ValueError as error:
        raise UserError(f"{row.get('question_id')!r}: a list that is no JSON: {error}") from error


def _films(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """What the rows of a task say of their films."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        name, film = row["video_id"], row.get("film")
        source = film if film != name else None
        file = row.get("video")
        uri = f"videos/{PurePosixPath(file).name}" if file and file != name else ""
        told = {"uri": uri, "source": source, "start": row.get("start"), "end": row.get("end")}
        found.setdefault(name, {"video_id": name, **told})
    return list(found.values()) if any("film" in row for row in rows) else []


def _ids(videos: Iterable[Video]) -> set[str]:
    return {v.video_id for v in videos}


def _video(row: Any) -> Video:
    return schemas.load(Video, row)


def write(questions: Sequence[Question], path: str | Path, videos: Iterable[Video] = ()) -> None:
    """All questions, dropped ones included, as `path` (a .parquet) or `path/questions.parquet`;
    `videos.parquet` beside it where videos are given.
    """
    import pyarrow.parquet as pq

    path = Path(path)
    file = path if path.suffix == ".parquet" else path / "questions.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(schemas.questions_table(questions), file, compression="zstd")
    known = list(videos)
    if known:
        pq.write_table(schemas.table(known, Video), file.parent / FILMS)
