"""What an endpoint makes of a schema: a reply in text, turned into the object that was asked for.

A reply with nothing of the form in it (prose, a refusal in words) becomes what a model that is held
to a schema says all the same: an object of the right shape that means little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from loopback.replies import Payload
from mustsee.questions.drafts import LabelledField, fields, spans
from mustsee.replies.forms import strip_chat_markup

Schemas = Literal["honoured", "refused", "ignored"]
Schema = Mapping[str, Any]
_NUMBERED = re.compile(r"^[\s*]*(?:\w+ )?(\d+)\s*[:.)]\s*(.*)$", re.MULTILINE)
_MCQ = re.compile(r"^(?:- )?([A-Z]|[A-Z][A-Za-z ]+)(?:\)|:) (.*)$", re.MULTILINE)
_RUN = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class SchemaReply:
    """A `reply` that keeps to schemas. What it said in JSON stands in later turns of a chat: there
    it is put back into the words that it stood for, so that `reply` knows the chat again.
    """

    reply: Callable[[Payload], str]
    said: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(self, payload: Payload) -> str:
        text = self.reply({**payload, "messages": [self._words(m) for m in payload["messages"]]})
        wanted = (payload.get("response_format") or {}).get("json_schema")
        if wanted is None or text.lstrip().startswith("{"):
            return text
        done = json.dumps(as_object(text, wanted["schema"]), ensure_ascii=False)
        self.said[done] = text
        return done

    def _words(self, message: Payload) -> Payload:
        content = message["content"]
        known = isinstance(content, str) and content in self.said
        return {**message, "content": self.said[content]} if known else message


def as_object(text: str, schema: Schema) -> dict[str, Any]:
    """A reply in a prompt's text form as an instance of its schema."""
    parts, text = schema["properties"], strip_chat_markup(text)
    match tuple(parts):
        case ("questions",):
            found = {"questions": _questions(text, parts["questions"]["items"])}
        case ("shots",) | ("frames",):
            ((name, inner),) = parts.items()
            counted, said = inner["items"]["properties"]
            found = {name: [{counted: int(n), said: t} for n, t in _NUMBERED.findall(text)]}
        case ("templates",) if parts["templates"]["items"]["type"] == "integer":
            found = {"templates": [int(n) for n in re.findall(r"\d+", text)]}
        case ("templates",):
            found = {"templates": _templates(text)}
        case ("cast", "segments"):
            found = _script(text)
        case ("question", "answer", "also_right"):
            found = _twin(text)
        case ("steps", "conclusion"):
            found = _steps(text)
        case names if "question_1" in names:
            found = _answers(text, parts)
        case _:
            found = _lines(text, parts)
    empty = not any(found.values()) and "NONE" not in text
    return instance(schema) if empty else found


