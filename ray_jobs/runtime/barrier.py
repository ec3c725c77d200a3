"""A barrier: a decision over all rows, and the stage that writes it into each row."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from actors.engine.hardware import Hardware
from actors.engine.stage import Stage
from actors.part import Opened, RunContext
from mustsee.files.store import digest
from mustsee.records import Question, Video
from mustsee.run.decision import Decision

NAME = "decide"  # name of the stage that writes a decision
LARGE = frozenset(
    {"keyframes", "frames", "image_vectors", "shots", "texts"}
    | {"lines", "captions", "segments", "questions"}
)


@dataclass(frozen=True, kw_only=True)
class DecisionWriter:
    """Writes the decision over all rows into each row."""

    version: ClassVar[str] = "3"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "cluster", "drop", "questions")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("cluster", "drop", "questions")
    decision: Decision

    @cached_property
    def identity(self) -> list[str]:
        """The class, its version and a hash of the decision, which is too long for a store key."""
        return ["DecisionWriter", self.version, digest(self.decision)]

    def open(self, run: RunContext) -> Opened:
        decision = self.decision

        def mark(row: Video) -> Video:
            return dataclasses.replace(
                row,
                cluster=decision.clusters.get(row.video_id, row.cluster),
                drop=decision.drops.get(row.video_id, row.drop),
                questions=row.questions and tuple(map(mark_question, row.questions)),
            )

        def mark_question(question: Question) -> Question:
            name = question.question_id
            left = decision.leaves.get(name, ())
            return dataclasses.replace(
                question,
                drop=question.drop or decision.questions.get(name),
                metrics={**question.metrics, **decision.metrics.get(name, {})},
                subsets=tuple(subset for subset in question.subsets if subset not in left),
            )

        return mark


def decision_stage(decision: Decision) -> Stage:
    """The stage that writes `decision` into the rows."""
    return Stage(name=NAME, part=DecisionWriter(decision=decision), hardware=Hardware(cpus=0.1))


def small_columns(names: Sequence[str], also: Sequence[str] = ()) -> list[str]:
    """The columns that a decision may read: all but transcripts and media, and those in `also`."""
    return [n for n in names if n not in LARGE or n in also]
