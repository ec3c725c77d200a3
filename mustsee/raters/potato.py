"""Potato 2.x: write a project's `config.yaml` and `data.jsonl`, read its `annotation_output`.

Potato writes one `user_state.json` per annotator, with pairs of a label ({schema, name}) and its
value for each item.
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

STATE_FILE = "user_state.json"
SPANS_LABEL = "_data"  # name of the label that holds the spans of a video scheme


def write(
    form: RatingForm, questions: Sequence[Question], videos: Mapping[str, Video], folder: Path
) -> None:
    """Write a project's folder, to be started there by `potato start config.yaml`.

    The configuration is JSON, which is also YAML.
    """
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
    """Read the votes below the project's folder or its `annotation_output`. Raises UserError."""
    votes: list[ForeignVote] = []
    for state in sorted(path.rglob(STATE_FILE)):
        try:
            votes += _votes(parse_json(state.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{str(state)!r} is not a state file of Potato ({type(error).__name__}: {error})"
            ) from error
    if not votes:
        raise UserError(f"file={str(path)!r} has no {STATE_FILE} with annotations below it")
    return votes


def _scheme(field: FormField) -> dict[str, Any]:
    kinds = {"pick": "radio", "ticks": "multiselect", "spans": "video_annotation"}
    description = " ".join(text for text in (field.ask, field.hint) if text)
    scheme: dict[str, Any] = {
        "annotation_type": kinds.get(field.kind, "text"),
        "name": field.name,
        "description": description,
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
    description = describe_question(question)
    text = (
        f"{description['question']}\n{description['options']}\nEvidence: {description['evidence']}"
    )
    return {"id": question.question_id, "video": video.uri, "text": text}


def _votes(state: Mapping[str, Any]) -> list[ForeignVote]:
    times = state.get("instance_id_to_behavioral_data") or {}
    return [
        ForeignVote(
            question_id=item,
            rater=f"potato:{state['user_id']}",
            given=_answers(labels),
            seconds=_seconds_spent(times.get(item) or {}),
        )
        for item, labels in state["instance_id_to_label_to_value"].items()
        if labels
    ]


def _answers(labels: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Return field -> answer. A tick is a label by itself; texts and spans are labels' values."""
    ticks: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for label, value in labels:
        schema, name = label["schema"], label["name"]
        if name == SPANS_LABEL:
            segments = parse_json(value)["segments"]
            texts[schema] = "\n".join(
                f"{float(s['start_time']):.3f}-{float(s['end_time']):.3f}" for s in segments
            )
        elif name == "text_box":
            texts[schema] = value
        elif value not in (False, None, "", "false"):
            ticks.setdefault(schema, []).append(name)
    return {schema: ",".join(names) for schema, names in ticks.items()} | texts


def _seconds_spent(times: Mapping[str, Any]) -> float:
    milliseconds = times.get("total_time_ms")
    return float(milliseconds) / 1000 if isinstance(milliseconds, int | float) else 0.0
