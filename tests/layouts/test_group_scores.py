"""Exported sets and pairs have the scores that `evaluate` gives them, in every task."""

from __future__ import annotations

import csv
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import mustsee
from mustsee.evaluate.score import EvaluationResults
from mustsee.layouts import hugging_face, portable, task_scoring, tasks
from mustsee.records import PAIR, SET, Question
from tests.layouts.test_lmms_eval import INSIDE, evaluated, loaded, made
from tests.layouts.test_portable import INSPECT, KIT, outside

OPTIONS = ("a red cup", "a blue jug", "a green jar")
WRITERS = {
    "hf": hugging_face.write,
    "lmms_eval": tasks.write_lmms_eval,
    "inspect": tasks.write_inspect,
    "vlmevalkit": tasks.write_vlmevalkit,
}


def questions() -> list[Question]:
    """Return a set that is answered right, one that is right in two of three, one of which one
    question is kept, two pairs of which one is right, and nine questions of no group.
    """
    base = replace(made(1)[0], options=OPTIONS, subsets=(), form="after")
    grouped = [
        replace(base, question_id=f"{kind}{g}{n}", question=f"What, {kind} {g} {n}?",
                video_id=f"v{g}", answer_index=n, answer=OPTIONS[n], relation=kind,
                group=f"{kind}{g}0", drop="sight: wrong" if (kind, g) == (SET, 2) and n else None)
        for kind, count, size in ((SET, 3, 3), (PAIR, 2, 2))
        for g in range(count)
        for n in range(size)
    ]  # fmt: skip
    return [*grouped, *(replace(q, subsets=()) for q in made())]


WRONG = {"set12", "pair11"}


def replies(some: list[Question]) -> dict[str, str]:
    def letter(question: Question) -> str:
        shift = question.question_id in WRONG or question.question_id == "q3"
        return "ABCDEF"[((question.answer_index or 0) + shift) % len(question.options)]

    return {q.question_id: letter(q) for q in some}


