"""The items of a form: each question in each round; where the form is dealt, who gets which.

Dealt (the human benchmark, EgoSchema 12.4): each question once in every setting, each time to
another person, in each setting as many to one as to another.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from mustsee.errors import UserError
from mustsee.raters.ballots import EVERYBODY_VOTES, TRAINING, RatedItem
from mustsee.raters.form import RatingForm, Round

MINUTES_PER_QUESTION = 5.0  # that a question takes of a round's `hours`


def items(
    form: RatingForm,
    questions: Sequence[str],
    *,
    raters: int,
    people: Sequence[str],
    training: Sequence[str] = (),
    seed: int = 0,
) -> list[RatedItem]:
    """What there is to do, training first, then round by round in the order of the questions."""
    first = [RatedItem(question_id=q, round=TRAINING, wanted=EVERYBODY_VOTES) for q in training]
    if form.dealt:
        return [*first, *deal_questions(form.rounds, questions, people, seed=seed)]
    if form.videos:
        return first + [
            RatedItem(question_id=q, round=r.name, wanted=r.votes or raters)
            for q in questions
            for r in form.rounds
            if q.endswith(f"/{r.name}")
        ]
    return first + [
        RatedItem(
            question_id=q, round=r.name, wanted=r.votes or raters, senior=r.senior, after=r.after
        )
        for r in form.rounds
        for q in questions[: questions_in_hours(r, len(questions))]
    ]  # fmt: skip


def needed_raters(form: RatingForm, raters: int) -> tuple[int, int]:
    """How many raters, and how many experienced ones, a question takes: nobody meets it twice."""
    if form.dealt:
        return len(form.rounds), 0
    votes = [(r.votes or raters, r.senior) for r in form.rounds]
    if form.videos:
        return max(n for n, _ in votes), 0
    return sum(n for n, s in votes if not s), sum(n for n, s in votes if s)


def deal_questions(
    rounds: Sequence[Round], questions: Sequence[str], people: Sequence[str], *, seed: int = 0
) -> list[RatedItem]:
    """Each question once in every round. Nobody meets a question twice, and in each round the
    people's shares differ by at most one. Raises UserError for fewer people than rounds.
    """
    if len(set(people)) < len(rounds):
        raise UserError(
            f"{len(rounds)} rounds need at least as many raters, so that nobody meets a question "
            f"twice: there are {len(set(people))}"
        )
    order = sorted(questions)
    random.Random(f"{seed}/human/questions").shuffle(order)
    who = sorted(set(people))
    random.Random(f"{seed}/human/raters").shuffle(who)
    return [
        RatedItem(question_id=name, round=each.name, wanted=1, rater=who[(place + turn) % len(who)])
        for turn, each in enumerate(rounds)
        for place, name in enumerate(order[: questions_in_hours(each, len(order))])
    ]


def questions_in_hours(each: Round, count: int) -> int:
    """As many questions of `count` as fit a round's `hours`."""
    return count if each.hours is None else min(count, int(each.hours * 60 / MINUTES_PER_QUESTION))
