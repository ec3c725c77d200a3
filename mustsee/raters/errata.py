"""People decide on doubtful keys: from proposals to a file of errata (`mustsee.layouts.errata`).

The form `errata` asks for `verdict` (stands, other, bad), the `right` option if another one is
right, the `evidence` as a span, and a `note`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.errors import UserError
from mustsee.layouts.errata import (
    BAD,
    Errata,
    Erratum,
    key_of,
    name_ids,
    option_value,
    whole_span,
)
from mustsee.raters.ballots import TRAINING, CastVote, RatedItem
from mustsee.raters.decision import decide
from mustsee.raters.form import RatingForm
from mustsee.raters.results import by_question, wanted_votes
from mustsee.records import Question, Span
from mustsee.text import printable

FIELDS = ("verdict", "right", "evidence", "note")
STANDS, OTHER = "stands", "other"  # values of `verdict`, beside BAD


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
            text += f"; raters do not agree on {len(self.undecided)}: {name_ids(self.undecided)}"
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
            f"proposals: {name_ids(changed)}. Give the questions that were audited"
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
        return key_of(question)
    if verdict == OTHER and isinstance(right, int) and right != question.answer_index:
        return option_value(question, right)
    return BAD if verdict == BAD else None


def _entry(
    question: Question, new: str, answers: Mapping[str, object], votes: Sequence[CastVote]
) -> Erratum:
    notes = (f"{v.rater}: {v.answers['note']}" for v in votes if v.answers.get("note"))
    agreeing = [v.rater for v in votes if v.answers.get("verdict") == answers["verdict"]]
    return Erratum(
        id=question.question_id,
        old=key_of(question),
        new=new,
        span=_marked_span(answers) or whole_span(question),
        evidence="; ".join(notes) or f"{len(agreeing)} of {len(votes)} raters agree",
        who=", ".join(f"rater:{name}" for name in agreeing),
    )


def _marked_span(answers: Mapping[str, object]) -> Span | None:
    spans = answers.get("evidence")
    if not isinstance(spans, list) or not spans:
        return None
    return Span(min(s[0] for s in spans), max(s[1] for s in spans))
