"""What goes to another rating tool and comes back from it: a form's first round, where that is one
page, and votes in plain text, which are read as those of a browser are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mustsee.errors import UserError
from mustsee.raters.ballots import CastVote
from mustsee.raters.form import FormStep, RatingForm
from mustsee.records import Question, Video


@dataclass(frozen=True, kw_only=True)
class ForeignVote:
    """One vote of another tool: answers as text by field, several ticks joined by commas."""

    question_id: str
    rater: str
    given: Mapping[str, str]
    seconds: float = 0.0
    at: float = 0.0


@dataclass(frozen=True)
class ImportedVotes:
    """The votes that count, and why others do not."""

    votes: list[CastVote]
    refused: list[str]


def page(form: RatingForm) -> FormStep:
    """The page that goes out. Raises UserError for a form that another tool cannot keep to."""
    step, *others = form.rounds[0].steps
    if form.dealt or form.videos or others or any(f.kind == "option" for f in step.fields):
        raise UserError(
            f"form={form.name} cannot go to another tool: it is answered in steps, dealt out to "
            "people, or on videos; take verify, neptune, egoschema or certificate"
        )
    return step


def import_votes(
    form: RatingForm,
    said: list[ForeignVote],
    questions: Mapping[str, Question],
    videos: Mapping[str, Video],
) -> ImportedVotes:
    """Votes checked as the page checks them. A correction that is left empty is none."""
    step, found = page(form), ImportedVotes([], [])
    for vote in said:
        question = questions.get(vote.question_id)
        if question is None:
            found.refused.append(f"{vote.rater}: there is no question {vote.question_id!r}")
            continue
        fills = {f.name: f.initial_text(question) for f in step.fields if f.fills is not None}
        given = {k: v for k, v in vote.given.items() if v.strip()}
        video = videos.get(question.video_id)
        end = video.until if video is not None else None
        answers, faults = step.read({**fills, **given}, question, end)
        faults = faults or form.faults(answers)
        if faults:
            found.refused.append(f"{vote.rater}, {vote.question_id}: {faults[0]}")
            continue
        found.votes.append(
            CastVote(
                question_id=vote.question_id, round=form.rounds[0].name, rater=vote.rater,
                answers=answers, seconds=vote.seconds, at=vote.at,
            )
        )  # fmt: skip
    return found


def describe_question(question: Question) -> dict[str, str]:
    """The question in words, for a tool that shows text."""
    right = question.answer_index
    options = "\n".join(
        f"{chr(65 + place)}. {option}{'  (given as the answer)' if place == right else ''}"
        for place, option in enumerate(question.options)
    )
    spans = ", ".join(f"{s.start:.1f}-{s.end:.1f} s" for s in question.evidence)
    return {
        "question": question.question,
        "options": options or f"Answer: {question.answer}",
        "evidence": spans or "not given",
    }
