"""Scores of MLVU's two graded tasks, from the grades of `mustsee.evaluate.rubric`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee import stats
from mustsee.evaluate import metrics
from mustsee.evaluate.answers import Answer, grades_of, mean_of
from mustsee.evaluate.rubric import SCALES
from mustsee.records import Question
from mustsee.stats import Estimate


@dataclass(frozen=True, kw_only=True)
class Rubric:
    """Scores of MLVU's graded tasks, 2 to 10 each.

    `scales`: the mean of each scale, 1 to 5. `g_avg`: the mean of the tasks (G-Avg). `failed`: by
    task, the number of answers without a grade. `grader`: the model that graded.
    """

    tasks: Mapping[str, Estimate]
    scales: Mapping[str, float]
    g_avg: float | None
    failed: Mapping[str, int]
    grader: str


def rubric(
    model: str,
    questions: Sequence[Question],
    mine: Mapping[str, Sequence[Answer]],
    cluster: Mapping[str, str],
) -> Rubric | None:
    """Return the scores of a model's graded answers; None if it answered no such question.

    `mine`: question id -> the model's answers. `cluster`: by video id.
    """
    tasks, scales, failures = dict[str, Estimate](), dict[str, float](), dict[str, int]()
    graders: dict[str, None] = {}
    for kind in metrics.MLVU_WRITTEN:
        answered = [q for q in questions if q.question_type == kind and not q.options]
        answered = [q for q in answered if mine[q.question_id]]
        grades = {q.question_id: [g for g in grades_of(q, model) if "first" in g] for q in answered}
        good = [q for q in answered if grades[q.question_id]]
        if answered:
            failures[kind] = len(answered) - len(good)
        if good:
            firsts, seconds = (
                [mean_of([g[key] for g in grades[q.question_id]]) for q in good]
                for key in ("first", "second")
            )
            sums = [a + b for a, b in zip(firsts, seconds, strict=True)]
            tasks[kind] = stats.mean(sums, [cluster.get(q.video_id, q.video_id) for q in good])
            scales |= zip(SCALES[kind], (mean_of(firsts), mean_of(seconds)), strict=True)
            graders |= dict.fromkeys(g["by"] for q in good for g in grades[q.question_id])
    if not failures:
        return None
    both = set(metrics.MLVU_WRITTEN) <= set(tasks)
    g_avg = metrics.macro({k: e.value for k, e in tasks.items()}) if both else None
    return Rubric(
        tasks=tasks, scales=scales, g_avg=g_avg, failed=failures, grader=", ".join(graders)
    )
