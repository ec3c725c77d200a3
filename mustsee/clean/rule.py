"""The rule by which a row counts as answerable without the video, and what becomes of it.

A reader's reply is right by luck, too: of two options every other guess. So more right replies are
needed where a guesser would pass too often, and a reader whose replies beat chance neither over the
set nor over the type of a question is not believed (docs/decisions/0020-lucky-guesses-stay.md).

A model's reply to a row without options is graded by rules, and by a judge where they end. The
learned guess (`mustsee.questions.learned`) is a reader, too: rows with options are guessed among
these, open questions among the answers that are most common on other videos in questions of the
same type.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mustsee import stats
from mustsee.clean.columns import TrainingRow, number_in
from mustsee.errors import UserError
from mustsee.questions.chance import chance_to_pass
from mustsee.questions.learned import FOLDS, RATE, ChoiceText
from mustsee.records import group_pairs
from mustsee.replies.overlap import normalize
from mustsee.text import NUMBERS, words

Then = Literal["drop", "weigh", "mark"]
RIGHT, WRONG, FAILED = 1, 0, -1  # of one reply
BUCKETS = 64  # groups of videos, which the test against chance takes as its independent units
MAX_GROUPS = 500  # types that are tested; rows of further ones count with the whole set only
DECIDED = ("known", "not known", "not decided", "left alone")
GRADERS = {  # kind of answer -> how a reply to it is graded
    "choice": "the letter that the reply names",
    "yes/no": "yes or no, the only one of the two that the reply has",
    "number": "the only number of the reply, equal as a number",
    "text": "equal, or within the reply, in lower case without punctuation",
    "open": "equal without case, articles and punctuation; else by the judge",
}
_FIGURE = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_YES, _NO = {"yes", "true"}, {"no", "false"}
LEARNED = "learned"  # name of the learned guess among the readers
COMMON_ANSWERS = 8  # answers of a type among which an open answer is guessed
MIN_ANSWERS = 3  # times that an answer occurs on other videos, to be among them
MAX_COUNTED = 200_000  # answers that are counted at once; rare ones are forgotten then


@dataclass(frozen=True, kw_only=True)
class BlindRule:
    """When a row counts as answerable without the video: a reader has enough right replies."""

    right: int = 2
    """Right replies of a model that suffice."""
    of: int = 3
    """Replies of each model, each with the options in another order."""
    readers: int = 1
    """Readers (models, and the learned guess) that must know the row."""
    luck: float = 0.2
    """Greatest probability that a guesser passes: where it is greater, as with two options, more
    right replies are needed."""
    then: Then = "drop"
    """What becomes of such a row: drop; weigh (`clean_weight`); mark (kept, with its verdict)."""
    weight: float = 0.25
    """Weight of such a row with then=weigh; that of others is 1."""

    def __post_init__(self) -> None:
        if not 1 <= self.right <= self.of:
            raise UserError(f"rule.right={self.right!r}: expected 1 to rule.of={self.of}")
        if self.readers < 1:
            raise UserError(f"rule.readers={self.readers!r}: at least 1")
        if not 0 < self.luck <= 1:
            raise UserError(f"rule.luck={self.luck!r}: above 0 and at most 1")
        if self.then not in ("drop", "weigh", "mark"):
            raise UserError(f"rule.then={self.then!r}: choose one of drop, weigh, mark")
        if not 0 <= self.weight <= 1:
            raise UserError(f"rule.weight={self.weight!r}: from 0 to 1")

    @property
    def sentence(self) -> str:
        """The rule in words."""
        by = "a reader knows it" if self.readers == 1 else f"{self.readers} readers know it"
        fate = {"drop": "dropped", "weigh": f"weighed {self.weight:g}", "mark": "marked"}
        return (
            f"a row is {fate[self.then]} where {by}: blind right in >= {self.right} of {self.of} "
            f"replies (more where a guesser would pass with over {self.luck:.0%})"
        )

    def right_needed(self, chance: float) -> int | None:
        """Return the right replies that a row with this chance of a right guess needs; None where
        all of them would be luck too often.
        """
        for right in range(self.right, self.of + 1):
            if chance_to_pass(1 - chance, self.of, right) <= self.luck:
                return right
        return None

    def knows(self, replies: Sequence[int], chance: float) -> bool | None:
        """Whether a reader knows a row, by its replies (RIGHT, WRONG, FAILED); None where failed
        ones, or luck, leave that open.
        """
        needed = self.right_needed(chance)
        right, failed = replies.count(RIGHT), replies.count(FAILED)
        if needed is None or right < needed <= right + failed:
            return None
        return right >= needed


def chance_of_row(row: TrainingRow) -> float:
    """Return the probability that a guess is right."""
    if row.options:
        return 1 / len(row.options)
    return 0.5 if row.kind == "yes/no" else 0.0


@dataclass
class ReaderScores:
    """A reader's right replies less chance, summed by group and by buckets of videos.

    `sums` [group -> (right, chance, replies) by bucket]; the group "" is the whole set.
    """

    sums: dict[str, NDArray[np.float64]] = field(default_factory=dict[str, NDArray[np.float64]])

    def add(self, row: TrainingRow, right: float, chance: float, replies: int = 1) -> None:
        """Add the replies to a row: the number of right ones, and that expected of a guesser."""
        bucket = zlib.crc32(f"bucket {row.video}".encode()) % BUCKETS
        for group in {"", row.question_type}:
            sums = self.sums.get(group)
            if sums is None:
                if len(self.sums) > MAX_GROUPS:
                    continue
                sums = self.sums[group] = np.zeros((BUCKETS, 3))
            sums[bucket] += (right, chance, replies)

    def share(self, group: str = "") -> tuple[float, float] | None:
        """Return the shares of right replies and of right guesses in a group; None without any."""
        if group not in self.sums or not self.sums[group][:, 2].sum():
            return None
        right, chance, replies = self.sums[group].sum(axis=0)
        return float(right / replies), float(chance / replies)

    def beats_chance(self) -> frozenset[str]:
        """Return the groups in which it is right more often than a guesser (t-test over buckets of
        videos, adjusted by Holm).
        """
        gaps = dict[str, stats.Difference]()
        for name, sums in self.sums.items():
            used = sums[sums[:, 2] > 0]
            if not len(used):
                continue
            mean = used[:, 2].mean()
            buckets = list(range(len(used)))
            gaps[name] = stats.paired_difference(used[:, 0] / mean, used[:, 1] / mean, buckets)
        return frozenset(name for name, gap in stats.adjust(gaps).items() if gap.is_above())


@dataclass(frozen=True, kw_only=True)
class RowVerdict:
    """`decided`: one of `DECIDED`. `known_by`: the readers that know the row. `reason`: why it is
    left alone, or not decided.
    """

    decided: str
    known_by: tuple[str, ...] = ()
    reason: str = ""

    def fate(self, rule: BlindRule) -> tuple[str, float]:
        """Return what becomes of the row (keep, drop, mark, weigh), and its weight."""
        if self.decided != "known":
            return "keep", 1.0
        return rule.then, {"drop": 0.0, "weigh": rule.weight, "mark": 1.0}[rule.then]


def decide(
    row: TrainingRow,
    rule: BlindRule,
    knows: Mapping[str, bool | None],
    beating: Mapping[str, frozenset[str]],
) -> RowVerdict:
    """Return the verdict on a row. `knows`: by reader that was asked, what `BlindRule.knows` says.
    `beating`: by reader, the groups in which it beats chance.
    """
    if row.left:
        return RowVerdict(decided="left alone", reason=row.left)
    if not knows:
        return RowVerdict(decided="not decided", reason="no reader can guess at it")
    known = tuple(
        name for name, known in knows.items()
        if known and beating.get(name, frozenset()) & {"", row.question_type}
    )  # fmt: skip
    if len(known) >= rule.readers:
        return RowVerdict(decided="known", known_by=known)
    if all(value is None for value in knows.values()):
        return RowVerdict(
            decided="not decided", reason="calls failed, or luck would pass too often"
        )
    return RowVerdict(decided="not known", known_by=known)


Tally = dict[tuple[str, str, str, str, str], int]
"""(source, type, kind, length, verdict or reason) -> rows."""


def grade_by_rules(row: TrainingRow, reply: str) -> bool | None:
    """Return whether a reply has a row's answer; None where only a judge can tell."""
    if row.kind == "yes/no":
        said = set(words(reply))
        yes, no = bool(said & _YES), bool(said & _NO)
        return yes != no and yes == (normalize(row.answer) in _YES)
    if row.kind == "number":
        return _numbers(reply) == {number_in(row.answer)}
    if row.kind == "text":
        return f" {_bare(row.answer)} " in f" {_bare(reply)} "
    if normalize(row.answer) == normalize(reply):
        return True
    return None if reply.strip() else False


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _numbers(reply: str) -> set[float | None]:
    figures = {float(f.replace(",", "")) for f in _FIGURE.findall(reply)}
    if figures:
        return {*figures}
    return {float(NUMBERS[w]) for w in words(reply) if w in NUMBERS}


