"""Replies that keep to a schema: the loopback endpoint turns a reply in text into the object.

A reply that does not have the text form at all (prose, a refusal in words) becomes a valid object
with placeholder values, as from a model that must keep to a schema.
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
    """A `reply` that keeps to schemas. Later turns of a chat hold its replies in JSON; these are
    replaced by their original texts, so that `reply` recognises the chat.
    """

    reply: Callable[[Payload], str]
    texts: dict[str, str] = field(default_factory=dict[str, str])  # JSON reply -> original text

    def __call__(self, payload: Payload) -> str:
        text = self.reply({**payload, "messages": [self._as_text(m) for m in payload["messages"]]})
        schema = (payload.get("response_format") or {}).get("json_schema")
        if schema is None or text.lstrip().startswith("{"):
            return text
        reply = json.dumps(as_object(text, schema["schema"]), ensure_ascii=False)
        self.texts[reply] = text
        return reply

    def _as_text(self, message: Payload) -> Payload:
        content = message["content"]
        is_ours = isinstance(content, str) and content in self.texts
        return {**message, "content": self.texts[content]} if is_ours else message


def as_object(text: str, schema: Schema) -> dict[str, Any]:
    """Return a reply in a prompt's text form as an instance of its schema."""
    parts, text = schema["properties"], strip_chat_markup(text)
    match tuple(parts):
        case ("questions",):
            result = {"questions": _questions(text, parts["questions"]["items"])}
        case ("shots",) | ("sentences",):
            ((name, inner),) = parts.items()
            number, text_key = inner["items"]["properties"]
            result = {name: [{number: int(n), text_key: t} for n, t in _NUMBERED.findall(text)]}
        case ("guesses",):
            found = re.findall(r"^QUESTION (\d+): (.*)$", text, re.MULTILINE)
            result = {"guesses": [{"question": int(n), "guess": guess} for n, guess in found]}
        case ("matches",):
            found = re.findall(r"^QUESTION (\d+): (.*)$", text, re.MULTILINE)
            result = {"matches": [{"question": int(n), "answer": answer} for n, answer in found]}
        case ("seen", "not_seen", "unsure"):
            found = re.findall(r"^(\d+): ([A-Z ]*[A-Z])", text, re.MULTILINE)
            names = [(int(n), verdict.lower().replace(" ", "_")) for n, verdict in found]
            result = {name: [n for n, verdict in names if verdict == name] for name in parts}
        case ("facts",):
            found = re.findall(r"^FACT \d+: (\w+) \| (.*?) \| ([^|\n]*)(?: \| (.*))?$", text, re.M)
            result = {"facts": [{"kind": kind, "phrase": phrase, "spans": _spans(at), "of": of}
                                for kind, phrase, at, of in found]}  # fmt: skip
        case ("templates",) if parts["templates"]["items"]["type"] == "integer":
            result = {"templates": [int(n) for n in re.findall(r"\d+", text)]}
        case ("templates",):
            result = {"templates": _templates(text)}
        case ("cast", "segments", "kind"):
            result = _script(text)
        case ("question", "answer", "also_right"):
            result = _twin(text)
        case ("steps", "conclusion"):
            result = _steps(text)
        case _ if all("number" in p.get("items", {}).get("properties", {}) for p in parts.values()):
            result = {kind: _rows(text, kind, part["items"]) for kind, part in parts.items()}
        case _:
            result = _lines(text, parts)
    is_empty = not any(result.values()) and "NONE" not in text
    return instance(schema) if is_empty else result


