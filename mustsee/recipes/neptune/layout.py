"""Neptune's release: `neptune_{full,mmh,mma}.json`, a list of objects.

Keys: `key` ("<video>/<n>"), `video_id`, `question`, `answer`, `answer_choice_0` to `_4`,
`answer_id`, `question type` (with a space; a mirror writes `question_type` and `video_path`).
The release's notes describe `video_id` as an address, and four choices; the files have bare ids and
five choices. Both are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from mustsee.files.folders import JsonItems, file_name, without_media_suffix
from mustsee.layouts import reading
from mustsee.layouts.reading import (
    Notes,
    QuestionFile,
    Questions,
    Row,
)
from mustsee.records import Question, Video

_CHOICE = re.compile(r"answer_choice_(\d+)")


def read(path: Path) -> QuestionFile:
    """Read a file, or a folder with `neptune_*.json`, whose subset files set the questions'
    `subsets`.
    """
    if path.is_file():
        return _read_file(path)
    files = [_read_file(p) for p in sorted(path.glob("neptune_*.json"))]
    merged: dict[tuple[str, str], Question] = {}
    for question in (q for file in files for q in file):
        key = (question.question_id, question.question)
        earlier = merged.get(key, question)
        subsets = tuple(dict.fromkeys((*earlier.subsets, *question.subsets)))
        merged[key] = replace(earlier, subsets=subsets)
    return QuestionFile(
        layout="neptune",
        questions=tuple(merged.values()),
        videos=tuple({v.video_id: v for file in files for v in file.videos}.values()),
        findings=tuple(f for file in files for f in file.findings),
    )


def is_folder(path: Path) -> bool:
    """Whether a folder holds the release's files."""
    return any(path.glob("neptune_*.json"))


def is_table(columns: Collection[str]) -> bool:
    """Whether a file with these columns is in this layout."""
    return any(c.startswith("answer_choice_") for c in columns)


def _read_file(path: Path) -> QuestionFile:
    notes = Notes(path)
    subset = re.fullmatch(r"neptune_(\w+)", path.stem)
    subsets = (subset[1].lower(),) if subset and subset[1].lower() != "full" else ()
    numbered = [_question(i, row, notes, subsets) for i, row in enumerate(reading.rows_of(path))]
    questions = notes.unique(numbered)
    ids = dict.fromkeys(q.video_id for q in questions)
    return QuestionFile(
        layout="neptune",
        questions=questions,
        videos=tuple(Video(video_id=i, uri="") for i in ids),
        findings=notes.findings,
    )


def _question(number: int, row: Row, notes: Notes, subsets: tuple[str, ...]) -> Question:
    address = str(row.get("video_id") or row.get("video_path") or "")
    found = reading.youtube_id(address)
    name = str(row.get("key") or f"{found or address}/{number}")
    if not address:
        notes.add(number, name, "no video_id", broken=True)
    choices = sorted((int(m[1]), k) for k in row if (m := _CHOICE.fullmatch(k)))
    options = tuple(str(row[k]) for _, k in choices if row[k] is not None)
    if len(options) < len(choices) or [n for n, _ in choices] != list(range(len(choices))):
        notes.add(number, name, "answer choices are missing", [k for _, k in choices])
    answer = notes.text(number, name, row, "answer")
    given: Any = row.get("answer_id")
    return Question(
        question_id=name,
        video_id=found or without_media_suffix(address.rsplit("/", 1)[-1]),
        recipe="neptune",
        question=notes.text(number, name, row, "question"),
        question_type=str(row.get("question type") or row.get("question_type") or ""),
        options=options,
        answer_index=notes.index(number, name, options, answer=answer or None, given=given),
        answer=answer,
        subsets=subsets,
    )


def write(questions: Questions, path: str | Path, videos: Iterable[Video] = ()) -> None:
    """Write the kept questions to `path` (a .json), or into the folder `path`.

    The folder gets `neptune_full.json`, `neptune_mma.json` if filters ran, `neptune_mmh.json` if
    raters voted, and one `neptune_<subset>.json` for each other subset.
    """
    path, chosen = Path(path), reading.first(questions)
    key = _keys(chosen)
    with ExitStack() as files:
        if path.suffix == ".json":
            file = files.enter_context(JsonItems(path))
            for question in chosen:
                file.add(_row(question, key(question)))
            return
        lists: dict[str, JsonItems] = {}

        def of(subset: str) -> JsonItems:
            name = f"neptune_{file_name(subset.lower())}.json"
            if name not in lists:
                lists[name] = files.enter_context(JsonItems(path / name))
            return lists[name]

        full = of("full")
        for question in chosen:
            row = _row(question, key(question))
            full.add(row)
            if question.filter_results:
                of("mma")
            if "audio_only" in question.metrics:
                of("mmh")
            for subset in dict.fromkeys(s for s in question.subsets if s != "full"):
                of(subset).add(row)


def _keys(questions: Questions) -> Callable[[Question], str]:
    """Return a function question -> `key`, to be called once per question, in order.

    A key is the video's id and a running number. Ids that have this form are kept.
    """
    existing = {q.question_id for q in questions if "/" in q.question_id}
    counts: dict[str, int] = {}

    def key(question: Question) -> str:
        name = question.video_id
        if question.question_id.startswith(f"{name}/"):
            return question.question_id
        while True:
            counts[name] = counts.get(name, 0) + 1
            if (new_key := f"{name}/{counts[name]}") not in existing:
                return new_key

    return key


def _row(question: Question, key: str) -> dict[str, Any]:
    choices = {f"answer_choice_{i}": option for i, option in enumerate(question.options)}
    return {
        "key": key,
        "video_id": question.video_id,
        "question": question.question,
        "answer": reading.answer_of(question),
        **choices,
        "answer_id": question.answer_index,
        "question type": question.question_type,
    }
