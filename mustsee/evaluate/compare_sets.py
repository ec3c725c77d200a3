"""Which evaluations are of the same questions, and what differs where they are not.

Two questions are the same where the id and all that a model or a grader reads of them agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import PurePath
from typing import Any

from mustsee.errors import UserError
from mustsee.evaluate.compare import ComparedEvaluation
from mustsee.records import Question, group_pairs
from mustsee.text import name_some


def contents(question: Question) -> dict[str, Any]:
    """Return what a model or a grader reads of a question, by name."""
    open_ended = not question.options
    points = tuple((p.text, p.weight, p.state) for p in question.points)
    return {
        "text": question.question,
        "options": question.options,
        "answer key": question.answer_index,
        "reference answer": question.answer if open_ended else "",
        "points": (points, question.contradictions) if open_ended else (),
    }


def labels(question: Question) -> dict[str, Any]:
    """Return what a question is counted under, by name."""
    return {
        "type": question.question_type,
        "skill": question.skill,
        "form": question.form,
        "hardness": question.metrics.get("hardness"),
        "subsets": question.subsets,
    }


def group_by_benchmark(evaluations: Sequence[ComparedEvaluation]) -> list[list[ComparedEvaluation]]:
    """Return the evaluations of each benchmark: those of the same `questions=`, and of other copies
    of exactly the same questions.
    """
    groups = group_pairs((PurePath(one.dataset).as_posix(), one) for one in evaluations)
    by_content: dict[Any, list[ComparedEvaluation]] = {}
    for group in groups.values():
        everything = {k: q for one in group for k, q in one.questions.items()}
        content = frozenset((k, tuple(contents(q).values())) for k, q in everything.items())
        by_content.setdefault(content, []).extend(group)
    return list(by_content.values())


def check_same_questions(evaluations: Sequence[ComparedEvaluation]) -> None:
    """Raise UserError for evaluations of different questions: without a common one, or with
    questions of one id that differ.
    """
    first = evaluations[0]
    known, owners = dict(first.questions), dict.fromkeys(first.questions, first.folder)
    for one in evaluations[1:]:
        if changed := dict(find_changes(known, one.questions, contents)):
            raise UserError(
                f"{owners[next(iter(changed))]!r} and {one.folder!r} evaluate different versions "
                f"of {len(changed)} of {len(known.keys() & one.questions.keys())} questions with "
                f"the same id: {_describe(changed)}. Evaluate both on one file of questions"
            )
        if known.keys().isdisjoint(one.questions):
            raise UserError(
                f"{first.folder!r} and {one.folder!r} evaluate different questions: "
                f"{_count(first)}, and {_count(one)}; none is in both. Compare evaluations of the "
                "same questions; evaluations=FOLDER makes a table for each questions="
            )
        known = {**one.questions, **known}
        owners = {**dict.fromkeys(one.questions, one.folder), **owners}


def find_changes(
    mine: Mapping[str, Question],
    others: Mapping[str, Question],
    of: Callable[[Question], dict[str, Any]],
) -> Iterator[tuple[str, list[str]]]:
    """Yield each question in both that differs, with the names of what differs. `of`: `contents` or
    `labels`.
    """
    for name, question in mine.items():
        if name in others:
            a, b = of(question), of(others[name])
            if a != b:
                yield name, [key for key in a if a[key] != b[key]]


def describe_labels(evaluations: Sequence[ComparedEvaluation]) -> list[str]:
    """Return a sentence on each evaluation that counts questions under other types, skills, forms
    or splits than the first one, whose labels count.
    """
    notes: list[str] = []
    for one in evaluations[1:]:
        if changed := dict(find_changes(evaluations[0].questions, one.questions, labels)):
            notes.append(
                f"{one.folder} has other labels of {len(changed)} questions than "
                f"{evaluations[0].folder}, whose labels make the columns: {_describe(changed)}."
            )
    return notes


def describe_overlaps(groups: Sequence[Sequence[ComparedEvaluation]]) -> list[list[str]]:
    """Return for each benchmark a sentence on each other one that shares questions with it."""
    notes: list[list[str]] = [[] for _ in groups]
    pools = [{k: q for one in group for k, q in one.questions.items()} for group in groups]
    for (i, a), (j, b) in combinations(enumerate(pools), 2):
        same = a.keys() & b.keys() - dict(find_changes(a, b, contents)).keys()
        for here, there in ((i, j), (j, i)) if same else ():
            notes[here].append(
                f"{len(same)} of these {len(pools[here])} questions are in "
                f"{groups[there][0].dataset}, too, which has a table of its own because its "
                "questions= is another one; evaluations=[A,B] compares evaluations of both."
            )
    return notes


def _describe(changed: Mapping[str, Sequence[str]]) -> str:
    """Say what differs in which questions: "options in q1, q2 and 4 more; answer key in q1"."""
    kinds = Counter(key for keys in changed.values() for key in keys)
    return "; ".join(
        f"{kind} in {name_some([n for n, keys in changed.items() if kind in keys])}"
        for kind in kinds
    )


def _count(one: ComparedEvaluation) -> str:
    return f"{len(one.questions)} of {one.dataset!r} ({name_some(list(one.questions))})"
