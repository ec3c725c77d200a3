"""A task for lmms-eval: `<name>.yaml`, `utils.py`, how replies are read, and the data beside them.

    python -m lmms_eval --model M --tasks NAME --include_path FOLDER

It may be moved, and scores as we do (`mustsee.layouts.portable`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from mustsee.layouts import hugging_face, lmms_task, portable
from mustsee.layouts.reading import Again, Questions
from mustsee.records import Video

_YAML = """\
task: {name}
{data}
test_split: {split}
process_docs: !function utils.process_docs
output_type: generate_until
cluster_key: video_id           # questions on one film err together
score_key: score
reasoning_tags: [["<think>", "</think>"], ["<thinking>", "</thinking>"], ["◁think▷", "◁/think▷"]]
doc_to_visual: !function utils.doc_to_visual
doc_to_text: !function utils.doc_to_text
doc_to_target: !function utils.doc_to_target
process_results: !function utils.process_results
generation_kwargs:
  max_new_tokens: {tokens}
  until: []                     # without it a blank line ends the reply, in the midst of thoughts
  temperature: 0
  top_p: 1.0
  num_beams: 1
  do_sample: false
metric_list:
  - metric: accuracy
    aggregation: !function utils.mean_score
    higher_is_better: true
  - metric: mean_of_types
    aggregation: !function utils.mean_of_types
    higher_is_better: true
  - metric: unparsed
    aggregation: !function utils.mean_score
    higher_is_better: false
lmms_eval_specific_kwargs:
  default:
    pre_prompt: ""
    post_prompt: "\\nAnswer with the letter of the best option."
metadata:
  - version: 2.0
"""
_BESIDE = """\
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: !function utils.DATA"""


def write(
    questions: Questions,
    path: str | Path,
    videos: Iterable[Video] = (),
    *,
    name: str = "mustsee",
    dataset: str | None = None,
    split: str = "test",
    tokens: int = 4096,
) -> None:
    """The kept multiple-choice questions with a known answer as a task folder at `path`.

    `dataset`: the id of a published folder (`layout=hf`); the task then takes its data from there,
    from its `split`, and the folder holds none. `tokens`: room for a reply with its thoughts.
    Raises UserError for a name that cannot be a task's.
    """
    portable.check_name(name)
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    if dataset is None:
        chosen = portable.chosen(questions)
        asked = Again(lambda: (replace(q, subsets=()) for q in chosen))
        hugging_face.write(asked, path, videos)
    data = _BESIDE if dataset is None else f"dataset_path: {dataset}"
    told = _YAML.format(
        name=name, data=data, split="test" if dataset is None else split, tokens=tokens
    )
    (path / f"{name}.yaml").write_text(told, encoding="utf-8")
    (path / "utils.py").write_text(portable.source_of(lmms_task.__file__), encoding="utf-8")
    portable.write_reading(path / "reading")
