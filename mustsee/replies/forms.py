"""The form of a reply: one definition for each prompt, from which come the JSON schema that is
sent, the reader of JSON, and the reader of the text form. Both readers give the same value.

    PICK = form(text=parse_pick, shape=record(Pick, answer=one_of("AB", "the letter")))
    pick = await asker.ask("filters/pick", PICK, options=options)

A prompt asks for its text form whether or not a schema goes with it. Where the endpoint keeps to
the schema, a reply in the text form cannot come about, and the properties have the names, the order
and the meaning of the lines asked for (`WRONG ANSWER 1` is `wrong_answer_1`): nothing is left to
choose. Where it does not, or forgets halfway through a run, the same words bring the other leg, and
prompts, their digests and caches stay as they are.

Schemas keep to what all endpoints take: all properties required, no others, no least or most of
anything (Anthropic, Azure and Gemini refuse those). Where a prompt wants so many of a thing, each
has a property of its own, or the reader counts them. A reply in plain words (a sentence, a story,
one letter) has no schema: `free`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from mustsee.errors import Unparsed

T = TypeVar("T")
S = TypeVar("S", covariant=True)
U = TypeVar("U")


@dataclass(frozen=True)
class Shape(Generic[S]):
    """A JSON value: its schema, and what it is read as. `read` takes the value and where it stands,
    and raises Unparsed.
    """

    schema: Mapping[str, Any]
    read: Callable[[Any, str], S]

    def map(self, make: Callable[[S], U]) -> Shape[U]:
        """What is made of the value; `make` may raise Unparsed."""
        return Shape(self.schema, lambda value, where: make(self.read(value, where)))


@dataclass(frozen=True)
class Form(Generic[S]):
    """How a reply is read. `schema`: what is sent to endpoints that keep to one; null: plain words.
    `read` raises Unparsed, and nothing else.
    """

    schema: Mapping[str, Any] | None
    read: Callable[[str], S]

    def map(self, make: Callable[[S], U]) -> Form[U]:
        """What is made of the value, whichever leg it came on; `make` may raise Unparsed."""
        return Form(self.schema, lambda reply: make(self.read(reply)))

    def with_reply(self) -> Form[tuple[str, S]]:
        """The reply as it was said, with its value."""
        return Form(self.schema, lambda reply: (reply, self.read(reply)))


def free(text: Callable[[str], T]) -> Form[T]:
    """A reply in plain words."""
    return Form(None, lambda reply: text(strip_chat_markup(reply)))


def form(*, text: Callable[[str], T], shape: Shape[T]) -> Form[T]:
    """A reply of several parts. A reply that is a JSON object, alone or in a fence, is read by
    `shape`, whatever its texts hold; anything else, and an object with parts of its own making, by
    `text`, which raises Unparsed. An object with words around it is read by `shape` unless the
    words say something else.

    What a model quotes is not what it answers, and where it cannot be told which is which, the
    reply is Unparsed: lines of one label that differ, a second answer in a fence or in an object.
    """
    parts = set[str](shape.schema.get("required", ()))
    once = tuple(_once(shape.schema))

    def in_words(reply: str) -> T:
        said = strip_chat_markup(reply)
        _check_said_once(said, once)
        found = text(said)
        apart = _BLOCK.sub("\n", reply)
        if apart != reply and (other := _tried(text, strip_chat_markup(apart))) and other != found:
            raise Unparsed("it answers once in a fence and once outside of it, and not the same")
        return found

    def read(reply: str) -> T:
        value = in_json(reply, parts)
        if value is None:
            return in_words(reply)
        there = (
            normalize_keys(cast(dict[str, Any], value)).keys() if isinstance(value, dict) else ()
        )
        if len(parts) > 1 and not parts <= set(there):
            with suppress(Unparsed):
                return in_words(reply)
        found = shape.read(value, "the reply")
        if rest := without_json(reply, parts):
            said = strip_chat_markup(rest)
            _check_said_once(said, once)
            if (other := _tried(text, said)) and other != found:
                raise Unparsed("it answers once in JSON and once in words, and not the same")
        return found

    return Form(shape.schema, read)


def _tried(text: Callable[[str], T], said: str) -> T | None:
    """What a reader makes of a text; null where that is nothing."""
    with suppress(Unparsed):
        return text(said)
    return None


def _once(schema: Mapping[str, Any]) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The labels that a reply in lines has once: the parts of an object that stand in one line."""
    for name, part in cast(Mapping[str, Any], schema.get("properties", {})).items():
        items = part.get("items", {})
        if part.get("type") != "array" or "enum" in items or items.get("type") == "integer":
            label = re.escape(name).replace("_", r"[\s_-]+")
            line = rf"^[\s>*_#`•-]*(?:final\s+|correct\s+)?{label}[\s*_]*[:：=][\s*_]*(.*)$"
            yield name, re.compile(line, re.IGNORECASE | re.MULTILINE)