def instance(schema: Schema) -> Any:
    """Something small that a plain JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: instance(inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {})) for _ in range(schema.get("minItems", 1))]
    return {"string": "text", "integer": 1, "number": 1.0, "boolean": True}.get(str(kind))


def _stretches(text: str) -> list[dict[str, float]]:
    return [{"start": s.start, "end": s.end} for s in spans(text)]


def _lines(text: str, parts: Schema) -> dict[str, Any]:
    """Each part from the line that has its name."""
    found: dict[str, Any] = {}
    for name, part in parts.items():
        label = name.replace("_", "[ _]")
        line = re.search(rf"^[\s*]*{label}: *(.*)$", text, re.IGNORECASE | re.MULTILINE)
        said = line[1].strip() if line else ""
        if part["type"] == "integer":
            found[name] = int(said) if said.isdecimal() else 0
        elif part["type"] == "string":
            named = (v for v in part.get("enum", ()) if said.upper().startswith(v.upper()))
            found[name] = next(named, said[:1]) if "enum" in part else said
        elif part["items"]["type"] == "string":
            found[name] = re.findall(r"[A-Z]", said)
        else:
            found[name] = _stretches(said)
    return found if found.get("answer", True) else dict.fromkeys(parts)


def _twin(text: str) -> dict[str, Any]:
    given = fields(text, {"question": "question", "answer": "answer", "also": "also right"})
    said = {label: [f.text for f in given if f.label == label]
            for label in ("question", "answer", "also")}  # fmt: skip
    return {"question": next(iter(said["question"]), "NONE"),
            "answer": next(iter(said["answer"]), ""), "also_right": said["also"]}  # fmt: skip


def _steps(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"steps": [], "conclusion": ""}
    for one in fields(text, {"step": "step", "conclusion": "conclusion"}):
        head, _, rest = one.text.partition(": ")
        if one.label == "conclusion":
            found["conclusion"] = one.text
        elif span := spans(head):
            found["steps"].append({"start": span[0].start, "end": span[0].end, "seen": rest})
    return found


def _questions(text: str, item: Schema) -> list[Any]:
    if item["type"] == "string":
        return [f.text for f in fields(text) if f.label == "question"]
    wanted = item["properties"]
    if "option_a" in wanted:
        return _mcqs(text)
    blocks: list[list[LabelledField]] = []
    for one in fields(text):
        begins = one.label == "question" or not blocks
        if begins or (one.label == "answer" and any(f.label == "answer" for f in blocks[-1])):
            blocks.append([])
        blocks[-1].append(one)
    return [_question(block, wanted, n) for n, block in enumerate(blocks, 1)]


def _question(block: Sequence[LabelledField], wanted: Schema, number: int) -> dict[str, Any]:
    said = {label: [f.text for f in block if f.label == label]
            for label in ("question", "answer", "evidence", "wrong")}  # fmt: skip
    whole: dict[str, Any] = {
        "number": number,
        "kind": block[0].tag,
        "question": "".join(said["question"][:1]),
        "correct_answer": "".join(said["answer"][:1]),
        "evidence": _stretches(" ".join(said["evidence"])),
        **{f"wrong_answer_{n}": text for n, text in enumerate(said["wrong"], 1)},
    }
    return {name: whole.get(name, "") for name in wanted}


def _mcqs(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    template = ""
    for name, said in _MCQ.findall(text):
        if name == "Template":
            template = said
        elif name == "Question":
            found.append({"template": template, "question": said})
        elif found and len(name) == 1:
            found[-1][f"option_{name.lower()}"] = said
        elif found and name == "Evidence":
            found[-1]["evidence"] = _stretches(said)
        elif found:
            found[-1][name.lower().replace(" ", "_")] = said
    return [{"evidence": [], "rationale": "", **one} for one in found]


def _templates(text: str) -> list[dict[str, str]]:
    labels = {"name": "template", "prototype": "prototype", "category": "category"}
    found: list[dict[str, str]] = []
    for one in fields(text, labels):
        if one.label == "name":
            found.append({})
        found[-1][one.label] = one.text
    return found


def _script(text: str) -> dict[str, Any]:
    cast: list[dict[str, Any]] = []
    segments: list[dict[str, Any]] = []
    for one in fields(text, {"segment": "segment", "cast": "cast"}):
        if one.label == "cast":
            name, looks, shots = (part.strip() for part in one.text.split("|"))
            runs = [{"first": int(a), "last": int(b or a)} for a, b in _RUN.findall(shots)]
            cast.append({"name": name, "looks": looks, "shots": runs})
        elif run := _RUN.match(one.text):
            topic = one.text[run.end() :].lstrip(": ")
            first, last = int(run[1]), int(run[2] or run[1])
            segments.append({"first": first, "last": last, "topic": topic})
    return {"cast": cast, "segments": segments}


def _answers(text: str, parts: Schema) -> dict[str, dict[str, str]]:
    """Under each question its answers; an empty text for one that is lacking."""
    found = {name: dict.fromkeys(part["properties"], "") for name, part in parts.items()}
    now = ""
    for one in fields(text, {"question": "question", "answer": "answer"}):
        if one.label == "question":
            now = f"question_{one.number}"
        elif now in found and f"answer_{one.number}" in found[now]:
            found[now][f"answer_{one.number}"] = one.text
    return found
