"""The scripted model's replies in labelled lines, as a model without schemas writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mustsee.replies.forms import label_lines
from mustsee.text import LETTERS


def as_lines(reply: str) -> str:
    """Return a reply that is an object of its prompt's schema in the text form of the prompt."""
    if not reply.startswith("{"):
        return reply
    value: dict[str, Any] = json.loads(reply)
    match tuple(value):
        case ("questions",):
            return "\n\n".join(_question(n, one) for n, one in enumerate(value["questions"], 1))
        case ("shots",):
            return "\n".join(f"SHOT {one['shot']}: {one['sentence']}" for one in value["shots"])
        case ("sentences",):
            return "\n".join(f"{one['number']}: {one['sentence']}" for one in value["sentences"])
        case ("cast", "segments", "kind"):
            runs = enumerate(value["segments"], 1)
            lines = [f"SEGMENT {n}: {r['first']}-{r['last']}: {r['topic']}" for n, r in runs]
            return "\n".join([*lines, f"KIND: {value['kind']}"])
        case ("templates",):
            return _templates(value["templates"])
        case _:
            return label_lines(reply)


def _question(number: int, one: Mapping[str, Any] | str) -> str:
    if isinstance(one, str):
        return f"QUESTION {number}: {one}"
    evidence = "; ".join(f"{span['start']}-{span['end']}" for span in one.get("evidence", ()))
    if "option_a" in one:
        options = [f"- {x}) {one[f'option_{x.lower()}']}" for x in LETTERS[:5]]
        head = (f"Template: {one['template']}", f"Question: {one['question']}")
        key = (f"Correct Answer: {one['correct_answer']}", f"Rationale: {one['rationale']}")
        return "\n".join((*head, *options, *key, f"Evidence: {evidence}"))
    kind = f"({one['kind']}) " if "kind" in one else ""
    lines = [f"QUESTION {number}: {kind}{one['question']}"]
    answers = ((name, text) for name, text in one.items() if "answer" in name)
    lines += [f"{name.replace('_', ' ').upper()}: {text}" for name, text in answers]
    return "\n".join([*lines, *([f"EVIDENCE: {evidence}"] if evidence else [])])


def _templates(templates: list[Any]) -> str:
    if isinstance(templates[0], int):
        return f"TEMPLATES: {', '.join(map(str, templates))}"
    return "\n".join(
        f"TEMPLATE {n}: {one['name']}\nPROTOTYPE: {one['prototype']}\nCATEGORY: {one['category']}"
        for n, one in enumerate(templates, 1)
    )