def check_scores(scores: Mapping[str, float], expected: EvaluationResults) -> None:
    assert expected.sets is not None
    assert expected.pairs is not None
    assert (expected.sets.whole.n, expected.pairs.whole.n) == (2, 2)
    wanted = {
        "set_all_right": expected.sets.whole.value,
        "set_squared": expected.sets.squared.value,
        "pair_both_right": expected.pairs.whole.value,
    }
    assert wanted == pytest.approx(
        {"set_all_right": 1 / 2, "set_squared": (1 + 4 / 9) / 2, "pair_both_right": 1 / 2}
    )
    assert {name: scores[name] for name in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_groups_and_forms_are_read_back(tmp_path: Path, write: Any) -> None:
    write(questions(), tmp_path)
    kept = [q for q in questions() if q.drop is None]
    columns = ("question_id", "group", "relation", "form")
    assert [[getattr(q, c) for c in columns] for q in mustsee.read(tmp_path)] == [
        [getattr(q, c) for c in columns] for q in kept
    ]


def test_the_lmms_eval_task_scores_groups_as_evaluate_does(tmp_path: Path) -> None:
    tasks.write_lmms_eval(questions(), tmp_path, name="our_task")
    task = loaded(tmp_path)
    rows = pq.read_table(task["dataset_kwargs"]["data_files"]["test"]).to_pylist()
    given = replies(questions())
    results = [task["process_results"](row, [given[row["question_id"]]]) for row in rows]
    scores = {
        m["metric"]: m["aggregation"]([r[m["metric"]] for r in results if m["metric"] in r])
        for m in task["metric_list"]
    }
    expected = evaluated(tmp_path, given)
    check_scores(scores, expected)
    assert expected.weighted is not None
    assert scores["accuracy"] == pytest.approx(expected.weighted.value)
    listed = {m["metric"] for m in task["metric_list"]}
    assert all(result.keys() <= listed for result in results)  # else lmms-eval has no aggregation


def test_tasks_without_groups_have_no_scores_of_groups(tmp_path: Path) -> None:
    for name, write in WRITERS.items():
        write(made(), tmp_path / name)
    listed = yaml.safe_load(
        (tmp_path / "lmms_eval" / "mustsee.yaml").read_text().replace("!function ", "")
    )["metric_list"]
    assert [m["metric"] for m in listed] == ["accuracy", "mean_of_types", "unparsed"]
    task = (tmp_path / "inspect" / "mustsee.py").read_text()
    assert "mean_of_types(), unparsed()])" in task
    assert "Sets and pairs" not in (tmp_path / "hf" / "README.md").read_text()


def test_the_package_of_a_task_scores_groups_alone(tmp_path: Path) -> None:
    """A row of the kit's table has no group as NaN, which its class turns to None."""
    tasks.write_vlmevalkit(questions(), tmp_path, name="our_task")
    reading = load_package(tmp_path / "reading")
    with (tmp_path / "our_task.tsv").open(newline="") as file:
        table = list(csv.DictReader(file, dialect="excel-tab"))
    options = {q.question_id: q for q in questions()}
    given = replies(questions())
    rows: list[dict[str, Any]] = [
        {**line, "group": line["group"] or None, "answer_index": int(line["answer_index"]),
         "options": list(options[line["question_id"]].options)}
        for line in table
    ]  # fmt: skip
    scored = [reading.score_reply(row, given[row["question_id"]]) for row in rows]
    check_scores(reading.group_scores(scored), evaluated(tmp_path, given))
    assert reading.group_scores([r for r in scored if r["group"] is None]) == {}
    assert task_scoring.group_scores(scored) == reading.group_scores(scored)


def load_package(folder: Path) -> ModuleType:
    name = "reading_of_groups"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_card_counts_sets_pairs_and_forms(tmp_path: Path) -> None:
    hugging_face.write(questions(), tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "| after | 11 |" in card
    assert "- 2 sets of 3 questions (6 questions;" in card
    assert "- 2 pairs" in card
    tasks = yaml.safe_load((tmp_path / "eval.yaml").read_text())["tasks"]
    assert tasks[0]["field_spec"]["metadata"][-3:] == ["group", "relation", "form"]


def exported(tmp_path: Path, write: Any) -> tuple[Path, dict[str, str]]:
    write(questions(), tmp_path / "task", name="our_task")
    (tmp_path / "videos").mkdir()
    for number in range(5):
        (tmp_path / "videos" / f"v{number}.mp4").touch()
    rows = portable.rows(portable.multiple_choice_questions(questions()), [])
    known = replies(questions())
    return tmp_path / "task", {row["question_id"]: known[row["question_id"]] for row in rows}


@pytest.mark.slow
def test_lmms_eval_itself_scores_groups_as_evaluate_does(tmp_path: Path) -> None:
    if importlib.util.find_spec("lmms_eval") is None:
        pytest.skip("lmms-eval is not installed")
    folder, given = exported(tmp_path, tasks.write_lmms_eval)
    results = outside(INSIDE, folder, tmp_path, given, "our_task")
    check_scores({k.partition(",")[0]: v for k, v in results.items()}, evaluated(folder, given))


@pytest.mark.slow
def test_inspect_itself_scores_groups_as_evaluate_does(tmp_path: Path) -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    folder, given = exported(tmp_path, tasks.write_inspect)
    check_scores(outside(INSPECT, folder, tmp_path, given), evaluated(folder, given))


@pytest.mark.slow
def test_vlmevalkit_itself_scores_groups_as_evaluate_does(tmp_path: Path) -> None:
    if importlib.util.find_spec("vlmeval") is None:
        pytest.skip("VLMEvalKit is not installed")
    folder, given = exported(tmp_path, tasks.write_vlmevalkit)
    (tmp_path / "kit").mkdir()
    script = KIT.replace("len(data) == 9", "len(data) == 20")
    script = script[: script.index("prompt =")] + script[script.index("from vlmeval.smp") :]
    results = outside(script, folder, tmp_path, given, LMUData=str(tmp_path / "kit"))
    check_scores(results, evaluated(folder, given))
