"""Common code of exported tasks: their names, the questions as rows, and the package `reading`.

A task can be moved: it has no absolute paths and does not import Mustsee. Replies are parsed by a
copy of `mustsee.replies.extract` in `reading/`, so that scores are the same there and here: only
letters of the question's options count, and the camera wearer C is not read as a letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from mustsee import errors, prompts, text
from mustsee.errors import UserError
from mustsee.files import fetch
from mustsee.layouts import hugging_face, reading, task_scoring, video_files
from mustsee.layouts.reading import Questions, Rereadable
from mustsee.records import COUNTED, Question, Video
from mustsee.replies import extract, overlap, thinking

ASSETS = Path(__file__).parents[1] / "assets"
COLUMNS = (
    "question_id", "video_id", "recipe", "question", "question_type", "options", "answer_index",
    "answer", "variants", "points", "contradictions", "skill", "sibling_of", "relation", "group",
    "form", "evidence", "video", "start", "end", "source",
)  # fmt: skip
_READING = '''\
"""Parse and score replies: a copy of Mustsee's `extract` (Apache License 2.0), unchanged except
for its imports.
"""

from .choice import extract
from .task_scoring import *
'''


def make_folder(path: str | Path, name: str) -> Path:
    """Make a task's folder and return it. Raises UserError for a name that no task can have."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(
            f"name={name!r}: use lower-case letters, digits and underscores, and begin with a "
            "letter"
        )
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def multiple_choice_questions(questions: Questions) -> Rereadable[Question]:
    """Return the kept multiple-choice questions with a known answer, without twins."""
    return Rereadable(
        lambda: (q for q in reading.first(questions) if q.options and q.answer_index is not None)
    )


def _is_open(question: Question) -> bool:
    """Whether it is open-ended with a known answer and without points, twins among them. None asks
    when, since these tasks compare words.
    """
    has_answer = bool(reading.answer_of(question)) and not question.points
    return not question.options and has_answer and not question.asks_when


def _is_pointed(question: Question) -> bool:
    """Whether its answers are graded by points."""
    return not question.options and any(point.state == COUNTED for point in question.points)


OPEN_TASKS = {"open": _is_open, "points": _is_pointed}  # ending of a task's name -> its questions


def _select(questions: Questions, keep: Callable[[Question], bool]) -> Rereadable[Question]:
    return Rereadable(lambda: filter(keep, reading.kept_questions(questions)))


def open_tasks(questions: Questions) -> dict[str, Rereadable[Question]]:
    """Return ending of a task's name -> its questions, for those without options, if it has any."""
    found = {ending: _select(questions, keep) for ending, keep in OPEN_TASKS.items()}
    return {ending: some for ending, some in found.items() if any(True for _ in some)}


def group_metrics(questions: Questions) -> list[str]:
    """Return the names of the scores of groups that the multiple-choice questions have."""
    relations = {q.relation for q in multiple_choice_questions(questions) if q.group is not None}
    return [
        m
        for kind, metrics in task_scoring.GROUP_METRICS.items()
        if kind in relations
        for m in metrics
    ]


def portable_questions(questions: Questions) -> Rereadable[Question]:
    """Return the multiple-choice questions, then the open-ended ones, then those with points."""
    choice = multiple_choice_questions(questions)
    others = [_select(questions, keep) for keep in OPEN_TASKS.values()]
    return Rereadable(lambda: chain(choice, *others))


def rows(questions: Questions, videos: Iterable[Video]) -> Iterator[dict[str, Any]]:
    """Yield the questions as rows of `COLUMNS`."""
    videos_by_id, remaining = reading.by_id(videos), iter(questions)
    while batch := list(islice(remaining, reading.BATCH_ROWS)):
        yield from hugging_face.with_videos(batch, videos_by_id).select(COLUMNS).to_pylist()


def complete_task(folder: Path, questions: Questions, videos: Iterable[Video]) -> str:
    """Write `reading` into a task's folder, and return a line that says where the video files
    belong (`task_scoring.video_path`).
    """
    write_reading(folder / "reading")
    line = video_files.where_to_put(video_files.names_of(videos, portable_questions(questions)))
    return f"{line}, or name their folder in MUSTSEE_VIDEOS" if line else ""


def write_template(asset: str, path: Path, **values: str) -> None:
    """Write a file of `assets/` to `path`, with each @key@ replaced by its value."""
    source = source_of(ASSETS / asset)
    for key, value in values.items():
        source = source.replace(f"@{key}@", value)
    path.write_text(source, encoding="utf-8")


def write_reading(folder: Path) -> None:
    """Write `extract`, `task_scoring` and the modules they import as an independent package."""
    folder.mkdir(exist_ok=True)
    extract_folder = Path(extract.__file__).parent
    files = {
        p.name: source_of(p)
        for p in sorted(extract_folder.glob("*.py"))
        if p.name not in ("__init__.py", "official.py")
    }
    files |= {
        "__init__.py": _READING,
        "task_scoring.py": source_of(task_scoring.__file__),
        "prompts.py": source_of(prompts.__file__),
        "errors.py": source_of(errors.__file__),
        "fetch.py": source_of(fetch.__file__),
        "overlap.py": source_of(overlap.__file__),
        "scripts.py": source_of(text.__file__),
        "thinking.py": source_of(thinking.__file__),
    }
    import_of = {
        "replies.extract.": ".",
        "errors ": ".errors ",
        "files.fetch ": ".fetch ",
        "prompts ": ".prompts ",
        "text ": ".scripts ",
        "replies.thinking ": ".thinking ",
        "replies.overlap ": ".overlap ",
    }
    for name, source in files.items():
        for theirs, ours in import_of.items():
            source = re.sub(
                rf"(?m)^( *)from mustsee\.{re.escape(theirs)}", rf"\1from {ours}", source
            )
        (folder / name).write_text(source, encoding="utf-8")
    name = f"{task_scoring.GRADER_PROMPT}.j2"
    prompt = folder / "prompts" / name
    prompt.parent.mkdir(parents=True, exist_ok=True)
    prompt.write_text(source_of(prompts.ROOT / name), encoding="utf-8")


def source_of(file: str | Path | None) -> str:
    """Return the source of a module's file."""
    assert file is not None
    return Path(file).read_text(encoding="utf-8")
