"""Neptune's subset `mmh`: questions that sound alone does not answer (C.4, main paper 5.1).

Raters mark each question as needing `audio`, `video` or `both`. As in the paper, a question is in
`mmh` if no majority marks `audio` and no model guessed it without video and transcript.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mustsee.errors import UserError
from mustsee.records import AUDIO_ONLY, Question

SUBSET = "mmh"
NEEDS = ("audio", "video", "both")
WITHOUT_VIDEO = ("blind", "blind_2", "options")  # filters by guesses without video and transcript


@dataclass(frozen=True, kw_only=True)
class ModalityMark:
    """One rater's mark of a question: `needs` is one of `NEEDS`."""

    question_id: str
    rater: str
    needs: str


def from_table(rows: Sequence[Mapping[str, Any]]) -> list[ModalityMark]:
    """Return marks from rows of question_id, rater, needs. Raises UserError naming the row."""
    marks: list[ModalityMark] = []
    for number, row in enumerate(rows, 1):
        needs = str(row.get("needs") or "").strip().lower()
        if needs not in NEEDS or not row.get("question_id"):
            raise UserError(
                f"modalities, row {number}: question_id={row.get('question_id')!r}, "
                f"needs={row.get('needs')!r}: give an id, and one of {', '.join(NEEDS)}"
            )
        mark = ModalityMark(
            question_id=str(row["question_id"]), rater=str(row.get("rater") or number), needs=needs
        )
        marks.append(mark)
    return marks


def human(questions: Sequence[Question], marks: Sequence[ModalityMark]) -> list[Question]:
    """Return the questions; marked ones get `metrics["audio_only"]` and are put in or out of `mmh`.

    The metric is the share of raters who marked `audio`. A rater's last mark of a question counts.
    Raises UserError if no mark is for any of the questions.
    """
    by_question: dict[str, dict[str, str]] = defaultdict(dict)
    for mark in marks:
        by_question[mark.question_id][mark.rater] = mark.needs
    if not by_question.keys() & {q.question_id for q in questions}:
        example = next(iter(by_question), None)
        raise UserError(
            f"modalities: none of the marks is for any of the {len(questions)} questions (the "
            f"first mark is for {example!r}): give the marks of this dataset"
        )
    marked: list[Question] = []
    for question in questions:
        needs = list(by_question.get(question.question_id, {}).values())
        if not needs:
            marked.append(question)
            continue
        share = needs.count("audio") / len(needs)
        guessed = any(name in WITHOUT_VIDEO for name in question.failed_filters)
        others = tuple(s for s in question.subsets if s != SUBSET)
        question = replace(question, metrics={**question.metrics, AUDIO_ONLY: share})
        belongs = not question.audio_only and not guessed
        marked.append(replace(question, subsets=(*others, SUBSET) if belongs else others))
    return marked
