"""TempCompass' lists of questions (arXiv 2403.00476): `multi-choice.json`, `caption_matching.json`.

    read(Path("questions/multi-choice.json"))

A list is an object video -> dimension (action, order, speed, ...) -> questions. Options are lines
of the question's text; questions of `yes_no.json` have none.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.files.folders import write_json
from mustsee.files.tables import one_line_error, parse_json
from mustsee.layouts.reading import Notes, QuestionFile
from mustsee.records import Question, Video

_OPTION = re.compile(r"^(?:(?:Option|Caption|Sentence)\s+)?(?:[A-Z]|\d)[.:)]\s+(?=\S)")


def is_list(path: Path) -> bool:
    """Return whether a .json file has the structure of these lists."""
    if path.suffix != ".json" or not path.read_bytes()[:99].lstrip(BOM_UTF8).lstrip().startswith(
        b"{"
    ):
        return False
    try:
        entries = [set(entry) for _, _, entry in _entries(_loaded(path))]
    except (AttributeError, TypeError):
        return False
    return bool(entries) and all({"question", "answer"} <= entry for entry in entries)


def read(path: Path) -> QuestionFile:
    """Read the questions in the order of the file, with their dimension as the type."""
    notes, questions = Notes(path), list[Question]()
    for row, (video, dimension, entry) in enumerate(_entries(_loaded(path))):
        name = f"{video}/{dimension}/{row}"
        text, *lines = str(entry["question"]).strip().split("\n")
        options, answer = tuple(map(_option, lines)), _option(str(entry["answer"]))
        if not text.strip():
            notes.add(row, name, "no question", broken=True)
        questions.append(
            Question(
                question_id=name,
                video_id=video,
                recipe="tempcompass",
                question=text,
                question_type=dimension,
                options=options,
                answer_index=notes.index(row, name, options, answer=answer) if options else None,
                answer=answer,
            )
        )
    videos = dict.fromkeys(q.video_id for q in questions)
    return QuestionFile(
        layout="tempcompass",
        questions=tuple(questions),
        videos=tuple(Video(video_id=name, uri="") for name in videos),
        findings=notes.findings,
    )


def write(questions: Sequence[Question], path: str | Path, *, source: Path) -> None:
    """Copy the list at `source` into the folder `path`, without dropped questions."""
    in_order = iter(questions)
    kept: dict[str, dict[str, list[Any]]] = {}
    for video, dimension, entry in _entries(_loaded(source)):
        if next(in_order).drop is None:
            kept.setdefault(video, {}).setdefault(dimension, []).append(entry)
    write_json(Path(path) / source.name, kept, indent=4)


def _entries(videos: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for video, dimensions in videos.items():
        for dimension, entries in dimensions.items():
            for entry in entries:
                yield video, dimension, entry


def _option(line: str) -> str:
    """Return a line without its letter."""
    return _OPTION.sub("", line.strip())


def _loaded(path: Path) -> Mapping[str, Any]:
    try:
        return parse_json(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot read questions from {str(path)!r}: {one_line_error(error)}"
        ) from error
