"""Potato: `config.yaml` and `data.jsonl` of a project out, its `annotation_output` in (2.x).

Potato keeps one `user_state.json` for each annotator: for each item pairs of a label, {schema,
name}, and its value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.raters.exchange import ForeignVote, describe_question, page
from mustsee.raters.form import FormField, RatingForm
from mustsee.records import Question, Video
from mustsee.tables import parse_json

STATE = "user_state.json"
MARKED = "_data"  # the label under which its video scheme keeps what was marked


def write(
    form: RatingForm, questions: Sequence[Question], videos: Mapping[str, Video], folder: Path
) -> None:
    """The folder of a project: `potato start config.yaml` there. JSON is YAML, too."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "annotation_task_name": form.title,
        "task_dir": ".",
        "output_annotation_dir": "annotation_output",
        "data_files": ["data.jsonl"],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "instance_display": {
            "fields": [
                {"key": "video", "type": "video"},
                {"key": "text", "type": "text", "label": "Question"},
            ]
        },
        "user_config": {"allow_all_users": True, "users": []},
        "annotation_schemes": [_scheme(field) for field in page(form).fields],
    }
    text = json.dumps(config, ensure_ascii=False, indent=1)
    (folder / "config.yaml").write_text(text + "\n", encoding="utf-8")
    rows = [_row(question, videos[question.video_id]) for question in questions]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "data.jsonl").write_text(lines, encoding="utf-8")


def read(path: Path) -> list[ForeignVote]:
    """The votes below a folder: the project's, or its `annotation_output`."""
    found: list[ForeignVote] = []
    for state in sorted(path.rglob(STATE)):
        try:
            found += _votes(parse_json(state.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{str(state)!r} is no state of Potato's ({type(error).__name__}: {error})"
            ) from error
    if not found:
        raise UserError(f"file={str(path)!r} has no {STATE} with annotations below it")
    return found


def _scheme(field: FormField) -> dict[str, Any]:
    kinds = {"pick": "radio", "ticks": "multiselect", "spans": "video_annotation"}
    said = " ".join(part for part in (field.ask, field.hint) if part)
    scheme: dict[str, Any] = {
        "annotation_type": kinds.get(field.kind, "text"),
        "name": field.name,
        "description": said,
    }
    if field.kind == "spans":
        return scheme | {"mode": "segment", "labels": [field.name], "source_field": "video"}
    if field.options:
        scheme["labels"] = [
            {"name": option, "tooltip": field.labels.get(option, option)}
            for option in field.options
        ]
    else:
        scheme["textarea"] = {"on": True, "rows": 4 if field.kind == "lines" else 2}
    if field.needed and field.fills is None and field.kind == "pick":
        scheme["label_requirement"] = {"required": True}
    return scheme


def _row(question: Question, video: Video) -> dict[str, Any]:
    told = describe_question(question)
    text = f"{told['question']}\n{told['options']}\nEvidence: {told['evidence']}"
    return {"id": question.question_id, "video": video.uri, "text": text}


def _votes(state: Mapping[str, Any]) -> list[ForeignVote]:
    times = state.get("instance_id_to_behavioral_data") or {}
    return [
        ForeignVote(
            question_id=item,
            rater=f"potato:{state['user_id']}",
            given=_given(labels),
            seconds=_seconds(times.get(item) or {}),
        )
        for item, labels in state["instance_id_to_label_to_value"].items()
        if labels
    ]


def _given(labels: Sequence[Sequence[Any]]) -> dict[str, str]:
    """A ticked option is a label of its own; a text, and what was marked, are values."""
    found: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for label, value in labels:
        schema, name = label["schema"], label["name"]
        if name == MARKED:
            marked = parse_json(value)["segments"]
            texts[schema] = "\n".join(
                f"{float(s['start_time']):.3f}-{float(s['end_time']):.3f}" for s in marked
            )
        elif name == "text_box":
            texts[schema] = value
        elif value not in (False, None, "", "false"):
            found.setdefault(schema, []).append(name)
    return {schema: ",".join(names) for schema, names in found.items()} | texts


def _seconds(times: Mapping[str, Any]) -> float:
    spent = times.get("total_time_ms")
    return float(spent) / 1000 if isinstance(spent, int | float) else 0.0
