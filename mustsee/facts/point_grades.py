"""Grades several answers to one open question by its points, in one request.

    grades = await grade_answers(question, {ALONE: "...", SEEING: "..."}, points, wrong, grader)

The grader does not know who answered: the answers come in an order drawn by chance. A benchmark
grades each answer by itself (`mustsee.judge.points`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.judge.points import PointsGrade
from mustsee.questions.checks import normal
from mustsee.questions.rows import Row, Rows, numbered_rows, rows_form
from mustsee.records import Point
from mustsee.replies.forms import Form
from mustsee.text import LETTERS

PROMPT = "facts/grade_answers"
NOBODY = ("", "none", "no one", "nobody", "n a", "no answer")
_LETTER = re.compile(r"[A-H]", re.IGNORECASE)


@dataclass(frozen=True)
class PointVerdict:
    """Which answers, by their place from 0, state a point and which contradict it, and what one of
    these says instead.
    """

    stated: frozenset[int]
    contradicted: frozenset[int]
    words: str = ""


async def grade_answers(
    question: str,
    answers: Mapping[str, str],
    points: Sequence[Point],
    wrong: Sequence[str],
    grader: Asker,
    *,
    seed: int,
) -> dict[str, PointsGrade]:
    """Return the grade of each answer, by its name. `wrong`: statements known to be wrong. An
    answer without words states nothing. Raises BadRow if no reply can be parsed.
    """
    weights = tuple(point.weight for point in points)
    said = [name for name, text in answers.items() if any(c.isalnum() for c in text)]
    random.Random(f"{seed}/{question}/grade").shuffle(said)
    nothing = PointsGrade(
        weights=weights, verdicts=(0,) * len(points), asserted=(False,) * len(wrong)
    )
    if not points or not said:
        return dict.fromkeys(answers, nothing)
    verdicts, made = await grader.ask(
        PROMPT,
        answers_grade_form(len(said), len(points), len(wrong)),
        seed=seed,
        question=question,
        answers=tuple(answers[name] for name in said),
        points=tuple(point.text for point in points),
        statements=tuple(wrong),
    )

    def grade(place: int) -> PointsGrade:
        return PointsGrade(
            weights=weights,
            verdicts=tuple((place in v.stated) - (place in v.contradicted) for v in verdicts),
            asserted=tuple(place in places for places in made),
            words=tuple(v.words if place in v.contradicted else "" for v in verdicts),
        )

    graded = {name: grade(place) for place, name in enumerate(said)}
    return {name: graded.get(name, nothing) for name in answers}


def answers_grade_form(
    answers: int, points: int, statements: int
) -> Form[tuple[tuple[PointVerdict, ...], tuple[frozenset[int], ...]]]:
    """Return the form of a reply with a verdict on each point, and the answers that make each wrong
    statement. Its `read` raises Unparsed unless each number has exactly one, and for an answer
    that both states and contradicts a point.
    """
    letters = f"letters of the answers, A to {LETTERS[answers - 1]}, or NONE"
    kinds = {
        "point": {
            "stated_by": letters,
            "contradicted_by": letters,
            "words": "what an answer that contradicts it says instead; empty if none does",
        }
    }
    if statements:
        kinds["statement"] = {"made_by": letters}

    def read_verdict(row: Row) -> PointVerdict:
        what = f"point {row.number}"
        stated = read_letters(row["stated_by"], answers, what)
        contradicted = read_letters(row["contradicted_by"], answers, what)
        if both := stated & contradicted:
            raise Unparsed(f"{what}: answer {LETTERS[min(both)]} both states and contradicts it")
        return PointVerdict(stated, contradicted, row["words"])

    def read_verdicts(rows: Rows) -> tuple[tuple[PointVerdict, ...], tuple[frozenset[int], ...]]:
        made = numbered_rows(rows.get("statement", ()), statements, "statement")
        return (
            tuple(map(read_verdict, numbered_rows(rows["point"], points, "point"))),
            tuple(read_letters(r["made_by"], answers, f"statement {r.number}") for r in made),
        )

    return rows_form(kinds, brief=("point",)).map(read_verdicts)


def read_letters(text: str, count: int, what: str) -> frozenset[int]:
    """Return the places, from 0, of the letters of `count` answers. Raises Unparsed for any other
    text; `what` names the row.
    """
    if normal(text) in NOBODY:
        return frozenset()
    places: set[int] = set()
    letters = re.sub(r"(?i)answers?\s+", "", text).strip(" .,;")
    for part in re.split(r"\s*[,;/+&]\s*|\s+and\s+|\s+", letters):
        match = _LETTER.fullmatch(part.strip("().*_ "))
        place = LETTERS.index(match[0].upper()) if match else count
        if place >= count:
            raise Unparsed(
                f"{what} names {text[:40]!r}; expected letters from A to {LETTERS[count - 1]}, "
                "or NONE"
            )
        places.add(place)
    return frozenset(places)