def instance(schema: Schema) -> Any:
    """Return a small instance of a plain JSON schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: instance(inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {})) for _ in range(schema.get("minItems", 1))]
    return {"string": "text", "integer": 1, "number": 1.0, "boolean": True}.get(str(kind))


def _spans(text: str) -> list[dict[str, float]]:
    return [{"start": s.start, "end": s.end} for s in spans(text)]


def _rows(text: str, kind: str, item: Schema) -> list[dict[str, Any]]:
    """Return the rows of a kind: `KIND 1: cell | cell`."""
    cells = [name for name in item["properties"] if name != "number"]
    label = kind.replace("_", " ").upper()
    rows: list[dict[str, Any]] = []
    for number, line in re.findall(rf"^{label} (\d+): (.*)$", text, re.MULTILINE):
        values = [part.strip() for part in line.split("|", len(cells) - 1)]
        values += [""] * (len(cells) - len(values))
        rows.append({"number": int(number), **dict(zip(cells, values, strict=True))})
    return rows


def _lines(text: str, parts: Schema) -> dict[str, Any]:
    """Return each property from the line with its label."""
    result: dict[str, Any] = {}
    for name, part in parts.items():
        label = name.replace("_", "[ _]")
        line = re.search(rf"^[\s*]*{label}: *(.*)$", text, re.IGNORECASE | re.MULTILINE)
        value = line[1].strip() if line else ""
        if part["type"] == "integer":
            result[name] = int(value) if value.isdecimal() else 0
        elif part["type"] == "string":
            matches = (v for v in part.get("enum", ()) if value.upper().startswith(v.upper()))
            result[name] = next(matches, value[:1]) if "enum" in part else value
        elif part["type"] == "object":
            verdict, _, rest = value.partition(" ")
            result[name] = {"verdict": verdict or "OPEN", "spans": _spans(rest)}
        elif part["type"] == "number":
            found = re.search(r"-?\d+(?:\.\d+)?", value)
            result[name] = float(found[0]) if found else 0.0
        elif part["items"]["type"] == "integer":
            result[name] = [int(number) for number in re.findall(r"\d+", value)]
        elif words := [word for word in part["items"].get("enum", ()) if len(word) > 1]:
            result[name] = re.findall("|".join(map(re.escape, words)), value)
        elif part["items"]["type"] == "string":
            result[name] = re.findall(r"[A-Z]", value)
        else:
            result[name] = _spans(value)
    return result if result.get("answer", True) else dict.fromkeys(parts)


def _twin(text: str) -> dict[str, Any]:
    given = fields(text, {"question": "question", "answer": "answer", "also": "also right"})
    texts = {label: [f.text for f in given if f.label == label]
            for label in ("question", "answer", "also")}  # fmt: skip
    return {"question": next(iter(texts["question"]), "NONE"),
            "answer": next(iter(texts["answer"]), ""), "also_right": texts["also"]}  # fmt: skip


def _steps(text: str) -> dict[str, Any]:
    result: dict[str, Any] = {"steps": [], "conclusion": ""}
    for one in fields(text, {"step": "step", "conclusion": "conclusion"}):
        head, _, rest = one.text.partition(": ")
        if one.label == "conclusion":
            result["conclusion"] = one.text
        elif span := spans(head):
            result["steps"].append({"start": span[0].start, "end": span[0].end, "seen": rest})
    return result


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
    texts = {label: [f.text for f in block if f.label == label]
            for label in ("question", "answer", "evidence", "wrong")}  # fmt: skip
    whole: dict[str, Any] = {
        "number": number,
        "kind": block[0].tag,
        "question": "".join(texts["question"][:1]),
        "correct_answer": "".join(texts["answer"][:1]),
        "evidence": _spans(" ".join(texts["evidence"])),
        **{f"wrong_answer_{n}": text for n, text in enumerate(texts["wrong"], 1)},
    }
    return {name: whole.get(name, "") for name in wanted}


def _mcqs(text: str) -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = []
    template = ""
    for name, value in _MCQ.findall(text):
        if name == "Template":
            template = value
        elif name == "Question":
            questions.append({"template": template, "question": value})
        elif questions and len(name) == 1:
            questions[-1][f"option_{name.lower()}"] = value
        elif questions and name == "Evidence":
            questions[-1]["evidence"] = _spans(value)
        elif questions:
            questions[-1][name.lower().replace(" ", "_")] = value
    return [{"evidence": [], "rationale": "", **one} for one in questions]


def _templates(text: str) -> list[dict[str, str]]:
    labels = {"name": "template", "prototype": "prototype", "category": "category"}
    templates: list[dict[str, str]] = []
    for one in fields(text, labels):
        if one.label == "name":
            templates.append({})
        templates[-1][one.label] = one.text
    return templates


def _script(text: str) -> dict[str, Any]:
    cast: list[dict[str, Any]] = []
    segments: list[dict[str, Any]] = []
    kind = "story"
    for one in fields(text, {"segment": "segment", "cast": "cast", "kind": "kind"}):
        if one.label == "cast":
            name, looks, shots = (part.strip() for part in one.text.split("|"))
            runs = [{"first": int(a), "last": int(b or a)} for a, b in _RUN.findall(shots)]
            cast.append({"name": name, "looks": looks, "shots": runs})
        elif one.label == "kind":
            kind = one.text
        elif run := _RUN.match(one.text):
            topic = one.text[run.end() :].lstrip(": ")
            first, last = int(run[1]), int(run[2] or run[1])
            segments.append({"first": first, "last": last, "topic": topic})
    return {"cast": cast, "segments": segments, "kind": kind if segments else ""}
