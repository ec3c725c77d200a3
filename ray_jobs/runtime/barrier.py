"""A barrier: what is decided over all rows together, and how that gets into them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from actors.engine.hardware import Hardware
from actors.engine.stage import Stage
from actors.part import Opened, RunContext
from mustsee.records import Video
from mustsee.run.decision import Decision
from mustsee.store import digest

NAME = "sample"  # of the stage behind a barrier
LARGE = frozenset(
    {"keyframes", "frames", "lines", "captions", "segments", "questions", "texts", "shots"}
)


@dataclass(frozen=True, kw_only=True)
class DecisionWriter:
    """Writes into each row what was decided over all of them."""

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "cluster", "drop", "questions")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("cluster", "drop", "questions")
    decision: Decision

    @cached_property
    def identity(self) -> list[str]:
        """A hash: a decision over many rows is long, and is part of the key of each."""
        return ["DecisionWriter", self.version, digest(self.decision)]

    def open(self, run: RunContext) -> Opened:
        made = self.decision

        def mark(row: Video) -> Video:
            return dataclasses.replace(
                row,
                cluster=made.clusters.get(row.video_id, row.cluster),
                drop=made.drops.get(row.video_id, row.drop),
                questions=row.questions
                and tuple(
                    dataclasses.replace(q, drop=q.drop or made.questions.get(q.question_id))
                    for q in row.questions
                ),
            )

        return mark


def decision_stage(decision: Decision) -> Stage:
    """The stage that writes a decision."""
    return Stage(name=NAME, part=DecisionWriter(decision=decision), hardware=Hardware(cpus=0.1))


def small(names: Sequence[str], also: Sequence[str] = ()) -> list[str]:
    """The columns that a decision over all rows may look at: no transcripts, no media, unless it
    asks for them.
    """
    return [n for n in names if n not in LARGE or n in also]
