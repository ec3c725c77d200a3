"""Label Studio: `config.xml` and `tasks.json` out, its JSON export in (1.x).

Videos on this machine are named as its local file storage names them, by their path without the
first slash. Its timeline counts frames from 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from mustsee.errors import UserError
from mustsee.raters.exchange import ForeignVote, describe_question, page
from mustsee.raters.form import FormField, RatingForm
from mustsee.records import Question, Video
from mustsee.tables import parse_json

LOCAL = "/data/local-files/?d="
FPS = 25.0


def write(
    form: RatingForm, questions: Sequence[Question], videos: Mapping[str, Video], folder: Path
) -> None:
    """The two files of a project."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = page(form).fields
    (folder / "config.xml").write_text(_config(form, fields), encoding="utf-8")
    tasks = [{"data": _data(fields, q, videos[q.video_id])} for q in questions]
    text = json.dumps(tasks, ensure_ascii=False, indent=1)
    (folder / "tasks.json").write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> list[ForeignVote]:
    """The votes of an export; annotations that were skipped are left out."""
    try:
        tasks = parse_json(path.read_text(encoding="utf-8"))
        return [
            _vote(task["data"], made)
            for task in tasks
            for made in task["annotations"]
            if not made.get("was_cancelled")
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"file={str(path)!r} is no JSON export of Label Studio, of tasks made by do=export "
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
        many = "multiple" if field.kind == "ticks" else "single"
        needed = str(field.needed and field.kind == "pick").lower()
        choices = "".join(
            f"    <Choice value={quoteattr(field.labels.get(o, o))} alias={quoteattr(o)}/>\n"
            for o in field.options
        )
        return f'{ask}  <Choices {name} choice="{many}" required="{needed}">\n{choices}  </Choices>'
    if field.kind == "spans":
        label = f"    <Label value={quoteattr(field.name)}/>\n"
        return f"{ask}  <TimelineLabels {name}>\n{label}  </TimelineLabels>"
    stands = f' value="$now_{field.name}"' if field.fills is not None else ""
    rows = 4 if field.kind == "lines" else 2
    return f'{ask}  <TextArea {name} rows="{rows}" maxSubmissions="1" editable="true"{stands}/>'


def _data(fields: Sequence[FormField], question: Question, video: Video) -> dict[str, Any]:
    uri = video.uri if "://" in video.uri else LOCAL + quote(video.uri.lstrip("/"))
    now = {f"now_{f.name}": f.initial_text(question) for f in fields if f.fills is not None}
    return {
        "question_id": question.question_id,
        "video": uri,
        "fps": video.fps or FPS,
        **describe_question(question),
        **now,
    }


def _vote(data: Mapping[str, Any], made: Mapping[str, Any]) -> ForeignVote:
    given: dict[str, list[str]] = {}
    for one in made["result"]:
        given.setdefault(one["from_name"], []).extend(_said(one, float(data["fps"])))
    who = made.get("completed_by")
    name = who.get("email") or who.get("id") if isinstance(who, Mapping) else who
    when = made.get("created_at")
    return ForeignVote(
        question_id=str(data["question_id"]),
        rater=f"label_studio:{name}",
        given={
            name: (",".join if _ticked(made, name) else "\n".join)(said)
            for name, said in given.items()
        },
        seconds=float(made.get("lead_time") or 0.0),
        at=datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp() if when else 0.0,
    )


def _ticked(made: Mapping[str, Any], name: str) -> bool:
    return any(r["from_name"] == name and r["type"] == "choices" for r in made["result"])


def _said(one: Mapping[str, Any], fps: float) -> list[str]:
    value = one["value"]
    if one["type"] == "choices":
        return list(value["choices"])
    if one["type"] == "textarea":
        text = value["text"]
        return [text] if isinstance(text, str) else list(text)
    if one["type"] == "timelinelabels":
        return [f"{(r['start'] - 1) / fps:.3f}-{r['end'] / fps:.3f}" for r in value["ranges"]]
    return []
