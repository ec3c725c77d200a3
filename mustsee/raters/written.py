"""People's votes written into the questions: a verdict for each vote, the reason in `drop` where a
question falls, corrections as new versions with the old one on record, Neptune's `mmh`.

Doing it again adds nothing: what an earlier writing of the same form left is taken back first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mustsee.raters import modalities
from mustsee.raters.ballots import TRAINING, CastVote, RatedItem
from mustsee.raters.form import Part, RatingForm, part
from mustsee.raters.marks import merge
from mustsee.raters.results import by_question, wanted_votes
from mustsee.raters.settle import SettledState, decide, is_right
from mustsee.records import Question, Repair, Span, Verdict
from mustsee.verify.repair import wording_fields

MADE = "people_"  # begins the filter's name of a verdict by people
SECONDS = "_seconds"  # ends the metric: the certificate's length by people


def apply_votes(
    form: RatingForm,
    questions: Sequence[Question],
    items: Sequence[RatedItem],
    votes: Sequence[CastVote],
) -> list[Question]:
    """The questions, those with votes changed."""
    cast = by_question([v for v in votes if v.round != TRAINING])
    places = {item.name: item.wanted for item in items}
    done: list[Question] = []
    marks: list[modalities.ModalityMark] = []
    for question in questions:
        said = cast.get(question.question_id)
        if not said:
            done.append(question)
            continue
        found = decide(form, said, wanted_votes(form, question.question_id, places))
        done.append(_changed(form, _before(form, question), said, found))
        marks += _marks(form, said)
    return modalities.human(done, marks) if marks else done


def _changed(
    form: RatingForm,
    question: Question,
    said: Mapping[str, Sequence[CastVote]],
    found: SettledState,
) -> Question:
    name = MADE + form.name
    verdicts = [_verdict(form, question, v) for r in form.rounds for v in said.get(r.name, ())]
    if found.state == "kept":
        question = _corrected(form, question, said, found)
    return replace(
        question,
        verdicts=(*question.verdicts, *verdicts),
        drop=question.drop or (f"{name}: {found.reason}" if found.state == "fell" else None),
    )


def _before(form: RatingForm, question: Question) -> Question:
    """The question without what an earlier writing left."""
    name = MADE + form.name
    for repair in reversed([r for r in question.repairs if r.by == name]):
        question = _with(question, _parts(repair))
    earlier = question.drop is not None and question.drop.startswith(f"{name}: ")
    return replace(
        question,
        verdicts=tuple(v for v in question.verdicts if v.filter != name),
        repairs=tuple(r for r in question.repairs if r.by != name),
        metrics={k: v for k, v in question.metrics.items() if k != name + SECONDS},
        drop=None if earlier else question.drop,
    )


def _corrected(
    form: RatingForm,
    question: Question,
    said: Mapping[str, Sequence[CastVote]],
    found: SettledState,
) -> Question:
    """With what people settled on in the last round in the place of what was there."""
    last = form.round(found.round or "")
    new: dict[Part, Any] = {
        f.fills: found.answers[f.name]
        for f in last.fields
        if f.fills is not None and f.name in found.answers
    }
    if "evidence" in new:
        new["evidence"] = [[p.start, p.end] for p in merge([Span(*s) for s in new["evidence"]])]
        length = sum(end - start for start, end in new["evidence"])
        metrics = {**question.metrics, MADE + form.name + SECONDS: round(length, 3)}
        question = replace(question, metrics=metrics)
    raters = ", ".join(v.rater for v in said[last.name])
    for kind in ("wording", "evidence"):
        names: list[Part] = [name for name in new if (name == "evidence") == (kind == "evidence")]
        before: dict[Part, Any] = {name: part(question, name) for name in names}
        after: dict[Part, Any] = {name: new[name] for name in before}
        if before == after:
            continue
        repair = Repair(
            kind=kind,
            reason=f"{', '.join(sorted(after))} corrected in {last.name} by {raters}",
            by=MADE + form.name,
            before=json.dumps(
                before["evidence"]
                if kind == "evidence"
                else {**wording_fields(question), "parts": before},
                ensure_ascii=False,
            ),
        )
        question = replace(_with(question, after), repairs=(*question.repairs, repair))
    return question


def _parts(repair: Repair) -> dict[Part, Any]:
    """What stood where people corrected."""
    before = json.loads(repair.before)
    return {"evidence": before} if repair.kind == "evidence" else before["parts"]


def _with(question: Question, parts: Mapping[Part, Any]) -> Question:
    """The question with other parts, its answer at the same place."""
    stands: tuple[Part, ...] = ("question", "answer", "decoys")
    all_parts = {name: part(question, name) for name in stands} | dict(parts)
    options, index = question.options, question.answer_index
    if index is not None and options:
        decoys = list(all_parts["decoys"])
        options = (*decoys[:index], all_parts["answer"], *decoys[index:])
    points, spans = parts.get("scoring_points"), parts.get("evidence")
    return replace(
        question,
        question=all_parts["question"],
        answer=all_parts["answer"] if "answer" in parts else question.answer,
        options=tuple(options),
        scoring_points=question.scoring_points if points is None else tuple(points),
        evidence=question.evidence if spans is None else tuple(Span(*s) for s in spans),
    )


def _verdict(form: RatingForm, question: Question, vote: CastVote) -> Verdict:
    of = form.round(vote.round)
    right = is_right(form, of, [vote.answers]) if form.right else None
    options = [f.name for f in of.fields if f.kind == "option"]
    picked = [vote.answers[name] for name in options if name in vote.answers]
    if picked and question.answer_index is not None:
        right = picked[-1] == question.answer_index
    return Verdict(
        filter=MADE + form.name,
        model=f"rater:{vote.rater}",
        reply=json.dumps(dict(vote.answers), ensure_ascii=False, sort_keys=True),
        correct=right,
        detail=f"{vote.round}, {vote.seconds:g} s",
    )


def _marks(
    form: RatingForm, said: Mapping[str, Sequence[CastVote]]
) -> list[modalities.ModalityMark]:
    """What a question needs, by the last round that says so: a senior's word counts alone."""
    for each in reversed(form.rounds):
        votes = [v for v in said.get(each.name, ()) if form.modality in v.answers]
        if votes:
            return [
                modalities.ModalityMark(question_id=v.question_id, rater=v.rater,
                                needs=v.answers[form.modality or ""])
                for v in votes
            ]  # fmt: skip
    return []
