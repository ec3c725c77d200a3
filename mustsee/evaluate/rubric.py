"""MLVU's graded answers: sub-scene captions (SSC) and video summaries (VS), as its Fig. 8 has them.

A caption is held against its scoring points one by one (5, 3 or 1 each; their mean, taken here, is
its accuracy) and has a relevance from 1 to 5; a summary has a completeness and a reliability. All
are whole levels, each with a description in the prompt, and the reason comes before the level. The
task score is the sum of both scales, 2 to 10; G-Avg is the mean of the two tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.records import Question
from mustsee.replies.forms import (
    Form,
    in_json,
    in_lines,
    normalize_keys,
    strip_chat_markup,
    without_json,
)

SCALES = {"subPlot": ("accuracy", "relevance"), "summary": ("completeness", "reliability")}
PROMPTS = {"subPlot": "evaluate/scene", "summary": "evaluate/summary"}
LEVELS = (1, 2, 3, 4, 5)
OF_A_POINT = (1, 3, 5)
_SCORE = ("score", "level", "value", "rating", "grade")  # what a nested score is called
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*5)?\s*")


@dataclass(frozen=True, kw_only=True)
class RubricGrade:
    """`first` is accuracy (SSC) or completeness (VS), `second` relevance or reliability. `points`:
    the level of each scoring point, of which `first` is the mean. `reply`: with the reasons.
    """

    first: float
    second: float
    points: tuple[int, ...] = ()
    reply: str = ""

    @property
    def total(self) -> float:
        return self.first + self.second


def scene_grade(points: int) -> Form[RubricGrade]:
    """A level for each of so many scoring points, and the relevance."""
    names = [f"point_{n}" for n in range(1, points + 1)]

    def make_grade(levels: Mapping[str, int], reply: str) -> RubricGrade:
        each = tuple(levels[name] for name in names)
        mean = sum(each) / len(each)
        return RubricGrade(first=mean, second=levels["relevance"], points=each, reply=reply)

    wanted = {**dict.fromkeys(names, OF_A_POINT), "relevance": LEVELS}
    return in_levels(wanted).map(lambda said: make_grade(*said))


def summary_grade() -> Form[RubricGrade]:
    """The completeness and the reliability."""
    wanted = dict.fromkeys(SCALES["summary"], LEVELS)
    return in_levels(wanted).map(
        lambda said: RubricGrade(
            first=said[0]["completeness"], second=said[0]["reliability"], reply=said[1]
        )
    )


def in_levels(wanted: Mapping[str, Sequence[int]]) -> Form[tuple[Mapping[str, int], str]]:
    """A level of each name, and the reply in lines. Models nest scores (`{"relevance": {"reason":
    "...", "score": "4"}}`), quote them, write "4/5" or MLVU's own `score_relevance`: all are read,
    as long as each name has one value.
    """
    properties: dict[str, Any] = {}
    for name, levels in wanted.items():
        properties[f"{name}_reason"] = {"type": "string", "description": "the reason, first"}
        about = f"the level: {', '.join(map(str, levels))}"
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
        value = in_json(reply) or in_json(inner)
        rest = without_json(reply)
        if isinstance(value, (dict, list)):
            pairs = [*_nested(value), *_lined(strip_chat_markup(rest).replace(inner, " "))]
        else:
            pairs = list(_lined(text))
        found = {name: _one(name, levels, pairs) for name, levels in wanted.items()}
        return found, in_lines(reply)

    return Form(schema, read)


def _one(name: str, levels: Sequence[int], pairs: Sequence[tuple[str, float]]) -> int:
    values = {value for said, value in pairs if said == name}
    expected = f"one of {', '.join(map(str, levels))} is wanted"
    if len(values) != 1:
        what = "several levels" if values else "no level"
        raise Unparsed(f"it holds {what} for {name.replace('_', ' ')}: {expected}")
    if (value := values.pop()) not in levels:
        raise Unparsed(f"{name.replace('_', ' ')} is {value:g}: {expected}")
    return int(value)


def _nested(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in a JSON value, each by the nearest name around it."""
    if isinstance(value, list):
        for place, item in enumerate(cast(list[Any], value), 1):
            number = item.get("point") if isinstance(item, dict) else None
            yield from _nested(item, f"point_{number if isinstance(number, int) else place}")
    elif isinstance(value, dict):
        for key, inner in normalize_keys(cast(dict[str, Any], value)).items():
            own = _bare(key)
            yield from _nested(inner, name if own in _SCORE and name else own)
    elif not isinstance(value, bool) and (found := _NUMBER.fullmatch(str(value))):
        yield name, float(found[1])


_LINE = re.compile(
    r"(?:^|[,;{])[\s>*_#\"'•-]*(?P<name>[A-Za-z]+(?:[ _]\w+){0,2})[\"'*_]*\s*[:：=][\s*_\"'(\[]*"
    r"(?P<value>\d+(?:\.\d+)?)(?:\s*/\s*5)?(?![\w.]*\w)",
    re.MULTILINE,
)


def _lined(text: str) -> Iterator[tuple[str, float]]:
    """Lines of the form `RELEVANCE: 4`."""
    for found in _LINE.finditer(text):
        yield _bare(re.sub(r"\s+", "_", found["name"].lower())), float(found["value"])


def _bare(name: str) -> str:
    """Without what calls it a score: `score_relevance`, `relevance_score`."""
    bare = re.sub(r"^score_|_(?:score|level)$", "", name)
    return re.sub(r"^(?:scoring_)?point_?(?=\d)", "point_", bare)


async def grade(question: Question, candidate: str, asker: Asker, seed: int = 0) -> RubricGrade:
    """Ask for the grade of one answer. A caption without scoring points is held against the
    reference as its one point. Raises BadRow after replies of a wrong form.
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
