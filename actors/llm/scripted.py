"""A scripted model: it fills in the form of any reply with words, times and numbers of the request.

Parsers accept its replies, so that a job goes through to its end, and they mean nothing: the dry
run counts with them where the offline rules have none, and tests run jobs with them. It is no
choice of `llm=`, since it asks no real questions.

An answer quotes the request, and a wrong one has the words of a quotation in reverse. As a verifier
it finds an option right if a line that it is shown holds the option, and leaves all open if no line
does. A guess is drawn.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors.part import Capabilities
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.prompts import ENGLISH
from mustsee.questions.checks import holds, normal
from mustsee.records import Line, Span
from mustsee.text import LETTERS

QUOTED = re.compile(r"[A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*){3,7}")  # four words to eight
FENCED = re.compile(r"<<<(.*?)>>>", re.DOTALL)  # text of a video in a prompt
TIMES = re.compile(r"\b(\d+(?:\.\d+)?)(?: ?[-–] ?| )(\d+(?:\.\d+)?)\b")
# Variables that say how many items a list has: the length of a list, or the number itself.
SIZES = ("units", "drafts", "target", "count", "questions", "asked", "times", "watched", "most",
         "templates")  # fmt: skip
SEGMENT_SHOTS = 3  # shots of a topic
KINDS = ("cause and effect", "comparison", "goal reasoning", "other")


@dataclass(frozen=True)
class Quotation:
    """Words of the request, and the span of the row that they stand in."""

    words: str
    span: Span


def fill_reply(request: Request) -> str:
    """Return a reply in the request's form: a JSON object, or else an option's letter or prose."""
    return _Filler(request).reply()


class _Filler:
    """Fills in the form of one request. Items of a list are numbered from 0 (`n`)."""

    def __init__(self, request: Request) -> None:
        self.form, self.variables = request.form, request.variables
        text = "\n".join(m.text for m in request.messages if m.role == "user")
        text = "\n".join(FENCED.findall(text))
        self.rng = random.Random(f"{request.prompt}/{request.seed}/{text}")
        # A repair also quotes earlier wrong answers.
        quotations = {frozenset(normal(q.words).split()): q for q in quote(text)}
        self.quotations = list(quotations.values()) or [
            Quotation("nothing is said of it", Span(0.0, 1.0))
        ]
        self.rng.shuffle(self.quotations)
        earlier = "".join(m.text for m in request.messages if m.role == "assistant")
        self.asked = [q.words for q in self.quotations if f"“{q.words}”" not in earlier]

    def reply(self) -> str:
        if self.form is not None:
            return json.dumps(self.value("", self.form, 0), ensure_ascii=False)
        if options := self.variables.get("options"):
            return LETTERS[self.rng.randrange(len(options))]
        return ". ".join(q.words for q in self.quotations[:5]) + "."

    def value(self, name: str, schema: Mapping[str, Any], n: int) -> Any:
        """Return the value of a property, of the `n`th item that has it."""
        kind, parts = schema.get("type"), schema.get("properties", {})
        if kind == "object" and "verdict" in parts:
            return self.verdict(LETTERS.index(name[-1].upper()))
        if kind == "object":
            return {part: self.value(part, inner, n) for part, inner in parts.items()}
        if kind == "array":
            return self.items(name, schema["items"], n)
        if name in ("start", "end"):
            return getattr(self.answer(n).span, name)
        if kind in ("integer", "number"):
            return n + 1
        if name == "correct_answer" and "enum" in schema:
            return LETTERS[n % 5]
        if "enum" in schema:
            return self.choice(name, schema["enum"])
        return self.text(name, n)

    def items(self, name: str, schema: Mapping[str, Any], n: int) -> list[Any]:
        if name in ("evidence", "spans") and "start" in schema.get("properties", {}):
            return [self.value(name, schema, n)]
        if name == "cast":
            return []
        if name == "segments":
            firsts = range(1, self.size + 1, SEGMENT_SHOTS)
            lasts = (min(first + SEGMENT_SHOTS - 1, self.size) for first in firsts)
            runs = zip(firsts, lasts, strict=True)
            return [{"first": a, "last": b, "topic": self.answer(a).words} for a, b in runs]
        if name == "fits":
            return self.find_fitting(self.variables["scene"])
        if "enum" in schema:  # a ranking
            return self.rng.sample(schema["enum"], len(schema["enum"]))
        return [self.value(name, schema, k) for k in range(self.size)]

    def choice(self, name: str, choices: Sequence[str]) -> str:
        if name == "kind":
            return choices[0]
        fitting = self.find_fitting(self.variables.get("context") or "") if name == "answer" else []
        return next((x for x in (*fitting, "NONE") if x in choices), self.rng.choice(choices))

    def find_fitting(self, text: str) -> list[str]:
        """Return the letters of the options that a text holds."""
        options = zip(LETTERS, self.variables["options"], strict=False)
        return [letter for letter, option in options if holds(text, option)]

    @property
    def size(self) -> int:
        """Number of items that the request asks for."""
        found = (self.variables[name] for name in SIZES if self.variables.get(name))
        size = next(found, 1)
        return self.variables.get("each", 1) * (size if isinstance(size, int) else len(size))

    def text(self, name: str, n: int) -> str:
        if name == "question":
            return self.find_given(name, n) or self.write_question(n)
        if name == "correct_answer":
            return self.find_given("answer", n) or self.answer(n).words
        if name.startswith("option_"):
            number = LETTERS.index(name[-1].upper())
            return self.answer(n).words if number == n % 5 else self.write_wrong_answer(n, number)
        if name.startswith("wrong_answer_"):
            return self.write_wrong_answer(n, int(name.rpartition("_")[2]))
        if name == "template":
            templates = self.variables["templates"]
            return templates[n % len(templates)]["name"]
        if name == "guess":
            letters = LETTERS[: len(self.variables["asked"][n]["options"])]
            return " > ".join(self.rng.sample(letters, len(letters)))
        named = {"kind": KINDS[n % len(KINDS)], "premise": "HOLDS", "name": f"Name {n + 1}"}
        return named.get(name) or self.answer(n).words

    def find_given(self, name: str, n: int) -> str:
        """Return a text of the `n`th question that the request is about, or nothing."""
        given = self.variables.get("drafts") or self.variables.get("questions") or ()
        if n >= len(given):
            return ""
        return getattr(given[n], name, given[n] if name == "question" else "")

    def write_question(self, n: int) -> str:
        turn, place = divmod(n, len(self.asked) or 1)
        asked = ("What goes with", "What belongs to", "What stands beside")[turn % 3]
        return f"{asked} “{self.asked[place] if self.asked else turn}”?"

    def answer(self, n: int) -> Quotation:
        turn, place = divmod(n, len(self.quotations))
        return self.quotations[(place + 1 + turn) % len(self.quotations)]

    def write_wrong_answer(self, n: int, number: int) -> str:
        """Return the words of another quotation in reverse, so that no line holds it."""
        words = self.answer(n + number).words.lower().split()
        return " ".join((*reversed(words), *["again"] * (number // len(self.quotations))))

    def verdict(self, number: int) -> dict[str, Any]:
        """Return the verifier's verdict on an option: RIGHT if a line holds it."""
        lines: tuple[Line, ...] = self.variables["lines"]
        where = [[x for x in lines if holds(x.text, o)] for o in self.variables["options"]]
        spans = [{"start": line.start, "end": line.end} for line in where[number]]
        return {"verdict": "RIGHT" if spans else "WRONG" if any(where) else "OPEN", "spans": spans}


def quote(text: str) -> Iterator[Quotation]:
    """Yield runs of words of a text, with the times of their row or of the row before."""
    span = Span(0.0, 1.0)
    for row in text.splitlines():
        for start, end in map(re.Match.groups, TIMES.finditer(row)):
            if float(start) < float(end):
                span = Span(float(start), float(end))
                break
        for words in QUOTED.findall(row):
            yield Quotation(words, span)


@dataclass(frozen=True)
class ScriptedModel:
    """The scripted model as a configured one, for tests."""

    capabilities: ClassVar[Capabilities] = Capabilities(images=True, local=True)
    language: str = ENGLISH
    identity: ClassVar[str] = "scripted"

    def open(self) -> Llm:
        return ScriptedLlm()


@dataclass(frozen=True)
class ScriptedLlm:
    """The scripted model; replies depend on the request alone."""

    identity: str = ScriptedModel.identity

    async def complete(self, request: Request) -> Reply:
        return Reply(text=fill_reply(request), model="scripted")
