"""Settle several raters' answers to a field, and decide whether the question is kept.

Rules: `majority` takes the answer of more than half, `unanimous` that of all. `strictest` takes, of
picked options, the one listed last in the field (EgoSchema: GOOD, MAYBE, BAD), and otherwise the
answer of all. Each tick, and each point in time of marked spans, is settled separately. An answer
without the needed votes is null. A later round replaces an earlier one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mustsee.raters.ballots import CastVote
from mustsee.raters.form import Answers, FormField, RatingForm, Round, merge_marks
from mustsee.records import Span


def settle_field(rule: str, field_: FormField, votes: Sequence[Answers]) -> Any:
    """Return the settled answer to a field, or None."""
    wanted = len(votes) // 2 + 1 if rule == "majority" else len(votes)
    values = [answers.get(field_.name) for answers in votes]
    if not values:
        return None
    if field_.kind == "ticks":
        ticks = Counter(tick for value in values for tick in value or ())
        return [option for option in field_.options if ticks[option] >= wanted]
    if field_.kind == "spans":
        return shared_spans([[Span(*s) for s in value or ()] for value in values], wanted) or None
    if field_.kind == "pick" and rule == "strictest":
        picked = [value for value in values if value is not None]
        return max(picked, key=field_.options.index) if picked else None
    by_text = {json.dumps(value): value for value in values}
    value, count = Counter(json.dumps(value) for value in values).most_common(1)[0]
    return by_text[value] if count >= wanted else None


def shared_spans(spans_by_rater: Sequence[Sequence[Span]], wanted: int) -> list[list[float]]:
    """Return the spans that at least `wanted` raters marked, merged by `merge_marks`."""
    edges = sorted(
        (time, change)
        for spans in spans_by_rater
        for span in merge_marks(spans)
        for time, change in ((span.start, 1), (span.end, -1))
    )
    shared: list[Span] = []
    depth, start = 0, 0.0
    for time, change in edges:
        if change > 0 and depth + 1 == wanted:
            start = time
        if change < 0 and depth == wanted and time > start:
            shared.append(Span(start, time))
        depth += change
    return [[span.start, span.end] for span in merge_marks(shared)]


@dataclass(frozen=True, kw_only=True)
class SettledState:
    """The decision on a question.

    `state` is "open" while votes are missing, else "kept" or "dropped". `round` is the last
    complete round (null: none), `answers` its settled answers, `reason` why the question was
    dropped.
    """

    state: str
    round: str | None = None
    answers: Answers = field(default_factory=dict[str, Any])
    reason: str = ""


def decide(
    form: RatingForm, cast: Mapping[str, Sequence[CastVote]], wanted: Mapping[str, int]
) -> SettledState:
    """Return the state of a question from its votes and the wanted number of votes, by round."""
    state = SettledState(state="open")
    for round_ in (r for r in form.rounds if wanted[r.name]):
        votes = cast.get(round_.name, ())
        if len(votes) < wanted[round_.name]:
            return SettledState(state="open", round=state.round, answers=state.answers)
        answers = settle(form, round_, [v.answers for v in votes])
        reason = drop_reason(round_, answers)
        state = SettledState(
            state="dropped" if reason else "kept", round=round_.name, answers=answers, reason=reason
        )
        if reason:
            return state
    return state


def settle(form: RatingForm, round_: Round, votes: Sequence[Answers]) -> dict[str, Any]:
    """Return field -> settled answer, without unsettled fields."""
    settled = {f.name: settle_field(form.rule, f, votes) for f in round_.fields}
    return {name: value for name, value in settled.items() if value is not None}


def drop_reason(round_: Round, answers: Answers) -> str:
    """Return why this round drops the question; empty if it does not."""
    reasons = [
        f"{name}={answers[name]}"
        for name, options in round_.falls.items()
        if answers.get(name) in options
    ]
    for name in round_.needs:
        ticks = answers.get(name, ())
        reasons += [
            f"not {option}" for option in round_.field_named(name).options if option not in ticks
        ]
    return "; ".join(reasons)


def is_right(form: RatingForm, round_: Round, votes: Sequence[Answers]) -> bool:
    """Return whether all answers of `form.right` are settled."""
    answers = settle(form, round_, votes)
    return all(answers.get(name) == option for name, option in form.right.items())
