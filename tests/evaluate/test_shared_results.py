"""Results in the forms of others: Every Eval Ever against its schema, Inspect's log by Inspect.

pip download --no-deps every-eval-ever; unzip it into X; PYTHONPATH=X python -m pytest ...
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mustsee.evaluate import answers, shared_results
from mustsee.evaluate.score import EvaluationResults, score
from mustsee.evaluate.shared_results import RecordInfo
from mustsee.records import Question, Video
from tests.layouts.test_lmms_eval import made, replies

ABOUT = RecordInfo(
    dataset="demo", when=1_750_000_000.0, version="1", asked_with={"frames": 8, "limit": None}
)


def evaluated(model: str = "org/some model: 7B") -> tuple[list[EvaluationResults], list[Question]]:
    asked = [q for q in made() if q.drop is None]
    rows = [{"question_id": q.question_id, "answer_index": q.answer_index, "answer": q.answer}
            for q in asked]  # fmt: skip
    given = replies(rows)
    answered = [
        answers.with_answers(q, [answers.verdict_on_reply(q, given[q.question_id], model=model)])
        for q in asked[:-1]
    ]
    failed = answers.with_answers(asked[-1], [answers.verdict_on_failure("timeout", model=model)])
    videos = [Video(video_id=q.video_id, uri="") for q in asked]
    return score([*answered, failed], videos), [*answered, failed]


def record(folder: Path, **about: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    results, asked = evaluated()
    (path,) = shared_results.write_every_eval_ever(folder, results, asked, replace(ABOUT, **about))
    found = json.loads(path.read_text())
    lines = folder / "every_eval_ever" / found["detailed_evaluation_results"]["file_path"]
    return found, [json.loads(line) for line in lines.read_text().splitlines()]


def test_shared_records_hold_the_numbers_of_the_results(tmp_path: Path) -> None:
    (ours,), _ = evaluated()
    found, lines = record(tmp_path)
    scores = {r["evaluation_result_id"]: r["score_details"] for r in found["evaluation_results"]}
    assert ours.weighted is not None
    assert ours.macro is not None
    assert scores["accuracy"]["score"] == ours.weighted.value
    uncertainty = scores["accuracy"]["uncertainty"]
    assert uncertainty["confidence_interval"]["lower"] == ours.weighted.low
    assert uncertainty["num_samples"] == 8  # a call that failed is not an answer
    assert scores["mean of the types"]["score"] == ours.macro.value
    assert scores["unparsed"]["score"] == ours.unparsed > 0
    assert set(scores) > {"accuracy: Counting", "accuracy: Summarization"}
    assert len(lines) == found["detailed_evaluation_results"]["total_rows"] == 8
    assert sum(line["evaluation"]["score"] for line in lines) / 8 == ours.weighted.value
    assert found["model_info"]["id"] == "org/some-model-7B"
    assert {line["evaluation_id"] for line in lines} == {found["evaluation_id"]}


def test_equal_results_have_equal_file_names(tmp_path: Path) -> None:
    record(tmp_path / "a")
    record(tmp_path / "b", when=2e9)
    first, second = (sorted(p.name for p in (tmp_path / n).rglob("*.json*")) for n in "ab")
    assert first == second


def test_records_are_valid_by_the_official_schema(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("every_eval_ever")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("every_eval_ever, which brings the schema, is not installed")
    import jsonschema

    folder = Path(spec.submodule_search_locations[0]) / "schemas"
    found, lines = record(tmp_path)
    whole = json.loads((folder / "eval.schema.json").read_text())
    assert whole["version"] == shared_results.SCHEMA
    jsonschema.Draft7Validator(whole).validate(found)
    each = json.loads((folder / "instance_level_eval.schema.json").read_text())
    for line in lines:
        jsonschema.Draft7Validator(each).validate(line)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(whole).validate({**found, "model_info": {"name": "m"}})


def test_inspect_reads_the_log(tmp_path: Path) -> None:
    if not shared_results.has_inspect():
        pytest.skip("inspect_ai is not installed")
    from inspect_ai.log import read_eval_log

    results, asked = evaluated()
    (path,) = shared_results.write_inspect_log(tmp_path, results, asked, ABOUT)
    log = read_eval_log(str(path))
    assert log.status == "success"
    assert log.results is not None
    metrics = log.results.scores[0].metrics
    assert results[0].weighted is not None
    assert metrics["accuracy"].value == results[0].weighted.value
    assert log.samples is not None
    right = [s.scores["by_letter"].value == "C" for s in log.samples if s.scores]
    assert sum(right) / len(right) == results[0].weighted.value
    assert log.samples[0].output.completion.startswith("<think>")
