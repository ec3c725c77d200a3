"""Grades MLVU's two open-ended tasks: sub-scene captions (SSC) and video summaries (VS), Fig. 8.

A caption gets a level of 5, 3 or 1 for each scoring point, whose mean is its accuracy, and a
relevance from 1 to 5. A summary gets a completeness and a reliability from 1 to 5. Levels are whole
numbers, described in the prompt; the model gives the reason before the level. The task score is the
sum of both scales, 2 to 10; G-Avg is the mean of the two tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, cast

from mustsee import stats
from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.evaluate.answers import Answer, grades_of, mean_of
from mustsee.records import Question
from mustsee.replies.forms import (
    Form,
    find_json,
    label_lines,
    normalize_keys,
    strip_chat_markup,
    strip_json,
)
from mustsee.stats import Estimate

SCALES = {"subPlot": ("accuracy", "relevance"), "summary": ("completeness", "reliability")}
PROMPTS = {"subPlot": "evaluate/scene", "summary": "evaluate/summary"}
LEVELS = (1, 2, 3, 4, 5)
POINT_LEVELS = (1, 3, 5)  # scores of one scoring point
# Keys under which a nested score stands.
_SCORE_KEYS = ("score", "level", "value", "rating", "grade")
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*5)?\s*")


@dataclass(frozen=True, kw_only=True)
class RubricGrade:
    """The grade of one answer.

    `first`: accuracy (SSC) or completeness (VS). `second`: relevance (SSC) or reliability (VS).
    `points`: the level of each scoring point (SSC); `first` is their mean. `reply`: the grader's
    reply, with its reasons.
    """

    first: float
    second: float
    points: tuple[int, ...] = ()
    reply: str = ""

    @property
    def total(self) -> float:
        return self.first + self.second


def scene_grade(points: int) -> Form[RubricGrade]:
    """Return the form of a caption's grade: a level for each of `points` scoring points, and the
    relevance.
    """
    names = [f"point_{n}" for n in range(1, points + 1)]

    def make_grade(levels: Mapping[str, int], reply: str) -> RubricGrade:
        each = tuple(levels[name] for name in names)
        mean = sum(each) / len(each)
        return RubricGrade(first=mean, second=levels["relevance"], points=each, reply=reply)

    scales = {**dict.fromkeys(names, POINT_LEVELS), "relevance": LEVELS}
    return levels_form(scales).map(lambda parsed: make_grade(*parsed))


def summary_grade() -> Form[RubricGrade]:
    """Return the form of a summary's grade: the completeness and the reliability."""

    def make_grade(levels: Mapping[str, int], reply: str) -> RubricGrade:
        return RubricGrade(first=levels["completeness"], second=levels["reliability"], reply=reply)

    scales = dict.fromkeys(SCALES["summary"], LEVELS)
    return levels_form(scales).map(lambda parsed: make_grade(*parsed))


def levels_form(scales: Mapping[str, Sequence[int]]) -> Form[tuple[Mapping[str, int], str]]:
    """Return the form of a reply with a level for each scale, and its text in lines.

    `scales`: name -> allowed levels. Models nest scores (`{"relevance": {"reason": "...", "score":
    "4"}}`), quote them, or write "4/5" or MLVU's `score_relevance`. All are parsed as long as each
    name has one value.
    """
    properties: dict[str, Any] = {}
    for name, levels in scales.items():
        properties[f"{name}_reason"] = {"type": "string", "description": "the reason for the level"}
        about = f"the level, one of {', '.join(map(str, levels))}"
        properties[name] = {"type": "integer", "description": about}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }

    def read(reply: str) -> tuple[Mapping[str, int], str]:
        text = strip_chat_markup(reply)
        inner = text[text.find("{") : text.rfind("}") + 1]
        value = find_json(reply) or find_json(inner)
        rest = strip_json(reply)
        if isinstance(value, (dict, list)):
            pairs = [*_nested(value), *_lined(strip_chat_markup(rest).replace(inner, " "))]
        else:
            pairs = list(_lined(text))
        parsed = {name: _level(name, levels, pairs) for name, levels in scales.items()}
        return parsed, label_lines(reply)

    return Form(schema, read)


def _level(name: str, levels: Sequence[int], pairs: Sequence[tuple[str, float]]) -> int:
    """Return the level of one scale. `pairs`: the names and numbers of the reply."""
    values = {value for key, value in pairs if key == name}
    expected = f"one of {', '.join(map(str, levels))} is wanted"
    if len(values) != 1:
        what = "several levels" if values else "no level"
        raise Unparsed(f"it holds {what} for {name.replace('_', ' ')}: {expected}")
    if (value := values.pop()) not in levels:
        raise Unparsed(f"{name.replace('_', ' ')} is {value:g}: {expected}")
    return int(value)


def _nested(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in a JSON value, each with the nearest name around it."""
    if isinstance(value, list):
        for place, item in enumerate(cast(list[Any], value), 1):
            number = item.get("point") if isinstance(item, dict) else None
            yield from _nested(item, f"point_{number if isinstance(number, int) else place}")
    elif isinstance(value, dict):
        for key, inner in normalize_keys(cast(dict[str, Any], value)).items():
            own = _bare(key)
            yield from _nested(inner, name if own in _SCORE_KEYS and name else own)
    elif not isinstance(value, bool) and (match := _NUMBER.fullmatch(str(value))):
        yield name, float(match[1])


_LINE = re.compile(
    r"(?:^|[,;{])[\s>*_#\"'•-]*(?P<name>[A-Za-z]+(?:[ _]\w+){0,2})[\"'*_]*\s*[:：=][\s*_\"'(\[]*"
    r"(?P<value>\d+(?:\.\d+)?)(?:\s*/\s*5)?(?![\w.]*\w)",
    re.MULTILINE,
)


def _lined(text: str) -> Iterator[tuple[str, float]]:
    """Yield the names and numbers of lines of the form `RELEVANCE: 4`."""
    for match in _LINE.finditer(text):
        yield _bare(re.sub(r"\s+", "_", match["name"].lower())), float(match["value"])


def _bare(name: str) -> str:
    """Return a scale's name without "score" or "level": `score_relevance` -> `relevance`."""
    bare = re.sub(r"^score_|_(?:score|level)$", "", name)
    return re.sub(r"^(?:scoring_)?point_?(?=\d)", "point_", bare)


async def grade(question: Question, candidate: str, asker: Asker, seed: int = 0) -> RubricGrade:
    """Ask the model for the grade of one answer.

    The reference is the one scoring point of a caption without any. Raises BadRow after replies of
    a wrong form.
    """
    prompt = PROMPTS[question.question_type]
    if question.question_type == "summary":
        return await asker.ask(
            prompt, summary_grade(), seed=seed, reference=question.answer, candidate=candidate
        )
    points = list(question.scoring_points) or [question.answer]
    return await asker.ask(
        prompt,
        scene_grade(len(points)),
        seed=seed,
        question=question.question,
        points=points,
        candidate=candidate,
    )


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
    for kind in SCALES:
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
    g_avg = fmean(task.value for task in tasks.values()) if tasks.keys() == SCALES.keys() else None
    return Rubric(
        tasks=tasks, scales=scales, g_avg=g_avg, failed=failures, grader=", ".join(graders)
    )
