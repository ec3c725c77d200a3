"""Scores stored replies by the rules of several scorers, and traces their differences to replies.

Nothing is asked of a model. A difference between two scores is the sum of what single replies add
to it: a reply that a scorer leaves out counts with that scorer's mean.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from mustsee.errors import UserError
from mustsee.evaluate.answers import Answer, answers
from mustsee.evaluate.scorers import BENCHMARKS, SCORERS
from mustsee.evaluate.scorers.reading import ReplyReading, ScoringRule
from mustsee.records import Question
from mustsee.text import LETTERS
from mustsee.verify.conditions.options import order

FAILED_CALL = "failed call"
AVERAGE = "mean over types"
CAUSES = {  # why two scorers count a reply differently
    FAILED_CALL: "a failed call counts differently",
    "left out": "one of them leaves the reply out",
    "random": "one of them draws at random",
    "counting": "both read the same, and only one of them counts it as right",
    "letters": "one of them never reads this letter",
    "case": "one of them does not read a lower-case letter",
    "unreadable": "one of them reads no option",
    "extraction": "they read different options",
    AVERAGE: "one of them averages over the types of questions",
}


def choose_scorers(names: Sequence[str], benchmark: str | None) -> None:
    """Raise UserError for unknown scorers, for one named twice, and for an unknown benchmark."""
    if not names or len(set(names)) < len(names) or not {*names} <= SCORERS.keys():
        raise UserError(f"scorers={[*names]}: name each once, of {', '.join(SCORERS)}")
    if benchmark is not None and benchmark not in BENCHMARKS:
        raise UserError(f"benchmark={benchmark!r}: one of {', '.join(BENCHMARKS)}")


@dataclass(frozen=True, kw_only=True)
class RescoredReply:
    """A reply with what each scorer reads in it. `place`: of the right option, as shown. `rules`,
    `readings`: by scorer; a scorer without a rule for the benchmark is not in them.
    """

    answer: Answer
    place: int
    rules: Mapping[str, ScoringRule]
    readings: Mapping[str, ReplyReading]

    @property
    def row(self) -> dict[str, Any]:
        """The reply as a row of `rescored.parquet`."""
        question = self.answer.question
        row: dict[str, Any] = {
            "question_id": question.question_id, "video_id": question.video_id,
            "model": self.answer.model, "rotation": self.answer.rotation,
            "reply": self.answer.reply, "failed": self.answer.failed,
            "right_letter": LETTERS[self.place],
        }  # fmt: skip
        for scorer, reading in self.readings.items():
            row |= {f"{scorer}_letter": reading.letter, f"{scorer}_step": reading.step,
                    f"{scorer}_points": reading.points}  # fmt: skip
        return row


def rescore(
    questions: Iterable[Question],
    scorers: Sequence[str],
    benchmark: str | None,
    skipped: Counter[str],
) -> Iterator[RescoredReply]:
    """Yield every reply to a kept question with options and a key, read by each scorer.

    `benchmark`: whose rules are taken; None: those of each question's recipe. `skipped`: receives
    the number of other replies by the reason.
    """
    for question in questions:
        rules = {
            scorer: rule
            for scorer in scorers
            if (rule := _find_rule(scorer, benchmark or question.recipe))
        }
        for answer in answers(question):
            if (reason := _reason_to_skip(answer)) is not None:
                skipped[reason] += 1
                continue
            key = question.answer_index or 0
            place = order(len(question.options), answer.rotation).index(key)
            yield RescoredReply(
                answer=answer,
                place=place,
                rules=rules,
                readings={s: read_answer(rule, answer, place) for s, rule in rules.items()},
            )


def _find_rule(scorer: str, benchmark: str) -> ScoringRule | None:
    return SCORERS[scorer].get(benchmark) or SCORERS[scorer].get("")


def _reason_to_skip(answer: Answer) -> str | None:
    question = answer.question
    if question.drop is not None:
        return "question dropped"
    if not question.options or (answer.failed is None and not answer.rule):
        return "written answer"
    if question.answer_index is None:
        return "no public answer"
    return "chosen by the probability of Yes" if answer.by_option else None


def read_answer(rule: ScoringRule, answer: Answer, place: int) -> ReplyReading:
    """Return what a rule reads in a stored answer, or makes of its failed call."""
    if answer.failed is None:
        return rule.read(answer.reply, answer.options, place)
    if rule.failed is None:
        return ReplyReading(letter=None, step=FAILED_CALL, points=None)
    return rule.read(rule.failed, answer.options, place)


def find_cause(reply: RescoredReply, a: str, b: str) -> str:
    """Return the key of `CAUSES` for a reply to which scorers `a` and `b` give other points."""
    one, other = reply.readings[a], reply.readings[b]
    if reply.answer.failed is not None:
        return FAILED_CALL
    if one.points is None or other.points is None:
        return "left out"
    if one.guesses or other.guesses:
        return "random"
    if one.letter == other.letter:
        return "counting"
    for missing, found in ((a, b), (b, a)):
        rule, letter = reply.rules[missing], reply.readings[found].letter
        if letter is None:
            continue
        if rule.letters and letter not in rule.letters:
            return "letters"
        if reply.readings[missing].letter is None and _is_read_in_upper_case(rule, reply, letter):
            return "case"
    return "unreadable" if None in (one.letter, other.letter) else "extraction"


def _is_read_in_upper_case(rule: ScoringRule, reply: RescoredReply, letter: str) -> bool:
    """Whether the rule would read the letter if the reply wrote it as a capital."""
    text = reply.answer.reply
    capital = re.sub(rf"\b{letter.lower()}\b", letter, text)
    options = reply.answer.options
    return capital != text and rule.read(capital, options, reply.place).letter == letter


@dataclass(frozen=True, kw_only=True)
class ScorerResult:
    """One model's score by one scorer; shares are of 1.

    `score`: as the scorer counts, the expected value where it draws at random; None if it counts no
    reply. `spread`: standard deviation of `score` over its draws. `own_average`: what it reports in
    place of the mean over the replies, if anything. `unreadable`: replies in which it reads no
    option, of `replies` whose call did not fail; they count as wrong in `with_unreadable_wrong` and
    not at all in `without_unreadable`, and neither does a failed call. `guessed`: replies for which
    it draws. `left_out`: replies and failed calls that it does not count. `no_rule`: replies to
    benchmarks for which it has no rule.
    """

    model: str
    scorer: str
    versions: tuple[str, ...]
    replies: int
    failed: int
    no_rule: int
    score: float | None
    spread: float
    own_average: float | None
    unreadable: int
    with_unreadable_wrong: float | None
    without_unreadable: float | None
    guessed: int
    left_out: int


@dataclass(frozen=True, kw_only=True)
class DifferenceGroup:
    """Replies that two scorers count differently by the same steps. `cause`: a key of `CAUSES`.
    `points`: what the replies add to the difference, of 1. `examples`: the first of them.
    """

    cause: str
    step_a: str
    step_b: str
    replies: int
    points: float
    examples: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class ScorerDifference:
    """Scorer `a` against `b` on the `replies` for which both have rules and that at least one of
    them counts. `difference`: of what they report, a - b, of 1; None if one of them counts none.
    `groups`: they add up to it. `other_letter`: further replies in which they read different
    options without effect on a score.
    """

    model: str
    a: str
    b: str
    replies: int
    difference: float | None
    groups: tuple[DifferenceGroup, ...]
    other_letter: int


@dataclass
class _Sums:
    """Sums over the replies of one model, scored by one scorer."""

    counted: int = 0
    points: float = 0.0
    variance: float = 0.0
    answered: int = 0
    readable: int = 0
    right: float = 0.0
    guessed: int = 0
    left_out: int = 0
    failed: int = 0
    no_rule: int = 0
    versions: dict[str, ScoringRule] = field(default_factory=dict[str, ScoringRule])
    types: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, reply: RescoredReply, scorer: str) -> None:
        reading = reply.readings.get(scorer)
        if reading is None:
            self.no_rule += 1
            return
        rule, failed = reply.rules[scorer], reply.answer.failed is not None
        self.versions[rule.version] = rule
        self.failed += failed
        self.answered += not failed
        if not failed and reading.letter is not None:
            self.readable += 1
            self.right += reading.points or 0.0
        if reading.points is None:
            self.left_out += 1
            return
        self.counted += 1
        self.points += reading.points
        of_type = self.types.setdefault(reply.answer.question.question_type, [0.0, 0.0])
        of_type[0] += reading.points
        of_type[1] += 1
        if reading.guesses:
            self.guessed += 1
            self.variance += reading.points * (1 - reading.points)

    @property
    def score(self) -> float | None:
        return self.points / self.counted if self.counted else None

    @property
    def own_average(self) -> float | None:
        """The scorer's own average over types, if one rule scored all replies and has one."""
        if len(self.versions) != 1 or not self.counted:
            return None
        (rule,) = self.versions.values()
        names = next((names for names in rule.averages if self.types.keys() <= {*names}), None)
        if names is None:
            return None
        return sum(points / count for points, count in self.types.values()) / len(names)

    def result(self, model: str, scorer: str) -> ScorerResult:
        return ScorerResult(
            model=model,
            scorer=scorer,
            versions=tuple(self.versions),
            replies=self.answered,
            failed=self.failed,
            no_rule=self.no_rule,
            score=self.score,
            spread=math.sqrt(self.variance) / self.counted if self.counted else 0.0,
            own_average=self.own_average,
            unreadable=self.answered - self.readable,
            with_unreadable_wrong=self.right / self.answered if self.answered else None,
            without_unreadable=self.right / self.readable if self.readable else None,
            guessed=self.guessed,
            left_out=self.left_out,
        )


