"""How the questions of this task are asked and scored in lmms-eval.

This file is copied into every exported task as its `utils.py`, with the reading of replies in the
folder `reading` beside it; neither imports Mustsee. Films are looked for in the folder that the
variable MUSTSEE_VIDEOS names, else in `videos/` beside this file.
"""

import importlib.util
import os
import string
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = str(HERE / "data" / "test.parquet")  # lmms-eval is started from anywhere
ENDINGS = ("mp4", "mkv", "webm", "mov", "avi", "m4v", "mpg", "mpeg", "ts", "m2ts", "mts", "wmv",
           "flv", "3gp", "ogv", "vob", "mxf")  # fmt: skip


def process_docs(dataset: Any) -> Any:
    """The multiple-choice questions with a known answer, those made from others left out."""
    return dataset.filter(
        lambda doc: (
            bool(doc["options"]) and doc["answer_index"] is not None and not doc.get("sibling_of")
        )
    )


def doc_to_visual(doc: dict[str, Any]) -> list[str]:
    folder = Path(os.environ.get("MUSTSEE_VIDEOS") or HERE / "videos")
    whole = doc.get("video") or ""
    endings = [*ENDINGS, *map(str.upper, ENDINGS)]
    names = [f"{doc['video_id']}.{ending}" for ending in endings]
    clip = doc.get("start") is not None
    names = [n for n in names if n != whole] if clip else [whole, *names]
    found = next((folder / n for n in names if n and (folder / n).is_file()), None)
    if found is not None:
        return [str(found)]
    told = f"no film for {doc['video_id']!r} in {str(folder)!r}: set MUSTSEE_VIDEOS"
    if clip and whole:
        target = f"{doc['video_id']}{Path(whole).suffix}"
        told += (
            f", and cut the clip: ffmpeg -ss {doc['start']} -to {doc['end']} -i {whole} -c copy "
            f"{target if target != whole else 'clips/' + target}"
        )
    raise FileNotFoundError(told)


def doc_to_text(doc: dict[str, Any], lmms_eval_specific_kwargs: Any = None) -> str:
    told = lmms_eval_specific_kwargs or {}
    options = zip(string.ascii_uppercase, doc["options"], strict=False)
    text = "\n".join([doc["question"], *(f"{letter}. {option}" for letter, option in options)])
    return told.get("pre_prompt", "") + text + told.get("post_prompt", "")


def doc_to_target(doc: dict[str, Any]) -> str:
    return string.ascii_uppercase[doc["answer_index"]]


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, dict[str, Any]]:
    """A row for each metric. `score` is what errors are told from: that of a mean of types would
    be wrong by the plain formula, so its rows have none.
    """
    found = _reading().extract(results[0], doc["options"])
    row = {
        "question_id": doc["question_id"],
        "video_id": doc.get("film") or doc["video_id"],
        "type": doc["question_type"],
        "right": float(found.letter == doc_to_target(doc)),
        "letter": found.letter,
        "rule": found.rule,
    }
    return {
        "accuracy": {**row, "score": row["right"]},
        "mean_of_types": row,
        "unparsed": {**row, "score": float(found.letter is None)},
    }


def mean_score(rows: list[dict[str, Any]]) -> float:
    return sum(row["score"] for row in rows) / len(rows)


def mean_of_types(rows: list[dict[str, Any]]) -> float:
    kinds: dict[str, list[float]] = {}
    for row in rows:
        kinds.setdefault(row["type"], []).append(row["right"])
    return sum(sum(k) / len(k) for k in kinds.values()) / len(kinds)


def _reading() -> ModuleType:
    """The package `reading`, under a name of this folder's own: two tasks may be loaded at once,
    and lmms-eval loads this file anew for every function that it takes from it.
    """
    name = f"mustsee_reading_{abs(hash(str(HERE)))}"
    if name not in sys.modules:
        folder = HERE / "reading"
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
