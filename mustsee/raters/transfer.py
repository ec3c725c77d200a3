"""Write a `RatingRun`'s votes into its questions or annotations; exchange them with Label Studio.

`write_votes`, `export_tasks` and `import_votes` yield the lines to print. The form of Label Studio
1.x is `config.xml` and `tasks.json`, and its JSON export. Local videos are named as in its local
file storage, by their path without the first slash. Its timeline counts frames from 1. A form's
first round is exported, which must have a single page. Imported votes are text and are checked as a
browser's are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from mustsee.errors import UserError
from mustsee.files.folders import write_json, write_json_lines
from mustsee.files.tables import parse_json
from mustsee.layouts.errata import write_errata
from mustsee.raters import tasks
from mustsee.raters.ballots import CastVote
from mustsee.raters.form import FormField, FormStep, RatingForm
from mustsee.raters.rating_run import RatingRun
from mustsee.raters.results import summary_lines
from mustsee.raters.votes import apply_votes, record_results, replace_table
from mustsee.records import Question, Video
from mustsee.run.outputs import check_writable
from mustsee.text import printable


def write_votes(rating: RatingRun) -> Iterator[str]:
    """Write the votes into `questions.parquet` and `run.json`, or into `annotations.jsonl` for a
    form on videos, `equivalence.jsonl` or `points.jsonl` for one on replies, and `errata.jsonl` for
    one on errata. The old table
    of questions is kept under a number.
    """
    rated, votes = rating.rated_items(), rating.ballots.votes()
    if rating.form.videos:
        path = rating.folder / "annotations.jsonl"
        rows = tasks.annotation_rows(rating.question_by_id, votes)
        write_json_lines(path, rows)
        yield f"{path}: {len(rows)} annotations, for ray_jobs.mlvu task=annotated annotations="
        return
    if rating.form.replies:
        by_points = rating.form.points
        path = rating.folder / ("points.jsonl" if by_points else "equivalence.jsonl")
        rows = (tasks.point_rows if by_points else tasks.rating_rows)(rating.question_by_id, votes)
        write_json_lines(path, rows)
        use = (
            tasks.describe_agreement(rows)
            if by_points
            else "for ray_jobs.judge_calibrate bem=[...] held_out=1"
        )
        yield f"{path}: {len(rows)} ratings, {use}"
        yield from summary_lines(rating.results(rated))
        return
    if rating.form.errata:
        decided = tasks.decided_keys(rating.form, rating.question_by_id, rated, votes)
        path = rating.folder / "errata.jsonl"
        write_errata(decided.entries, path)
        yield f"{path}: {decided.sentence}; for errata= of evaluate, export and audit"
        yield from summary_lines(rating.results(rated))
        return
    questions = apply_votes(rating.form, list(rating.question_by_id.values()), rated, votes)
    table = rating.run_folder / "questions.parquet"
    old_table = replace_table(table, questions)
    outcome = rating.results(rated)
    record = rating.run_folder / "run.json"
    if record.is_file():
        record_results(record, outcome)
    change = "unchanged" if old_table is None else f"the old table is {old_table}"
    yield f"{table}: verdicts of {outcome.votes} votes; {change}"
    yield from summary_lines(outcome)


def export_tasks(rating: RatingRun, folder: Path) -> Iterator[str]:
    """Write the questions of the form's first round as tasks of Label Studio."""
    first_round = rating.form.rounds[0].name
    questions = [
        rating.question_by_id[item.question_id]
        for item in rating.open_items()
        if item.round == first_round
    ]
    check_writable("file", str(folder))
    write_tasks(rating.form, questions, rating.video_by_id, folder)
    yield f"{folder}: {len(questions)} tasks of round {first_round!r} for Label Studio"


def import_votes(rating: RatingRun, path: Path) -> Iterator[str]:
    """Read the votes of Label Studio into the ballots, checked as the page checks them."""
    if not path.exists():
        raise UserError(f"file={str(path)!r} does not exist")
    rating.open_items()
    foreign = read_export(path)
    imported = read_votes(rating.form, foreign, rating.question_by_id, rating.video_by_id)
    new = rating.ballots.import_votes(imported.votes, time.time())
    yield f"{path}: {new} new votes, {len(imported.votes) - new} already there or not needed"
    for reason in imported.refused:
        yield printable(f"  left out: {reason}")


@dataclass(frozen=True, kw_only=True)
class ForeignVote:
    """A vote from another tool: field -> answer as text, with ticks joined by commas."""

    question_id: str
    rater: str
    given: Mapping[str, str]
    seconds: float = 0.0
    at: float = 0.0


@dataclass(frozen=True)
class ImportedVotes:
    """The valid votes, and the reasons why others were refused."""

    votes: list[CastVote]
    refused: list[str]


def page_of(form: RatingForm) -> FormStep:
    """Return the page to export. Raises UserError for a form that other tools cannot show."""
    step, *others = form.rounds[0].steps
    if form.dealt or form.videos or others or any(f.kind == "option" for f in step.fields):
        raise UserError(
            f"form={form.name} cannot go to another tool: it has several steps, is dealt out to "
            "raters, or is on videos; use verify, neptune, egoschema or certificate"
        )
    return step