@dataclass
class _GroupSums:
    """Sums over replies that differ alike. `left_out`: how many each of both scorers leaves out."""

    replies: int = 0
    points: float = 0.0
    left_out: list[int] = field(default_factory=lambda: [0, 0])
    examples: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])


@dataclass
class _PairSums:
    """Sums over the replies that two scorers have rules for and at least one of them counts."""

    sums: tuple[_Sums, _Sums] = field(default_factory=lambda: (_Sums(), _Sums()))
    replies: int = 0
    other_letter: int = 0
    groups: dict[tuple[str, str, str], _GroupSums] = field(
        default_factory=dict[tuple[str, str, str], _GroupSums]
    )

    def add(self, reply: RescoredReply, a: str, b: str, most_examples: int) -> None:
        readings = reply.readings[a], reply.readings[b]
        if readings[0].points is None and readings[1].points is None:
            return
        self.replies += 1
        for sums, scorer in zip(self.sums, (a, b), strict=True):
            sums.add(reply, scorer)
        if readings[0].points == readings[1].points:
            self.other_letter += readings[0].letter != readings[1].letter
            return
        key = (find_cause(reply, a, b), readings[0].step, readings[1].step)
        group = self.groups.setdefault(key, _GroupSums())
        group.replies += 1
        for number, (sign, reading) in enumerate(zip((1, -1), readings, strict=True)):
            group.points += sign * (reading.points or 0.0)
            group.left_out[number] += reading.points is None
        if len(group.examples) < most_examples:
            group.examples.append({
                "question_id": reply.answer.question.question_id,
                "rotation": reply.answer.rotation, "reply": reply.answer.reply,
                "right": LETTERS[reply.place], "a": readings[0].letter, "b": readings[1].letter,
            })  # fmt: skip

    def result(self, model: str, a: str, b: str) -> ScorerDifference:
        scores = [sums.score for sums in self.sums]
        groups, difference = list[DifferenceGroup](), None
        if scores[0] is not None and scores[1] is not None:
            means = (scores[0], scores[1])
            averages = [
                mean if sums.own_average is None else sums.own_average
                for mean, sums in zip(means, self.sums, strict=True)
            ]
            difference = averages[0] - averages[1]
            groups = [self._group(*key, sums, means) for key, sums in self.groups.items()]
            averaging = difference - (means[0] - means[1])
            if abs(averaging) > 1e-9:
                steps = [AVERAGE if s.own_average is not None else "mean" for s in self.sums]
                groups.append(
                    DifferenceGroup(
                        cause=AVERAGE, step_a=steps[0], step_b=steps[1], replies=0,
                        points=averaging, examples=(),
                    )
                )  # fmt: skip
        return ScorerDifference(
            model=model,
            a=a,
            b=b,
            replies=self.replies,
            difference=difference,
            groups=tuple(sorted(groups, key=lambda g: (-abs(g.points), g.cause, g.step_a))),
            other_letter=self.other_letter,
        )

    def _group(
        self, cause: str, a: str, b: str, sums: _GroupSums, means: tuple[float, float]
    ) -> DifferenceGroup:
        filled = sums.left_out[0] * means[0] - sums.left_out[1] * means[1]
        return DifferenceGroup(
            cause=cause,
            step_a=a,
            step_b=b,
            replies=sums.replies,
            points=(sums.points + filled) / self.replies,
            examples=tuple(sums.examples),
        )


class Comparer:
    """Sums over rescored replies, in memory that does not grow with their number.

    `examples`: replies that are kept of each group of a difference.
    """

    def __init__(self, scorers: Sequence[str], examples: int) -> None:
        self._scorers, self._examples = tuple(scorers), examples
        self._sums: dict[tuple[str, str], _Sums] = {}
        self._pairs: dict[tuple[str, str, str], _PairSums] = {}

    def add(self, reply: RescoredReply) -> None:
        model = reply.answer.model
        for scorer in self._scorers:
            self._sums.setdefault((model, scorer), _Sums()).add(reply, scorer)
        for a, b in combinations(self._scorers, 2):
            pair = self._pairs.setdefault((model, a, b), _PairSums())
            if a in reply.readings and b in reply.readings:
                pair.add(reply, a, b, self._examples)

    @property
    def results(self) -> list[ScorerResult]:
        return [sums.result(*key) for key, sums in self._sums.items()]

    @property
    def differences(self) -> list[ScorerDifference]:
        return [pair.result(*key) for key, pair in self._pairs.items()]
