"""Ask and score the questions of this task in lmms-eval.

This file is copied into every exported task as its `utils.py`, beside the package `reading` that
parses replies; neither imports Mustsee. Videos are read from the folder in the environment variable
MUSTSEE_VIDEOS, else from `videos/` beside this file.
"""

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = str(HERE / "data" / "test.parquet")  # absolute, because lmms-eval starts in any folder


def process_docs(dataset: Any) -> Any:
    """Return the multiple-choice questions with a known answer."""
    return dataset.filter(_reading().is_multiple_choice)


def open_docs(dataset: Any) -> Any:
    """Return the open-ended questions with a known answer."""
    return dataset.filter(_reading().is_open_ended)


def points_docs(dataset: Any) -> Any:
    """Return the questions with points. Raises RuntimeError unless their grader is named."""
    _reading().check_grader()
    return dataset.filter(_reading().has_points)


def doc_to_visual(doc: dict[str, Any]) -> list[str]:
    return [_reading().video_path(doc, HERE)]


def doc_to_text(doc: dict[str, Any], lmms_eval_specific_kwargs: Any = None) -> str:
    prompts = lmms_eval_specific_kwargs or {}
    ending = prompts.get("post_prompt", "")
    if _reading().has_points(doc):
        ending = ending.format(_reading().answer_words(doc))
    return prompts.get("pre_prompt", "") + _reading().question_text(doc) + ending


def doc_to_target(doc: dict[str, Any]) -> str:
    return _reading().letter(doc) if doc["options"] else doc["answer"]


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, dict[str, Any]]:
    """Return a row per metric.

    lmms-eval computes standard errors from `score`; the rows of `mean_of_types` and of groups have
    none, because its formula does not fit them. Open-ended answers have `judged` if there is a
    judge; answers to questions with points have `points` if they could be graded.
    """
    if _reading().has_points(doc):
        row = _reading().grade_reply(doc, results[0])
        scores = {name: row[name] for name in ("points", "ungraded") if row[name] is not None}
        return {name: {**row, "score": s} for name, s in scores.items()}
    if not doc["options"]:
        row = _reading().compare_reply(doc, results[0])
        scores = {"token_f1": row["f1"], "judged": row.get("judged")}
        return {name: {**row, "score": s} for name, s in scores.items() if s is not None}
    row = _reading().score_reply(doc, results[0])
    rows = {
        "accuracy": {**row, "score": row["right"]},
        "mean_of_types": row,
        "unparsed": {**row, "score": row["unparsed"]},
    }
    if doc.get("group") is not None:
        rows |= dict.fromkeys(_reading().GROUP_METRICS.get(doc.get("relation"), ()), row)
    return rows


def mean_score(rows: list[dict[str, Any]]) -> float:
    return _reading().mean(rows, "score")


def mean_of_types(rows: list[dict[str, Any]]) -> float:
    return _reading().mean_of_types(rows)


def set_all_right(rows: list[dict[str, Any]]) -> float:
    return _reading().group_scores(rows).get("set_all_right", math.nan)


def set_squared(rows: list[dict[str, Any]]) -> float:
    return _reading().group_scores(rows).get("set_squared", math.nan)


def pair_both_right(rows: list[dict[str, Any]]) -> float:
    return _reading().group_scores(rows).get("pair_both_right", math.nan)


def _reading() -> ModuleType:
    """Return the package `reading`, imported under a name derived from this folder.

    Several tasks may be loaded at once, and lmms-eval reloads this file for every function.
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
