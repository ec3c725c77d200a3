"""Export of a task for Inspect: `<name>.py`, `<name>.jsonl` with the questions, and the package
`reading` that parses replies; also `<name>_open` if there are open-ended questions, and
`<name>_points` if there are some with points.

    inspect eval FOLDER/NAME.py --model M [-T show=frames]

The folder can be moved and scores as Mustsee does (`mustsee.layouts.portable`).
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
    """Write the kept questions with a known answer as a task folder at `path`.

    Multiple-choice questions are the task `name`, open-ended ones `<name>_open`, and those with
    points `<name>_points`. Sets and pairs are scored as groups beside their questions. `tokens` is
    the limit of a reply with its reasoning. Returns a line that says where the video files belong.
    Raises UserError for an invalid name.
    """
    portable.check_name(name)
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    unique_videos, tasks = (
        by_id(videos).values(),
        {name: portable.multiple_choice_questions(questions)},
    )
    tasks |= {f"{name}_{end}": some for end, some in portable.open_tasks(questions).items()}
    metrics = "".join(f", {metric}()" for metric in portable.group_metrics(questions))
    for task, task_questions in tasks.items():
        with (path / f"{task}.jsonl").open("w", encoding="utf-8") as lines:
            for row in portable.rows(task_questions, unique_videos):
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
        portable.write_template(
            "inspect_task.py.j2",
            path / f"{task}.py",
            name=task,
            tokens=str(tokens),
            group_metrics=metrics,
        )
    portable.write_reading(path / "reading")
    return portable.where_to_put(questions, unique_videos)
