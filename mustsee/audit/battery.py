"""The battery: every guesser and every condition held against chance, with n, interval and test.

A condition's replies come in two turns of the options. An answer counts as known where every turn
names the same option (`steady`): who merely favours a place names another option in each.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee import stats
from mustsee.audit import guessers
from mustsee.evaluate.answers import Answer, answers
from mustsee.questions.chance import chance_of
from mustsee.records import Question
from mustsee.stats import Difference, Estimate
from mustsee.text import LETTERS
from mustsee.verify.conditions.options import order

SHORTCUTS = ("blind", "transcript", "one_frame", "shuffled")
# a dataset that needs its videos is at chance here
CHANCE_CONDITIONS = (*SHORTCUTS, "without_evidence")
ALARM_LEVEL = 0.05


@dataclass(frozen=True, kw_only=True)
class ConditionRun:
    """One answerer under one condition. `name`: of its replies; `frames`: pictures shown, null
    where the condition decides that.
    """

    name: str
    answerer: str
    condition: str
    frames: int | None = None


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place among the options that replies favour most: its letter, the share of the replies
    that name it, and by how much that is more than its due. `turned`: share of the questions that
    get another answer when their options are turned.
    """

    letter: str
    share: float
    over: Difference
    turned: float


@dataclass(frozen=True, kw_only=True)
class ConditionResult:
    """One guesser or condition on the questions. `right`: the share right; `chance`: what guessing
    gets; `over`: the difference, tested; `known`: the share right corrected for guessing,
    (right - chance) / (1 - chance).
    """

    name: str
    kind: str
    answerer: str
    right: Estimate
    chance: float
    over: Difference
    known: Estimate
    failed: int = 0
    unparsed: float = 0.0
    place: Place | None = None

    @property
    def alarm(self) -> bool:
        """Whether it is better than chance, and should not be."""
        p = self.over.p if self.over.p_holm is None else self.over.p_holm
        unwanted = self.kind == "guesser" or self.name in CHANCE_CONDITIONS
        return unwanted and self.over.value > 0 and p <= ALARM_LEVEL