def read_votes(
    form: RatingForm,
    foreign_votes: list[ForeignVote],
    questions: Mapping[str, Question],
    videos: Mapping[str, Video],
) -> ImportedVotes:
    """Return the votes, checked as the page checks them; an empty correction means no change."""
    step, imported = page_of(form), ImportedVotes([], [])
    for vote in foreign_votes:
        question = questions.get(vote.question_id)
        if question is None:
            imported.refused.append(f"{vote.rater}: there is no question {vote.question_id!r}")
            continue
        initial = {f.name: f.initial_text(question) for f in step.fields if f.fills is not None}
        texts = {k: v for k, v in vote.given.items() if v.strip()}
        video = videos.get(question.video_id)
        end = video.until if video is not None else None
        answers, faults = step.read({**initial, **texts}, question, end)
        faults = faults or form.faults(answers, question)
        if faults:
            imported.refused.append(f"{vote.rater}, {vote.question_id}: {faults[0]}")
            continue
        imported.votes.append(
            CastVote(
                question_id=vote.question_id, round=form.rounds[0].name, rater=vote.rater,
                answers=answers, seconds=vote.seconds, at=vote.at,
            )
        )  # fmt: skip
    return imported


def describe_question(question: Question) -> dict[str, str]:
    """Return the question as text for another tool: question, options, evidence."""
    answer_index = question.answer_index
    options = "\n".join(
        f"{chr(65 + place)}. {option}{'  (given as the answer)' if place == answer_index else ''}"
        for place, option in enumerate(question.options)
    )
    spans = ", ".join(f"{s.start:.1f}-{s.end:.1f} s" for s in question.evidence)
    return {
        "question": question.question,
        "options": options or f"Answer: {question.answer}",
        "evidence": spans or "not given",
    }


LOCAL_FILES_PREFIX = "/data/local-files/?d="
DEFAULT_FPS = 25.0


def write_tasks(
    form: RatingForm, questions: Sequence[Question], videos: Mapping[str, Video], folder: Path
) -> None:
    """Write the two files of a project."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = page_of(form).fields
    (folder / "config.xml").write_text(_config(form, fields), encoding="utf-8")
    tasks = [{"data": _data(fields, q, videos[q.video_id])} for q in questions]
    write_json(folder / "tasks.json", tasks, indent=1)


def read_export(path: Path) -> list[ForeignVote]:
    """Read the votes of an export, without skipped annotations. Raises UserError."""
    try:
        tasks = parse_json(path.read_text(encoding="utf-8"))
        return [
            _vote(task["data"], annotation)
            for task in tasks
            for annotation in task["annotations"]
            if not annotation.get("was_cancelled")
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"file={str(path)!r} is not a JSON export of Label Studio with tasks of do=export "
            f"({type(error).__name__}: {error})"
        ) from error


def _config(form: RatingForm, fields: Sequence[FormField]) -> str:
    rows = "\n".join(_control(field) for field in fields)
    return (
        f"<View>\n  <Header value={quoteattr(form.title)}/>\n"
        '  <Video name="video" value="$video" frameRate="$fps"/>\n'
        '  <Header value="$question" size="4"/>\n'
        '  <Text name="options" value="$options"/>\n'
        '  <Text name="evidence" value="Evidence: $evidence"/>\n'
        f"{rows}\n</View>\n"
    )


def _control(field: FormField) -> str:
    ask = f'  <Header value={quoteattr(field.ask)} size="5"/>\n'
    name = f'name="{field.name}" toName="video"'
    if field.kind in ("pick", "ticks"):
        choice = "multiple" if field.kind == "ticks" else "single"
        needed = str(field.needed and field.kind == "pick").lower()
        choices = "".join(
            f"    <Choice value={quoteattr(field.labels.get(o, o))} alias={quoteattr(o)}/>\n"
            for o in field.options
        )
        return (
            f'{ask}  <Choices {name} choice="{choice}" required="{needed}">\n{choices}  </Choices>'
        )
    if field.kind == "spans":
        label = f"    <Label value={quoteattr(field.name)}/>\n"
        return f"{ask}  <TimelineLabels {name}>\n{label}  </TimelineLabels>"
    initial = f' value="$now_{field.name}"' if field.fills is not None else ""
    rows = 4 if field.kind == "lines" else 2
    return f'{ask}  <TextArea {name} rows="{rows}" maxSubmissions="1" editable="true"{initial}/>'


def _data(fields: Sequence[FormField], question: Question, video: Video) -> dict[str, Any]:
    uri = video.uri if "://" in video.uri else LOCAL_FILES_PREFIX + quote(video.uri.lstrip("/"))
    initial = {f"now_{f.name}": f.initial_text(question) for f in fields if f.fills is not None}
    return {
        "question_id": question.question_id,
        "video": uri,
        "fps": video.fps or DEFAULT_FPS,
        **describe_question(question),
        **initial,
    }


def _vote(data: Mapping[str, Any], annotation: Mapping[str, Any]) -> ForeignVote:
    answers: dict[str, list[str]] = {}
    for result in annotation["result"]:
        answers.setdefault(result["from_name"], []).extend(
            _answer_texts(result, float(data["fps"]))
        )
    author = annotation.get("completed_by")
    name = author.get("email") or author.get("id") if isinstance(author, Mapping) else author
    created = annotation.get("created_at")
    return ForeignVote(
        question_id=str(data["question_id"]),
        rater=f"label_studio:{name}",
        given={
            name: (",".join if _is_choice(annotation, name) else "\n".join)(texts)
            for name, texts in answers.items()
        },
        seconds=float(annotation.get("lead_time") or 0.0),
        at=datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp() if created else 0.0,
    )


def _is_choice(annotation: Mapping[str, Any], name: str) -> bool:
    return any(r["from_name"] == name and r["type"] == "choices" for r in annotation["result"])


def _answer_texts(result: Mapping[str, Any], fps: float) -> list[str]:
    value = result["value"]
    if result["type"] == "choices":
        return list(value["choices"])
    if result["type"] == "textarea":
        text = value["text"]
        return [text] if isinstance(text, str) else list(text)
    if result["type"] == "timelinelabels":
        return [f"{(r['start'] - 1) / fps:.3f}-{r['end'] / fps:.3f}" for r in value["ranges"]]
    return []
