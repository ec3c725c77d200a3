"""Tasks on videos in which people write questions (MLVU), and the table of their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mustsee.raters.ballots import TRAINING, CastVote
from mustsee.raters.form import RatingForm
from mustsee.records import Question, Span, Video


def tasks(form: RatingForm, videos: Iterable[Video]) -> list[Question]:
    """Return a task per usable video and round that suits its length: a question without text. Its
    evidence is the part of the video that it is about, if that is not all of it.
    """
    return [
        Question(
            question_id=f"{video.video_id}/{each.name}",
            video_id=video.video_id,
            recipe=form.name,
            question="",
            question_type=each.task or each.name,
            evidence=() if each.covers is None else (Span(0.0, each.covers),),
        )
        for video in videos
        if video.drop is None and video.problem is None
        for each in form.rounds
        if each.suits(video.duration)
    ]


def rows(questions: Mapping[str, Question], votes: Sequence[CastVote]) -> list[dict[str, Any]]:
    """Return one row per vote, in the format of `ray_jobs.mlvu task=annotated annotations=`."""
    return [
        _row(questions[vote.question_id], vote)
        for vote in votes
        if vote.round != TRAINING and vote.question_id in questions
    ]


def _row(task: Question, vote: CastVote) -> dict[str, Any]:
    answers = vote.answers
    row: dict[str, Any] = {
        "video_id": task.video_id, "kind": task.question_type, "annotator": vote.rater,
        "question": answers.get("question"), "answer": answers.get("answer"),
    }  # fmt: skip
    row |= {f"wrong_{n}": text for n, text in enumerate(answers.get("wrong", ()), 1)}
    if answers.get("points"):
        row["points"] = list(answers["points"])
    if answers.get("evidence"):
        row["start"], row["end"] = answers["evidence"][0]
    elif task.evidence:
        row["start"], row["end"] = task.evidence[0].start, task.evidence[0].end
    return row
