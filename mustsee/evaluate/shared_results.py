"""Results in the forms of other tools, whose numbers are those of `results.json`.

`every_eval_ever/`: in the form of Every Eval Ever (schema 0.3.0), for its datastore. Each answerer
gets a folder in the datastore's form, `data/<dataset>/<developer>/<model>/`, with a record of every
score and its interval, and a file of one line per question. Unknown facts (who serves the model,
whether its weights are open) are "unknown".

`inspect/<model>.eval`: as a log of Inspect, for its viewer (`inspect view --log-dir O/inspect`) and
other tools. It is written if `inspect_ai` is installed.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from mustsee.evaluate.answers import Answer, answers
from mustsee.evaluate.score import EvaluationResults
from mustsee.files.folders import write_json, write_json_lines
from mustsee.files.parquet import file_digest
from mustsee.records import Question
from mustsee.stats import Estimate
from mustsee.text import LETTERS

SCHEMA = "0.3.0"
UNPARSED = "unparsed"  # the only metric of which less is better
SCORER = "by_letter"  # name of the scorer in Inspect's logs
INSPECT_METRICS = {  # name of a score -> its name in Inspect's logs
    "accuracy": "accuracy",
    UNPARSED: UNPARSED,
    "mean of the types": "mean_of_types",
    "sets all right": "set_all_right",
    "sets share right squared": "set_squared",
    "pairs both right": "pair_both_right",
}


@dataclass(frozen=True, kw_only=True)
class RecordInfo:
    """The facts of a record besides the scores.

    `dataset`: its name. `when`: UNIX time. `version`: of mustsee. `asked_with`: the settings of the
    evaluation.
    """

    dataset: str
    when: float
    version: str
    asked_with: Mapping[str, Any]


def write_every_eval_ever(
    folder: Path,
    results: Sequence[EvaluationResults],
    questions: Sequence[Question],
    about: RecordInfo,
) -> list[Path]:
    """Write the records of all answerers; return their paths."""
    paths: list[Path] = []
    for one in results:
        name = "/".join(plain(p) for p in PurePath(one.model).parts[-2:])
        developer = name.split("/")[0] if "/" in name else "unknown"
        content = json.dumps([about.dataset, one.model, dict(about.asked_with), one.plain()])
        digest = hashlib.sha256(content.encode()).digest()
        key = str(uuid.UUID(bytes=digest[:16], version=4))  # equal results have equal names
        place = f"data/{plain(about.dataset)}/{developer}/{name.split('/')[-1]}"
        record = _record(one, name, about)
        lines = list(_samples(one, record, questions))
        path = folder / "every_eval_ever" / place / f"{key}.json"
        if lines:
            samples = path.with_name(f"{key}_samples.jsonl")
            write_json_lines(samples, lines)
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{place}/{samples.name}",
                "hash_algorithm": "sha256",
                "checksum": file_digest(samples),
                "total_rows": len(lines),
            }
        write_json(path, record)
        paths.append(path)
    return paths


def _record(one: EvaluationResults, name: str, about: RecordInfo) -> dict[str, Any]:
    when = f"{about.when:.3f}"
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{plain(about.dataset)}/{name}/{when}",
        "evaluation_timestamp": when,
        "retrieved_timestamp": when,
        "source_metadata": {
            "source_name": "Mustsee",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "mustsee", "version": about.version},
        "model_info": {
            "name": one.model,
            "id": name,
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": list(_results(one, about)),
    }


def _results(one: EvaluationResults, about: RecordInfo) -> Iterator[dict[str, Any]]:
    for name, estimate in _overall_scores(one).items():
        yield _result(name, "", estimate, about)
    for kind, group in one.types.items():
        if group.accuracy is not None:
            yield _result("accuracy", kind, group.accuracy, about)


def _overall_scores(one: EvaluationResults) -> dict[str, Estimate]:
    """Return the scores over all questions by name, of those that the answerer has."""
    unparsed = Estimate(
        value=one.unparsed, low=None, high=None, n=one.asked - one.failed, clusters=0, method=""
    )
    scores = {
        "accuracy": one.weighted,
        "mean of the types": one.macro,
        UNPARSED: unparsed if one.weighted else None,
        "judged right": one.written and one.written.judged,
        "sets all right": one.sets and one.sets.whole,
        "sets share right squared": one.sets and one.sets.squared,
        "pairs both right": one.pairs and one.pairs.whole,
    }
    return {name: score for name, score in scores.items() if score is not None}


def _result(name: str, kind: str, estimate: Estimate, about: RecordInfo) -> dict[str, Any]:
    return {
        "evaluation_result_id": f"{name}: {kind}" if kind else name,
        "evaluation_name": f"{about.dataset}: {kind}" if kind else about.dataset,
        "source_data": {
            "dataset_name": about.dataset,
            "source_type": "other",
        },
        "metric_config": {
            "evaluation_description": "Questions on long videos",
            "metric_id": name.replace(" ", "_"),
            "metric_name": name,
            "metric_kind": "error_rate" if name == UNPARSED else "accuracy",
            "metric_unit": "proportion",
            "lower_is_better": name == UNPARSED,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
        },
        "score_details": {"score": estimate.value, "uncertainty": _uncertainty(estimate)},
        "generation_config": {
            "additional_details": {k: _text(v) for k, v in about.asked_with.items()}
        },
    }  # fmt: skip


def _uncertainty(estimate: Estimate) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {"num_samples": estimate.n}
    if estimate.se is not None:
        uncertainty["standard_error"] = {"value": estimate.se, "method": "clustered by video"}
    if estimate.low is not None and estimate.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": estimate.low, "upper": estimate.high, "confidence_level": 0.95,
            "method": estimate.method,
        }  # fmt: skip
    return uncertainty


def _samples(
    one: EvaluationResults, record: Mapping[str, Any], questions: Sequence[Question]
) -> Iterator[dict[str, Any]]:
    """Yield a line for each question of `_answered_questions`."""
    for question, given in _answered_questions(one, questions):
        yield _sample(question, given, record)


def _answered_questions(
    one: EvaluationResults, questions: Sequence[Question]
) -> Iterator[tuple[Question, list[Answer]]]:
    """Yield each multiple-choice question with a known answer that has replies, with these."""
    for question in questions:
        if question.drop is None and question.options and question.answer_index is not None:
            given = [
                a for a in answers(question) if a.model == one.model and a.failed is None and a.rule
            ]
            if given:
                yield question, given


def _sample(
    question: Question, given: Sequence[Answer], record: Mapping[str, Any]
) -> dict[str, Any]:
    right = sum(a.correct is True for a in given) / len(given)
    reference = question.answer or question.options[question.answer_index or 0]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": record["evaluation_id"],
        "model_id": record["model_info"]["id"],
        "evaluation_name": record["evaluation_results"][0]["evaluation_name"],
        "evaluation_result_id": "accuracy",
        "sample_id": question.question_id,
        "sample_hash": hashlib.sha256((question.question + reference).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": question.question,
            "reference": [reference],
            "choices": list(question.options),
        },
        "output": {"raw": [a.reply for a in given]},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": a.letter or "",
                "extraction_method": a.rule,
                "is_terminal": True,
            }
            for a in given
        ],
        "evaluation": {"score": right, "is_correct": right == 1.0},
        "metadata": {"video": question.video_id, "type": question.question_type},
    }


def plain(name: str) -> str:
    """Return a name that is valid for a folder."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "unknown"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def has_inspect() -> bool:
    """Whether `inspect_ai` is installed. Does not import it."""
    return importlib.util.find_spec("inspect_ai") is not None


