"""A task for lmms-eval: `<name>.yaml`, `utils.py`, how replies are read, and the data beside them.

    python -m lmms_eval --model M --tasks NAME --include_path FOLDER

The folder may be moved: no path in it is absolute, and nothing imports this project. Replies are
read by a copy of `mustsee.extract` (in `reading/`), so that a score there is the score here:
letters are those of the question's own options, and the camera wearer C is no letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mustsee import extract, text, thoughts
from mustsee.errors import UserError
from mustsee.layouts import hugging_face, lmms_task
from mustsee.layouts.reading import first
from mustsee.records import Question, Video

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
_READING = '''\
"""How replies are read: a copy of `extract` of Mustsee (Apache License 2.0), unchanged but for
the places that it imports from.
"""

from .choice import extract

__all__ = ["extract"]
'''
_BESIDE = """\
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: !function utils.DATA"""


def write(
    questions: Sequence[Question],
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
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(f"name={name!r}: a task's name has small letters, digits and underscores")
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    if dataset is None:
        asked = [q for q in first(questions) if q.options and q.answer_index is not None]
        hugging_face.write([replace(q, subsets=()) for q in asked], path, videos)
    data = _BESIDE if dataset is None else f"dataset_path: {dataset}"
    told = _YAML.format(
        name=name, data=data, split="test" if dataset is None else split, tokens=tokens
    )
    (path / f"{name}.yaml").write_text(told, encoding="utf-8")
    (path / "utils.py").write_text(_source(lmms_task.__file__), encoding="utf-8")
    _write_reading(path / "reading")


def _write_reading(folder: Path) -> None:
    """What `extract` is made of, as a package that needs nothing else."""
    folder.mkdir(exist_ok=True)
    parts = Path(extract.__file__).parent
    files = {
        p.name: _source(p)
        for p in sorted(parts.glob("*.py"))
        if p.name not in ("__init__.py", "official.py")
    }
    files |= {
        "__init__.py": _READING,
        "scripts.py": _source(text.__file__),
        "thoughts.py": _source(thoughts.__file__),
    }
    moved = {"extract.": ".", "text ": ".scripts ", "thoughts ": ".thoughts "}
    for name, source in files.items():
        for theirs, ours in moved.items():
            source = re.sub(rf"(?m)^from mustsee\.{re.escape(theirs)}", f"from {ours}", source)
        (folder / name).write_text(source, encoding="utf-8")


def _source(file: str | Path | None) -> str:
    assert file is not None
    return Path(file).read_text(encoding="utf-8")
