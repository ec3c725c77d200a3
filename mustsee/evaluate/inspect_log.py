"""`inspect/<model>.eval`: an evaluation as a log of Inspect, for its viewer and other tools.

    inspect view --log-dir O/inspect

It is written if `inspect_ai` is installed. Scores are copied from `results.json`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mustsee.evaluate.answers import answers
from mustsee.evaluate.every_eval_ever import RecordInfo, plain
from mustsee.evaluate.score import EvaluationResults
from mustsee.records import Question
from mustsee.text import LETTERS

SCORER = "by_letter"


def there() -> bool:
    """Whether `inspect_ai` is installed. Does not import it."""
    return importlib.util.find_spec("inspect_ai") is not None


def write(
    folder: Path,
    results: Sequence[EvaluationResults],
    questions: Sequence[Question],
    about: RecordInfo,
) -> list[Path]:
    """Write a log for each answerer with replies to multiple-choice questions; return the paths."""
    logs = importlib.import_module("inspect_ai.log")
    paths: list[Path] = []
    for one in results:
        samples = list(_samples(one, questions))
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
                total_samples=one.asked, completed_samples=len(samples), scores=[_score(logs, one)]
            ),
            samples=samples,
        )
        path = folder / "inspect" / f"{plain(one.model)}.eval"
        path.parent.mkdir(parents=True, exist_ok=True)
        logs.write_eval_log(log, str(path))
        paths.append(path)
    return paths


def _score(logs: Any, one: EvaluationResults) -> Any:
    values = {"accuracy": one.weighted.value if one.weighted else 0.0, "unparsed": one.unparsed}
    if one.weighted is not None and one.weighted.se is not None:
        values["stderr"] = one.weighted.se
    if one.macro is not None:
        values["mean_of_types"] = one.macro.value
    if one.sets is not None:
        values |= {"set_all_right": one.sets.whole.value, "set_squared": one.sets.squared.value}
    if one.pairs is not None:
        values["pair_both_right"] = one.pairs.whole.value
    metrics = {name: logs.EvalMetric(name=name, value=value) for name, value in values.items()}
    return logs.EvalScore(name=SCORER, scorer=SCORER, metrics=metrics)


def _samples(one: EvaluationResults, questions: Sequence[Question]) -> Iterator[Any]:
    """Yield a sample for each reply; rotations of the options are epochs of their question."""
    logs, models, scorer = (
        importlib.import_module(f"inspect_ai.{name}") for name in ("log", "model", "scorer")
    )
    for question in questions:
        if question.drop is not None or question.answer_index is None:
            continue
        given = [a for a in answers(question) if a.model == one.model and a.failed is None]
        for number, answer in enumerate((a for a in given if a.rule), 1):
            yield logs.EvalSample(
                id=question.question_id,
                epoch=number,
                input=question.question,
                choices=list(question.options),
                target=LETTERS[question.answer_index],
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