class Replies:
    """What a set of questions was answered, by question and by who was asked how."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._found: dict[tuple[str, str], list[Answer]] = {}
        for question in questions:
            for answer in answers(question):
                self._found.setdefault((question.question_id, answer.model), []).append(answer)

    def answered_replies(self, question: Question, asked: ConditionRun) -> list[Answer]:
        """The replies, without failed calls."""
        given = self._found.get((question.question_id, asked.name), [])
        return [a for a in given if a.failed is None]

    def was_asked(self, question: Question, asked: ConditionRun) -> bool:
        return (question.question_id, asked.name) in self._found

    def right(self, question: Question, asked: ConditionRun) -> float | None:
        """The share of its replies that are right; null where none came."""
        came = self.answered_replies(question, asked)
        return sum(a.correct is True for a in came) / len(came) if came else None

    def steady(self, question: Question, asked: ConditionRun) -> int | None:
        """The option that every reply names, whichever way the options are turned."""
        named = {a.letter for a in self.answered_replies(question, asked)}
        letter = named.pop() if len(named) == 1 else None
        return None if letter is None else LETTERS.index(letter)


def battery(
    questions: Sequence[Question],
    replies: Replies,
    asked: Sequence[ConditionRun],
    clusters: Mapping[str, str],
) -> list[ConditionResult]:
    """All guessers and conditions on `questions` (see `guessers.askable_questions`), p-values
    adjusted by Holm over all of them.
    """
    where = [clusters.get(q.video_id, q.video_id) for q in questions]
    chances = [chance_of(q) for q in questions]
    found = [
        compare_with_chance(name, "guesser", "", some, chances, where)
        for name, some in guessers.hits(questions).items()
    ]
    for each in asked:
        made = _condition(questions, replies, each, clusters)
        found += [made] if made is not None else []
    adjusted = stats.holm([t.over.p for t in found])
    return [
        replace(t, over=replace(t.over, p_holm=p)) for t, p in zip(found, adjusted, strict=True)
    ]


def compare_with_chance(
    name: str,
    kind: str,
    answerer: str,
    right: Sequence[float],
    chances: Sequence[float],
    where: Sequence[Hashable],
) -> ConditionResult:
    """How right something is, against chance."""
    known = [(r - c) / (1 - c) for r, c in zip(right, chances, strict=True)]
    return ConditionResult(
        name=name,
        kind=kind,
        answerer=answerer,
        right=_share(right, where),
        chance=sum(chances) / len(chances),
        over=_exact(stats.paired_difference(right, chances, where), right, chances, where),
        known=stats.mean(known, where),
    )


def _exact(
    found: Difference, right: Sequence[float], chances: Sequence[float], where: Sequence[Hashable]
) -> Difference:
    """What guessing gets is known, and no spread has to be estimated, where each cluster has one
    question: p is then exact. So it is where all are right, or all wrong, each cluster counting as
    one question: there is no spread to estimate.
    """
    from scipy.stats import poisson_binom

    single = dict(zip(where, chances, strict=True))
    alone, alike = len(single) == len(right), len(set(right)) == 1
    if set(right) - {0.0, 1.0} or not (alone or alike):
        return found
    hits = int(sum(right)) if alone else len(single) * int(right[0])
    guessed = poisson_binom(list(single.values()))
    p = 2 * min(guessed.cdf(hits), guessed.sf(hits - 1))
    return replace(found, p=min(1.0, float(p)))


def _share(right: Sequence[float], where: Sequence[Hashable]) -> Estimate:
    """The mean of shares, its interval cut to where shares are. Where all are the same (a guesser
    to which all options are alike), it is Wilson's for one question a cluster.
    """
    found = stats.mean(right, where)
    if found.low is None and found.clusters > 1:
        low, high = stats.wilson(found.value * found.clusters, found.clusters)
        return replace(found, low=low, high=high, method="wilson on clusters")
    if found.low is None or found.high is None:
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def _condition(
    questions: Sequence[Question],
    replies: Replies,
    asked: ConditionRun,
    clusters: Mapping[str, str],
) -> ConditionResult | None:
    """Null where nobody was asked so."""
    put = [q for q in questions if replies.was_asked(q, asked)]
    came = [q for q in put if replies.answered_replies(q, asked)]
    if not came:
        return None
    where = [clusters.get(q.video_id, q.video_id) for q in came]
    chances = [chance_of(q) for q in came]
    given = [a for q in came for a in replies.answered_replies(q, asked)]
    found = compare_with_chance(
        asked.condition, "condition", asked.answerer,
        [replies.right(q, asked) or 0.0 for q in came], chances, where,
    )  # fmt: skip
    return replace(
        found,
        failed=len(put) - len(came),
        unparsed=sum(a.letter is None for a in given) / len(given),
        place=place(came, replies, asked, clusters),
    )


def place(
    questions: Sequence[Question],
    replies: Replies,
    asked: ConditionRun,
    clusters: Mapping[str, str],
) -> Place | None:
    """The place that is named most often for its due, over all turns; null where nothing could be
    read. The p-value is adjusted by Holm over the places.
    """
    shown: list[tuple[int, int, str]] = []  # place, options, cluster
    turned: list[bool] = []
    for question in questions:
        came = [a for a in replies.answered_replies(question, asked) if a.letter is not None]
        for answer in came:
            index, count = LETTERS.index(answer.letter or "A"), len(question.options)
            at = order(count, answer.rotation).index(index)
            shown.append((at, count, clusters.get(question.video_id, question.video_id)))
        if len(came) > 1:
            turned.append(len({a.letter for a in came}) > 1)
    if not shown:
        return None
    where = [cluster for _, _, cluster in shown]
    places = range(max(count for _, count, _ in shown))
    overs = {
        at: stats.paired_difference(
            [float(p == at) for p, _, _ in shown],
            [1 / count if at < count else 0.0 for _, count, _ in shown],
            where,
        )
        for at in places
    }
    holm = stats.holm([d.p for d in overs.values()])
    adjusted = {at: replace(d, p_holm=p) for (at, d), p in zip(overs.items(), holm, strict=True)}
    best = max(adjusted, key=lambda at: (adjusted[at].value, -at))
    return Place(
        letter=LETTERS[best],
        share=sum(p == best for p, _, _ in shown) / len(shown),
        over=adjusted[best],
        turned=sum(turned) / len(turned) if turned else 0.0,
    )
