"""Answerers' replies, kept with their questions as verdicts of the filter "answer".

A verdict holds the raw reply, whether it is right (null if the call failed or the reply could not
be parsed), and in `detail`, as JSON, how it was parsed. Replies are thus stored and published
together with their questions. Replies of a model that was asked elsewhere come
from a file:

replies = read_predictions("preds.jsonl")  # {"q1": "B", "q2": "The red one."}
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mustsee import stats
from mustsee.errors import UserError
from mustsee.evaluate.span_replies import split_evidence
from mustsee.files.tables import TABLES, one_line_error, parse_json, read_table, suffix_of
from mustsee.records import Question, RequestCount, Verdict
from mustsee.replies.extract import extract
from mustsee.stats import Estimate
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import order, rotated_options

NOT_IN_FILE = "no reply in the file"  # why a question has no reply where a file has the replies
FILTER = "answer"
NONE_OPTION = "None of the others"  # stands in place of the right option, if that is asked for
GRADE = "grade"
# Values of a verdict's detail that have the same names in `Answer`.
SAME_KEYS = ("rotation", "letter", "rule", "choice", "cut", "none_option", "sent")


def verdict_on_reply(
    question: Question,
    reply: str,
    *,
    model: str,
    rotation: int = 0,
    seed: int = 0,
    prompt: str = "",
    extra: Mapping[str, Any] | None = None,
) -> Verdict:
    """Return the verdict on a reply to a question whose options were rotated by `rotation`.

    `extra`: further keys of `detail`.
    """
    detail: dict[str, Any] = {"rotation": rotation, **(extra or {})}
    correct = None
    if question.options:
        with_evidence = split_evidence(reply)
        text = reply if with_evidence is None else with_evidence[0]
        extraction = extract(text, rotated_options(question, rotation))
        detail |= {"rule": extraction.rule}
        if extraction.letter is not None:
            index = order(len(question.options), rotation)[LETTERS.index(extraction.letter)]
            detail["letter"] = LETTERS[index]
            correct = None if question.answer_index is None else index == question.answer_index
        if extraction.ambiguous:
            detail["ambiguous"] = True
    return Verdict(
        filter=FILTER,
        model=model,
        seed=seed,
        prompt=prompt,
        reply=reply,
        correct=correct,
        detail=json.dumps(detail, ensure_ascii=False, sort_keys=True),
    )


def likeliest(logprobs: Sequence[Mapping[str, float]], count: int) -> int | None:
    """Return the shown option whose letter is the most probable token, in any spelling (" B",
    "(B"), at the first position that is not blank or an opening bracket; None if no letter is among
    the alternatives there. `logprobs`: by position, token -> log-probability. `count`: of options.
    """
    opening = " \n\t(▁Ġ[*"
    for alternatives in logprobs:
        likeliest_token = max(alternatives, key=lambda token: alternatives[token], default="")
        if not likeliest_token.strip(opening):
            continue
        probability: dict[int, float] = {}
        for token, value in alternatives.items():
            letter = token.strip(opening).upper()
            if len(letter) == 1 and letter in LETTERS[:count]:
                index = LETTERS.index(letter)
                probability[index] = probability.get(index, 0.0) + math.exp(value)
        return max(probability, key=lambda i: (probability[i], -i)) if probability else None
    return None


def verdict_on_failure(
    error: str, *, model: str, rotation: int = 0, seed: int = 0, prompt: str = ""
) -> Verdict:
    """Return the verdict of a failed call, which does not count as a wrong answer."""
    detail = json.dumps({"error": error, "rotation": rotation}, ensure_ascii=False, sort_keys=True)
    return Verdict(filter=FILTER, model=model, seed=seed, prompt=prompt, detail=detail)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One stored reply.

    `letter`: the chosen option, in the options' own order. `rule`: the rule that parsed it; empty
    for an open-ended answer. `failed`: why the call failed. `choice`: the option with the most
    probable letter, from a model that returns log-probabilities. `cut`: it was cut off at the limit
    of tokens. `none_option`: "None of the others" stood in place of the right option. `by_option`:
    the letter is that of the option with the most probable Yes; no reply names it. `sent`: hashes
    of what was sent, and tokens (`actors.answer.look`). `prompt`: name and hash of its template.
    """

    question: Question
    model: str
    reply: str
    failed: str | None
    correct: bool | None
    rotation: int = 0
    letter: str | None = None
    rule: str = ""
    choice: str | None = None
    cut: bool = False
    none_option: bool = False
    by_option: bool = False
    sent: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prompt: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The options in the order in which they were shown."""
        question = self.question
        if self.none_option and question.answer_index is not None:
            options = list(question.options)
            options[question.answer_index] = NONE_OPTION
            question = replace(question, options=tuple(options))
        return rotated_options(question, self.rotation)


def answers(question: Question) -> list[Answer]:
    """Return the replies stored with a question."""
    replies: list[Answer] = []
    for verdict in question.verdicts:
        if verdict.filter != FILTER:
            continue
        detail: dict[str, Any] = json.loads(verdict.detail or "{}")
        replies.append(
            Answer(
                question=question,
                model=verdict.model,
                reply=verdict.reply,
                correct=verdict.correct,
                prompt=verdict.prompt,
                failed=detail.get("error"),
                by_option="yes" in detail,
                **{key: detail[key] for key in SAME_KEYS if key in detail},
            )
        )
    return replies


def count_answers(questions: Iterable[Question], models: Collection[str]) -> RequestCount:
    """Return how many answers the models were asked for, and how many calls failed for good."""
    errors, sent = list[str](), 0
    for question in questions:
        for verdict in question.verdicts:
            if verdict.filter == FILTER and verdict.model in models and verdict.prompt:
                error = json.loads(verdict.detail or "{}").get("error")
                sent += error != NOT_IN_FILE
                errors += [error] if error not in (None, NOT_IN_FILE) else []
    return RequestCount(
        what="answers", sent=sent, unread=len(errors), error=errors[-1] if errors else ""
    )


def with_answers(question: Question, given: Sequence[Verdict]) -> Question:
    """Return the question with these replies in place of earlier ones by the same models."""
    models = {v.model for v in given}
    kept = [v for v in question.verdicts if not (v.filter == FILTER and v.model in models)]
    return replace(question, verdicts=(*kept, *given))


def grades_of(question: Question, model: str) -> list[dict[str, Any]]:
    """Return the grades of a model's open-ended answers to a question; `by` is the grader."""
    grades: list[dict[str, Any]] = []
    for verdict in question.verdicts:
        if verdict.filter == GRADE:
            detail: dict[str, Any] = json.loads(verdict.detail)
            if detail.get("of") == model:
                grades.append({**detail, "by": verdict.model, "correct": verdict.correct})
    return grades


