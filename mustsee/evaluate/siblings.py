"""Scores of questions that belong together: sets that share their options, pairs with opposite
answers, groups on one fact, and the gap between choosing an option and answering freely (twins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee import stats
from mustsee.evaluate.answers import ModelAnswers, mean_of
from mustsee.questions.chance import (
    chance_level,
    chance_of_all,
    chance_of_matching,
    chance_of_square,
)
from mustsee.records import OPEN, PAIR, SET, Question, group_pairs
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
    members = group_pairs((q.group, q) for q in questions if q.group is not None)
    by_kind: dict[str | None, list[list[Question]]] = {SET: [], PAIR: [], None: []}
    for group in members.values():
        relations = {q.relation for q in group}
        kind = next((k for k in (SET, PAIR) if k in relations), None)
        if len(group) > 1:
            by_kind[kind].append(group)
    return by_kind


def score_groups(groups: Sequence[Sequence[Question]], mine: ModelAnswers) -> GroupScores | None:
    """Score groups; None if none was answered completely. A group is scored for each rotation of
    the options, and the scores are averaged.
    """
    single, whole, squared = list[float](), list[float](), list[float]()
    counted: list[Sequence[Question]] = []
    for group in groups:
        replies = [{a.rotation: float(a.correct is True) for a in mine.replies(q)} for q in group]
        rotations = set[int].intersection(*(set(r) for r in replies))
        if not rotations:
            continue
        counted.append(group)
        shares = [mean_of([r[n] for r in replies]) for n in rotations]
        single += [mean_of([r[n] for n in rotations]) for r in replies]
        whole.append(mean_of([float(share == 1) for share in shares]))
        squared.append(mean_of([share**2 for share in shares]))
    if not counted:
        return None
    closed = all(q.options for g in counted for q in g)
    matchings = [m for g in counted if (m := chance_of_matching(g))] if closed else []
    firsts, members = [g[0] for g in counted], [q for g in counted for q in g]
    shared = len(matchings) == len(counted)
    return GroupScores(
        single=mine.mean(single, [g[0] for g in counted for _ in g]),
        single_chance=chance_level(members),
        whole=mine.mean(whole, firsts),
        whole_chance=mean_of([chance_of_all(g) for g in counted]) if closed else None,
        squared=mine.mean(squared, firsts),
        squared_chance=mean_of([chance_of_square(g) for g in counted]) if closed else None,
        whole_matching=mean_of([m.whole for m in matchings]) if shared else None,
        squared_matching=mean_of([m.squared for m in matchings]) if shared else None,
    )


def twins(
    right: Mapping[str, float], questions: Sequence[Question], mine: ModelAnswers
) -> Twins | None:
    """Score the pairs of which both were answered and the twin was graded; None without a pair.

    `right`: question id -> score, of the questions answered by choice.
    """
    by_id = {q.question_id: q for q in questions}
    good = [
        q for q in questions
        if q.relation == OPEN and q.sibling_of in right and mine.grades(q, "correct")
    ]  # fmt: skip
    if not good:
        return None
    choice = [right[q.sibling_of or ""] for q in good]
    written = mine.mean_grades(good, "correct")
    return Twins(
        choice=mine.mean(choice, good),
        chance=chance_level(by_id[q.sibling_of or ""] for q in good),
        written=mine.mean(written, good),
        gap=stats.paired_difference(choice, written, mine.places(good)),
    )
