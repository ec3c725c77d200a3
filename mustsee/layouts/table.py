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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from mustsee.errors import UserError
from mustsee.files.folders import write_json, write_json_lines
from mustsee.files.parquet import write_parquet
from mustsee.files.tables import DELIMITERS
from mustsee.layouts import columns as known
from mustsee.layouts.columns import Answers, TableColumns
from mustsee.layouts.options import LabelledOptions, options_of, without_letters
from mustsee.layouts.reading import BEYOND, Notes, QuestionFile, Row, delimiter_of, rows_of
from mustsee.media.video_names import name_apart
from mustsee.records import Question, Span, Video
from mustsee.text import LETTERS

KINDS = ("parquet", "csv", "tsv", "jsonl")
# Rows that contradict the second-best kind of answers, as a multiple of those of the best.
MIN_CLEAR_RATIO = 3
VIDEO_PATHS = ("path", "filename", "file_name", "uri", "url", "src", "video_id", "video")
NO_OPTIONS = LabelledOptions(texts=(), written=(), labels=(), places=())
NO_VIDEO = "no column is known to hold the video: each question counts as of a video of its own"


def named_in(path: str | Path) -> str:
    """Return `suggested_override` for the table at a path."""
    _, rows, _ = _table(Path(path), None)
    return known.suggested_override([name for name in rows[0] if name != BEYOND])


def read(path: Path, given: TableColumns | None = None) -> QuestionFile:
    """Read the questions of a .csv, .tsv, .json, .jsonl or .parquet table.

    Raises UserError if a column is missing or the kind of answers is ambiguous.
    """
    file, rows, named = _table(path, given)
    notes, written = Notes(file), [_video_file(row, named) for row in rows]
    video_of = name_apart(written)
    videos = [video_of[path] for path in written]
    ids = _ids(rows, named, videos)
    options_of_rows = _read_options(rows, named, notes, ids, file)
    _note_repeats(rows, ids, notes)
    _note_columns(rows, named, notes, video_of)
    kind = named.answers or _answer_kind(rows, options_of_rows, named, file)
    questions = [
        _question(number, row, named, notes, options, kind, ids[number], videos[number])
        for number, (row, options) in enumerate(zip(rows, options_of_rows, strict=True))
    ]
    names = dict.fromkeys(q.video_id for q in questions)
    return QuestionFile(
        layout="table",
        questions=notes.unique(questions),
        videos=tuple(Video(video_id=name, uri="") for name in names),
        findings=notes.findings,
        # The longest path says most.
        video_paths={video_of[path]: path for path in sorted(written, key=len) if path},
    )


def _read_options(
    rows: Sequence[Row], named: TableColumns, notes: Notes, ids: Sequence[str], file: Path
) -> list[LabelledOptions]:
    """Return each row's options, empty where they cannot be read. Raises UserError if all are."""
    column = named.options[0]
    options_of_rows, other_order = without_letters([options_of(row, named.options) for row in rows])
    if all(options is None for options in options_of_rows):
        raise UserError(
            f"{str(file)!r}: {column}={rows[0].get(column)!r}: expected options: a list of texts, "
            "an object by letter, or texts and labels"
        )
    for number, options in enumerate(options_of_rows):
        value = rows[number].get(column)
        if options is None:
            notes.add(number, ids[number], "options are not a list", value, broken=True)
        elif len(options.texts) > len(LETTERS):
            what = f"more than {len(LETTERS)} options"
            notes.add(number, ids[number], what, len(options.texts), broken=True)
        elif number in other_order:
            what = "options carry letters in another order, which are taken as text"
            notes.add(number, ids[number], what, list(options.texts))
    return [options or NO_OPTIONS for options in options_of_rows]


def _note_columns(
    rows: Sequence[Row], named: TableColumns, notes: Notes, video_of: Mapping[str, str]
) -> None:
    """Note what the table as a whole lacks, and cells that may hold several rows. `video_of`: path
    -> id of the video.
    """
    if named.video is None:
        notes.add(-1, "", NO_VIDEO)
    for column in known.unread_option_columns(list(rows[0]), named):
        notes.add(-1, "", "a column after a gap in the letters is not read as an option", column)
    apart = {name.rpartition("/")[2] for name in video_of.values() if "/" in name}
    for name in sorted(apart):
        ids = sorted({i for i in video_of.values() if i.rpartition("/")[2] == name})
        notes.add(-1, "", "files of several folders have one name: each is a video", ids)
    for number, row in enumerate(rows if notes.is_csv else ()):
        for cell in row.values():
            if isinstance(cell, str) and "\n" in cell and _may_hold_rows(cell, len(row)):
                what = "a cell with line breaks may hold other rows: a quotation mark may not close"
                notes.add(number, "", what, cell[:80])


def _may_hold_rows(cell: str, columns: int) -> bool:
    return max(map(cell.count, DELIMITERS)) >= columns - 1


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
    named = given or known.known_columns(names)
    if named is None:
        raise UserError(f"{str(file)!r}: {known.missing_columns(names)}")
    if missing := [c for c in named.column_names if c not in names]:
        raise UserError(f"{str(file)!r} has no column {missing}; it has {sorted(names)}")
    return file, rows, named


