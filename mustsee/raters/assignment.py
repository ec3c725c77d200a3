"""Make a form's items: each question in each round.

A dealt form (the human benchmark, EgoSchema 12.4) assigns each question once per round, every time
to another rater, with equal numbers per rater and round.

Training items are questions with agreed answers. Every rater answers them first, and then sees the
agreed answers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.errors import UserError
from mustsee.raters.ballots import EVERYBODY_VOTES, TRAINING, RatedItem
from mustsee.raters.form import AnswerFault, FormField, RatingForm, Round
from mustsee.records import Question, group_pairs


def items(
    form: RatingForm,
    questions: Sequence[str],
    *,
    raters: int,
    people: Sequence[str],
    training: Sequence[str] = (),
    seed: int = 0,
    video_of: Mapping[str, str] | None = None,
) -> list[RatedItem]:
    """Return the items: training first, then round by round in the order of the questions."""
    training_items = [
        RatedItem(question_id=q, round=TRAINING, wanted=EVERYBODY_VOTES) for q in training
    ]
    if form.dealt:
        return [*training_items, *deal_questions(form.rounds, questions, people, seed=seed)]
    if form.draws is not None:
        drawn = draw_questions(
            form.rounds[0], questions, people, video_of or {}, form.draws, seed=seed
        )
        return [*training_items, *drawn]
    if form.videos:
        return training_items + [
            RatedItem(question_id=q, round=r.name, wanted=r.votes or raters)
            for q in questions
            for r in form.rounds
            if q.endswith(f"/{r.name}")
        ]
    return training_items + [
        RatedItem(
            question_id=q, round=r.name, wanted=r.votes or raters, senior=r.senior, after=r.after
        )
        for r in form.rounds
        for q in questions
    ]  # fmt: skip


def needed_raters(form: RatingForm, raters: int) -> tuple[int, int]:
    """Return (raters, experienced raters) that a question needs; a rater gets it only once."""
    if form.dealt:
        return len(form.rounds), 0
    if form.draws is not None:
        return 1, 0
    votes = [(r.votes or raters, r.senior) for r in form.rounds]
    if form.videos:
        return max(n for n, _ in votes), 0
    return sum(n for n, s in votes if not s), sum(n for n, s in votes if s)


def deal_questions(
    rounds: Sequence[Round], questions: Sequence[str], people: Sequence[str], *, seed: int = 0
) -> list[RatedItem]:
    """Return each question once per round, assigned to raters.

    No rater gets a question twice. In each round, raters' numbers of questions differ by at most
    one. Raises UserError for fewer people than rounds.
    """
    if len(set(people)) < len(rounds):
        raise UserError(
            f"{len(rounds)} rounds need at least as many raters, so that none gets a question "
            f"twice: there are {len(set(people))}. Name more people"
        )
    order = sorted(questions)
    random.Random(f"{seed}/human/questions").shuffle(order)
    dealt_to = sorted(set(people))
    random.Random(f"{seed}/human/raters").shuffle(dealt_to)
    return [
        RatedItem(
            question_id=name,
            round=round_.name,
            wanted=1,
            rater=dealt_to[(place + turn) % len(dealt_to)],
        )
        for turn, round_ in enumerate(rounds)
        for place, name in enumerate(order)
    ]


def draw_questions(
    round_: Round,
    questions: Sequence[str],
    people: Sequence[str],
    video_of: Mapping[str, str],
    draws: tuple[int, int],
    *,
    seed: int = 0,
) -> list[RatedItem]:
    """Return for each rater `draws` = (videos, questions): so many random videos, which no other
    rater has, and so many random questions on these together (CinePile, 3).

    Raises UserError for fewer videos than that takes.
    """
    by_video = group_pairs((video_of[name], name) for name in sorted(questions))
    rng = random.Random(f"{seed}/human/draws")
    order = sorted(by_video)
    rng.shuffle(order)
    videos, count = draws
    names = sorted(set(people))
    if len(order) < videos * len(names):
        raise UserError(
            f"{len(names)} raters with {videos} videos each need {videos * len(names)} videos with "
            f"questions: there are {len(order)}. Name fewer people"
        )
    items: list[RatedItem] = []
    for place, rater in enumerate(names):
        own = [q for video in order[place * videos : (place + 1) * videos] for q in by_video[video]]
        items += [
            RatedItem(question_id=name, round=round_.name, wanted=1, rater=rater)
            for name in rng.sample(own, min(count, len(own)))
        ]
    return items


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training item's agreed answers by field, with an explanation."""

    answers: Mapping[str, Any]
    why: str = ""

    def missed_fields(self, answers: Mapping[str, Any]) -> list[str]:
        """Return the fields with other answers than the agreed ones."""
        return [name for name, value in self.answers.items() if answers.get(name) != value]


def from_rows(
    rows: Sequence[Mapping[str, Any]], form: RatingForm, questions: Mapping[str, Question]
) -> dict[str, Training]:
    """Return question id -> training item.

    A row has question_id, answers (field of the form's first round -> answer) and why. Raises
    UserError naming the row.
    """
    fields = {f.name: f for f in form.rounds[0].fields if f.kind in ("pick", "ticks", "option")}
    training: dict[str, Training] = {}
    for number, row in enumerate(rows, 1):
        name, answers = str(row.get("question_id") or ""), row.get("answers")
        if name not in questions or name in training:
            raise UserError(
                f"training, row {number}: question_id={name!r} is not a question of this dataset, "
                "or occurs twice"
            )
        if not isinstance(answers, Mapping) or not answers or set(answers) - set(fields):
            raise UserError(
                f"training, row {number}: answers={answers!r} must be an object with some of the "
                f"fields {sorted(fields)}"
            )
        parsed = {
            key: _parse_answer(fields[key], questions[name], answers[key], number)
            for key in answers
        }
        training[name] = Training(answers=parsed, why=str(row.get("why") or ""))
    return training


def _parse_answer(field: FormField, question: Question, value: Any, number: int) -> Any:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    try:
        return field.read(text, question)
    except AnswerFault as fault:
        raise UserError(f"training, row {number}: {field.name}={value!r} {fault}") from None
