"""The results of a form's votes: agreement by field, share of right questions, accuracy of people's
answers, and each rater's time.

Agreement on a field: of nominal answers the share of pairs of raters that agree, and Krippendorff's
alpha; of marked spans the intersection over union of pairs of raters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mustsee.raters.ballots import TRAINING, CastVote, RatedItem
from mustsee.raters.correctness import PEOPLE, MeasuredCorrectness, measure_correctness
from mustsee.raters.decision import decide, is_right
from mustsee.raters.form import FormField, RatingForm, merge_marks
from mustsee.records import Question, Span, group_pairs
from mustsee.stats import Estimate, Floats, bootstrap, mean


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement on `units` items with at least two answers each.

    `same` is the mean over items of the share of pairs that agree. `alpha` is null for spans, and
    where all answers are equal, because chance agreement is then undefined.
    """

    units: int
    same: Estimate | None
    alpha: Estimate | None


def agreement(
    answers: Sequence[Sequence[str]], clusters: Sequence[Hashable] | None = None
) -> Agreement:
    """Return the agreement on nominal `answers` [item][rater].

    Items with fewer than two answers are left out. Intervals resample whole `clusters` (videos).
    """
    names = list(clusters) if clusters is not None else list(range(len(answers)))
    paired = [
        (values_given, name)
        for values_given, name in zip(answers, names, strict=True)
        if len(values_given) > 1
    ]
    if not paired:
        return Agreement(units=0, same=None, alpha=None)
    values = sorted({value for values_given, _ in paired for value in values_given})
    counts = np.array(
        [[Counter(values_given)[v] for v in values] for values_given, _ in paired], dtype=np.float64
    )
    raters = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (raters - 1)
    videos = [name for _, name in paired]
    same = mean(agreeing / raters, videos)
    if len(values) < 2:
        return Agreement(units=len(paired), same=same, alpha=None)

    def alpha(weights: Floats) -> float:
        """Return 1 - observed / expected disagreement (Krippendorff 2011, nominal data)."""
        totals = (weights[:, None] * counts).sum(axis=0)
        every = totals.sum()
        expected = every**2 - (totals**2).sum()
        if expected <= 0:
            return float("nan")
        return float(1 - (every - 1) * (every - (weights * agreeing).sum()) / expected)

    interval = bootstrap(alpha, len(paired), videos, within=(-1.0, 1.0))
    return Agreement(units=len(paired), same=same, alpha=interval)


def overlap(
    spans_by_item: Sequence[Sequence[Sequence[Span]]], clusters: Sequence[Hashable]
) -> Agreement:
    """Return the agreement on marked spans [item][rater][span]."""
    paired = [
        (spans, name) for spans, name in zip(spans_by_item, clusters, strict=True) if len(spans) > 1
    ]
    if not paired:
        return Agreement(units=0, same=None, alpha=None)
    shares = [
        float(np.mean([_shared(a, b) for a, b in combinations(spans, 2)])) for spans, _ in paired
    ]
    same = mean(shares, [name for _, name in paired])
    return Agreement(units=len(paired), same=same, alpha=None)


def _shared(one: Sequence[Span], other: Sequence[Span]) -> float:
    """Return seconds in both over seconds in either, after merging; 1 if neither marked any."""
    ones, others = merge_marks(one), merge_marks(other)
    both = sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in ones for b in others)
    either = sum(p.seconds for p in (*ones, *others)) - both
    return both / either if either else 1.0


VOTE_GRACE_S = 15.0  # seconds over a round's time limit, for the transfer of the vote


@dataclass(frozen=True, kw_only=True)
class RaterWork:
    """A rater's work without training items, except for `trained` and `right`.

    `median` and `seconds` are the median and total seconds from showing an item to its vote,
    `active` the total seconds of activity. `trained` is the number of training items, `right` that
    of the right ones.
    """

    votes: int
    median: float
    seconds: float
    active: float
    trained: int
    right: int


