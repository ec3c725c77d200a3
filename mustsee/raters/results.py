"""What a form's votes come to: verdicts in the questions, agreement by field, the share that is
right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mustsee.raters.agreement import Agreement, agreement
from mustsee.raters.ballots import Cast
from mustsee.raters.correctness import PEOPLE, Checked, checked, is_right, settled
from mustsee.raters.form import Form
from mustsee.records import Question, Verdict

MADE = "people_"  # begins the filter's name of a verdict by people


@dataclass(frozen=True, kw_only=True)
class Results:
    """`complete`: questions with all the votes wanted; only these count for `checked`. `fields`:
    agreement on each field with options.
    """

    form: str
    asked: int
    votes: int
    complete: int
    raters: int
    fields: Mapping[str, Agreement]
    checked: Checked | None

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
                name: {
                    "units": found.units,
                    "same": found.same,
                    "alpha": None if found.alpha is None else found.alpha.value,
                    "low": None if found.alpha is None else found.alpha.low,
                    "high": None if found.alpha is None else found.alpha.high,
                }
                for name, found in self.fields.items()
            },
        }


def results(
    form: Form,
    films: Mapping[str, str],
    asked: Sequence[str],
    votes: Sequence[Cast],
    *,
    raters: int,
    wanted: float,
) -> Results:
    """`films`: question -> its video; `asked`: the questions of the sample. A question with fewer
    than `raters` votes does not count as checked yet.
    """
    wanted_ones = set(asked)
    counted = [v for v in votes if v.question_id in wanted_ones]
    cast = by_question(counted)
    complete = {name: said for name, said in cast.items() if len(said) >= raters}
    fields: dict[str, Agreement] = {}
    for each in form.fields:
        if each.options:
            said = [
                [_nominal(v.answers.get(each.name, "")) for v in some] for some in cast.values()
            ]
            fields[each.name] = agreement(said, [films[name] for name in cast])
    right = {n: is_right(form, [v.answers for v in said]) for n, said in complete.items()}
    share = None
    if form.right:
        share = checked(right, films, asked=len(asked), by=PEOPLE, wanted=wanted)
    return Results(
        form=form.name, asked=len(asked), votes=len(counted), complete=len(complete),
        raters=len({v.rater for v in counted}), fields=fields,
        checked=share,
    )  # fmt: skip


def rated(
    form: Form, questions: Sequence[Question], votes: Sequence[Cast], *, raters: int
) -> list[Question]:
    """The questions with one verdict per vote in place of the form's earlier ones, and the reason
    in `drop` where most of at least `raters` raters gave an answer by which a question falls.
    """
    cast, name = by_question(votes), MADE + form.name
    done: list[Question] = []
    for question in questions:
        said = cast.get(question.question_id)
        if not said:
            done.append(question)
            continue
        others = tuple(v for v in question.verdicts if v.filter != name)
        earlier = question.drop is not None and question.drop.startswith(f"{name}: ")
        reason = _falls(form, [v.answers for v in said]) if len(said) >= raters else None
        drop = None if earlier else question.drop
        done.append(
            replace(
                question,
                verdicts=(*others, *(_verdict(form, vote) for vote in said)),
                drop=drop or (reason and f"{name}: {reason}"),
            )
        )
    return done


def by_question(votes: Sequence[Cast]) -> dict[str, list[Cast]]:
    """The votes on each question."""
    found: dict[str, list[Cast]] = {}
    for vote in votes:
        found.setdefault(vote.question_id, []).append(vote)
    return found


def _nominal(given: str) -> str:
    """One value for one set of ticks, in whichever order they were set."""
    return ",".join(sorted(given.split(",")))


def _falls(form: Form, votes: Sequence[Mapping[str, str]]) -> str | None:
    found = [name for name, option in form.falls.items() if settled(votes, name) == option]
    return "; ".join(f"{name}={form.falls[name]}" for name in found) or None


def _verdict(form: Form, vote: Cast) -> Verdict:
    right = is_right(form, [vote.answers]) if form.right else None
    return Verdict(
        filter=MADE + form.name,
        model=f"rater:{vote.rater}",
        reply=json.dumps(dict(vote.answers), ensure_ascii=False, sort_keys=True),
        correct=right,
        detail=f"{vote.seconds:g} s",
    )
