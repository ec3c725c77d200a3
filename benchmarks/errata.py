"""`audit` on wrong keys planted into a dataset: how many does it doubt, and how many right ones?

    python -m benchmarks.bench what=errata [what.questions=val.csv]

Simulated models answer each question: with their accuracy the right option, else a wrong one. A
share of their errors is `shared`: on these a model names the one wrong option that attracts all
models. With `shared=0` models err apart, which real ones do not.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import mustsee
from benchmarks.figures import BenchTable, Cell
from mustsee.audit.battery import Replies
from mustsee.audit.doubts import SuspectQuestion, find_suspects
from mustsee.audit.guessers import askable_questions
from mustsee.records import Question

DRAWN_OPTIONS = 5  # options of the questions that are drawn where none are given


@dataclass(frozen=True, kw_only=True)
class PlantedErrors:
    """Questions of which some have a wrong key, the right option of each of these by id, and the
    votes of the models: model -> question id -> the option's index.
    """

    questions: Sequence[Question]
    right: Mapping[str, str]
    votes: Mapping[str, Mapping[str, int]]


def plant_errors(
    questions: Sequence[Question],
    share: float,
    accuracies: Sequence[float],
    *,
    shared: float = 0.0,
    seed: int = 0,
) -> PlantedErrors:
    """Give a share of the `questions`, whose keys are right, a wrong key, and let models of these
    accuracies answer all. A planted key is any wrong option, also the attractive one.
    """
    rng = random.Random(seed)
    planted: list[Question] = []
    right: dict[str, str] = {}
    votes: dict[str, dict[str, int]] = {f"model {n + 1}": {} for n in range(len(accuracies))}
    for question in questions:
        name, key = question.question_id, question.answer_index or 0
        wrong = [k for k in range(len(question.options)) if k != key]
        attractive = rng.choice(wrong)
        for model, accuracy in zip(votes.values(), accuracies, strict=True):
            is_shared, chance = rng.random() < shared, rng.choice(wrong)
            error = attractive if is_shared else chance
            model[name] = key if rng.random() < accuracy else error
        if rng.random() < share:
            right[name] = question.options[key]
            other = rng.choice(wrong)
            question = replace(question, answer_index=other, answer=question.options[other])
        planted.append(question)
    return PlantedErrors(questions=planted, right=right, votes=votes)


def draw_questions(count: int) -> list[Question]:
    """Return questions of five options whose texts mean nothing, four on each video."""
    options = tuple(f"option {n}" for n in range(DRAWN_OPTIONS))
    return [
        Question(
            question_id=f"q{n}", video_id=f"v{n // 4}", recipe="drawn", question=f"Which, {n}?",
            question_type="", options=options, answer_index=n % DRAWN_OPTIONS,
        )
        for n in range(count)
    ]  # fmt: skip


def find_doubts(planted: PlantedErrors) -> list[SuspectQuestion]:
    """Return the questions whose key the votes put in doubt."""
    return find_suspects(planted.questions, Replies(()), [], planted.votes)


@dataclass(frozen=True, kw_only=True)
class ErrataBench:
    """`questions`: a dataset that evaluate reads, or None for `count` drawn questions. `shares`: of
    the keys that are wrong; `models`: accuracies of the models of each case; `shared`: share of
    their errors that fall on one attractive option.
    """

    questions: str | None = None
    count: int = 2000
    shares: Sequence[float] = (0.02, 0.05, 0.1)
    models: Sequence[Sequence[float]] = ((0.8, 0.8, 0.8), (0.8, 0.8), (0.8,) * 5)
    shared: Sequence[float] = (0.0, 0.5)
    seed: int = 0

    def __call__(self) -> BenchTable:
        read = None if self.questions is None else mustsee.read(self.questions).questions
        questions = askable_questions(draw_questions(self.count) if read is None else read)
        rows = [
            self._row(questions, share, accuracies, shared)
            for shared in self.shared
            for accuracies in self.models
            for share in self.shares
        ]
        return BenchTable(
            title=f"wrong keys planted into {len(questions)} questions",
            columns=("models", "errors shared", "keys wrong", "found", "right option named",
                     "right keys doubted", "doubts that are right"),
            rows=tuple(rows),
        )  # fmt: skip

    def _row(
        self,
        questions: Sequence[Question],
        share: float,
        accuracies: Sequence[float],
        shared: float,
    ) -> tuple[Cell, ...]:
        planted = plant_errors(questions, share, accuracies, shared=shared, seed=self.seed)
        suspects = {s.question: s for s in find_doubts(planted)}
        found = suspects.keys() & planted.right.keys()
        named = sum(suspects[name].named == planted.right[name] for name in found)
        false = len(suspects) - len(found)
        return (
            ", ".join(f"{a:.0%}" for a in accuracies), f"{shared:.0%}", f"{share:.0%}",
            f"{len(found) / max(1, len(planted.right)):.1%}",
            f"{named / max(1, len(found)):.1%}",
            f"{false / (len(questions) - len(planted.right)):.1%}",
            f"{len(found) / max(1, len(suspects)):.1%}",
        )  # fmt: skip
