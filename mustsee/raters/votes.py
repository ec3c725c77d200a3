"""Write raters' votes into the questions, and the questions into a run's files.

Each vote becomes a verdict, a dropped question gets its reason in `drop`, corrections become new
versions with the old one in `repairs`, and modality marks set Neptune's `mmh`. Applying votes again
is idempotent: changes of an earlier application of the same form are undone first.

`score_people` reads people's own answers from these votes. `replace_table` and `record_results`
write the questions, with a backup of the old table, and the results into `run.json`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.files import parquet, schemas
from mustsee.files.folders import write_json
from mustsee.raters.ballots import TRAINING, CastVote, RatedItem
from mustsee.raters.decision import SettledState, decide, is_right
from mustsee.raters.form import Part, RatingForm, merge_marks, part
from mustsee.raters.results import RatingResults, by_question, wanted_votes
from mustsee.records import AUDIO_ONLY, Question, Repair, Span, Verdict
from mustsee.verify.repair import wording_fields

FILTER_PREFIX = "people_"  # start of the filter's name in a verdict by people
# End of the name of the metric with the certificate's length as people marked it.
SECONDS_SUFFIX = "_seconds"
NEW_TABLE = ".questions.parquet.new"  # a table of questions before it takes the old one's place
SUBSET = "mmh"  # Neptune's subset of questions that sound alone does not answer
NEEDS = ("audio", "video", "both")  # what a rater marks a question as needing
WITHOUT_VIDEO = ("blind", "blind_2", "options")  # filters by guesses without video and transcript
ModalityMarks = Mapping[str, Mapping[str, str]]
"""Question id -> rater -> one of `NEEDS`."""


def apply_votes(
    form: RatingForm,
    questions: Sequence[Question],
    items: Sequence[RatedItem],
    votes: Sequence[CastVote],
) -> list[Question]:
    """Return the questions, with the votes applied."""
    cast = by_question([v for v in votes if v.round != TRAINING])
    places = {item.name: item.wanted for item in items}
    changed: list[Question] = []
    marks: dict[str, dict[str, str]] = {}
    for question in questions:
        votes_by_round = cast.get(question.question_id)
        if not votes_by_round:
            changed.append(question)
            continue
        state = decide(form, votes_by_round, wanted_votes(form, question.question_id, places))
        changed.append(
            _with_verdicts(form, _without_earlier_votes(form, question), votes_by_round, state)
        )
        if needs := _modality_marks(form, votes_by_round):
            marks[question.question_id] = needs
    return mark_modalities(changed, marks) if marks else changed


def _with_verdicts(
    form: RatingForm,
    question: Question,
    votes_by_round: Mapping[str, Sequence[CastVote]],
    state: SettledState,
) -> Question:
    name = FILTER_PREFIX + form.name
    verdicts = [
        _verdict(form, question, v) for r in form.rounds for v in votes_by_round.get(r.name, ())
    ]
    if state.state == "kept":
        question = _with_corrections(form, question, votes_by_round, state)
    return replace(
        question,
        verdicts=(*question.verdicts, *verdicts),
        drop=question.drop or (f"{name}: {state.reason}" if state.state == "dropped" else None),
    )


def _without_earlier_votes(form: RatingForm, question: Question) -> Question:
    """Return the question without the changes of an earlier application."""
    name = FILTER_PREFIX + form.name
    for repair in reversed([r for r in question.repairs if r.by == name]):
        question = _with_values(question, _values_before(repair))
    earlier = question.dropped_by == name
    return replace(
        question,
        verdicts=tuple(v for v in question.verdicts if v.filter != name),
        repairs=tuple(r for r in question.repairs if r.by != name),
        metrics={k: v for k, v in question.metrics.items() if k != name + SECONDS_SUFFIX},
        drop=None if earlier else question.drop,
    )


def _with_corrections(
    form: RatingForm,
    question: Question,
    votes_by_round: Mapping[str, Sequence[CastVote]],
    state: SettledState,
) -> Question:
    """Return the question with the corrections settled in the last round."""
    last_round = form.round(state.round or "")
    new: dict[Part, Any] = {
        f.fills: state.answers[f.name]
        for f in last_round.fields
        if f.fills is not None and f.name in state.answers
    }
    if "evidence" in new:
        new["evidence"] = [
            [p.start, p.end] for p in merge_marks([Span(*s) for s in new["evidence"]])
        ]
        length = sum(end - start for start, end in new["evidence"])
        metrics = {**question.metrics, FILTER_PREFIX + form.name + SECONDS_SUFFIX: round(length, 3)}
        question = replace(question, metrics=metrics)
    raters = ", ".join(v.rater for v in votes_by_round[last_round.name])
    for kind in ("wording", "evidence"):
        names: list[Part] = [name for name in new if (name == "evidence") == (kind == "evidence")]
        before: dict[Part, Any] = {name: part(question, name) for name in names}
        after: dict[Part, Any] = {name: new[name] for name in before}
        if before == after:
            continue
        repair = Repair(
            kind=kind,
            reason=f"{', '.join(sorted(after))} corrected in {last_round.name} by {raters}",
            by=FILTER_PREFIX + form.name,
            before=json.dumps(
                before["evidence"]
                if kind == "evidence"
                else {**wording_fields(question), "parts": before},
                ensure_ascii=False,
            ),
        )
        question = replace(_with_values(question, after), repairs=(*question.repairs, repair))
    return question


def _values_before(repair: Repair) -> dict[Part, Any]:
    """Return the values before a repair."""
    before = json.loads(repair.before)
    return {"evidence": before} if repair.kind == "evidence" else before["parts"]


def _with_values(question: Question, values: Mapping[Part, Any]) -> Question:
    """Return the question with other values, and the answer at the same index."""
    always: tuple[Part, ...] = ("question", "answer", "decoys")
    all_values = {name: part(question, name) for name in always} | dict(values)
    options, index = question.options, question.answer_index
    if index is not None and options:
        decoys = list(all_values["decoys"])
        options = (*decoys[:index], all_values["answer"], *decoys[index:])
    points, spans = values.get("scoring_points"), values.get("evidence")
    return replace(
        question,
        question=all_values["question"],
        answer=all_values["answer"] if "answer" in values else question.answer,
        options=tuple(options),
        scoring_points=question.scoring_points if points is None else tuple(points),
        evidence=question.evidence if spans is None else tuple(Span(*s) for s in spans),
    )


def _verdict(form: RatingForm, question: Question, vote: CastVote) -> Verdict:
    round_ = form.round(vote.round)
    right = is_right(form, round_, [vote.answers]) if form.right else None
    options = [f.name for f in round_.fields if f.kind == "option"]
    picked = [vote.answers[name] for name in options if name in vote.answers]
    if picked and question.answer_index is not None:
        right = picked[-1] == question.answer_index
    return Verdict(
        filter=FILTER_PREFIX + form.name,
        model=f"rater:{vote.rater}",
        reply=json.dumps(dict(vote.answers), ensure_ascii=False, sort_keys=True),
        correct=right,
        detail=f"{vote.round}, {vote.seconds:g} s",
    )


def _modality_marks(
    form: RatingForm, votes_by_round: Mapping[str, Sequence[CastVote]]
) -> dict[str, str]:
    """Return what each rater marked in the last round with marks, so that a senior overrules."""
    for round_ in reversed(form.rounds):
        votes = [v for v in votes_by_round.get(round_.name, ()) if form.modality in v.answers]
        if votes:
            return {v.rater: v.answers[form.modality or ""] for v in votes}
    return {}


def read_modalities(rows: Sequence[Mapping[str, Any]]) -> ModalityMarks:
    """Return marks from rows of question_id, rater, needs: of a rater's marks of one question the
    last. Raises UserError naming the row.
    """
    marks: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, 1):
        needs = str(row.get("needs") or "").strip().lower()
        if needs not in NEEDS or not row.get("question_id"):
            raise UserError(
                f"modalities, row {number}: question_id={row.get('question_id')!r}, "
                f"needs={row.get('needs')!r}: give an id, and one of {', '.join(NEEDS)}"
            )
        marks.setdefault(str(row["question_id"]), {})[str(row.get("rater") or number)] = needs
    return marks


def mark_modalities(questions: Sequence[Question], marks: ModalityMarks) -> list[Question]:
    """Return the questions; marked ones get `metrics["audio_only"]`, the share of raters who marked
    `audio`, and are put in or out of Neptune's subset `mmh`: questions that sound alone does not
    answer (C.4, main paper 5.1). As in the paper, no majority marks them `audio`, and no model
    guessed them without video and transcript. Raises UserError if no mark is for any question.
    """
    if not marks.keys() & {q.question_id for q in questions}:
        raise UserError(
            f"modalities: none of the marks is for any of the {len(questions)} questions (the "
            f"first mark is for {next(iter(marks), None)!r}): give the marks of this dataset"
        )
    marked: list[Question] = []
    for question in questions:
        if needs := list(marks.get(question.question_id, {}).values()):
            share = needs.count("audio") / len(needs)
            guessed = any(name in WITHOUT_VIDEO for name in question.failed_filters)
            others = tuple(s for s in question.subsets if s != SUBSET)
            question = replace(question, metrics={**question.metrics, AUDIO_ONLY: share})
            belongs = not question.audio_only and not guessed
            question = replace(question, subsets=(*others, SUBSET) if belongs else others)
        marked.append(question)
    return marked


def score_people(questions: Iterable[Question]) -> dict[str, dict[str, float]]:
    """Return "form, round" -> question id -> share of the votes that picked the right option.

    A vote picks an option by its number; forms whose votes hold no number ask people something
    else. Dropped questions, and those without a known answer, are left out.
    """
    picked: dict[str, dict[str, list[bool]]] = {}
    for question in questions:
        if question.drop is not None or question.answer_index is None:
            continue
        for verdict in question.verdicts:
            if not verdict.filter.startswith(FILTER_PREFIX):
                continue
            answers: dict[str, Any] = json.loads(verdict.reply)
            numbers = [value for value in answers.values() if type(value) is int]
            if numbers:
                form = verdict.filter.removeprefix(FILTER_PREFIX)
                name = f"{form}, {verdict.detail.rpartition(',')[0]}".replace("_", " ")
                votes = picked.setdefault(name, {}).setdefault(question.question_id, [])
                votes.append(numbers[-1] == question.answer_index)
    return {
        name: {question: sum(votes) / len(votes) for question, votes in by_question.items()}
        for name, by_question in picked.items()
    }


def replace_table(path: Path, questions: Sequence[Question]) -> Path | None:
    """Replace the table and return the path of the old one, or None if nothing has changed.

    The old table gets the next free number. `run.json` names the digest of the new table before it
    takes its place: `complete_replacement` finishes an interrupted call.
    """
    new_path = path.with_name(NEW_TABLE)
    parquet.write_parquet(schemas.table(questions, Question), new_path)
    if parquet.read_parquet(new_path).equals(parquet.read_parquet(path)):
        new_path.unlink()
        return None
    _record_digest(path, parquet.file_digest(new_path))
    return _put_in_place(new_path, path)


def _put_in_place(new_path: Path, path: Path) -> Path:
    """Move the new table to `path`; return the path of the old one."""
    number = 1
    while (old_path := path.with_name(f"questions.{number}.parquet")).exists():
        number += 1
    if path.is_dir():  # a table of several files
        path.rename(old_path)
    else:
        shutil.copy2(path, old_path)
    os.replace(new_path, path)
    return old_path


def complete_replacement(path: Path) -> None:
    """Move the new table into place if a call was killed after `run.json` had its digest, or after
    the old table was moved away.

    A file cannot replace a folder in one step. The new table is complete before both.
    """
    new_path = path.with_name(NEW_TABLE)
    if not new_path.exists():
        return
    if not path.exists():
        os.replace(new_path, path)
    elif parquet.recorded_digests(path.parent).get(path.name) == parquet.file_digest(new_path):
        _put_in_place(new_path, path)


def _record_digest(table: Path, digest: str) -> None:
    """Make `digest` that of the table in `run.json`, if there is one that has digests."""
    digests = parquet.recorded_digests(table.parent)
    others = {f: d for f, d in digests.items() if f.split("/")[0] != table.name}
    if digests:
        path = table.with_name(parquet.RECORD)
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        write_json(path, {**record, parquet.DIGESTS: {**others, table.name: digest}})


def record_results(path: Path, results: RatingResults) -> None:
    """Write the results to `checked` in `run.json`, which has the latest entry of each form."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    others = [entry for entry in record.get("checked", ()) if entry["form"] != results.form]
    write_json(path, {**record, "checked": [*others, results.plain()]})
