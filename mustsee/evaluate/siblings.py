"""Scores of related questions: the gap between choosing an option and answering freely (twins), and
the share of facts that are known in every wording (groups).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee import stats
from mustsee.evaluate.answers import grades_of, mean_of
from mustsee.questions.chance import chance_level, chance_of
from mustsee.records import OPEN, Question
from mustsee.stats import Difference, Estimate


@dataclass(frozen=True, kw_only=True)
class Twins:
    """Accuracy on pairs of a multiple-choice question and its open-ended twin.

    `choice`: on the multiple-choice questions. `chance`: the same of guessing. `written`: on the
    twins, by the judge. `gap`: `choice` minus `written`, paired.
    """

    choice: Estimate
    chance: float | None
    written: Estimate
    gap: Difference


@dataclass(frozen=True, kw_only=True)
class GroupScores:
    """Accuracy on groups of questions on one fact, of which every member was answered.

    `single`: accuracy over the members. `whole`: share of groups with all members right.
    `single_chance`, `whole_chance`: the same of guessing.
    """

    single: Estimate
    single_chance: float | None
    whole: Estimate
    whole_chance: float


def groups(
    answered: Mapping[str, Mapping[int, bool]],
    questions: Sequence[Question],
    cluster: Mapping[str, str],
) -> GroupScores | None:
    """Score the groups; None if no group was answered completely.

    `answered`: by question id, whether the reply to each rotation of the options is right.
    `cluster`: by video id. A group is scored for each rotation, and the scores are averaged.
    """
    members: dict[str, list[Question]] = {}
    for question in questions:
        if question.group is not None:
            members.setdefault(question.group, []).append(question)
    single: list[tuple[float, str]] = []
    whole: list[tuple[float, str]] = []
    counted: list[list[Question]] = []
    for group in members.values():
        replies = [answered.get(q.question_id, {}) for q in group]
        rotations = set[int].intersection(*(set(r) for r in replies))
        if len(group) < 2 or not rotations:
            continue
        place = cluster.get(group[0].video_id, group[0].video_id)
        single += [(mean_of([float(r[n]) for n in rotations]), place) for r in replies]
        counted.append(group)
        whole.append((mean_of([float(all(r[n] for r in replies)) for n in rotations]), place))
    if not whole:
        return None
    return GroupScores(
        single=_mean(single),
        single_chance=chance_level(q for group in counted for q in group),
        whole=_mean(whole),
        whole_chance=mean_of(
            [math.prod(map(chance_of, g)) for g in counted if all(q.options for q in g)]
        ),
    )


def _mean(scores: Sequence[tuple[float, str]]) -> Estimate:
    return stats.mean([value for value, _ in scores], [cluster for _, cluster in scores])


def twins(
    model: str,
    right: Mapping[str, float],
    questions: Sequence[Question],
    cluster: Mapping[str, str],
) -> Twins | None:
    """Score the pairs of which both were answered and the twin was graded; None without a pair.

    `right`: question id -> score, of the questions answered by choice. `cluster`: by video id.
    """
    pairs: list[tuple[float, float, str]] = []
    by_id, chosen = {q.question_id: q for q in questions}, list[Question]()
    for question in questions:
        first = question.sibling_of
        if question.relation != OPEN or first is None or first not in right:
            continue
        grades = [float(c) for g in grades_of(question, model) if (c := g["correct"]) is not None]
        if grades:
            place = cluster.get(question.video_id, question.video_id)
            pairs.append((right[first], mean_of(grades), place))
            chosen.append(by_id[first])
    if not pairs:
        return None
    choice, written, clusters = (list(column) for column in zip(*pairs, strict=True))
    return Twins(
        choice=stats.mean(choice, clusters),
        chance=chance_level(chosen),
        written=stats.mean(written, clusters),
        gap=stats.paired_difference(choice, written, clusters),
    )