@dataclass(frozen=True, kw_only=True)
class RatingResults:
    """The results of a form.

    - `asked`: number of questions in the items; `votes`: votes counted
    - `complete`: questions with all votes of their last round, or dropped before; only these count
      for `checked`
    - `fields`: "round.field" -> agreement
    - `answered`: "round.field" -> share of right answers, where people answer the question itself
    - `answered_by_type`: the same -> question type -> share
    - `types`: question type -> number of complete questions, and of those kept (Neptune, Fig. 5);
      empty where no vote drops any
    - `late`: round -> number of votes over its time limit
    - `work`: rater -> work
    """

    form: str
    asked: int
    votes: int
    complete: int
    raters: int
    fields: Mapping[str, Agreement]
    answered: Mapping[str, Estimate]
    answered_by_type: Mapping[str, Mapping[str, Estimate]]
    types: Mapping[str, tuple[int, int]]
    late: Mapping[str, int]
    work: Mapping[str, RaterWork]
    checked: MeasuredCorrectness | None

    def plain(self) -> dict[str, Any]:
        """Return the results as JSON, an entry of `checked` in `run.json`."""
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
            "answered_by_type": {
                name: {kind: _interval(share) for kind, share in shares.items()}
                for name, shares in self.answered_by_type.items()
            },
            "types": {kind: {"rated": n, "kept": left} for kind, (n, left) in self.types.items()},
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
    """Return the results of the votes on `items`; a question counts once its votes are complete."""
    counted = [v for v in votes if v.round != TRAINING and v.question_id in questions]
    names = list(dict.fromkeys(i.question_id for i in items if i.round != TRAINING))
    places = {i.name: i.wanted for i in items}
    cast = by_question(counted)
    fields: dict[str, Agreement] = {}
    answered: dict[str, Estimate] = {}
    by_type: dict[str, dict[str, Estimate]] = {}
    late: dict[str, int] = {}
    for round_ in form.rounds:
        cast_in_round = {
            n: by_round[round_.name] for n, by_round in cast.items() if by_round.get(round_.name)
        }
        videos = [questions[name].video_id for name in cast_in_round]
        for field in round_.fields:
            name = f"{round_.name}.{field.name}"
            field_result = _field_agreement(field, list(cast_in_round.values()), videos)
            if field_result.units:
                fields[name] = field_result
            answers_it = field.kind == "option" and field.needed  # else it says which one is right
            if answers_it and (share := _share_right(field, cast_in_round, questions)):
                answered[name] = share
                by_type[name] = _shares_by_type(field, cast_in_round, questions)
        if round_.seconds is not None:
            limit = round_.seconds + VOTE_GRACE_S
            late[round_.name] = sum(
                vote.seconds > limit
                for on_question in cast_in_round.values()
                for vote in on_question
            )
    states = {n: decide(form, cast.get(n, {}), wanted_votes(form, n, places)).state for n in names}
    complete = {n for n, state in states.items() if state != "open"}
    drops = any(r.falls or r.needs for r in form.rounds)
    share = None
    if form.right:
        right = {n: _is_right(form, cast[n]) for n in complete}
        videos_of = {name: q.video_id for name, q in questions.items()}
        share = measure_correctness(right, videos_of, asked=len(names), by=PEOPLE, wanted=wanted)
    people = sorted({v.rater for v in votes})
    return RatingResults(
        form=form.name, asked=len(names), votes=len(counted), complete=len(complete),
        raters=len({v.rater for v in counted}), fields=fields, answered=answered,
        answered_by_type=by_type, late=late,
        types=_kept_by_type(states, questions) if drops else {},
        work={name: _rater_work([v for v in votes if v.rater == name]) for name in people},
        checked=share,
    )  # fmt: skip


def by_question(votes: Sequence[CastVote]) -> dict[str, dict[str, list[CastVote]]]:
    """Return question id -> round -> votes."""
    on_questions = group_pairs((v.question_id, (v.round, v)) for v in votes)
    return {name: group_pairs(cast) for name, cast in on_questions.items()}


def wanted_votes(form: RatingForm, name: str, places: Mapping[str, int]) -> dict[str, int]:
    """Return round -> number of votes wanted on a question, from item -> number of votes wanted.

    A round without the question has 0.
    """
    return {r.name: places.get(f"{name}/{r.name}", 0) for r in form.rounds}


