"""Export of a dataset for VLMEvalKit: its class (`<name>_video.py`), a TSV, a configuration, a
start script, and the package `reading` that parses replies.

    cd VLMEvalKit; python FOLDER/run_NAME.py --config FOLDER/NAME.json

The folder can be moved and scores as Mustsee does (`mustsee.layouts.portable`). Fill in the
configuration's "model".
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mustsee.layouts import portable
from mustsee.layouts.reading import Questions, dump_json
from mustsee.records import Video


def write(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    name: str = "mustsee",
    frames: Sequence[int] = (8, 64),
    model: str = "",
) -> str:
    """Write the kept multiple-choice questions with a known answer as a folder at `path`.

    Sets and pairs are scored as groups beside their questions. The configuration has one entry per
    number in `frames`. `model` is one of the kit's models.
    Returns a line that says where the video files belong. Raises UserError for an invalid name.
    """
    portable.check_name(name)
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    with (path / f"{name}.tsv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, "excel-tab")
        table.writerow(["index", *portable.COLUMNS])
        for number, row in enumerate(
            portable.rows(portable.multiple_choice_questions(questions), videos)
        ):
            values = {
                **row,
                "video": row["video"] or row["video_id"],
            }  # never empty, because the kit sorts by it
            table.writerow([number, *(_cell(values[c]) for c in portable.COLUMNS)])
    values = {"name": name, "cls": "".join(part.title() for part in name.split("_"))}
    portable.write_template("vlmevalkit_task.py.j2", path / f"{name}_video.py", **values)
    portable.write_template("vlmevalkit_run.py.j2", path / f"run_{name}.py", **values)
    entries = {
        f"{name}_{n}frame": {"class": values["cls"], "dataset": name, "nframe": n} for n in frames
    }
    dump_json({"model": {model: {}} if model else {}, "data": entries}, path / f"{name}.json")
    portable.write_reading(path / "reading")
    return portable.where_to_put(questions, videos)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
