"""Written answers of models, rated by people who do not see the model (GEM's development set,
Neptune D.1), and their ratings in the format of BEM's files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mustsee.evaluate.answers import answers
from mustsee.raters.ballots import TRAINING, CastVote
from mustsee.records import Question

SCORE = "score"  # field with the rating, a number from 0 to 1


def tasks(questions: Iterable[Question]) -> list[Question]:
    """Return a task per written answer of every model to a question with a reference. Its `answer`
    is the reference, its `rationale` the reply.
    """
    return [
        Question(
            question_id=f"{question.question_id}#{number}",
            video_id=question.video_id,
            recipe=question.recipe,
            question=question.question,
            question_type=question.question_type,
            answer=question.answer,
            rationale=reply,
        )
        for question in questions
        if question.drop is None and question.answer
        for number, reply in enumerate(
            a.reply for a in answers(question) if a.failed is None and not a.rule
        )
    ]


def rows(tasks_by_id: Mapping[str, Question], votes: Sequence[CastVote]) -> list[dict[str, Any]]:
    """Return one row per vote, as `mustsee.judge.data.read_bem` reads them: it takes the mean."""
    return [
        {
            "qid": vote.question_id.rpartition("#")[0],
            "question": task.question,
            "reference": task.answer,
            "candidate": task.rationale,
            "score": float(vote.answers[SCORE]),
            "rater": vote.rater,
        }
        for vote in votes
        if vote.round != TRAINING and (task := tasks_by_id.get(vote.question_id)) is not None
    ]
