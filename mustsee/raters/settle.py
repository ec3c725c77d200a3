"""What several raters' answers to one field come to, and what becomes of the question.

`majority`: what more than half say. `unanimous`: what all say. `strictest`: of a picked answer the
one that its field names last (EgoSchema: GOOD, MAYBE, BAD), of anything else what all say. Each
tick, and each moment of marked spans, is settled by itself. Where nothing is settled, the answer is
null. A later round takes the place of the one before it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mustsee.raters.ballots import CastVote
from mustsee.raters.form import Answers, FormField, RatingForm, Round
from mustsee.raters.marks import merge
from mustsee.records import Span


def settle_field(rule: str, of: FormField, said: Sequence[Answers]) -> Any:
    """The answer to a field by all of `said`; null where there is none."""
    wanted = len(said) // 2 + 1 if rule == "majority" else len(said)
    values = [answers.get(of.name) for answers in said]
    if not values:
        return None
    if of.kind == "ticks":
        ticks = Counter(tick for value in values for tick in value or ())
        return [option for option in of.options if ticks[option] >= wanted]
    if of.kind == "spans":
        return shared_spans([[Span(*s) for s in value or ()] for value in values], wanted) or None
    if of.kind == "pick" and rule == "strictest":
        picked = [value for value in values if value is not None]
        return max(picked, key=of.options.index) if picked else None
    kept = {json.dumps(value): value for value in values}
    value, count = Counter(json.dumps(value) for value in values).most_common(1)[0]
    return kept[value] if count >= wanted else None


def shared_spans(marked: Sequence[Sequence[Span]], wanted: int) -> list[list[float]]:
    """The stretches that so many raters marked, as parts (`merge`)."""
    edges = sorted(
        (time, change)
        for spans in marked
        for part in merge(spans)
        for time, change in ((part.start, 1), (part.end, -1))
    )
    found: list[Span] = []
    depth, begin = 0, 0.0
    for time, change in edges:
        if change > 0 and depth + 1 == wanted:
            begin = time
        if change < 0 and depth == wanted and time > begin:
            found.append(Span(begin, time))
        depth += change
    return [[part.start, part.end] for part in merge(found)]


@dataclass(frozen=True, kw_only=True)
class SettledState:
    """`state`: "open" while votes are wanted, else "kept" or "fell". `round`: the last one that is
    complete, null where none is. `answers`: what was settled there.
    """

    state: str
    round: str | None = None
    answers: Answers = field(default_factory=dict[str, Any])
    reason: str = ""


def decide(
    form: RatingForm, cast: Mapping[str, Sequence[CastVote]], wanted: Mapping[str, int]
) -> SettledState:
    """The state of one question. `cast`: its votes by round; `wanted`: votes by round."""
    found = SettledState(state="open")
    for each in (r for r in form.rounds if wanted[r.name]):
        votes = cast.get(each.name, ())
        if len(votes) < wanted[each.name]:
            return SettledState(state="open", round=found.round, answers=found.answers)
        answers = settle(form, each, [v.answers for v in votes])
        reason = drop_reason(each, answers)
        found = SettledState(
            state="fell" if reason else "kept", round=each.name, answers=answers, reason=reason
        )
        if reason:
            return found
    return found


def settle(form: RatingForm, each: Round, said: Sequence[Answers]) -> dict[str, Any]:
    """By field, what is settled."""
    found = {f.name: settle_field(form.rule, f, said) for f in each.fields}
    return {name: value for name, value in found.items() if value is not None}


def drop_reason(each: Round, answers: Answers) -> str:
    """Why a question falls in this round; empty where it does not."""
    reasons = [
        f"{name}={answers[name]}"
        for name, options in each.falls.items()
        if answers.get(name) in options
    ]
    for name in each.needs:
        ticks = answers.get(name, ())
        reasons += [f"not {option}" for option in each.of(name).options if option not in ticks]
    return "; ".join(reasons)


def is_right(form: RatingForm, each: Round, said: Sequence[Answers]) -> bool:
    """Whether each answer that makes a question right is settled."""
    answers = settle(form, each, said)
    return all(answers.get(name) == option for name, option in form.right.items())