def _answer_kind(
    rows: Sequence[Row], options_of_rows: Sequence[LabelledOptions], named: TableColumns, file: Path
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
    kinds: tuple[Answers, ...] = get_args(Answers)
    places: dict[Answers, list[int | None]] = {
        kind: [_place(t, o, kind) for t, o in pairs] for kind in kinds
    }
    unfit: dict[Answers, list[str]] = {
        kind: [text for (text, _), place in zip(pairs, found, strict=True) if place is None]
        for kind, found in places.items()
    }
    best_kind, *others = sorted(unfit, key=lambda kind: len(unfit[kind]))
    # A kind that reads every answer alike is no rival.
    rivals = (len(unfit[kind]) for kind in others if places[kind] != places[best_kind])
    unfit_best, unfit_second = len(unfit[best_kind]), next(rivals, len(pairs))
    if 2 * unfit_best < len(pairs) and unfit_second >= max(1, MIN_CLEAR_RATIO * unfit_best):
        return best_kind
    fitting: list[Answers] = [kind for kind, texts in unfit.items() if not texts]
    example = (fitting or [best_kind])[-1]
    examples = ", ".join(map(repr, sorted({t for t, _ in pairs})[:4]))
    readings = " or ".join(map(repr, fitting)) or (
        "none of the kinds of answers for all rows; the nearest is "
        f"{best_kind!r}, except for {unfit_best} of {len(pairs)}: "
        f"{', '.join(map(repr, dict.fromkeys(unfit[best_kind][:6])))}"
    )
    raise UserError(
        f"{str(file)!r}: its {named.answer!r} ({examples}, ...) can be {readings}: name the kind "
        f"of answers, for instance {known.override(replace(named, answers=example))} "
        f"(table.answers: {', '.join(kinds)})"
    )


def _number(text: str) -> int | None:
    return int(float(text)) if re.fullmatch(r"\d+(?:\.0)?", text) else None


def _place(text: str, options: LabelledOptions, kind: Answers) -> int | None:
    """Return the index of the option that an answer of one kind means; None if there is none."""
    if kind == "text":
        texts = options.texts if text in options.texts else options.written
        return texts.index(text) if text in texts else None
    if kind == "letter":
        return options.by_label(text)
    number = _number(text)
    return None if number is None else options.by_number(number, int(kind[-1]))


def _answer(row: Row, named: TableColumns) -> str:
    value = row.get(named.answer) if named.answer else None
    return "" if value is None else str(value).strip()


def _ids(rows: Sequence[Row], named: TableColumns, of_rows: Sequence[str]) -> list[str]:
    """Return the questions' ids, prefixed with the video's id if they are unique per video only
    (NExT-QA). `of_rows`: id of each row's video.
    """
    videos = ["question"] * len(rows) if named.video is None else of_rows
    if named.question_id is None:
        return [f"{video}/{n}" for n, video in enumerate(videos)]
    ids = [str(row.get(named.question_id)) for row in rows]
    are_unique = len(set(ids)) == len(ids)
    return ids if are_unique else [f"{v}/{i}" for v, i in zip(videos, ids, strict=True)]


def _video_file(row: Row, named: TableColumns) -> str:
    """Return the address in a row's video: a text, or the path in a struct of the Hub's types."""
    value: Any = row.get(named.video) if named.video is not None else None
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            value = ast.literal_eval(re.sub(r"\bnull\b", "None", value))
    if isinstance(value, list | tuple) and len(cast(Sequence[Any], value)) == 1:
        value = value[0]
    if isinstance(value, Mapping):
        paths = cast(Mapping[str, Any], value)
        value = next((paths[key] for key in VIDEO_PATHS if paths.get(key)), None)
    return "" if value is None else str(value)


def _question(
    number: int,
    row: Row,
    named: TableColumns,
    notes: Notes,
    options: LabelledOptions,
    kind: Answers,
    name: str,
    video: str,
) -> Question:
    """Return the question of a row. `video`: id of its video; `name` counts as one where the table
    has no column for it.
    """
    text, texts = _answer(row, named), options.texts
    video = name if named.video is None else video
    question = str(row.get(named.question) or "")
    if not question.strip():
        notes.add(number, name, "no question", broken=True)
    if not video:
        value: Any = row.get(named.video) if named.video is not None else None
        value = f"an object with {', '.join(value)}" if isinstance(value, Mapping) else value or ""
        notes.add(number, name, "no video", value, broken=True)
    index = None
    if text:
        index = notes.index(number, name, texts, **_index_arguments(text, options, kind))
    else:
        notes.options(number, name, texts)
        notes.add(number, name, "no answer")
    return Question(
        question_id=name,
        video_id=video,
        recipe="table",
        question=question,
        question_type=str(row.get(named.question_type) or "") if named.question_type else "",
        options=texts,
        answer_index=index,
        answer=texts[index] if index is not None else "",
        evidence=_evidence(number, row, named, notes, name),
    )


def _index_arguments(text: str, options: LabelledOptions, kind: Answers) -> dict[str, Any]:
    """Return the keyword arguments of `Notes.index` for an answer."""
    index = _place(text, options, kind)
    if kind == "text":
        return {"answer": text if index is None else options.texts[index]}
    return {"given": -1 if index is None else index, "value": text}


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
        write_parquet(pa.Table.from_pylist([dict(r) for r in kept_rows], schema=schema), target)
    elif file.suffix == ".jsonl":
        write_json_lines(target, kept_rows)
    elif file.suffix == ".json":
        write_json(target, kept_rows, indent=4)
    else:
        with target.open("w", newline="", encoding="utf-8") as out:
            names = [n for n in rows[0] if n != BEYOND]
            writer = csv.writer(out, delimiter=delimiter_of(file), lineterminator="\n")
            writer.writerow(names)
            writer.writerows([*(row[n] for n in names), *row.get(BEYOND, ())] for row in kept_rows)
