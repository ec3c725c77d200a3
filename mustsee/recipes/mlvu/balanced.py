"""The balance of MLVU's questions: the decision over all rows, and its part of the run record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from mustsee.files import schemas
from mustsee.questions import balance
from mustsee.questions.decision import Decision
from mustsee.records import Question
from mustsee.run.tables import Tables, standing_questions


@dataclass(frozen=True, kw_only=True)
class GuesserBalance:
    """Drops questions until no guesser beats chance. `least`: smallest share of a task to keep."""

    fair: bool = True
    least: float = 0.5
    seed: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return ("questions",)

    def __call__(self, rows: pa.Table) -> Decision:
        if not self.fair:
            return Decision()
        before = list(standing_questions(rows))
        after = balance.balance_questions(before, self.seed, self.least)
        dropped = {
            new.question_id: new.drop
            for new, old in zip(after, before, strict=True)
            if new.drop is not None and new.drop != old.drop
        }
        return Decision(questions=dropped)


def record_notes(tables: Tables) -> Mapping[str, object]:
    """The balance before and after resampling, and each background's nearest match to its probes.

    A person reviews the matches (`review`): `at` is in seconds.
    """
    after = list(tables.questions("options", "answer_index", "drop"))
    before = [replace(q, drop=None) if _dropped_by_balance(q) else q for q in after]
    reports = {"before": _guesser_report(before), "after": _guesser_report(after)}
    review = [
        {
            "video_id": row.video_id,
            "probe": segment.topic or segment.dense_caption,
            "at": segment.start,
            "seen": segment.visual_support,
            "drop": row.drop,
        }
        for row in tables.videos("segments", "drop")
        for segment in row.segments or ()
        if segment.visual_support
    ]
    unfair = {when: sum(not g["fair"] for g in report) for when, report in reports.items()}
    note = (
        f"balance: {unfair['before']} of {len(reports['before'])} guessers off chance, "
        f"{unfair['after']} after {sum(map(_dropped_by_balance, after))} questions were dropped"
    )
    return {"balance": reports, "review": review, "notes": [note]}


def _dropped_by_balance(question: Question) -> bool:
    return question.dropped_by == "balance"


def _guesser_report(questions: Sequence[Question]) -> list[dict[str, Any]]:
    return [{**schemas.dump(f), "fair": f.fair} for f in balance.report(questions)]