@dataclass(frozen=True, kw_only=True)
class LearnedGuesser:
    """The learned guess among the readers of a training set."""

    on: bool = True
    """Let it guess; false: models are the only readers."""
    sure: float = 3
    """Times the odds of chance that it must give the right answer of a row to know it, beside a
    probability of one half at least."""
    rate: float = RATE
    """Step size of its fit."""

    def __post_init__(self) -> None:
        if self.sure < 1:
            raise UserError(f"learned.sure={self.sure!r}: expected at least 1 (chance)")
        if self.rate <= 0:
            raise UserError(f"learned.rate={self.rate!r}: more than 0")

    def knows(self, probability: float, count: int) -> bool:
        """Whether a probability of the right answer among `count` is that of one it knows."""
        odds = probability / max(1e-9, 1 - probability)
        return probability >= 0.5 and odds * (count - 1) >= self.sure


def fold_of(video: str) -> int:
    """Return the fold of a video: its rows are guessed by a model that has not seen it."""
    return hashlib.sha256(f"fold {video}".encode()).digest()[0] % FOLDS


class CommonAnswers:
    """The answers without options, counted by type and fold in bounded memory."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, str, int]]()

    def add(self, row: TrainingRow) -> None:
        self._counts[group_of(row), normalize(row.answer), fold_of(row.video)] += 1
        if len(self._counts) > MAX_COUNTED:
            self._counts = Counter({key: n for key, n in self._counts.items() if n > 1})

    def by_group(self) -> dict[str, list[list[str]]]:
        """Return the common answers of each group, by the fold of whose videos none is counted."""
        totals = Counter[tuple[str, str]]()
        for (group, answer, _), count in self._counts.items():
            totals[group, answer] += count
        listed: dict[str, list[list[str]]] = {}
        for fold in range(FOLDS):
            counts = (
                (group, (self._counts.get((group, answer, fold), 0) - total, answer))
                for (group, answer), total in totals.items()
            )
            by_group = group_pairs((g, each) for g, each in counts if each[0] <= -MIN_ANSWERS)
            for group, answers in by_group.items():
                best = [answer for _, answer in sorted(answers)[:COMMON_ANSWERS]]
                listed.setdefault(group, [[] for _ in range(FOLDS)])[fold] = best
        return listed


def group_of(row: TrainingRow) -> str:
    """Return the group whose common answers a row without options is guessed among."""
    return f"{row.kind} {row.question_type}"


def as_choice(row: TrainingRow, common: Mapping[str, Sequence[Sequence[str]]]) -> ChoiceText | None:
    """Return a row as the learned guess reads it; None where there is nothing to choose from.
    `common`: the common answers (`CommonAnswers.by_group`).
    """
    fold, choices, right = fold_of(row.video), row.options, row.answer_index
    if row.kind is not None and not row.options:
        of_folds = common.get(group_of(row))
        choices, own = tuple(of_folds[fold]) if of_folds else (), normalize(row.answer)
        right = choices.index(own) if own in choices else None
    if len(choices) < 2:
        return None
    return ChoiceText(
        question=row.question,
        question_type=row.question_type,
        source=row.source,
        choices=choices,
        right=-1 if right is None else right,
        fold=fold,
        open_answer=not row.options,
    )