def _check_said_once(text: str, labels: Sequence[tuple[str, re.Pattern[str]]]) -> None:
    """Raises Unparsed where lines of one label differ."""
    for name, line in labels:
        values = (" ".join(value.split()).casefold() for value in line.findall(text))
        if len({value.strip(" *_.`\"'") for value in values}) > 1:
            label = name.replace("_", " ").upper()
            raise Unparsed(f"it has several lines '* {label}: ...' that differ; one is wanted")


def words(about: str) -> Shape[str]:
    """A text, its white space single. A number is taken as it is written."""

    def read(value: Any, where: str) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise Unparsed(f"{where} is {_short(value)}, not a text")
        return " ".join(str(value).split())

    return Shape({"type": "string", "description": about}, read)


def number(about: str) -> Shape[float]:
    """A finite number."""

    def read(value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Unparsed(f"{where} is {_short(value)}, not a number")
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise Unparsed(f"{where} is not a number that can be used")
        return found

    return Shape({"type": "number", "description": about}, read)


def whole(about: str) -> Shape[int]:
    """A whole number."""

    def read(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unparsed(f"{where} is {_short(value)}, not a whole number")
        return value

    return Shape({"type": "integer", "description": about}, read)


def one_of(values: Sequence[str], about: str) -> Shape[str]:
    """One of some texts, in any case."""
    known = {value.casefold(): value for value in values}

    def read(value: Any, where: str) -> str:
        found = known.get(value.strip().casefold()) if isinstance(value, str) else None
        if found is None:
            raise Unparsed(f"{where} is {_short(value)}, none of {', '.join(values)}")
        return found

    return Shape({"type": "string", "enum": list(values), "description": about}, read)


def list_of(each: Shape[T], about: str) -> Shape[tuple[T, ...]]:
    """Any number of things of one shape."""

    def read(value: Any, where: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise Unparsed(f"{where} is {_short(value)}, not a list")
        return tuple(
            each.read(item, f"{where}, item {n}")
            for n, item in enumerate(cast(list[Any], value), 1)
        )

    return Shape({"type": "array", "items": dict(each.schema), "description": about}, read)


def record(make: Callable[..., T], **parts: Shape[Any]) -> Shape[T]:
    """An object; `make` is called with its parts by name, and may raise Unparsed. Of one part, the
    value may stand without the object around it.
    """
    schema = {
        "type": "object",
        "properties": {name: dict(part.schema) for name, part in parts.items()},
        "required": list(parts),
        "additionalProperties": False,
    }

    def read(value: Any, where: str) -> T:
        if isinstance(value, list) and len(parts) == 1:
            value = {next(iter(parts)): value}
        if not isinstance(value, dict):
            raise Unparsed(f"{where} is {_short(value)}, not an object")
        there = normalize_keys(cast(dict[str, Any], value))
        for name in parts:
            if name not in there:
                raise Unparsed(f"{where} lacks {name!r}")
        return make(**{name: part.read(there[name], name) for name, part in parts.items()})

    return Shape(schema, read)


def object_with(name: str, part: Shape[T]) -> Shape[T]:
    """An object with one part: what a list must stand in, since a schema's root is an object."""

    def single_value(**parts: T) -> T:
        return parts[name]

    return record(single_value, **{name: part})


def normalize_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object whose keys are in small letters, with underscores: "Wrong Answer 1" is
    `wrong_answer_1`.
    """
    return {re.sub(r"[\s\-]+", "_", key.strip().lower()): inner for key, inner in value.items()}


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(r"^[ \t]*```[^\n]*\n.*?\n[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


def in_json(reply: str, keys: Collection[str] = ()) -> Any:
    """The object or list that a reply is: alone, in a fence, or an object with all of `keys` and
    words around it. None for a reply in words.

    Raises Unparsed for JSON that is broken, and for objects that differ.
    """
    text = _trimmed(reply)
    if isinstance(alone := _loaded(text), (dict, list)):
        return cast(Any, alone)
    found = [v for v in map(_loaded, _FENCE.findall(text)) if isinstance(v, (dict, list))]
    if keys:
        among = (value for value, _, _ in _objects(text))
        found += [o for o in among if set(keys) <= normalize_keys(o).keys()]
    if any(other != found[0] for other in found[1:]):
        raise Unparsed("it holds several JSON objects that differ; one is wanted")
    if not found and re.match(r'(?:```(?:json)?\s*)?\{\s*"', text):
        raise Unparsed("it begins as a JSON object, but is none that can be read")
    return found[0] if found else None


def without_json(reply: str, keys: Collection[str] = ()) -> str:
    """The words around the JSON that `in_json` finds in a reply; none where it is all of it."""
    text = _trimmed(reply)
    if isinstance(_loaded(text), (dict, list)):
        return ""
    text = _FENCE.sub(lambda m: m[0] if _loaded(m[1]) is None else "\n", text)
    for value, start, end in reversed(list(_objects(text))):
        if not keys or set(keys) <= normalize_keys(value).keys():
            text = f"{text[:start]}\n{text[end:]}"
    return text.strip()


def _trimmed(reply: str) -> str:
    return reply.replace("\r\n", "\n").strip("\ufeff \n\t")


def _loaded(text: str) -> Any:
    try:
        return _whole(text, json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return None


def whole_characters(text: str) -> str:
    """A text with a question mark for each half of a character (a lone surrogate), which nothing
    can store or send on.
    """
    return text.encode(errors="replace").decode()


def _whole(text: str, value: Any) -> Any:
    """A value read of JSON, in which an escape may name half of a character."""
    if "\\u" not in text:
        return value
    return json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """The JSON objects in a text with their places, those within others left out."""
    decoder, at = json.JSONDecoder(strict=False), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            value = _whole(text, value)
        except RecursionError:  # deeper than any reply; each of its braces would be tried for long
            return
        except ValueError:
            end = at + 1
        else:
            yield value, at, end
        at = text.find("{", end)


_ENTITIES = {"&gt;": ">", "&lt;": "<", "&quot;": '"', "&#39;": "'", "&amp;": "&"}


def strip_chat_markup(reply: str) -> str:
    """A text reply without what chat adds on its way: Windows line ends, fences, marks that are
    escaped for Markdown or HTML.
    """
    text = reply.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    text = re.sub(r"^[ \t]*```\w*[ \t]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"&(?:gt|lt|quot|#39|amp);", lambda m: _ENTITIES[m[0]], text)
    return re.sub(r"\\([*_#>\[\]().\-`|~])", r"\1", text)


def in_lines(reply: str) -> str:
    """A reply as labelled lines, in the way of the text forms, whichever leg it came on: what is
    kept and shown of it, and read again.
    """
    try:
        value = in_json(reply)
    except Unparsed:
        return reply
    if not isinstance(value, dict):
        return reply
    lines = normalize_keys(cast(dict[str, Any], value)).items()
    return "\n".join(f"* {name.replace('_', ' ').upper()}: {_line(v)}" for name, v in lines)


def _line(value: Any) -> str:
    """A part in one line: letters as a ranking, stretches as times."""
    if not isinstance(value, list):
        return " ".join(value.split()) if isinstance(value, str) else json.dumps(value)
    items = cast(list[Any], value)
    if all(isinstance(item, str) and len(item) == 1 for item in items) and items:
        return " > ".join(items)
    spans = [_stretch(item) for item in items]
    return "; ".join(spans) or "NONE"


def _stretch(item: Any) -> str:
    if isinstance(item, dict) and item.keys() == {"start", "end"}:
        return f"{item['start']}-{item['end']}"
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
