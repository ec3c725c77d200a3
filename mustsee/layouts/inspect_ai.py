"""A task for Inspect: `<name>.py`, the questions in `<name>.jsonl`, and how replies are read.

    inspect eval FOLDER/NAME.py --model M [-T show=frames]

It may be moved, and scores as we do (`mustsee.layouts.portable`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from mustsee.layouts import portable
from mustsee.layouts.reading import Questions
from mustsee.records import Video


def write(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    name: str = "mustsee",
    tokens: int = 4096,
) -> None:
    """The kept multiple-choice questions with a known answer as a task folder at `path`.
    `tokens`: room for a reply with its thoughts. Raises UserError for a name that cannot be a
    task's.
    """
    portable.check_name(name)
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    with (path / f"{name}.jsonl").open("w", encoding="utf-8") as lines:
        for row in portable.rows(questions, videos):
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    portable.write_template(
        "inspect_task.py.j2", path / f"{name}.py", name=name, tokens=str(tokens)
    )
    portable.write_reading(path / "reading")
