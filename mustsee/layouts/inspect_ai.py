"""A task for Inspect: `<name>.py`, the questions in `<name>.jsonl`, and how replies are read;
`<name>_open` beside it where there are open-ended questions (twins among them).

    inspect eval FOLDER/NAME.py --model M [-T show=frames]

It may be moved, and scores as we do (`mustsee.layouts.portable`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from mustsee.layouts import portable
from mustsee.layouts.reading import Questions, by_id
from mustsee.records import Video


def write(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    name: str = "mustsee",
    tokens: int = 4096,
) -> str:
    """The kept questions with a known answer as a task folder at `path`, the multiple-choice ones
    as the task `name`, the others, where there are any, as `<name>_open`.
    `tokens`: room for a reply with its thoughts. Returns a line that says where the video files
    belong. Raises UserError for a name that cannot be a task's.
    """
    portable.check_name(name)
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    unique_videos, forms = (
        by_id(videos).values(),
        {name: portable.multiple_choice_questions(questions)},
    )
    written = portable.open_ended_questions(questions)
    if any(True for _ in written):
        forms[f"{name}_open"] = written
    for task, asked in forms.items():
        with (path / f"{task}.jsonl").open("w", encoding="utf-8") as lines:
            for row in portable.rows(asked, unique_videos):
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
        portable.write_template(
            "inspect_task.py.j2", path / f"{task}.py", name=task, tokens=str(tokens)
        )
    portable.write_reading(path / "reading")
    return portable.where_to_put(questions, unique_videos)
