"""What raters are given beside the questions of a run, and the rows of their votes.

Written answers of models, rated by people who do not see the model: as a whole (GEM's development
set, Neptune D.1), with ratings in the format of BEM's files, or point by point. Tasks on videos in
which people write questions (MLVU). Doubtful keys on which they decide, which become a file of
errata (`mustsee.layouts.errata`): the form `errata` asks for `verdict` (stands, other, bad), the
`right` option if another one is right, the `evidence` as a span, and a `note`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mustsee.errors import UserError
from mustsee.evaluate.answers import GRADE, Answer, answers, grades_of
from mustsee.judge import points as judged
from mustsee.judge.points import PointsGrade, counted_points
from mustsee.layouts import errata
from mustsee.layouts.errata import BAD, Errata, Erratum
from mustsee.raters.ballots import TRAINING, CastVote, RatedItem
from mustsee.raters.decision import decide
from mustsee.raters.form import FormField, RatingForm
from mustsee.raters.results import by_question, wanted_votes
from mustsee.records import Question, Span, Verdict, Video
from mustsee.text import printable

SCORE = "score"  # field with the rating, a number from 0 to 1
MAX_POINTS = 12  # points of a question that people can rate
MAX_STATEMENTS = 8
LABELS = {"ENTAILED": "says it", "ABSENT": "does not say it", "CONTRADICTED": "contradicts it"}
MADE_LABELS = {"YES": "says it", "NO": "does not say it"}
STANDS, OTHER = "stands", "other"  # values of `verdict`, beside BAD


def point_fields() -> tuple[FormField, ...]:
    """Return a field for each point and each wrong statement that a question may have."""
    kinds: tuple[tuple[Literal["points", "contradictions"], int, str, Mapping[str, str]], ...] = (
        ("points", MAX_POINTS, "Point", LABELS),
        ("contradictions", MAX_STATEMENTS, "Wrong statement", MADE_LABELS),
    )
    return tuple(
        FormField(
            name=f"{about}_{n + 1}",
            ask=f"{noun} {n + 1}",
            options=tuple(labels),
            labels=labels,
            about=(about, n),
        )
        for about, count, noun, labels in kinds
        for n in range(count)
    )


def reply_tasks(questions: Iterable[Question], *, by_points: bool = False) -> list[Question]:
    """Return a task per written answer of every model to a question with a reference, or to one
    with points. Its `answer` is the reference, its `rationale` the reply, its `points` those that
    count, its `verdicts` the evaluation's on them. Raises UserError for a question with more
    points than the form has fields.
    """
    made = [
        Question(
            question_id=f"{question.question_id}#{number}",
            video_id=question.video_id,
            recipe=question.recipe,
            question=question.question,
            question_type=question.question_type,
            answer=question.answer,
            rationale=given.reply,
            points=counted_points(question) if by_points else (),
            contradictions=question.contradictions if by_points else (),
            verdicts=_grades_of(question, given) if by_points else (),
        )
        for question in questions
        if question.drop is None and question.answer
        if bool(counted_points(question)) == by_points
        for number, given in enumerate(
            a for a in answers(question) if a.failed is None and not a.rule
        )
    ]
    for task in made:
        if len(task.points) > MAX_POINTS or len(task.contradictions) > MAX_STATEMENTS:
            raise UserError(
                f"question {task.question_id.rpartition('#')[0]!r} has {len(task.points)} points "
                f"and {len(task.contradictions)} wrong statements: form=points has fields for "
                f"{MAX_POINTS} and {MAX_STATEMENTS}"
            )
    return made


def _grades_of(question: Question, given: Answer) -> tuple[Verdict, ...]:
    """Return the evaluation's verdicts on the points of an answer, if it was graded by them."""
    return tuple(
        Verdict(filter=GRADE, model=grade["by"], detail=json.dumps(grade["verdicts"]))
        for grade in grades_of(question, given.model)
        if grade.get("rotation") == given.rotation and "verdicts" in grade
    )[:1]


def rating_rows(
    tasks_by_id: Mapping[str, Question], votes: Sequence[CastVote]
) -> list[dict[str, Any]]:
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


def point_rows(
    tasks_by_id: Mapping[str, Question], votes: Sequence[CastVote]
) -> list[dict[str, Any]]:
    """Return one row per vote: a person's verdict on each point of an answer (1, 0 or -1), the
    wrong statements that it makes, and its score; `grader` has the evaluation's verdicts.
    """
    rows_: list[dict[str, Any]] = []
    for vote in votes:
        task = tasks_by_id.get(vote.question_id)
        if vote.round == TRAINING or task is None:
            continue
        said = [vote.answers[f"points_{n + 1}"] for n in range(len(task.points))]
        made = [vote.answers[f"contradictions_{n + 1}"] for n in range(len(task.contradictions))]
        grade = PointsGrade(
            weights=tuple(point.weight for point in task.points),
            verdicts=tuple(judged.VALUES[value] for value in said),
            asserted=tuple(judged.ASSERTED[value] for value in made),
        )
        rows_.append({
            "qid": vote.question_id.rpartition("#")[0],
            "question": task.question,
            "candidate": task.rationale,
            "points": [{"text": p.text, "weight": p.weight} for p in task.points],
            "verdicts": list(grade.verdicts),
            "made": [t for t, is_ in zip(task.contradictions, grade.asserted, strict=True) if is_],
            "score": round(grade.score, 4),
            "grader": json.loads(task.verdicts[0].detail) if task.verdicts else None,
            "rater": vote.rater,
        })  # fmt: skip
    return rows_