def write_inspect_log(
    folder: Path,
    results: Sequence[EvaluationResults],
    questions: Sequence[Question],
    about: RecordInfo,
) -> list[Path]:
    """Write a log for each answerer with replies to multiple-choice questions; return the paths."""
    logs = importlib.import_module("inspect_ai.log")
    paths: list[Path] = []
    for one in results:
        samples = list(_inspect_samples(one, questions))
        if one.weighted is None or not samples:
            continue
        log = logs.EvalLog(
            status="success",
            eval=logs.EvalSpec(
                created=datetime.fromtimestamp(about.when, UTC).isoformat(),
                task=about.dataset,
                dataset=logs.EvalDataset(name=about.dataset, samples=one.asked),
                model=one.model,
                config=logs.EvalConfig(),
                metadata=dict(about.asked_with),
            ),
            results=logs.EvalResults(
                total_samples=one.asked,
                completed_samples=len(samples),
                scores=[_inspect_score(logs, one)],
            ),
            samples=samples,
        )
        path = folder / "inspect" / f"{plain(one.model)}.eval"
        path.parent.mkdir(parents=True, exist_ok=True)
        logs.write_eval_log(log, str(path))
        paths.append(path)
    return paths


def _inspect_score(logs: Any, one: EvaluationResults) -> Any:
    scores = _overall_scores(one)
    values = {
        theirs: scores[name].value for name, theirs in INSPECT_METRICS.items() if name in scores
    }
    if (standard_error := scores["accuracy"].se) is not None:
        values["stderr"] = standard_error
    metrics = {name: logs.EvalMetric(name=name, value=value) for name, value in values.items()}
    return logs.EvalScore(name=SCORER, scorer=SCORER, metrics=metrics)


def _inspect_samples(one: EvaluationResults, questions: Sequence[Question]) -> Iterator[Any]:
    """Yield a sample for each reply; rotations of the options are epochs of their question."""
    logs, models, scorer = (
        importlib.import_module(f"inspect_ai.{name}") for name in ("log", "model", "scorer")
    )
    for question, given in _answered_questions(one, questions):
        for number, answer in enumerate(given, 1):
            yield logs.EvalSample(
                id=question.question_id,
                epoch=number,
                input=question.question,
                choices=list(question.options),
                target=LETTERS[question.answer_index or 0],
                output=models.ModelOutput.from_content(one.model, answer.reply),
                scores={
                    SCORER: scorer.Score(
                        value=scorer.CORRECT if answer.correct else scorer.INCORRECT,
                        answer=answer.letter,
                        explanation=answer.rule,
                    )
                },
                metadata={"video_id": question.video_id, "type": question.question_type},
            )