def _kept_by_type(
    states: Mapping[str, str], questions: Mapping[str, Question]
) -> dict[str, tuple[int, int]]:
    """Return question type -> its questions that are decided, and those of them that are kept."""
    rated, kept = Counter[str](), Counter[str]()
    for name, state in states.items():
        kind = questions[name].question_type
        rated[kind] += state != "open"
        kept[kind] += state == "kept"
    return {kind: (rated[kind], kept[kind]) for kind in sorted(rated) if rated[kind]}


def _is_right(form: RatingForm, cast: Mapping[str, Sequence[CastVote]]) -> bool:
    last = next(r for r in reversed(form.rounds) if cast.get(r.name))
    return is_right(form, last, [v.answers for v in cast[last.name]])


def _field_agreement(
    field: FormField, votes: Sequence[Sequence[CastVote]], videos: Sequence[str]
) -> Agreement:
    """Return the agreement on a field; on a written one that `fills` a part, on whether the part
    was changed.
    """
    answers = [[v.answers.get(field.name) for v in on_question] for on_question in votes]
    if field.kind == "spans":
        return overlap(
            [[[Span(*s) for s in v or ()] for v in on_question] for on_question in answers], videos
        )
    written = field.kind in ("text", "lines")
    if written and field.fills is None:
        return Agreement(units=0, same=None, alpha=None)
    nominal = [
        [str(v is not None) if written else json.dumps(v) for v in on_question]
        for on_question in answers
    ]
    return agreement(nominal, videos)


def _share_right(
    field: FormField, votes: Mapping[str, Sequence[CastVote]], questions: Mapping[str, Question]
) -> Estimate | None:
    right, videos = list[float](), list[str]()
    for name, on_question in votes.items():
        question = questions[name]
        if question.answer_index is None:
            continue
        right += [float(v.answers.get(field.name) == question.answer_index) for v in on_question]
        videos += [question.video_id] * len(on_question)
    return mean(right, videos) if right else None


def _shares_by_type(
    field: FormField, votes: Mapping[str, Sequence[CastVote]], questions: Mapping[str, Question]
) -> dict[str, Estimate]:
    by_type: dict[str, dict[str, Sequence[CastVote]]] = {}
    for name, on_question in votes.items():
        by_type.setdefault(questions[name].question_type or "", {})[name] = on_question
    shares = {kind: _share_right(field, own, questions) for kind, own in sorted(by_type.items())}
    return {kind: share for kind, share in shares.items() if share is not None}


def _rater_work(votes: Sequence[CastVote]) -> RaterWork:
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


def _interval(estimate: Estimate | None) -> dict[str, float | None] | None:
    return estimate and {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def summary_lines(outcome: RatingResults) -> list[str]:
    """Return the results as lines of text."""
    lines = [f"{outcome.complete} of {outcome.asked} questions have all their votes"]
    if outcome.checked is not None:
        lines.append(outcome.checked.card_sentence())
        side = outcome.checked.decided
        undecided = "too few questions checked to decide between above and below"
        said = f"enough questions checked: {side}" if side else undecided
        lines.append(f"{said} {outcome.checked.wanted:.0%}")
    for kind, (rated, kept) in outcome.types.items():
        lines.append(f"  {kind or 'no type'}: {kept} of {rated} kept")
    for name, share in outcome.answered.items():
        lines.append(f"  {name}: {share.value:.1%} right{_interval_text(share, '.1%')}")
        for kind, part in outcome.answered_by_type.get(name, {}).items():
            between = _interval_text(part, ".1%")
            lines.append(f"    {kind or 'no type'}: {part.value:.1%} of {part.n} right{between}")
    for name, late in outcome.late.items():
        lines.append(f"  {name}: {late} votes after the time limit")
    for name, field_result in outcome.fields.items():
        if field_result.same is not None:
            alpha = "alpha not defined"
            if field_result.alpha is not None:
                between = _interval_text(field_result.alpha, ".2f")
                alpha = f"alpha {field_result.alpha.value:.2f}{between}"
            same = f"{field_result.same.value:.0%}{_interval_text(field_result.same, '.0%')}"
            units = f"{field_result.units} questions"
            lines.append(f"  {name}: {same} of pairs agree, {alpha}, {units}")
    return lines


def _interval_text(of: Estimate, form: str) -> str:
    return "" if of.low is None or of.high is None else f" ({of.low:{form}} to {of.high:{form}})"