def mean_of(values: Sequence[float]) -> float:
    """Return the mean; 0 for an empty sequence."""
    return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True, kw_only=True)
class ModelAnswers:
    """What one model answered.

    `by_question`: question id -> its answers, failed calls among them. `clusters`: video id -> the
    cluster in which it counts, if not its own. `seed`, `draws`: of resampled intervals.
    """

    model: str
    by_question: Mapping[str, Sequence[Answer]]
    clusters: Mapping[str, str]
    seed: int = 0
    draws: int = 2000

    def answers_to(self, question: Question) -> Sequence[Answer]:
        return self.by_question[question.question_id]

    def replies(self, question: Question) -> list[Answer]:
        """Return the answers without failed calls."""
        return [a for a in self.answers_to(question) if a.failed is None]

    def grades(self, question: Question, key: str) -> list[dict[str, Any]]:
        """Return the grades that have a value of `key`, by which kinds of grades differ."""
        return [g for g in grades_of(question, self.model) if g.get(key) is not None]

    def mean_grades(self, questions: Iterable[Question], key: str) -> list[float]:
        """Return the mean of a question's grades, for each."""
        return [mean_of([float(g[key]) for g in self.grades(q, key)]) for q in questions]

    def places(self, questions: Iterable[Question]) -> list[str]:
        """Return the cluster in which each question counts."""
        return [self.clusters.get(q.video_id, q.video_id) for q in questions]

    def mean(self, values: Sequence[float], questions: Iterable[Question]) -> Estimate:
        """Return the mean of a value for each question, with its interval over the clusters."""
        return stats.mean(values, self.places(questions))


