"""Exchange with other rating tools: export a form's first round, import votes.

The round must have a single page. Imported votes are text and are checked as a browser's are.
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
    """A vote from another tool: field -> answer as text, with ticks joined by commas."""

    question_id: str
    rater: str
    given: Mapping[str, str]
    seconds: float = 0.0
    at: float = 0.0


@dataclass(frozen=True)
class ImportedVotes:
    """The valid votes, and the reasons why others were refused."""

    votes: list[CastVote]
    refused: list[str]


def page(form: RatingForm) -> FormStep:
    """Return the page to export. Raises UserError for a form that other tools cannot show."""
    step, *others = form.rounds[0].steps
    if form.dealt or form.videos or others or any(f.kind == "option" for f in step.fields):
        raise UserError(
            f"form={form.name} cannot go to another tool: it has several steps, is dealt out to "
            "raters, or is on videos; use verify, neptune, egoschema or certificate"
        )
    return step


def import_votes(
    form: RatingForm,
    foreign_votes: list[ForeignVote],
    questions: Mapping[str, Question],
    videos: Mapping[str, Video],
) -> ImportedVotes:
    """Return the votes, checked as the page checks them; an empty correction means no change."""
    step, imported = page(form), ImportedVotes([], [])
    for vote in foreign_votes:
        question = questions.get(vote.question_id)
        if question is None:
            imported.refused.append(f"{vote.rater}: there is no question {vote.question_id!r}")
            continue
        initial = {f.name: f.initial_text(question) for f in step.fields if f.fills is not None}
        texts = {k: v for k, v in vote.given.items() if v.strip()}
        video = videos.get(question.video_id)
        end = video.until if video is not None else None
        answers, faults = step.read({**initial, **texts}, question, end)
        faults = faults or form.faults(answers, question)
        if faults:
            imported.refused.append(f"{vote.rater}, {vote.question_id}: {faults[0]}")
            continue
        imported.votes.append(
            CastVote(
                question_id=vote.question_id, round=form.rounds[0].name, rater=vote.rater,
                answers=answers, seconds=vote.seconds, at=vote.at,
            )
        )  # fmt: skip
    return imported


def describe_question(question: Question) -> dict[str, str]:
    """Return the question as text for another tool: question, options, evidence."""
    answer_index = question.answer_index
    options = "\n".join(
        f"{chr(65 + place)}. {option}{'  (given as the answer)' if place == answer_index else ''}"
        for place, option in enumerate(question.options)
    )
    spans = ", ".join(f"{s.start:.1f}-{s.end:.1f} s" for s in question.evidence)
    return {
        "question": question.question,
        "options": options or f"Answer: {question.answer}",
        "evidence": spans or "not given",
    }
