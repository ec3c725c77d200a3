"""Exports of tasks for lmms-eval, Inspect and VLMEvalKit.

    python -m lmms_eval --model M --tasks NAME[,NAME_open,NAME_points] --include_path FOLDER
    inspect eval FOLDER/NAME.py --model M [-T show=frames]
    cd VLMEvalKit; python FOLDER/run_NAME.py --config FOLDER/NAME.json

Each folder has the package `reading`, which parses replies: it can be moved, and scores as Mustsee
does (`mustsee.layouts.portable`). The functions return a line that says where the video files
belong, and raise UserError for an invalid name.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mustsee.files.folders import write_json, write_json_lines
from mustsee.layouts import hugging_face, lmms_task, portable
from mustsee.layouts.reading import Questions, Rereadable, by_id
from mustsee.records import Video

_YAML = """\
task: {name}
{data}
test_split: {split}
process_docs: !function utils.{asked}
output_type: generate_until
cluster_key: video_id           # errors of questions on one video are correlated
score_key: score
reasoning_tags: [["<think>", "</think>"], ["<thinking>", "</thinking>"], ["◁think▷", "◁/think▷"]]
doc_to_visual: !function utils.doc_to_visual
doc_to_text: !function utils.doc_to_text
doc_to_target: !function utils.doc_to_target
process_results: !function utils.process_results
generation_kwargs:
  max_new_tokens: {tokens}
  until: []                     # else a blank line would end the reply within its reasoning
  temperature: 0
  top_p: 1.0
  num_beams: 1
  do_sample: false
metric_list:
{metrics}
lmms_eval_specific_kwargs:
  default:
    pre_prompt: ""
    post_prompt: "\\n{ending}"
metadata:
  - version: 2.0
"""
_METRIC = """\
  - metric: {}
    aggregation: !function utils.{}
    higher_is_better: {}"""


def _metrics(*metrics: tuple[str, str, str]) -> str:
    return "\n".join(_METRIC.format(*metric) for metric in metrics)


_CHOICE = {"asked": "process_docs", "ending": "Answer with the letter of the best option."}
_CHOICE_METRICS = (
    ("accuracy", "mean_score", "true"),
    ("mean_of_types", "mean_of_types", "true"),
    ("unparsed", "mean_score", "false"),
)
_OPEN = {
    "asked": "open_docs",
    "ending": "Answer in a few words.",
    "metrics": _metrics(("judged", "mean_score", "true"), ("token_f1", "mean_score", "true")),
}
_POINTS = {
    "asked": "points_docs",
    "ending": "Answer in full, in at most {} words: all that the question needs, and nothing else.",
    "metrics": _metrics(("points", "mean_score", "true"), ("ungraded", "mean_score", "false")),
}
_LOCAL_DATA = """\
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: !function utils.DATA"""


def write_lmms_eval(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    name: str = "mustsee",
    dataset: str | None = None,
    split: str = "test",
    tokens: int = 4096,
) -> str:
    """Write the kept questions with a known answer as a task folder at `path`.

    Multiple-choice questions are the task `name`, open-ended ones `<name>_open`, and those with
    points `<name>_points`. Sets and pairs are scored as groups beside their questions. `dataset` is
    the id of a published folder (`layout=hf`), from whose `split` the task then takes its data
    instead of the folder. `tokens` is the limit of a reply with its reasoning. Returns a line that
    says where the video files belong. Raises UserError for an invalid name.
    """
    path = portable.make_folder(path, name)
    if dataset is None:
        portable_rows = portable.portable_questions(questions)
        without_subsets = Rereadable(lambda: (replace(q, subsets=()) for q in portable_rows))
        hugging_face.write(without_subsets, path, videos)
    data = _LOCAL_DATA if dataset is None else f"dataset_path: {dataset}"
    split = "test" if dataset is None else split
    group_metrics = [(m, m, "true") for m in portable.group_metrics(questions)]
    forms = {name: {**_CHOICE, "metrics": _metrics(*_CHOICE_METRICS, *group_metrics)}}
    for ending in portable.open_tasks(questions):
        forms[f"{name}_{ending}"] = {"open": _OPEN, "points": _POINTS}[ending]
    for task, form in forms.items():
        text = _YAML.format(name=task, data=data, split=split, tokens=tokens, **form)
        (path / f"{task}.yaml").write_text(text, encoding="utf-8")
    (path / "utils.py").write_text(portable.source_of(lmms_task.__file__), encoding="utf-8")
    return portable.complete_task(path, questions, videos)


def write_inspect(
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
    path = portable.make_folder(path, name)
    unique_videos = by_id(videos).values()
    tasks = {name: portable.multiple_choice_questions(questions)}
    tasks |= {f"{name}_{end}": some for end, some in portable.open_tasks(questions).items()}
    metrics = "".join(f", {metric}()" for metric in portable.group_metrics(questions))
    for task, task_questions in tasks.items():
        write_json_lines(path / f"{task}.jsonl", portable.rows(task_questions, unique_videos))
        values = {"name": task, "tokens": str(tokens), "group_metrics": metrics}
        portable.write_template("inspect_task.py.j2", path / f"{task}.py", **values)
    return portable.complete_task(path, questions, unique_videos)


def write_vlmevalkit(
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
    path = portable.make_folder(path, name)
    with (path / f"{name}.tsv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, "excel-tab")
        table.writerow(["index", *portable.COLUMNS])
        for number, row in enumerate(
            portable.rows(portable.multiple_choice_questions(questions), videos)
        ):
            row["video"] = row["video"] or row["video_id"]  # never empty: the kit sorts by it
            table.writerow([number, *(_cell(row[c]) for c in portable.COLUMNS)])
    values = {"name": name, "cls": "".join(part.title() for part in name.split("_"))}
    portable.write_template("vlmevalkit_task.py.j2", path / f"{name}_video.py", **values)
    portable.write_template("vlmevalkit_run.py.j2", path / f"run_{name}.py", **values)
    entries = {
        f"{name}_{n}frame": {"class": values["cls"], "dataset": name, "nframe": n} for n in frames
    }
    chosen = {"model": {model: {}} if model else {}, "data": entries}
    write_json(path / f"{name}.json", chosen, indent=4)
    return portable.complete_task(path, questions, videos)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
