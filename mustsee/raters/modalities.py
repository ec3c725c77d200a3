"""Neptune's subset `mmh`: what raters found that sound alone does not answer (C.4, main paper 5.1).

Raters say of each question what one must have to answer it: `audio`, `video` or `both`. A question
belongs to `mmh` where no majority of its raters says `audio`, and where a model could not guess it
without the video (the filter `blind`), as in the paper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mustsee.errors import UserError
from mustsee.records import Question

SUBSET = "mmh"
NEEDS = ("audio", "video", "both")
AUDIO_ONLY = "audio_only"


@dataclass(frozen=True, kw_only=True)
class ModalityMark:
    """What one rater says that a question needs: one of `NEEDS`."""

    question_id: str
    rater: str
    needs: str


def from_table(rows: Sequence[Mapping[str, Any]]) -> list[ModalityMark]:
    """Marks from a table with the columns question_id, rater and needs. UserError with the row."""
    marks: list[ModalityMark] = []
    for number, row in enumerate(rows, 1):
        needs = str(row.get("needs") or "").strip().lower()
        if needs not in NEEDS or not row.get("question_id"):
            raise UserError(
                f"modalities, row {number}: question_id={row.get('question_id')!r}, "
                f"needs={row.get('needs')!r}: an id, and one of {', '.join(NEEDS)}, are wanted"
            )
        mark = ModalityMark(
            question_id=str(row["question_id"]), rater=str(row.get("rater") or number), needs=needs
        )
        marks.append(mark)
    return marks


def human(questions: Sequence[Question], marks: Sequence[ModalityMark]) -> list[Question]:
    """The questions, those with marks with `metrics["audio_only"]` (the share of raters who say
    so), and in the subset or out of it. Of one rater's marks the last counts. Raises UserError
    where no mark is of any question.
    """
    by_question: dict[str, dict[str, str]] = defaultdict(dict)
    for mark in marks:
        by_question[mark.question_id][mark.rater] = mark.needs
    if not by_question.keys() & {q.question_id for q in questions}:
        raise UserError("modalities: none of the marks is of any of these questions")
    done: list[Question] = []
    for question in questions:
        said = list(by_question.get(question.question_id, {}).values())
        if not said:
            done.append(question)
            continue
        share = said.count("audio") / len(said)
        guessed = question.metrics.get("blind_passed") == 0
        others = tuple(s for s in question.subsets if s != SUBSET)
        belongs = share <= 0.5 and not guessed
        done.append(
            replace(
                question,
                metrics={**question.metrics, AUDIO_ONLY: share},
                subsets=(*others, SUBSET) if belongs else others,
            )
        )
    return done
