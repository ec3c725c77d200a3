"""What a form's votes come to: agreement by field, the share that is right, how well people answer,
and each rater's time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.raters.agreement import Agreement, agreement, overlap
from mustsee.raters.ballots import TRAINING, CastVote, RatedItem
from mustsee.raters.correctness import PEOPLE, MeasuredCorrectness, measure_correctness
from mustsee.raters.form import FormField, RatingForm
from mustsee.raters.settle import decide, is_right
from mustsee.records import Question, Span
from mustsee.stats import Estimate, mean

VOTE_GRACE_S = 15.0  # seconds over a round's time in which a vote is still on its way


@dataclass(frozen=True, kw_only=True)
class RaterWork:
    """What a rater has done: votes, their seconds from first sight to vote (median of one), those
    in which they were at it, all in all; and of training items how many, and right.
    """

    votes: int
    median: float
    seconds: float
    active: float
    trained: int
    right: int


@dataclass(frozen=True, kw_only=True)
class RatingResults:
    """`complete`: questions with all votes of their last round, or that fell before; only these
    count for `checked`. `fields`: agreement by "round.field". `answered`: of questions answered by
    people themselves, the share right by "round.field"; `late`: votes over a round's time.
    """

    form: str
    asked: int
    votes: int
    complete: int
    raters: int
    fields: Mapping[str, Agreement]
    answered: Mapping[str, Estimate]
    late: Mapping[str, int]
    work: Mapping[str, RaterWork]
    checked: MeasuredCorrectness | None

    def plain(self) -> dict[str, Any]:
        """As JSON, an entry of `checked` in `run.json`."""
        return {
            **({} if self.checked is None else self.checked.plain()),
            "form": self.form,
            "asked": self.asked,
            "complete": self.complete,
            "votes": self.votes,
            "raters": self.raters,
            "agreement": {
                name: {"units": a.units, "same": _interval(a.same), "alpha": _interval(a.alpha)}
                for name, a in self.fields.items()
            },
            "answered": {name: _interval(share) for name, share in self.answered.items()},
            "late": dict(self.late),
            "work": {name: vars(work) for name, work in self.work.items()},
        }


def results(
    form: RatingForm,
    questions: Mapping[str, Question],
    items: Sequence[RatedItem],
    votes: Sequence[CastVote],
    *,
    wanted: float,
) -> RatingResults:
    """`items`: what was asked. A question does not count as checked before its votes are there."""
    counted = [v for v in votes if v.round != TRAINING and v.question_id in questions]
    names = list(dict.fromkeys(i.question_id for i in items if i.round != TRAINING))
    places = {i.name: i.wanted for i in items}
    cast = by_question(counted)
    fields: dict[str, Agreement] = {}
    answered: dict[str, Estimate] = {}
    late: dict[str, int] = {}
    for each in form.rounds:
        said = {n: some[each.name] for n, some in cast.items() if some.get(each.name)}
        videos = [questions[name].video_id for name in said]
        for one in each.fields:
            found = _agreed(one, list(said.values()), videos)
            if found.units:
                fields[f"{each.name}.{one.name}"] = found
            if one.kind == "option" and (share := _answered(one, said, questions)):
                answered[f"{each.name}.{one.name}"] = share
        if each.seconds is not None:
            over = [
                v for some in said.values() for v in some if v.seconds > each.seconds + VOTE_GRACE_S
            ]
            late[each.name] = len(over)
    done = {n for n in names if _complete(form, n, cast.get(n, {}), places)}
    share = None
    if form.right:
        right = {n: _right(form, cast[n]) for n in done}
        videos_of = {name: q.video_id for name, q in questions.items()}
        share = measure_correctness(right, videos_of, asked=len(names), by=PEOPLE, wanted=wanted)
    people = sorted({v.rater for v in votes})
    return RatingResults(
        form=form.name, asked=len(names), votes=len(counted), complete=len(done),
        raters=len({v.rater for v in counted}), fields=fields, answered=answered, late=late,
        work={name: _work([v for v in votes if v.rater == name]) for name in people},
        checked=share,
    )  # fmt: skip


def by_question(votes: Sequence[CastVote]) -> dict[str, dict[str, list[CastVote]]]:
    """The votes on each question, by round."""
    found: dict[str, dict[str, list[CastVote]]] = {}
    for vote in votes:
        found.setdefault(vote.question_id, {}).setdefault(vote.round, []).append(vote)
    return found


def wanted_votes(form: RatingForm, name: str, places: Mapping[str, int]) -> dict[str, int]:
    """Votes wanted of a question by round; `places`: by item. A round that it is not in wants 0."""
    return {r.name: places.get(f"{name}/{r.name}", 0) for r in form.rounds}


def _complete(
    form: RatingForm, name: str, cast: Mapping[str, Sequence[CastVote]], places: Mapping[str, int]
) -> bool:
    return decide(form, cast, wanted_votes(form, name, places)).state != "open"


def _right(form: RatingForm, cast: Mapping[str, Sequence[CastVote]]) -> bool:
    last = next(r for r in reversed(form.rounds) if cast.get(r.name))
    return is_right(form, last, [v.answers for v in cast[last.name]])


def _agreed(one: FormField, said: Sequence[Sequence[CastVote]], videos: Sequence[str]) -> Agreement:
    """Of a field: on what was picked or marked; of a written one, on whether it was left empty, or
    as it was.
    """
    given = [[v.answers.get(one.name) for v in some] for some in said]
    if one.kind == "spans":
        return overlap([[[Span(*s) for s in v or ()] for v in some] for some in given], videos)
    written = one.kind in ("text", "lines")
    if written and one.fills is None:
        return Agreement(units=0, same=None, alpha=None)
    nominal = [[str(v is not None) if written else json.dumps(v) for v in some] for some in given]
    return agreement(nominal, videos)


def _answered(
    one: FormField, said: Mapping[str, Sequence[CastVote]], questions: Mapping[str, Question]
) -> Estimate | None:
    right, videos = list[float](), list[str]()
    for name, some in said.items():
        question = questions[name]
        if question.answer_index is None:
            continue
        right += [float(v.answers.get(one.name) == question.answer_index) for v in some]
        videos += [question.video_id] * len(some)
    return mean(right, videos) if right else None


def _work(votes: Sequence[CastVote]) -> RaterWork:
    real = [v for v in votes if v.round != TRAINING]
    times = sorted(v.seconds for v in real)
    trained = [v for v in votes if v.round == TRAINING]
    return RaterWork(
        votes=len(real),
        median=times[len(times) // 2] if times else 0.0,
        seconds=round(sum(times), 1),
        active=round(sum(v.active for v in real), 1),
        trained=len(trained),
        right=sum(bool(v.correct) for v in trained),
    )


def _interval(found: Estimate | None) -> dict[str, float | None] | None:
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}


def summary_lines(found: RatingResults) -> list[str]:
    """What the votes come to, in lines."""
    lines = [f"{found.complete} of {found.asked} questions have all their votes"]
    if found.checked is not None:
        lines.append(found.checked.card_sentence())
        which = found.checked.decided
        enough = "not enough seen yet to say whether above or below"
        lines.append(f"{f'enough seen: {which}' if which else enough} {found.checked.wanted:.0%}")
    for name, share in found.answered.items():
        lines.append(f"  {name}: {share.value:.1%} right{_between(share.low, share.high, '.1%')}")
    for name, late in found.late.items():
        lines.append(f"  {name}: {late} votes after the time")
    for name, one in found.fields.items():
        if one.same is not None:
            alpha = "alpha not defined"
            if one.alpha is not None:
                between = _between(one.alpha.low, one.alpha.high, ".2f")
                alpha = f"alpha {one.alpha.value:.2f}{between}"
            same = f"{one.same.value:.0%}{_between(one.same.low, one.same.high, '.0%')}"
            lines.append(f"  {name}: {same} of pairs agree, {alpha}, {one.units} questions")
    return lines


def _between(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f" ({low:{form}} to {high:{form}})"
