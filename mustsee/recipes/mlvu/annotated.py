"""MLVU's tasks for people: annotation forms, checks of filled-in forms, and questions from them.
Answered queries of Ego4D (F.5) are filled-in forms, too.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mustsee.errors import UserError
from mustsee.questions.checks import fault, holds, normal
from mustsee.questions.drafts import Draft, question_id
from mustsee.records import Question, Span, Video, group_pairs
from mustsee.synth.insertions import cycle_choices, with_question


@dataclass(frozen=True, kw_only=True)
class FormRules:
    """What a form of one task must have (MLVU, F.1, F.3, F.5-F.7).

    `wrong`: number of wrong answers; 0: an open answer. `points`, `evidence`: whether scoring
    points and a span are needed. `nameless`: people are described by looks, age, clothes or role.
    `unique`: the clues fit one place in the video only. `fixed_question`: wordings of the question,
    where the annotator writes none.
    """

    wrong: int = 3
    points: bool = False
    evidence: bool = False
    nameless: bool = False
    unique: bool = False
    fixed_question: tuple[str, ...] = ()


FORMS: Mapping[str, FormRules] = {  # rules by the released `question_type`
    "topic_reasoning": FormRules(),
    "summary": FormRules(
        wrong=0,
        nameless=True,
        fixed_question=(
            "Summarise the main content of this video.",
            "What happens in this video, from beginning to end?",
            "Give an account of the video's main events in their order.",
            "Describe in a few sentences what this video shows.",
        ),
    ),
    "plotQA": FormRules(evidence=True, nameless=True, unique=True),
    "subPlot": FormRules(wrong=0, points=True, evidence=True, nameless=True, unique=True),
    "ego": FormRules(evidence=True),
}
POINTS_RANGE = (1, 13)  # scoring points of a sub-scene caption
MAX_SCENE_S = 60.0  # seconds of a sub-scene, at most


@dataclass(frozen=True, kw_only=True)
class FilledForm:
    """A filled-in form."""

    video_id: str
    kind: str
    question: str
    answer: str
    wrong: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    evidence: tuple[Span, ...] = ()
    annotator: str = ""


def faults(filled: FilledForm, others: Sequence[FilledForm] = ()) -> list[str]:
    """Return the faults that the annotator must repair. `others`: forms for the same video."""
    rules = FORMS.get(filled.kind)
    if rules is None:
        return [f"there is no form {filled.kind!r}: {', '.join(FORMS)}"]
    faults_found: list[str] = []
    if not filled.question.strip() or not filled.answer.strip():
        faults_found.append("question and answer must be filled in")
    if rules.wrong:
        count = max(rules.wrong, len(filled.wrong))
        reason = fault(filled.question, filled.answer, filled.wrong, count=count)
        faults_found += [reason] if reason else []
    faults_found += _points_faults(filled) if rules.points else []
    texts = (filled.question, filled.answer, *filled.wrong, *filled.points)
    name = next(filter(None, map(name_in, texts)), None)
    if name and rules.nameless:
        faults_found.append(f"{name!r} looks like a name: describe people by looks or role")
    if rules.evidence and not filled.evidence:
        faults_found.append("mark where in the video the answer is")
    faults_found += _evidence_faults(filled, rules)
    if rules.unique:
        same = [o for o in others if o != filled and normal(o.question) == normal(filled.question)]
        if same:
            faults_found.append("the same clue points to another answer of this video: add to it")
    return faults_found


def _points_faults(filled: FilledForm) -> list[str]:
    low, high = POINTS_RANGE
    points = [p for p in filled.points if p.strip()]
    faults_found: list[str] = []
    if not low <= len(points) <= high:
        faults_found.append(f"{len(points)} scoring points: write {low} to {high}")
    if len({normal(p) for p in points}) < len(points):
        faults_found.append("two scoring points are the same")
    faults_found += [
        f"the question gives the point {p!r} away" for p in points if holds(filled.question, p)
    ]
    return faults_found


def _evidence_faults(filled: FilledForm, rules: FormRules) -> list[str]:
    for span in filled.evidence:
        if not 0 <= span.start <= span.end:
            return [f"the span {span.start:g}-{span.end:g} s is not in the video"]
        if rules.points and span.seconds > MAX_SCENE_S:
            return [f"the scene lasts {span.seconds:.0f} s: mark at most {MAX_SCENE_S:.0f} s"]
    return []


_INNER = re.compile(r"(?<=[a-z,;] )(?!I\b)[A-Z][a-z]{2,}")
_COMMON = frozenset(  # capitalised words that are not names of people
    """Christmas Easter English French German Chinese Japanese Spanish Russian American European
    African Asian Western Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February
    March April May June July August September October November December Earth
    """.split()  # noqa: SIM905
)


def name_in(text: str) -> str | None:
    """Return a word that looks like a person's name, or None: a capitalised word within a sentence
    that is not a day, month, language or feast.
    """
    return next((w for w in _INNER.findall(text) if w not in _COMMON), None)


def from_table(rows: Sequence[Mapping[str, Any]]) -> list[FilledForm]:
    """Read filled-in forms from a table with the columns video_id, kind (or question_type),
    question and answer, and if needed wrong_1 ..., points (a list, JSON, or texts joined by "|"),
    start, end.

    Raises UserError naming the row.
    """
    forms: list[FilledForm] = []
    for number, row in enumerate(rows, 1):
        kind = str(row.get("kind") or row.get("question_type") or "")
        if kind not in FORMS:
            raise UserError(f"annotations, row {number}: kind={kind!r}; there are {sorted(FORMS)}")
        missing = [c for c in ("video_id", "answer") if not row.get(c)]
        if missing:
            raise UserError(f"annotations, row {number}: no {missing[0]!r}")
        question = str(row.get("question") or "")
        if not question and FORMS[kind].fixed_question:
            wordings = FORMS[kind].fixed_question
            question = random.Random(f"{row['video_id']}/question").choice(wordings)
        wrong_answers = (row.get(f"wrong_{n}") for n in range(1, 10))
        forms.append(
            FilledForm(
                video_id=str(row["video_id"]),
                kind=kind,
                question=question,
                answer=str(row["answer"]),
                wrong=tuple(str(w) for w in wrong_answers if w),
                points=_points_of(row.get("points") or row.get("scoring_points"), number),
                evidence=_evidence_of(row, number),
                annotator=str(row.get("annotator") or ""),
            )
        )
    return forms


def _points_of(value: Any, number: int) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip().startswith("[") else value.split("|")
        except ValueError as error:
            raise UserError(f"annotations, row {number}: points={value!r}: {error}") from error
    return tuple(str(point).strip() for point in value if str(point).strip())


def _evidence_of(row: Mapping[str, Any], number: int) -> tuple[Span, ...]:
    if row.get("start") is None or row.get("end") is None:
        return ()
    try:
        return (Span(float(row["start"]), float(row["end"])),)
    except (TypeError, ValueError) as error:
        raise UserError(f"annotations, row {number}: start and end: {error}") from error


def questions_of(
    filled: Sequence[FilledForm], *, options: int = 4, seed: int = 0
) -> dict[str, list[Question]]:
    """Return questions by video. The answers' places are balanced in each kind; a fault is in
    `drop`.
    """
    by_video = group_pairs((form.video_id, form) for form in filled)
    places = {
        kind: cycle_choices(count, range(options), f"{seed}/{kind}/slots")
        for kind, count in Counter(f.kind for f in filled).items()
    }
    questions: list[tuple[str, Question]] = []
    for form in filled:
        faults_found = faults(form, by_video[form.video_id])
        if FORMS[form.kind].wrong and len(form.wrong) < options - 1:
            faults_found.append(f"{len(form.wrong)} wrong answers, not {options - 1}")
        question = _question(form, places[form.kind].pop(), options)
        drop = f"form: {faults_found[0]}" if faults_found else None
        questions.append((form.video_id, replace(question, drop=drop)))
    return group_pairs(questions)


def _question(form: FilledForm, place: int, options: int) -> Question:
    draft = Draft(question=form.question, answer=form.answer, decoys=form.wrong[: options - 1])
    if draft.decoys:
        row = Video(video_id=form.video_id, uri="")
        place = min(place, len(draft.decoys))
        questions = with_question(row, form.kind, draft, place, form.evidence).questions or ()
        return next(iter(questions))
    return Question(
        question_id=question_id(form.video_id, "mlvu", draft),
        video_id=form.video_id,
        recipe="mlvu",
        question=form.question,
        question_type=form.kind,
        answer=form.answer,
        evidence=form.evidence,
        scoring_points=form.points,
    )


@dataclass(frozen=True, kw_only=True)
class Query:
    """One of Ego4D's natural-language queries, with the span that answers it."""

    query_id: str
    video_id: str
    text: str
    template: str
    evidence: Span


