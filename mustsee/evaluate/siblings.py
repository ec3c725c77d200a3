"""Scores of questions that belong together: sets that share their options, pairs with opposite
answers, groups on one fact, and the gap between choosing an option and answering freely (twins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee import stats
from mustsee.evaluate.answers import grades_of, mean_of
from mustsee.questions.chance import (
    chance_level,
    chance_of_all,
    chance_of_matching,
    chance_of_square,
)
from mustsee.records import OPEN, PAIR, SET, Question
from mustsee.stats import Difference, Estimate

_Score = tuple[float, str]  # with the cluster that it counts in


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
    """Accuracy on groups of questions of which every member was answered.

    `single`: accuracy over the members. `whole`: share of groups with all members right. `squared`:
    mean over the groups of the square of the share of right members. `..._chance`: the same of
    independent guesses; null where a member has no options. `..._matching`: the same of a random
    one-to-one matching of the members with the options that they share; null where a group shares
    none.
    """

    single: Estimate
    single_chance: float | None
    whole: Estimate
    whole_chance: float | None
    squared: Estimate
    squared_chance: float | None
    whole_matching: float | None = None
    squared_matching: float | None = None


def groups_by_kind(questions: Sequence[Question]) -> dict[str | None, list[list[Question]]]:
    """Return the groups of at least two questions by kind: sets, pairs, and None for groups on one
    fact (a question and its siblings).
    """
    members: dict[str, list[Question]] = {}
    for question in questions:
        if question.group is not None:
            members.setdefault(question.group, []).append(question)
    by_kind: dict[str | None, list[list[Question]]] = {SET: [], PAIR: [], None: []}
    for group in members.values():
        relations = {q.relation for q in group}
        kind = next((k for k in (SET, PAIR) if k in relations), None)
        if len(group) > 1:
            by_kind[kind].append(group)
    return by_kind


def score_groups(
    answered: Mapping[str, Mapping[int, bool]],
    groups: Sequence[Sequence[Question]],
    cluster: Mapping[str, str],
) -> GroupScores | None:
    """Score groups; None if none was answered completely.

    `answered`: by question id, whether the reply to each rotation of the options is right.
    `cluster`: by video id. A group is scored for each rotation, and the scores are averaged.
    """
    single, whole, squared = list[_Score](), list[_Score](), list[_Score]()
    counted: list[Sequence[Question]] = []
    for group in groups:
        replies = [answered.get(q.question_id, {}) for q in group]
        rotations = set[int].intersection(*(set(r) for r in replies))
        if not rotations:
            continue
        counted.append(group)
        place = cluster.get(group[0].video_id, group[0].video_id)
        shares = [mean_of([float(r[n]) for r in replies]) for n in rotations]
        single += [(mean_of([float(r[n]) for n in rotations]), place) for r in replies]
        whole.append((mean_of([float(share == 1) for share in shares]), place))
        squared.append((mean_of([share**2 for share in shares]), place))
    if not counted:
        return None
    closed = all(q.options for group in counted for q in group)
    matchings = [m for g in counted if (m := chance_of_matching(g))] if closed else []
    shared = len(matchings) == len(counted)
    return GroupScores(
        single=_mean(single),
        single_chance=chance_level(q for group in counted for q in group),
        whole=_mean(whole),
        whole_chance=mean_of([chance_of_all(g) for g in counted]) if closed else None,
        squared=_mean(squared),
        squared_chance=mean_of([chance_of_square(g) for g in counted]) if closed else None,
        whole_matching=mean_of([m.whole for m in matchings]) if shared else None,
        squared_matching=mean_of([m.squared for m in matchings]) if shared else None,
    )


def _mean(scores: Sequence[_Score]) -> Estimate:
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