def describe_agreement(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how often people and the evaluation's grader say the same of a point."""
    pairs = [
        pair
        for row in rows
        if row["grader"] is not None
        for pair in zip(row["verdicts"], row["grader"], strict=True)
    ]
    if not pairs:
        return "and the evaluation has no grades by points (judge=points) to compare them with"
    same = sum(one == other for one, other in pairs)
    return f"which agree with the evaluation's grader on {same} of {len(pairs)} points"


def video_tasks(form: RatingForm, videos: Iterable[Video]) -> list[Question]:
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


def annotation_rows(
    questions: Mapping[str, Question], votes: Sequence[CastVote]
) -> list[dict[str, Any]]:
    """Return one row per vote, in the format of `ray_jobs.mlvu task=annotated annotations=`."""
    return [
        _annotation_row(questions[vote.question_id], vote)
        for vote in votes
        if vote.round != TRAINING and vote.question_id in questions
    ]


def _annotation_row(task: Question, vote: CastVote) -> dict[str, Any]:
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


@dataclass(frozen=True, kw_only=True)
class DecidedKeys:
    """The entries that people decided, and the ids of the questions on which they did not agree."""

    entries: tuple[Erratum, ...]
    undecided: tuple[str, ...]

    @property
    def sentence(self) -> str:
        confirmed = sum(entry.new == entry.old for entry in self.entries)
        bad = sum(entry.new == BAD for entry in self.entries)
        other = len(self.entries) - confirmed - bad
        text = f"{confirmed} keys stand, {other} have another right option, {bad} questions are bad"
        if self.undecided:
            text += (
                f"; raters do not agree on {len(self.undecided)}: {errata.name_ids(self.undecided)}"
            )
        return printable(text)


def doubted_questions(questions: Sequence[Question], proposals: Errata) -> list[Question]:
    """Return the kept questions with a proposal, in the order of the proposals, each with the
    proposal's span where it has no evidence. Raises UserError for a proposal on another key.
    """
    proposals.outcome(questions)
    by_id = {q.question_id: q for q in questions if q.drop is None}
    changed = [
        name for name in proposals.entries
        if name in by_id and proposals.state(by_id[name]) in ("mismatched", "already")
    ]  # fmt: skip
    if changed:
        raise UserError(
            f"errata={proposals.path!r}: the keys of {len(changed)} questions are not those of the "
            f"proposals: {errata.name_ids(changed)}. Give the questions that were audited"
        )
    spans = {name: entry.span for name, entry in proposals.entries.items() if name in by_id}
    return [
        replace(by_id[name], evidence=by_id[name].evidence or ((span,) if span else ()))
        for name, span in spans.items()
    ]


def describe_doubts(proposals: Errata) -> dict[str, str]:
    """Return question id -> the doubt, as people read it."""
    return {
        name: f"{entry.who}: {entry.evidence}".strip(": ")
        for name, entry in proposals.entries.items()
    }


def decided_keys(
    form: RatingForm,
    questions: Mapping[str, Question],
    items: Sequence[RatedItem],
    votes: Sequence[CastVote],
) -> DecidedKeys:
    """Return an entry for each question on whose key its raters agree by `form.rule`. Questions
    that lack votes have none.
    """
    wanted = {item.name: item.wanted for item in items}
    entries: list[Erratum] = []
    undecided: list[str] = []
    for name, cast in by_question([v for v in votes if v.round != TRAINING]).items():
        state = decide(form, cast, wanted_votes(form, name, wanted))
        if state.round is None:
            continue
        new = _decision(questions[name], state.answers)
        if new is None:
            undecided.append(name)
        else:
            entries.append(_entry(questions[name], new, state.answers, cast[state.round]))
    return DecidedKeys(entries=tuple(entries), undecided=tuple(undecided))


def _decision(question: Question, answers: Mapping[str, object]) -> str | None:
    """Return the settled `new`; None if there is none, or if the other option is the key itself."""
    verdict, right = answers.get("verdict"), answers.get("right")
    if verdict == STANDS:
        return errata.key_of(question)
    if verdict == OTHER and isinstance(right, int) and right != question.answer_index:
        return errata.option_value(question, right)
    return BAD if verdict == BAD else None


def _entry(
    question: Question, new: str, answers: Mapping[str, object], votes: Sequence[CastVote]
) -> Erratum:
    notes = (f"{v.rater}: {v.answers['note']}" for v in votes if v.answers.get("note"))
    agreeing = [v.rater for v in votes if v.answers.get("verdict") == answers["verdict"]]
    return Erratum(
        id=question.question_id,
        old=errata.key_of(question),
        new=new,
        span=_marked_span(answers) or errata.whole_span(question),
        evidence="; ".join(notes) or f"{len(agreeing)} of {len(votes)} raters agree",
        who=", ".join(f"rater:{name}" for name in agreeing),
    )


def _marked_span(answers: Mapping[str, object]) -> Span | None:
    spans = answers.get("evidence")
    if not isinstance(spans, list) or not spans:
        return None
    return Span(min(s[0] for s in spans), max(s[1] for s in spans))
