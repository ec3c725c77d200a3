"""Tasks on videos, in which people write questions (MLVU): what they are asked, and the table that
becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mustsee.raters.ballots import TRAINING, CastVote
from mustsee.raters.form import RatingForm
from mustsee.records import Question, Video


def tasks(form: RatingForm, videos: Iterable[Video]) -> list[Question]:
    """A task of each round on each video that stands, in the place of a question."""
    return [
        Question(
            question_id=f"{video.video_id}/{each.name}",
            video_id=video.video_id,
            recipe=form.name,
            question="",
            question_type=each.name,
        )
        for video in videos
        if video.drop is None and video.problem is None
        for each in form.rounds
    ]


def rows(questions: Mapping[str, Question], votes: Sequence[CastVote]) -> list[dict[str, Any]]:
    """One row for each vote, as `ray_jobs.mlvu task=annotated annotations=` reads them."""
    return [
        _row(questions[vote.question_id], vote)
        for vote in votes
        if vote.round != TRAINING and vote.question_id in questions
    ]


def _row(task: Question, vote: CastVote) -> dict[str, Any]:
    said = vote.answers
    row: dict[str, Any] = {
        "video_id": task.video_id, "kind": task.question_type, "annotator": vote.rater,
        "question": said.get("question"), "answer": said.get("answer"),
    }  # fmt: skip
    row |= {f"wrong_{n}": text for n, text in enumerate(said.get("wrong", ()), 1)}
    if said.get("points"):
        row["points"] = list(said["points"])
    if said.get("evidence"):
        row["start"], row["end"] = said["evidence"][0]
    return row