def mark_replies(question: Question) -> Question:
    """Return the question with its parsed multiple-choice replies marked by its key as it is."""
    if question.answer_index is None or not question.options:
        return question
    key = LETTERS[question.answer_index]
    letters = iter([a.letter for a in answers(question)])

    def mark(verdict: Verdict) -> Verdict:
        if verdict.filter != FILTER or (letter := next(letters)) is None:
            return verdict
        return replace(verdict, correct=letter == key)

    return replace(question, verdicts=tuple(map(mark, question.verdicts)))


IDS = ("question_id", "questionID", "question id", "qid", "id", "doc_id", "uid", "q_uid")
REPLIES = (
    "reply", "raw_reply", "prediction", "pred", "predicted", "response", "model_response",
    "output", "model_output", "generated", "answer",
)  # fmt: skip


def read_predictions(
    path: str, id: str | None = None, reply: str | None = None, *, key: str = "answer.path"
) -> dict[str, str]:
    """Return the replies by question id. `id`, `reply`: columns; None: found by their names. `key`:
    names the setting in messages. Raises UserError for another kind of file, a column that is not
    there, and an id that comes twice.
    """
    given = f"{key}={path!r}"
    rows = _read_object(path, given) if suffix_of(path) == "json" else _read_rows(path, given)
    id = id or _find_column("id", IDS, rows, given)
    reply = reply or _find_column("reply", REPLIES, rows, given)
    replies: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        for name in (id, reply):
            if name not in row:
                raise UserError(f"{path!r}, row {number} has no {name!r}")
        if row[id] is None:
            raise UserError(f"{path!r}, row {number} has no value in {id!r}")
        key = str(row[id])
        if key in replies:
            raise UserError(f"{path!r}, row {number}: the id {key!r} comes twice")
        if row[reply] is not None:
            replies[key] = str(row[reply])
    return replies


def _read_rows(path: str, given: str) -> list[dict[str, Any]]:
    if suffix_of(path) not in TABLES:
        raise UserError(f"{given}: expected .json, .{', .'.join(sorted(TABLES))}")
    return read_table(path)


def _read_object(path: str, given: str) -> list[dict[str, Any]]:
    """Return the rows of a JSON file: a list of objects, or one object of replies by id."""
    try:
        value = parse_json(Path(path).read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UserError(f"{given}: {one_line_error(error)}") from error
    if isinstance(value, Mapping):
        return [{IDS[0]: key, REPLIES[0]: text} for key, text in value.items()]
    if isinstance(value, list) and all(isinstance(row, dict) for row in value):
        return value
    raise UserError(f"{given}: expected an object of replies by id, or a list of rows")


def _find_column(
    content: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]], given: str
) -> str:
    columns = list(dict.fromkeys(name for row in rows[:100] for name in row))
    found = [name for name in names if name in columns]
    if not found:
        listed = ", ".join(columns) or "none"
        is_answer = given.startswith("answer.")
        setting = f"set answer.{content}= to" if is_answer else "rename"
        evaluated = (
            "" if is_answer else ", or give the folder of its evaluation (mustsee evaluate "
            "answer=file answer.path=... answer.id=... answer.reply=...)"
        )  # fmt: skip
        raise UserError(
            f"{given}: {setting} the column with the {content} ({', '.join(names)})"
            f"{evaluated}; columns: {listed}"
        )
    return found[0]