def queries(data: Any) -> list[Query]:
    """Parse Ego4D's `nlq_*.json`. Queries without text or span are left out.

    Raises UserError for data of another form.
    """
    try:
        queries_found: list[Query] = []
        for video in data["videos"]:
            for clip in video["clips"]:
                for annotation in clip["annotations"]:
                    uid = annotation.get("annotation_uid", clip["clip_uid"])
                    for n, query in enumerate(annotation["language_queries"]):
                        start, end = query.get("video_start_sec"), query.get("video_end_sec")
                        if not query.get("query") or start is None or end is None or end < start:
                            continue
                        queries_found.append(
                            Query(
                                query_id=f"{uid}_{n}",
                                video_id=video["video_uid"],
                                text=str(query["query"]).strip(),
                                template=str(query.get("template") or ""),
                                evidence=Span(float(start), float(end)),
                            )
                        )
        return queries_found
    except (KeyError, TypeError) as error:
        raise UserError(f"not Ego4D's natural-language queries: {error!r} is missing") from error


def ego_forms(
    ego_queries: Sequence[Query], answers: Mapping[str, str], *, options: int = 4, seed: int = 0
) -> list[FilledForm]:
    """Return queries with answers as filled-in forms. `answers`: query id -> a few words, because
    Ego4D has spans only. Decoys are answers to other queries, first of the same template, in seeded
    order.
    """
    pool = group_pairs(
        (q.template, answers[q.query_id]) for q in ego_queries if q.query_id in answers
    )
    forms: list[FilledForm] = []
    for query in ego_queries:
        answer = answers.get(query.query_id)
        if answer is None:
            continue
        same_template, rest = (
            pool[query.template],
            [a for answers_of in pool.values() for a in answers_of],
        )
        rng = random.Random(f"{seed}/{query.query_id}/wrong")
        wrong: dict[str, str] = {}
        for source in (sorted(set(same_template)), sorted(set(rest))):
            rng.shuffle(source)
            wrong |= {normal(a): a for a in source if normal(a) not in (normal(answer), *wrong)}
        forms.append(
            FilledForm(
                video_id=query.video_id,
                kind="ego",
                question=query.text if query.text.endswith("?") else f"{query.text}?",
                answer=answer,
                wrong=tuple(wrong.values())[: options - 1],
                evidence=(query.evidence,),
            )
        )
    return forms
