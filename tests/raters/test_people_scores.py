"""People's own answers, from the verdicts that `mustsee rate do=write` leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mustsee.raters.ballots import CastVote, RatedItem
from mustsee.raters.form import FormField, FormStep, RatingForm, Round
from mustsee.raters.votes import apply_votes, score_people
from mustsee.records import Question


def question(number: int, **fields: Any) -> Question:
    base = Question(question_id=f"q{number}", video_id="v", recipe="r", question="?",
                    question_type="t", options=("a", "b", "c"), answer_index=1)  # fmt: skip
    return replace(base, **fields)


def answer_form() -> RatingForm:
    fields = (FormField(name="answer", ask="Yours", kind="option"),
              FormField(name="comment", ask="Wrong?", kind="text", needed=False))  # fmt: skip
    rounds = [Round(name=n, steps=(FormStep(fields=fields),)) for n in ("long", "one_minute")]
    return RatingForm(name="human_benchmark", title="t", rounds=tuple(rounds))


def test_votes_become_shares_by_setting() -> None:
    form = answer_form()
    questions = [question(0), question(1), question(2, answer_index=None), question(3)]
    cast = [("q0", "long", "ana", 1), ("q0", "long", "ben", 2), ("q0", "one_minute", "eve", 1),
            ("q1", "long", "ana", 0), ("q2", "long", "ana", 0)]  # fmt: skip
    votes = [CastVote(question_id=q, round=r, rater=p, answers={"answer": a, "comment": "12"},
                      seconds=3.5, at=0.0) for q, r, p, a in cast]  # fmt: skip
    items = [RatedItem(question_id=q.question_id, round=r.name, wanted=2)
             for q in questions for r in form.rounds]  # fmt: skip
    found = score_people(apply_votes(form, questions, items, votes))
    assert found == {
        "human benchmark, long": {"q0": 0.5, "q1": 0.0},
        "human benchmark, one minute": {"q0": 1.0},
    }


def test_forms_that_ask_something_else_give_no_scores() -> None:
    fields = (FormField(name="answer_right", ask="Right?", options=("yes", "no")),)
    form = RatingForm(name="verify", title="t", right={"answer_right": "yes"},
                      rounds=(Round(name="verify", steps=(FormStep(fields=fields),)),))  # fmt: skip
    vote = CastVote(question_id="q0", round="verify", rater="ana", answers={"answer_right": "yes"},
                    seconds=1.0, at=0.0)  # fmt: skip
    item = RatedItem(question_id="q0", round="verify", wanted=1)
    (rated,) = apply_votes(form, [question(0)], [item], [vote])
    assert rated.verdicts[0].correct is True
    assert score_people([rated]) == {}
