"""A task for lmms-eval: `<name>.yaml`, `utils.py`, and the data beside them.

The utils score by this project's extraction (`mustsee.extract`), which takes the letters from the
question's own options, so that options E and F are read and the camera wearer C is no letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mustsee.errors import UserError
from mustsee.layouts import hugging_face
from mustsee.records import Question, Video

_YAML = """\
task: {name}
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
doc_to_visual: !function utils.doc_to_visual
doc_to_text: !function utils.doc_to_text
doc_to_target: !function utils.doc_to_target
process_results: !function utils.process_results
generation_kwargs:
  max_new_tokens: 64
  temperature: 0
  do_sample: false
metric_list:
  - metric: accuracy
    aggregation: !function utils.accuracy
    higher_is_better: true
  - metric: mean_of_types
    aggregation: !function utils.mean_of_types
    higher_is_better: true
  - metric: unparsed
    aggregation: !function utils.unparsed
    higher_is_better: false
lmms_eval_specific_kwargs:
  default:
    pre_prompt: ""
    post_prompt: "\\nAnswer with the letter of the best option."
metadata:
  - version: 1.0
"""

_UTILS = '''\
"""How the questions of this task are asked and scored. Films are looked for in MUSTSEE_VIDEOS."""

import os
from pathlib import Path

from mustsee.extract import extract
from mustsee.media.files import SUFFIXES
from mustsee.text import LETTERS

ENDINGS = sorted({*SUFFIXES, *map(str.upper, SUFFIXES)})


def doc_to_visual(doc):
    folder = Path(os.environ.get("MUSTSEE_VIDEOS", "videos"))
    found = [folder / (doc["video_id"] + "." + ending) for ending in ENDINGS]
    found = [film for film in found if film.exists()]
    if not found:
        name = doc["video_id"]
        raise FileNotFoundError(f"no film for {name!r} in {str(folder)!r}: set MUSTSEE_VIDEOS")
    return [str(found[0])]


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    told = lmms_eval_specific_kwargs or {}
    listed = [f"{LETTERS[i]}. {option}" for i, option in enumerate(doc["options"])]
    text = "\\n".join([doc["question"], *listed])
    return told.get("pre_prompt", "") + text + told.get("post_prompt", "")


def doc_to_target(doc):
    return LETTERS[doc["answer_index"]]


def process_results(doc, results):
    found = extract(results[0], doc["options"])
    row = {
        "type": doc["question_type"],
        "right": float(found.letter == doc_to_target(doc)),
        "unparsed": float(found.letter is None),
        "rule": found.rule,
    }
    return {"accuracy": row, "mean_of_types": row, "unparsed": row}


def accuracy(rows):
    return sum(row["right"] for row in rows) / len(rows)


def mean_of_types(rows):
    kinds = {}
    for row in rows:
        kinds.setdefault(row["type"], []).append(row["right"])
    return sum(sum(k) / len(k) for k in kinds.values()) / len(kinds)


def unparsed(rows):
    return sum(row["unparsed"] for row in rows) / len(rows)
'''


def write(
    questions: Sequence[Question],
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    name: str = "mustsee",
) -> None:
    """The kept multiple-choice questions with a known answer as a task folder at `path`. Raises
    UserError for a name that cannot be a task's.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(f"name={name!r}: a task's name has small letters, digits and underscores")
    path = Path(path)
    asked = [q for q in questions if q.options and q.answer_index is not None]
    flat = [replace(q, subsets=()) for q in asked]
    hugging_face.write(flat, path, videos)
    data = path.resolve() / "data" / "test.parquet"
    (path / f"{name}.yaml").write_text(_YAML.format(name=name, data=data), encoding="utf-8")
    (path / "utils.py").write_text(_UTILS, encoding="utf-8")
