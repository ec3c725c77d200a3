"""The learned guess (`mustsee.questions.learned`) at the rows of a training set.

Rows with options are guessed among these, open questions among the answers that are most common on
other videos in questions of the same type.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mustsee.clean.columns import TrainingRow
from mustsee.errors import UserError
from mustsee.questions.learned import FOLDS, RATE, ChoiceText
from mustsee.replies.overlap import normalize

NAME = "learned"
COMMON_ANSWERS = 8  # answers of a type among which an open answer is guessed
MIN_ANSWERS = 3  # times that an answer occurs on other videos, to be among them
MAX_COUNTED = 200_000  # answers that are counted at once; rare ones are forgotten then


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
            by_group: dict[str, list[tuple[int, str]]] = {}
            for (group, answer), total in totals.items():
                count = total - self._counts.get((group, answer, fold), 0)
                if count >= MIN_ANSWERS:
                    by_group.setdefault(group, []).append((-count, answer))
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
