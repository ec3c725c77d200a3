"""What questions and those made from them tell together: the gap between choosing and saying, and
how many facts are known however they are asked for.
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
    """Questions answered both ways: by `choice`, and in words by their open-ended twins (`written`,
    as the judge says). `gap`: the first less the second, pair by pair; `chance`: what guessing gets
    by choice.
    """

    choice: Estimate
    chance: float | None
    written: Estimate
    gap: Difference


@dataclass(frozen=True, kw_only=True)
class GroupScores:
    """Groups of questions on one fact, as far as all of their members were answered. `single`: of
    their members one by one; `whole`: of the groups, those of which all members are right at once;
    beside each what guessing gets.
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
    """`answered`: by question id, whether the reply to each rotation of the options was right;
    `cluster`: by video. Replies of one rotation are taken together, and then averaged.
    """
    members: dict[str, list[Question]] = {}
    for question in questions:
        if question.group is not None:
            members.setdefault(question.group, []).append(question)
    single: list[tuple[float, str]] = []
    whole: list[tuple[float, str]] = []
    counted: list[list[Question]] = []
    for some in members.values():
        given = [answered.get(q.question_id, {}) for q in some]
        turns = set[int].intersection(*(set(g) for g in given))
        if len(some) < 2 or not turns:
            continue
        where = cluster.get(some[0].video_id, some[0].video_id)
        single += [(mean_of([float(g[t]) for t in turns]), where) for g in given]
        counted.append(some)
        whole.append((mean_of([float(all(g[t] for g in given)) for t in turns]), where))
    if not whole:
        return None
    return GroupScores(
        single=_mean(single),
        single_chance=chance_level(q for some in counted for q in some),
        whole=_mean(whole),
        whole_chance=mean_of(
            [math.prod(map(chance_of, some)) for some in counted if all(q.options for q in some)]
        ),
    )


def _mean(scores: Sequence[tuple[float, str]]) -> Estimate:
    return stats.mean([value for value, _ in scores], [where for _, where in scores])


def twins(
    model: str,
    right: Mapping[str, float],
    questions: Sequence[Question],
    cluster: Mapping[str, str],
) -> Twins | None:
    """The pairs of which both were answered and the twin was graded. `right`: by question id, of
    those answered by choice; `cluster`: by video.
    """
    pairs: list[tuple[float, float, str]] = []
    known, chosen = {q.question_id: q for q in questions}, list[Question]()
    for question in questions:
        first = question.sibling_of
        if question.relation != OPEN or first is None or first not in right:
            continue
        told = [float(c) for g in grades_of(question, model) if (c := g["correct"]) is not None]
        if told:
            where = cluster.get(question.video_id, question.video_id)
            pairs.append((right[first], mean_of(told), where))
            chosen.append(known[first])
    if not pairs:
        return None
    choice, written, where = (list(column) for column in zip(*pairs, strict=True))
    return Twins(
        choice=stats.mean(choice, where),
        chance=chance_level(chosen),
        written=stats.mean(written, where),
        gap=stats.paired_difference(choice, written, where),
    )
