"""What the exported tasks share: a name, the questions as rows, and how replies are read.

A task may be moved: no path in it is absolute, and nothing in it imports this project. Replies are
read by a copy of `mustsee.replies.extract` (in `reading/`), so that a score there is the score
here: letters are those of the question's own options, and the camera wearer C is no letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from mustsee import text
from mustsee.errors import UserError
from mustsee.layouts import asked, hugging_face, video_files
from mustsee.layouts import written as in_words
from mustsee.layouts.reading import (
    BATCH_ROWS,
    Questions,
    Rereadable,
    answer_of,
    by_id,
    first,
    kept_questions,
)
from mustsee.records import Question, Video
from mustsee.replies import extract, overlap, squad, thinking

ASSETS = Path(__file__).parents[1] / "assets"
COLUMNS = (
    "question_id", "video_id", "recipe", "question", "question_type", "options", "answer_index",
    "answer", "variants", "sibling_of", "relation", "evidence", "video", "start", "end", "source",
)  # fmt: skip
_READING = '''\
"""How replies are read: a copy of `extract` of Mustsee (Apache License 2.0), unchanged but for
the places that it imports from.
"""

from .asked import (
    video_path,
    is_multiple_choice,
    letter,
    mean,
    mean_of_types,
    question_text,
    score_reply,
)
from .choice import extract
from .written import compare_reply, is_open_ended

__all__ = [
    "compare_reply",
    "extract",
    "source",
    "is_multiple_choice",
    "is_open_ended",
    "letter",
    "mean",
    "mean_of_types",
    "question_text",
    "score_reply",
]
'''


def check_name(name: str) -> None:
    """Raises UserError for a name that cannot be a task's."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(f"name={name!r}: a task's name has small letters, digits and underscores")


def multiple_choice_questions(questions: Questions) -> Rereadable[Question]:
    """The kept multiple-choice questions with a known answer, not made from others."""
    return Rereadable(
        lambda: (q for q in first(questions) if q.options and q.answer_index is not None)
    )


def open_ended_questions(questions: Questions) -> Rereadable[Question]:
    """The kept open-ended questions with a known answer, twins among them."""
    return Rereadable(
        lambda: (q for q in kept_questions(questions) if not q.options and answer_of(q))
    )


def portable_questions(questions: Questions) -> Rereadable[Question]:
    """Both."""
    return Rereadable(
        lambda: (
            q for some in (multiple_choice_questions, open_ended_questions) for q in some(questions)
        )
    )


def rows(questions: Questions, videos: Iterable[Video]) -> Iterator[dict[str, Any]]:
    """The questions with their videos."""
    videos_by_id, asked = by_id(videos), iter(questions)
    while some := list(islice(asked, BATCH_ROWS)):
        yield from hugging_face.with_videos(some, videos_by_id).select(COLUMNS).to_pylist()


def where_to_put(questions: Questions, videos: Iterable[Video]) -> str:
    """A line on where a task folder looks for the video files (`asked.video_path`)."""
    line = video_files.where_to_put(video_files.names_of(videos, portable_questions(questions)))
    return f"{line}, or name their folder in MUSTSEE_VIDEOS" if line else ""


def write_template(asset: str, path: Path, **told: str) -> None:
    """A file of `assets/` with @name@ replaced by what is told."""
    source = source_of(ASSETS / asset)
    for key, value in told.items():
        source = source.replace(f"@{key}@", value)
    path.write_text(source, encoding="utf-8")


def write_reading(folder: Path) -> None:
    """What `extract` is made of, and `asked`, as a package that needs nothing else."""
    folder.mkdir(exist_ok=True)
    parts = Path(extract.__file__).parent
    files = {
        p.name: source_of(p)
        for p in sorted(parts.glob("*.py"))
        if p.name not in ("__init__.py", "official.py")
    }
    files |= {
        "__init__.py": _READING,
        "asked.py": source_of(asked.__file__),
        "written.py": source_of(in_words.__file__),
        "overlap.py": source_of(overlap.__file__),
        "squad.py": source_of(squad.__file__),
        "scripts.py": source_of(text.__file__),
        "thinking.py": source_of(thinking.__file__),
    }
    moved = {"replies.extract.": ".", "text ": ".scripts ", "replies.thinking ": ".thinking ",
             "replies.overlap ": ".overlap ", "replies.squad ": ".squad "}  # fmt: skip
    for name, source in files.items():
        for theirs, ours in moved.items():
            source = re.sub(rf"(?m)^from mustsee\.{re.escape(theirs)}", f"from {ours}", source)
        (folder / name).write_text(source, encoding="utf-8")


def source_of(file: str | Path | None) -> str:
    assert file is not None
    return Path(file).read_text(encoding="utf-8")
